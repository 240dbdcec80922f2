//! Parses bytes into a document, in bounded memory and with the position of any error.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::SCHEMA_VERSION;
use crate::error::{DescriptionError, Problem, Warning};
use crate::explain::explain;
use crate::pieces::pieces;
use crate::place::line_column;
use crate::platform::{Node, Platform};

/// Larger files are refused without reading: a platform of a million nodes takes about 150 MB, its plan about 400 MB.
pub const LARGEST_BYTES: usize = 1_000_000_000;
/// Most bytes of TOML that are parsed at once; the parser takes about fifty times as much memory.
const LARGEST_PIECE_BYTES: usize = 4_000_000;

fn whole(problem: Problem) -> DescriptionError {
    DescriptionError { file: None, line: None, column: None, field: None, problem: Box::new(problem) }
}

fn too_large(bytes: usize, limit: usize) -> DescriptionError {
    whole(Problem::TooLarge { megabytes: bytes as f64 / 1e6, limit: limit / 1_000_000 })
}

/// Returns a file's bytes as text: UTF-8, not empty, not too large.
pub fn text(bytes: &[u8]) -> Result<&str, DescriptionError> {
    if bytes.len() > LARGEST_BYTES {
        return Err(too_large(bytes.len(), LARGEST_BYTES));
    }
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let mut error = whole(Problem::NotText { at: e.valid_up_to() });
        // The bytes before the invalid one are text.
        let before = std::str::from_utf8(&bytes[..e.valid_up_to()]).unwrap_or_default();
        let (line, column) = line_column(before, e.valid_up_to());
        (error.line, error.column) = (Some(line), Some(column));
        error
    })?;
    if text.trim().is_empty() { Err(whole(Problem::Empty)) } else { Ok(text) }
}

/// Parses a document from TOML at once.
pub fn toml<T: DeserializeOwned>(bytes: &[u8], file: &str) -> Result<T, DescriptionError> {
    text(bytes).and_then(|text| piece(text)).map_err(|e| e.in_file(file))
}

/// Parses a document from TOML at once, and checks it.
pub fn toml_checked<T: DeserializeOwned>(
    bytes: &[u8],
    file: &str,
    check: impl FnOnce(&T) -> Result<(), DescriptionError>,
) -> Result<T, DescriptionError> {
    let noun = toml(bytes, file)?;
    check(&noun).map_err(|error| placed(error, bytes, file))?;
    Ok(noun)
}

/// Parses a document from JSON, and checks it.
pub fn json_checked<T: DeserializeOwned>(
    bytes: &[u8],
    file: &str,
    check: impl FnOnce(&T) -> Result<(), DescriptionError>,
) -> Result<T, DescriptionError> {
    let noun = json(bytes, file)?;
    check(&noun).map_err(|error| error.in_file(file))?;
    Ok(noun)
}

/// Adds the position in a TOML text to an error that a check found.
pub fn placed(error: DescriptionError, bytes: &[u8], file: &str) -> DescriptionError {
    error.located(std::str::from_utf8(bytes).unwrap_or_default()).in_file(file)
}

/// Parses a platform from TOML, node by node.
pub fn platform(bytes: &[u8], file: &str) -> Result<Platform, DescriptionError> {
    text(bytes).and_then(in_pieces).map_err(|e| e.in_file(file))
}

fn in_pieces(text: &str) -> Result<Platform, DescriptionError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Head {
        schema_version: u64,
        name: String,
        #[serde(rename = "warning", default)]
        warnings: Vec<Warning>,
    }
    let (head, nodes) = pieces(text);
    if head.len() == text.len() {
        return piece(text); // no `[[node]]` at all: an inline array, or an error to explain
    }
    let Head { schema_version, name, warnings } = piece(head).map_err(|mut error| {
        if let Problem::Unknown { known, .. } = &mut *error.problem {
            known.push("node".into());
        }
        error
    })?;
    version(schema_version).map_err(|e| e.located(text))?;
    let nodes = nodes
        .enumerate()
        .map(|(index, node)| {
            piece::<Node>(node.text).map_err(|mut error| {
                error.line = error.line.map(|line| line + node.line - 1);
                error.field = error.field.map(|field| format!("node[{index}].{field}"));
                error
            })
        })
        .collect::<Result<_, _>>()?;
    Ok(Platform { schema_version, name, warnings, nodes })
}

fn piece<T: DeserializeOwned>(text: &str) -> Result<T, DescriptionError> {
    if text.len() > LARGEST_PIECE_BYTES {
        return Err(too_large(text.len(), LARGEST_PIECE_BYTES));
    }
    let at_span = |mut error: DescriptionError, span: Option<std::ops::Range<usize>>| {
        if let (None, Some(span)) = (error.line, span) {
            let (line, column) = line_column(text, span.start);
            (error.line, error.column) = (Some(line), Some(column));
        }
        error
    };
    let deserializer = toml::Deserializer::parse(text).map_err(|e| at_span(explain(e.message(), None), e.span()))?;
    serde_path_to_error::deserialize(deserializer).map_err(|e| {
        let error = explain(e.inner().message(), Some(&e.path().to_string())).located(text);
        at_span(error, e.inner().span())
    })
}

/// Parses a document from JSON.
pub fn json<T: DeserializeOwned>(bytes: &[u8], file: &str) -> Result<T, DescriptionError> {
    let text = text(bytes).map_err(|e| e.in_file(file))?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|e| {
        let message = e.inner().to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        let mut error = explain(message, Some(&e.path().to_string())).in_file(file);
        if e.inner().line() > 0 {
            (error.line, error.column) = (Some(e.inner().line()), Some(e.inner().column()));
        }
        error
    })
}

/// Parses a part that was read before its type was known.
pub fn value<T: DeserializeOwned>(value: &serde_json::Value) -> Result<T, DescriptionError> {
    serde_path_to_error::deserialize(value).map_err(|e| explain(&e.inner().to_string(), Some(&e.path().to_string())))
}

/// Checks the schema version, the first check of every file.
pub fn version(found: u64) -> Result<(), DescriptionError> {
    if found == SCHEMA_VERSION {
        return Ok(());
    }
    Err(Problem::Version { found: found.to_string(), supported: SCHEMA_VERSION }.at("schema_version".into()))
}
