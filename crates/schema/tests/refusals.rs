//! Errors of an invalid platform: place, field, value, unit, range, nearest name.

use crosswind_schema::Platform;

const HEAD: &str = "schema_version = 1\nname = \"t\"\n";

fn node(name: &str, rest: &str) -> String {
    format!("[[node]]\nname = \"{name}\"\ncompute_per_s = 1.0\n{rest}\n")
}

fn child(name: &str, parent: &str) -> String {
    node(name, &format!("parent = \"{parent}\"\nreceive_limit_mb_per_s = 1.0"))
}

fn refusal(text: &str) -> String {
    let error = Platform::from_toml(text.as_bytes(), "p.toml").expect_err("must be refused");
    match error.hint() {
        Some(hint) => format!("{error} | {hint}"),
        None => error.to_string(),
    }
}

fn cases() -> Vec<(&'static str, String)> {
    vec![
        ("empty", String::new()),
        ("blank", " \n\t\n".into()),
        ("no version", "name = \"t\"\n".into()),
        ("other version", format!("schema_version = 2\nname = \"t\"\n{}", node("a", ""))),
        ("no nodes", HEAD.into()),
        ("no root", format!("{HEAD}{}{}", child("a", "b"), child("b", "a"))),
        ("two roots", format!("{HEAD}{}{}", node("a", ""), node("b", ""))),
        ("cycle", format!("{HEAD}{}{}{}{}", node("r", ""), child("a", "c"), child("b", "a"), child("c", "b"))),
        ("own parent", format!("{HEAD}{}{}", node("r", ""), child("a", "a"))),
        ("unknown parent", format!("{HEAD}{}{}", node("Lab0", ""), child("a", "Lab1"))),
        ("duplicate", format!("{HEAD}{}{}{}", node("r", ""), child("a", "r"), child("a", "r"))),
        ("unknown field", format!("{HEAD}{}", node("r", "compute_pers = 2.0"))),
        ("unknown top field", format!("nam = 1\n{HEAD}{}", node("r", ""))),
        ("missing field", format!("{HEAD}[[node]]\nname = \"r\"\n")),
        ("missing limit", format!("{HEAD}{}{}", node("r", ""), node("a", "parent = \"r\""))),
        ("root receives", format!("{HEAD}{}", node("r", "receive_limit_mb_per_s = 3"))),
        ("root's sender", format!("{HEAD}{}", node("r", "one_sender_share = 0.9"))),
        ("no share", format!("{HEAD}{}{}", node("r", ""), child("a", "r") + "one_sender_share = 0\n")),
        ("share of more", format!("{HEAD}{}{}", node("r", ""), child("a", "r") + "one_sender_share = 1.1\n")),
        ("negative", format!("{HEAD}{}", node("r", "send_limit_mb_per_s = -1"))),
        ("zero", format!("{HEAD}{}", node("r", "send_limit_mb_per_s = 0"))),
        ("nan", format!("{HEAD}{}", node("r", "ir_send_s_per_mb = nan"))),
        ("infinite", format!("{HEAD}{}", node("r", "ir_receive_s_per_mb = inf"))),
        ("wrong type", format!("{HEAD}{}", node("r", "send_limit_mb_per_s = \"10\""))),
        ("empty name", format!("{HEAD}{}", node("", ""))),
        ("syntax", format!("{HEAD}[[node\n")),
        ("twice the same key", format!("{HEAD}{HEAD}")),
    ]
}

#[test]
fn every_refusal_names_place_field_and_mend() {
    let all: Vec<String> = cases().into_iter().map(|(what, text)| format!("{what}: {}", refusal(&text))).collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn rubbish_is_refused_with_the_first_bad_byte() {
    let error = Platform::from_toml(&[0xff; 1000], "p.toml").expect_err("rubbish");
    assert_eq!(error.to_string(), "p.toml:1:1: the file is not text: byte 0 is not UTF-8");
}

#[test]
fn a_rate_that_would_take_more_than_the_processor_is_a_warning_that_names_the_node() {
    let text = format!(
        "{HEAD}{}{}",
        node("r", ""),
        node("a", "parent = \"r\"\nreceive_limit_mb_per_s = 10\nir_send_s_per_mb = 0.2")
    );
    let platform = Platform::from_toml(text.as_bytes(), "p.toml").expect("allowed");
    let warnings = platform.warnings();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].message.contains("\"a\"") && warnings[0].message.contains("ir_send_s_per_mb"));
}

#[test]
fn what_is_written_is_read_back_the_same() {
    let text = format!("{HEAD}{}{}", node("r", "send_limit_mb_per_s = 2.5"), child("a", "r"));
    let platform = Platform::from_toml(text.as_bytes(), "p.toml").expect("valid");
    let again = Platform::from_toml(platform.to_toml().expect("writes").as_bytes(), "q.toml").expect("valid");
    assert_eq!(platform, again);
}

#[test]
fn what_is_known_against_the_figures_travels_with_them() {
    let told = "[[warning]]\ncode = \"loopback\"\nmessage = \"the same machine\"\nhint = \"use another\"\n";
    let text = format!("{HEAD}{told}{}{}", node("r", ""), child("a", "r"));
    let platform = Platform::from_toml(text.as_bytes(), "p.toml").expect("valid");
    assert_eq!(platform.warnings().iter().map(|w| w.code.as_str()).collect::<Vec<_>>(), ["loopback"]);
    let again = Platform::from_toml(platform.to_toml().expect("writes").as_bytes(), "q.toml").expect("valid");
    assert_eq!(platform, again);
}
