//! From bytes to a noun: bounded, and with the place of whatever is wrong.

use serde::de::DeserializeOwned;

use crate::SCHEMA_VERSION;
use crate::error::{DescriptionError, Problem, nearest};

/// Larger files are refused unread: a platform of a million nodes takes about 150 MB.
pub const LARGEST_BYTES: usize = 256_000_000;

fn text(bytes: &[u8]) -> Result<&str, DescriptionError> {
    let whole = |problem| DescriptionError { file: None, line: None, column: None, field: None, problem };
    if bytes.len() > LARGEST_BYTES {
        return Err(whole(Problem::TooLarge { megabytes: bytes.len() as f64 / 1e6, limit: LARGEST_BYTES / 1_000_000 }));
    }
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let mut error = whole(Problem::NotText { at: e.valid_up_to() });
        let (line, column) = line_column(bytes, e.valid_up_to());
        (error.line, error.column) = (Some(line), Some(column));
        error
    })?;
    if text.trim().is_empty() { Err(whole(Problem::Empty)) } else { Ok(text) }
}

pub fn toml<T: DeserializeOwned>(bytes: &[u8], file: &str) -> Result<T, DescriptionError> {
    let text = text(bytes).map_err(|e| e.in_file(file))?;
    let syntax = |e: toml::de::Error| {
        let mut error = explain(e.message(), None);
        if let Some(span) = e.span() {
            let (line, column) = line_column(bytes, span.start);
            (error.line, error.column) = (Some(line), Some(column));
        }
        error.in_file(file)
    };
    let deserializer = toml::Deserializer::parse(text).map_err(syntax)?;
    serde_path_to_error::deserialize(deserializer).map_err(|e| {
        let path = e.path().to_string();
        let mut error = explain(e.inner().message(), Some(&path)).located(bytes, file);
        if let (None, Some(span)) = (error.line, e.inner().span()) {
            let (line, column) = line_column(bytes, span.start);
            (error.line, error.column) = (Some(line), Some(column));
        }
        error
    })
}

pub fn json<T: DeserializeOwned>(bytes: &[u8], file: &str) -> Result<T, DescriptionError> {
    let text = text(bytes).map_err(|e| e.in_file(file))?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|e| {
        let path = e.path().to_string();
        let message = e.inner().to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        let mut error = explain(message, Some(&path)).in_file(file);
        if e.inner().line() > 0 {
            (error.line, error.column) = (Some(e.inner().line()), Some(e.inner().column()));
        }
        error
    })
}

/// The check that every file starts with.
pub fn version(found: u64) -> Result<(), DescriptionError> {
    if found == SCHEMA_VERSION {
        return Ok(());
    }
    Err(Problem::Version { found: found.to_string(), supported: SCHEMA_VERSION }.at("schema_version".into()))
}

/// Turns serde's sentence into ours.
fn explain(message: &str, path: Option<&str>) -> DescriptionError {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let parent = path.filter(|p| *p != ".").map(str::to_owned);
    let inside = |name: &str| match &parent {
        Some(p) => format!("{p}.{name}"),
        None => name.to_owned(),
    };
    let (field, problem) = if message.starts_with("missing field") && !quoted.is_empty() {
        (Some(inside(quoted[0])), Problem::Missing)
    } else if message.starts_with("unknown field") && !quoted.is_empty() {
        let known: Vec<String> = quoted[1..].iter().map(|s| (*s).to_owned()).collect();
        let nearest = nearest(quoted[0], known.iter().map(String::as_str));
        // The path already ends with the unknown field where the format tells it.
        let field = match &parent {
            Some(p) if p == quoted[0] || p.ends_with(&format!(".{}", quoted[0])) => p.clone(),
            _ => inside(quoted[0]),
        };
        (Some(field), Problem::Unknown { nearest, known })
    } else if message.starts_with("unknown variant") && !quoted.is_empty() {
        let known: Vec<String> = quoted[1..].iter().map(|s| (*s).to_owned()).collect();
        let nearest = nearest(quoted[0], known.iter().map(String::as_str));
        (parent, Problem::Choice { found: quoted[0].to_owned(), nearest, known })
    } else if let Some((found, expected)) =
        message.strip_prefix("invalid type: ").and_then(|m| m.split_once(", expected "))
    {
        (parent, Problem::Value(format!("is {}; it must be {}", in_words(found), in_words(expected))))
    } else if message.starts_with("invalid value") || message.starts_with("is ") {
        (parent, Problem::Value(message.trim().to_owned()))
    } else {
        (None, Problem::Syntax(message.trim().replace('\n', "; ")))
    };
    DescriptionError { file: None, line: None, column: None, field, problem }
}

/// Serde's names of types, as people say them.
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

/// Line and column, from 1, of a byte offset.
fn line_column(bytes: &[u8], at: usize) -> (usize, usize) {
    let before = &bytes[..at.min(bytes.len())];
    let line = before.iter().filter(|b| **b == b'\n').count() + 1;
    let start = before.iter().rposition(|b| *b == b'\n').map_or(0, |p| p + 1);
    (line, String::from_utf8_lossy(&before[start..]).chars().count() + 1)
}

/// Where a field such as `node[2].name` stands in a TOML text, its value or (`of_name`) its name; its nearest existing
/// ancestor otherwise.
pub fn place_of(bytes: &[u8], field: &str, of_name: bool) -> Option<(usize, usize)> {
    use toml::de::{DeTable, DeValue};
    let text = std::str::from_utf8(bytes).ok()?;
    let document = DeTable::parse(text).ok()?;
    let mut place = None;
    let mut here: Option<&DeValue<'_>> = None;
    for step in field.split(['.', '[']).filter(|s| !s.is_empty()) {
        let found = if let Some(index) = step.strip_suffix(']') {
            let DeValue::Array(items) = here? else { break };
            items.get(index.parse::<usize>().ok()?).map(|v| (v.span(), v.get_ref()))
        } else {
            let table = match here {
                None => document.get_ref(),
                Some(DeValue::Table(table)) => table,
                Some(_) => break,
            };
            table.get_key_value(step).map(|(key, value)| {
                let is_value = !of_name && !matches!(value.get_ref(), DeValue::Table(_) | DeValue::Array(_));
                (if is_value { value.span() } else { key.span() }, value.get_ref())
            })
        };
        let Some((span, value)) = found else { break };
        place = Some(line_column(bytes, span.start));
        here = Some(value);
    }
    place
}
