//! Rewrites serde's messages: which field, what it is, what it must be.

use std::borrow::Cow;

use crate::error::{DescriptionError, Problem, nearest};

/// Most characters of a message from serde, which quotes the value found, however long, and lists the known names
/// after it.
const LONGEST_MESSAGE: usize = 4_000;
const LONGEST_PATH: usize = 400;

/// Rewrites a message of serde for the reader of the file.
pub fn explain(message: &str, path: Option<&str>) -> DescriptionError {
    let message = &*clipped(message, LONGEST_MESSAGE);
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let parent = path.filter(|p| *p != ".").map(|p| clipped(p, LONGEST_PATH).into_owned());
    let inside = |name: &str| match &parent {
        Some(p) => format!("{p}.{name}"),
        None => name.to_owned(),
    };
    let (field, problem) = if message.starts_with("missing field") && !quoted.is_empty() {
        (Some(inside(quoted[0])), Problem::Missing)
    } else if message.starts_with("unknown field") && !quoted.is_empty() {
        let known: Vec<String> = quoted[1..].iter().map(|s| (*s).to_owned()).collect();
        let nearest = nearest(quoted[0], known.iter().map(String::as_str));
        // With some formats, the path already ends with the unknown field.
        let field = match &parent {
            Some(p) if p == quoted[0] || p.ends_with(&format!(".{}", quoted[0])) => p.clone(),
            _ => inside(quoted[0]),
        };
        (Some(field), Problem::Unknown { nearest, known })
    } else if message.starts_with("unknown variant") && !quoted.is_empty() {
        let known: Vec<String> = quoted[1..].iter().map(|s| (*s).to_owned()).collect();
        let nearest = nearest(quoted[0], known.iter().map(String::as_str));
        (parent, Problem::Choice { found: quoted[0].to_owned(), nearest, known })
    } else if let Some((found, expected)) = ["invalid type: ", "invalid value: "]
        .iter()
        .find_map(|what| message.strip_prefix(what)?.split_once(", expected "))
    {
        (parent, Problem::Value(format!("is {}; it must be {}", in_words(found), in_words(expected))))
    } else if let Some((count, expected)) =
        message.strip_prefix("invalid length ").and_then(|rest| rest.split_once(", expected "))
    {
        (parent, Problem::Value(format!("has {count} entries; it must be {expected}")))
    } else if message.starts_with("invalid value") || message.starts_with("is ") {
        (parent, Problem::Value(message.trim().to_owned()))
    } else {
        (None, Problem::Syntax(message.trim().replace('\n', "; ")))
    };
    DescriptionError { file: None, line: None, column: None, field, problem: Box::new(problem) }
}

/// Shortens a sentence in its middle, where it quotes the file.
fn clipped(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let (mut start, mut end) = (most / 4, text.len() - most / 2);
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    while !text.is_char_boundary(end) {
        end += 1;
    }
    Cow::Owned(format!("{}...{}", &text[..start], &text[end..]))
}

/// Returns serde's names of types in plain words.
fn in_words(type_name: &str) -> String {
    match type_name.trim() {
        "f64" => "a number".into(),
        "u64" | "u32" => "a whole number, at least 0".into(),
        "a sequence" => "an array".into(),
        other if other.starts_with("struct ") => "a table".into(),
        other if other.starts_with("integer") || other.starts_with("map") => {
            other.replace('`', "").replace("map", "a table")
        }
        other => other.replace('`', ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_does_not_repeat_what_is_too_long() {
        let long = "ä".repeat(1_000_000);
        let said = explain(&format!("invalid type: string \"{long}\", expected u64"), Some(&long)).to_string();
        assert!(said.len() < LONGEST_MESSAGE + LONGEST_PATH + 100, "{}", said.len());
        assert!(said.ends_with("it must be a whole number, at least 0"), "{said}");
        let said = explain(&format!("unknown field `{long}`, expected `name` or `node`"), None).to_string();
        assert!(said.len() < LONGEST_MESSAGE + 100 && said.contains("is no field"), "{}", said.len());
    }
}
