//! Errors of a live run. Each variant is something the user can act on.

use std::any::Any;
use std::io;

use crosswind_access::AccessError;
use crosswind_agent::SettingsError;
use crosswind_agent::frame::Refusal;

#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// A setting is out of its range.
    #[error("{field} is {value}; it must be {permitted}")]
    Value { field: String, value: String, permitted: String },
    /// Access control is missing or wrong: an open address, a weak token, or an unusable key or certificate.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The peer answered, but not as this protocol requires.
    #[error("{peer}: {why}")]
    Refused {
        peer: String,
        refusal: Refusal,
        /// The peer's reason, or what was wrong with its answer.
        why: String,
    },
    /// The peer could not be reached.
    #[error("{peer}: cannot be reached: {source}")]
    Unreachable { peer: String, source: io::Error },
    /// No agent is left to do the work.
    #[error("{0}")]
    Lost(String),
    /// Every rank is waiting or done, and no message is in flight.
    #[error("the program is stuck: {0}")]
    Deadlock(String),
    /// The program's result differs from that of a plain computation.
    #[error("the program's result is wrong: {0}")]
    WrongResult(String),
    /// The work can't be done as described.
    #[error("the work cannot be set up: {0}")]
    Setup(String),
    /// A file that is not a journal, or the journal of another run.
    #[error("{file}: {why}")]
    Journal {
        file: String,
        why: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// Replaying the recorded events gives commands other than those recorded.
    #[error("line {line} of the log of {node}: {why}")]
    Replay { node: String, line: usize, why: String },
    #[error("{what}: {source}")]
    System { what: String, source: io::Error },
    /// A task exceeded its time limit, and only ending this process stops it.
    #[error("task {task} is over its time of {timeout_s} s, and this agent ends with it")]
    OverTime {
        task: u64,
        /// Time limit of the task, s.
        timeout_s: f64,
    },
    /// A thread of this process panicked.
    #[error("a fault of Crosswind: {thread} panicked: {message}")]
    Panicked { thread: &'static str, message: String },
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// Returns the message of a panic that was caught.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned()
}

impl From<SettingsError> for LiveError {
    fn from(error: SettingsError) -> Self {
        match error {
            SettingsError::Value { field, value, permitted } => Self::Value { field, value, permitted },
            SettingsError::Setup(why) => Self::Setup(why),
        }
    }
}

impl LiveError {
    /// Adds what was attempted to an error of the system.
    pub fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }

    /// Describes an answer that this protocol does not allow, or with which the peer refuses.
    pub(crate) fn refused(peer: &str, why: impl ToString) -> Self {
        Self::Refused { peer: peer.into(), refusal: Refusal::Final, why: why.to_string() }
    }

    /// Describes a panic of a thread.
    #[must_use]
    pub fn panicked(thread: &'static str, panic: &(dyn Any + Send)) -> Self {
        Self::Panicked { thread, message: panic_message(panic) }
    }

    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Value { .. } => "value",
            Self::Access(error) => error.code(),
            Self::Refused { .. } => "refused",
            Self::Unreachable { .. } => "unreachable",
            Self::Lost(_) => "agents-lost",
            Self::Deadlock(_) => "deadlock",
            Self::WrongResult(_) => "wrong-result",
            Self::Setup(_) => "setup",
            Self::Journal { .. } => "journal",
            Self::Replay { .. } => "replay",
            Self::System { source, .. } if is_full(source) => "disk-full",
            Self::System { .. } => "system",
            Self::OverTime { .. } => "over-time",
            Self::Panicked { .. } => "fault",
            Self::Interrupted => "interrupted",
        }
    }

    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Access(error) => error.hint(),
            Self::Refused { .. } => "both ends need the same version and the same token",
            Self::Unreachable { .. } => "start the parent first, and check the address",
            Self::Lost(_) => "look at the logs of the agents or ranks",
            Self::Deadlock(_) => "each rank waits for what another one must do first: the program's order is wrong",
            Self::Journal { hint, .. } => hint,
            Self::System { source, .. } if is_full(source) => {
                "make room, then go on with --resume: what was delivered stands in the journal"
            }
            Self::System { source, .. } if source.raw_os_error() == Some(libc::EMFILE) => {
                "raise the limit of open files: ulimit -n 1024"
            }
            _ => return None,
        })
    }
}

/// Returns whether the error means no space, no quota, or a file at its maximum size.
fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG))
}
