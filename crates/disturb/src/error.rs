//! Errors of disturbing a command and of recording noise.

use std::io;

use crosswind_schema::DescriptionError;

#[derive(Debug, thiserror::Error)]
pub enum DisturbError {
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// A setting is out of its range.
    #[error("{field} is {value}; it must be {permitted}")]
    Value { field: String, value: String, permitted: String },
    /// The described work cannot be set up.
    #[error("the work cannot be set up: {0}")]
    Setup(String),
    /// A started process cannot be ended.
    #[error("{0}")]
    Lost(String),
    #[error("{what}: {source}")]
    System { what: String, source: io::Error },
}

impl DisturbError {
    /// Wraps an error of the system, with the operation that failed.
    pub fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }

    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Description(_) => "description",
            Self::Value { .. } => "value",
            Self::Setup(_) => "setup",
            Self::Lost(_) => "agents-lost",
            Self::System { .. } => "system",
        }
    }
}
