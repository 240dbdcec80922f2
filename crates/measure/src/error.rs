//! Errors of a measurement. Each variant is something the user can act on.

use std::io;

use crosswind_access::AccessError;

#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// A setting is out of its range.
    #[error("{field} is {value}; it must be {permitted}")]
    Value {
        /// Name of the setting, as in `measure(...)`.
        field: String,
        value: String,
        /// Permitted values, with their unit.
        permitted: String,
    },
    /// The address is reachable from other hosts without a token or certificate, or one of these is invalid.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The other end answered, but not like a peer of this version.
    #[error("{peer}: {why}")]
    Refused {
        peer: String,
        /// Reason given by the peer, or what was wrong with its answer.
        why: String,
    },
    /// The peer could not be reached.
    #[error("{peer}: cannot be reached: {source}")]
    Unreachable { peer: String, source: io::Error },
    /// The peer was connected and the connection broke.
    #[error("{peer}: the peer was lost: {why}")]
    Lost { peer: String, why: String },
    /// The user's own work failed.
    #[error("the task failed: {0}")]
    Task(String),
    /// A unit of the user's own work did not end within the time limit, s.
    #[error("no unit of the task ended within {0:.1} s")]
    Slow(f64),
    #[error("{what}: {source}")]
    System { what: String, source: io::Error },
    /// A foreign process ended, reported an error, or violated the protocol.
    #[error("{probe}: {why}")]
    Foreign { probe: String, why: String },
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl MeasureError {
    /// Wraps an error of the system, with the operation that failed.
    pub fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }

    /// A setting out of its range.
    pub fn value(field: &str, value: impl ToString, permitted: impl Into<String>) -> Self {
        Self::Value { field: field.into(), value: value.to_string(), permitted: permitted.into() }
    }

    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Value { .. } => "value",
            Self::Access(error) => error.code(),
            Self::Refused { .. } => "refused",
            Self::Unreachable { .. } => "unreachable",
            Self::Lost { .. } => "peer-lost",
            Self::Task(_) => "task",
            Self::Slow(_) => "task-slow",
            Self::System { .. } => "system",
            Self::Foreign { .. } => "probe",
            Self::Interrupted => "interrupted",
        }
    }

    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Value { .. } | Self::Interrupted => return None,
            Self::Access(error) => error.hint(),
            Self::Refused { .. } => {
                "is a `crosswind serve` of the same version listening there, with the same token or certificates of the same set?"
            }
            Self::Unreachable { .. } => "start `crosswind serve --listen HOST:PORT` there, and check the address",
            Self::Lost { .. } => "what was sampled until then is kept; look at the peer's own output",
            Self::Task(_) => "run the task by itself first; it must end with exit status 0",
            Self::Foreign { .. } => "`crosswind probe check COMMAND...` says what is wrong with a probe",
            Self::Slow(_) => "give it less to do per unit, or more time: a measurement needs some tens of units",
            Self::System { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => "a lower nice level and some socket options need privilege",
                _ => return None,
            },
        })
    }
}
