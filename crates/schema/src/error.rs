//! Errors of descriptions: what is wrong, where it is in the file, and how to fix it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::place::place_of;

/// Something to know before trusting a number. Written to the result file and shown in the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Warning {
    /// Stable identifier that scripts may rely on.
    pub code: String,
    /// The condition that the warning is about.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

impl Warning {
    /// Creates a warning from its three parts.
    pub fn new(code: &str, message: impl Into<String>, hint: &str) -> Self {
        Self { code: code.into(), message: message.into(), hint: hint.into() }
    }
}

/// What is wrong with a description. Each variant is something the user can act on; its message describes it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    #[error("is empty")]
    Empty,
    #[error("is {megabytes:.0} MB; at most {limit} MB are read at once")]
    TooLarge { megabytes: f64, limit: usize },
    #[error("is not text: byte {at} is not UTF-8")]
    NotText { at: usize },
    #[error("{0}")]
    Syntax(String),
    #[error("is {found}; this build reads version {supported}")]
    Version { found: String, supported: u64 },
    #[error("is missing")]
    Missing,
    #[error("is no field of this file{}", nearest.as_ref().map(|n| format!("; the nearest is `{n}`")).unwrap_or_default())]
    Unknown { nearest: Option<String>, known: Vec<String> },
    #[error("cannot be set{}", nearest.as_ref().map(|n| format!("; the nearest that can is `{n}`")).unwrap_or_default())]
    NotSet { nearest: Option<String>, known: Vec<String> },
    #[error("cannot be {value}")]
    NoValue { path: String, value: String, several: bool },
    #[error("is {found:?}; it must be one of {}{}", known.join(", "), nearest.as_ref().map(|n| format!("; the nearest is {n:?}")).unwrap_or_default())]
    Choice { found: String, nearest: Option<String>, known: Vec<String> },
    #[error("{0}")]
    Value(String),
    #[error("must have {permitted}")]
    Length { permitted: &'static str },
    #[error("no node is the root: every node names a parent")]
    NoRoot,
    #[error("two roots: {first:?} and {second:?} both name no parent")]
    TwoRoots { first: String, second: String },
    #[error("a cycle: {}", ring(names))]
    Cycle { names: Vec<String> },
    #[error("is {parent:?}, which is no node of this file{}", nearest.as_ref().map(|n| format!("; the nearest is {n:?}")).unwrap_or_default())]
    UnknownParent { parent: String, nearest: Option<String> },
    #[error("is {host:?}, which is no host of this file{}", nearest.as_ref().map(|n| format!("; the nearest is {n:?}")).unwrap_or_default())]
    UnknownHost { host: String, nearest: Option<String> },
    #[error("is {name:?}, the name of {first} already")]
    DuplicateName { name: String, first: String },
    #[error("receive_limit_mb_per_s of {node:?} is missing; every node below the root needs one, greater than 0 MB/s")]
    MissingLimit { node: String },
    #[error("is given for {node:?}, the root, which has no parent to receive from")]
    RootReceives { node: String },
    #[error("is not above the rate before it; rates ascend")]
    NotAscending,
}

fn ring(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(8).map(String::as_str).collect();
    let more = if names.len() > 8 { format!(" -> ... ({} nodes)", names.len()) } else { String::new() };
    format!("{}{more} -> {}", shown.join(" -> "), names.first().map_or("", String::as_str))
}

impl Problem {
    /// Places the problem at a field's path, such as `node[2].name`.
    #[must_use]
    pub fn at(self, field: String) -> DescriptionError {
        DescriptionError { file: None, line: None, column: None, field: Some(field), problem: Box::new(self) }
    }

