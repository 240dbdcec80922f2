//! Closed forms of experiments of kind streams: the figures of the issue, and cases without a form.

use crosswind_model::streams::closed_forms;
use crosswind_schema::StreamsExperiment;
use crosswind_schema::experiment::Grid;

fn forms(streams: &str, rest: &str) -> std::collections::BTreeMap<String, f64> {
    let head = "schema_version = 1\nname = \"e\"\n";
    let text = format!("{head}{rest}\n[workload]\nkind = \"streams\"\nhosts = 4\nstream = [{streams}]\n");
    closed_forms(&StreamsExperiment::from_toml(text.as_bytes(), "e.toml").unwrap()).unwrap()
}

fn stream(name: &str, class: &str, from: u32, to: &str, bytes: u32, rest: &str) -> String {
    format!("{{ name = {name:?}, class = {class:?}, from = {from}, to = {to}, message_bytes = {bytes}{rest} }}, ")
}

const BARE: &str = "network = { link_mb_per_s = 19.375, latency_s = 0 }";

#[test]
fn without_latency_it_is_1_and_the_quotient_of_the_lengths_in_frames() {
    for (bytes, expected) in [(64, 17.0), (2048, 9.0)] {
        let local = stream("local", "local", 0, "2", 16384, ", arrivals = \"backlogged\"");
        let found = forms(&(stream("A", "parallel", 0, "1", bytes, "") + &local), BARE);
        assert!((found["fifo A"] - expected).abs() < 1e-12, "{found:?}");
        let own = 16.0_f64;
        let frames = (f64::from(bytes) / 1024.0).ceil();
        assert!((found["fifo local"] - (1.0 + frames / own)).abs() < 1e-12);
    }
}

#[test]
fn two_messages_under_way_stand_before_one_and_latency_makes_it_less() {
    let local = stream("local", "local", 0, "2", 16384, ", arrivals = \"backlogged\", outstanding = 2");
    let streams = stream("A", "parallel", 0, "1", 64, "") + &local;
    assert!((forms(&streams, BARE)["fifo A"] - 33.0).abs() < 1e-12);
    let late = forms(&streams, "")["fifo A"];
    assert!((27.0..28.0).contains(&late), "{late}");
    // The local stream has two messages in flight, so it has no form.
    assert!(!forms(&streams, "").contains_key("fifo local"));
}

#[test]
fn a_stream_that_shares_no_link_costs_nothing() {
    let apart = stream("A", "parallel", 0, "1", 64, "") + &stream("local", "local", 2, "3", 16384, "");
    assert_eq!(forms(&apart, "")["fifo A"], 1.0);
}

#[test]
fn streams_that_meet_at_a_receiver_or_on_the_way_back_count_too() {
    let a = stream("A", "parallel", 0, "1", 64, "");
    let there = a.clone() + &stream("local", "local", 2, "1", 16384, "");
    assert!((forms(&there, BARE)["fifo A"] - 18.0).abs() < 1e-12);
    let all = stream("A", "parallel", 0, "[1, 2, 3]", 64, ", answer_bytes = 64");
    let both = stream("out", "local", 0, "1", 16384, "") + &stream("in", "local", 1, "0", 16384, "");
    let found = forms(&(all + &both), BARE)["fifo A"];
    assert!((found - (1.0 + 32.0 / 4.0)).abs() < 1e-12, "{found}");
}

#[test]
fn where_two_streams_merge_before_a_receiver_there_is_a_form_beside_the_bound_and_nowhere_else() {
    let a = stream("A", "parallel", 0, "1", 2048, "");
    let local = |from, bytes, rest: &str| stream("local", "local", from, "1", bytes, rest);
    let found = forms(&(a.clone() + &local(2, 16384, "")), BARE);
    assert!((found["merged A"] - 3.13).abs() < 0.01 && found["fifo A"] >= 10.0, "{found:?}");
    // The long stream's messages are longer than the test's, so it has no form.
    assert!(!found.contains_key("merged local"));
    for other in [local(0, 16384, ""), local(2, 16384, ", gap_s = 0.1"), local(2, 1024, "")] {
        assert!(!forms(&(a.clone() + &other), BARE).contains_key("merged A"), "{other}");
    }
}

#[test]
fn there_is_no_form_of_messages_made_whatever_is_under_way_nor_where_frames_are_lost_nor_beside_a_job() {
    let a = stream("A", "parallel", 0, "1", 64, "");
    let open = stream("local", "local", 0, "1", 64, ", arrivals = \"open\", gap_s = 1");
    assert!(forms(&(a.clone() + &open), "").is_empty());
    assert!(forms(&a, "network = { link_mb_per_s = 10, transport = \"slow-start\" }").is_empty());
    let job = "]\njob = [{ program = \"mg\", hosts = [0, 1, 2, 3] }";
    assert!(forms(&(a + job), "").is_empty());
}

#[test]
fn every_point_of_a_sweep_has_its_own() {
    let text = "schema_version = 1\nname = \"e\"\n[workload]\nkind = \"streams\"\nhosts = 3\n\
        [[workload.stream]]\nname = \"A\"\nclass = \"parallel\"\nfrom = 0\nto = 1\nmessage_bytes = 64\n\
        [[workload.stream]]\nname = \"local\"\nclass = \"local\"\nfrom = 0\nto = 2\nmessage_bytes = 2048\n\
        [sweep]\n\"workload.stream[1].message_bytes\" = [2048, 16384]\n";
    let experiment = StreamsExperiment::from_toml(text.as_bytes(), "e.toml").unwrap();
    let found: Vec<f64> =
        experiment.points().map(|point| closed_forms(&point.unwrap().experiment).unwrap()["fifo A"]).collect();
    assert!(found[1] > 4.0 * found[0], "{found:?}");
}