    /// Places the problem at a line and column, from 1.
    pub(crate) fn at_line(self, line: usize, column: usize) -> DescriptionError {
        let (line, column) = (Some(line), Some(column));
        DescriptionError { file: None, line, column, field: None, problem: Box::new(self) }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Empty => "a description starts with `schema_version = 1` and a `name`; see `examples/`".into(),
            Self::TooLarge { .. } => {
                "is this the right file? Large platforms are written with a `[[node]]` table per node".into()
            }
            Self::NotText { .. } => "descriptions are UTF-8 text; is this the right file?".into(),
            Self::Syntax(_) => "the file must be valid TOML (JSON for plans)".into(),
            Self::Version { supported, .. } => {
                format!("write `schema_version = {supported}`, or use the Crosswind that wrote this file")
            }
            Self::Missing => "see docs/reference/files.md for the fields of each file".into(),
            Self::Unknown { known, .. } => format!("the fields here are: {}", known.join(", ")),
            Self::NotSet { known, .. } => format!("change others in the file; these can be set: {}", known.join(", ")),
            Self::NoValue { path, value, several: true } => {
                format!("set one value, or try several: `[sweep]` with `\"{path}\" = {value}` in the file")
            }
            Self::NoValue { .. } => {
                "docs/reference/files.md says what each field may be, `crosswind schema experiment` in JSON".into()
            }
            Self::NoRoot => "leave out `parent` at the node that holds the input data".into(),
            Self::TwoRoots { second, .. } => format!("give {second:?} a `parent`"),
            Self::Cycle { .. } => "every chain of parents must end at the root".into(),
            Self::UnknownParent { .. } => "a parent is named exactly as in its own `name`".into(),
            Self::UnknownHost { .. } => "a link names its hosts exactly as they stand in `[[host]]`".into(),
            Self::DuplicateName { .. } => "names must be unique".into(),
            Self::NotAscending => "one entry per rate, the lowest first".into(),
            Self::MissingLimit { .. } => "`crosswind measure` finds it".into(),
            Self::RootReceives { .. } => "remove the field, or give the node a `parent`".into(),
            Self::Choice { .. } | Self::Value(_) | Self::Length { .. } => return None,
        })
    }
}

/// What is wrong, and where: file, line, column, field.
#[derive(Clone, Debug, PartialEq)]
pub struct DescriptionError {
    /// The file, as the user named it.
    pub file: Option<String>,
    /// Line in the file, from 1.
    pub line: Option<usize>,
    /// Column in the line, from 1, in characters.
    pub column: Option<usize>,
    /// The field's path, such as `node[2].receive_limit_mb_per_s`.
    pub field: Option<String>,
    /// What is wrong with it.
    pub problem: Box<Problem>,
}

impl DescriptionError {
    /// Returns how to fix it, if known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        self.problem.hint()
    }

    pub(crate) fn in_file(mut self, file: &str) -> Self {
        self.file = Some(file.into());
        self
    }

    /// Turns the error of a part into one of the whole, whose field `section` is the part.
    #[must_use]
    pub fn below(mut self, section: &str) -> Self {
        self.field = Some(match self.field {
            Some(field) => format!("{section}.{field}"),
            None => section.into(),
        });
        self
    }

    /// Adds line and column of the error's field in `text`.
    pub(crate) fn located(mut self, text: &str) -> Self {
        if let (None, Some(field)) = (self.line, &self.field) {
            if let Some((line, column)) = place_of(text, field, matches!(*self.problem, Problem::Unknown { .. })) {
                self.line = Some(line);
                self.column = Some(column);
            }
        }
        self
    }
}

impl fmt::Display for DescriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}")?;
            if let (Some(line), Some(column)) = (self.line, self.column) {
                write!(f, ":{line}:{column}")?;
            }
            write!(f, ": ")?;
        }
        match (&self.field, &*self.problem) {
            (_, Problem::NoRoot | Problem::TwoRoots { .. } | Problem::Cycle { .. } | Problem::MissingLimit { .. }) => {}
            (Some(field), _) => write!(f, "{field} ")?,
            (None, Problem::Empty | Problem::TooLarge { .. } | Problem::NotText { .. }) => write!(f, "the file ")?,
            (None, _) => {}
        }
        write!(f, "{}", self.problem)
    }
}

impl std::error::Error for DescriptionError {}

/// Returns the known name nearest to `word`, if one is near enough to have been meant.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    const LOOKED_AT: usize = 10_000; // bounds the time on huge platforms
    if word.len() > 255 {
        return None;
    }
    known
        .take(LOOKED_AT)
        .map(|name| {
            // The name of a section that both have is not compared.
            let (word, field) = match (word.rsplit_once('.'), name.rsplit_once('.')) {
                (Some((section, word)), Some((same, name))) if section == same => (word, name),
                _ => (word, name),
            };
            (strsim::jaro_winkler(word, field), name)
        })
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name.to_owned())
}
