//! Reasons why a process or a control group is not frozen.

use std::fmt;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// Reason why a process or a control group is not frozen. Numbers are process ids unless noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No such process, or group.
    Gone(i32),
    /// The id of a thread; the second is its process.
    Thread(i32, i32),
    /// It has ended, and its parent has not yet waited for it.
    Zombie(i32),
    /// Another process traces it: a debugger, `strace`, or another session. The second id and the name are the
    /// tracer's.
    Traced(i32, i32, String),
    Stopped(i32),
    /// Its control group is frozen already, itself or by an ancestor; the file that thaws the frozen group.
    Frozen(String),
    /// Another session freezes it, or a group that it is in.
    InUse(String),
    /// This user may not stop it.
    NotPermitted(i32),
    /// More processes than descriptors; the limit of descriptors.
    TooMany(i32),
    Lost,
    /// Any other error of the kernel; errno.
    System(i32),
}

impl Refusal {
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Gone(_) => "gone",
            Self::Thread(..) => "thread",
            Self::Zombie(_) => "zombie",
            Self::Traced(..) => "traced",
            Self::Stopped(_) => "stopped",
            Self::Frozen(_) => "frozen",
            Self::InUse(_) => "in-use",
            Self::NotPermitted(_) => "not-permitted",
            Self::TooMany(_) => "too-many",
            Self::Lost => "unwatched",
            Self::System(_) => "system",
        }
    }

    /// Returns advice on how to resolve it; empty if there is none.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Gone(0) => String::new(),
            Self::Gone(_) => "`ps` lists processes".into(),
            Self::Thread(_, process) => format!("name the process: {process}"),
            Self::Zombie(_) => "name a process that still runs".into(),
            Self::Traced(..) => "end the tracer first".into(),
            Self::Stopped(pid) => format!("`kill -CONT {pid}` continues it, if it should run"),
            Self::Frozen(file) => match file.rsplit_once('/') {
                Some((_, "cgroup.freeze")) => format!("`echo 0 > {file}` thaws it, if it should run"),
                Some((_, "freezer.state")) => format!("`echo THAWED > {file}` thaws it, if it should run"),
                _ => "a group above it is frozen, which is not visible here: look outside of this container".into(),
            },
            Self::InUse(_) => "wait for the end of the other session".into(),
            Self::NotPermitted(_) => "run as its user, or as root".into(),
            Self::TooMany(_) => "raise the limit: `ulimit -n`".into(),
            Self::Lost | Self::System(_) => String::new(),
        }
    }

    pub(super) fn of(errno: Errno, pid: i32) -> Self {
        match errno {
            Errno::SRCH | Errno::NOENT => Self::Gone(pid),
            Errno::PERM | Errno::ACCESS => Self::NotPermitted(pid),
            Errno::MFILE | Errno::NFILE => Self::TooMany(limit()),
            other => Self::System(other.raw_os_error()),
        }
    }

    pub(super) fn encode(&self) -> String {
        let code = self.code();
        match self {
            Self::Gone(pid) | Self::Zombie(pid) | Self::Stopped(pid) | Self::NotPermitted(pid) => {
                format!("{code} {pid}")
            }
            Self::Thread(pid, process) => format!("{code} {pid} {process}"),
            Self::Traced(pid, tracer, name) => format!("{code} {pid} {tracer} {name}"),
            Self::Frozen(text) | Self::InUse(text) => format!("{code} {text}"),
            Self::TooMany(number) | Self::System(number) => format!("{code} {number}"),
            Self::Lost => code.into(),
        }
    }

    pub(super) fn decode(text: &str) -> Self {
        let (code, rest) = text.split_once(' ').unwrap_or((text, ""));
        let mut words = rest.splitn(3, ' ');
        let mut number = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        match code {
            "gone" => Self::Gone(number()),
            "thread" => Self::Thread(number(), number()),
            "zombie" => Self::Zombie(number()),
            "traced" => Self::Traced(number(), number(), words.next().unwrap_or("?").into()),
            "stopped" => Self::Stopped(number()),
            "frozen" => Self::Frozen(rest.into()),
            "in-use" => Self::InUse(rest.into()),
            "not-permitted" => Self::NotPermitted(number()),
            "too-many" => Self::TooMany(number()),
            "system" => Self::System(number()),
            _ => Self::Lost,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone(0) => write!(out, "no process of it is left"),
            Self::Gone(pid) => write!(out, "there is no process {pid}"),
            Self::Thread(pid, process) => write!(out, "{pid} is a thread of process {process}, not a process"),
            Self::Zombie(pid) => write!(out, "process {pid} has ended and is a zombie"),
            Self::Traced(pid, tracer, name) => {
                write!(out, "process {pid} is already traced, by process {tracer} ({name})")
            }
            Self::Stopped(pid) => write!(out, "process {pid} is already stopped"),
            Self::Frozen(file) => {
                let group = file.rsplit_once('/').map_or(file.as_str(), |(group, _)| group);
                write!(out, "the control group {group} is already frozen")
            }
            Self::InUse(what) => write!(out, "another session already freezes {what}"),
            Self::NotPermitted(0) => write!(out, "this user may not freeze the control group"),
            Self::NotPermitted(pid) => {
                write!(out, "process {pid} ({}) may not be stopped: it is another user's", super::checks::name(*pid))
            }
            Self::TooMany(limit) => write!(out, "more processes than descriptors may be open ({limit})"),
            Self::Lost => write!(out, "the watchdog was ended, and nothing is stopped without it"),
            Self::System(number) => write!(out, "{}", std::io::Error::from_raw_os_error(*number)),
        }
    }
}

impl std::error::Error for Refusal {}

/// Returns the most processes that can be seized. Each needs a descriptor for its lock and one to signal it, and a
/// few more are needed to inspect processes.
pub(super) fn most_processes() -> usize {
    (limit() as usize / 2).saturating_sub(16)
}

/// Returns the most descriptors that may be open.
pub(super) fn limit() -> i32 {
    let found = getrlimit(Resource::Nofile).current;
    found.and_then(|found| i32::try_from(found).ok()).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::Refusal;

    #[test]
    fn what_was_sent_is_received() {
        for each in [
            Refusal::Gone(7),
            Refusal::Thread(8, 7),
            Refusal::Zombie(7),
            Refusal::Traced(7, 9, "a b".into()),
            Refusal::Stopped(7),
            Refusal::Frozen("/sys/fs/cgroup/a b/cgroup.freeze".into()),
            Refusal::InUse("process 7".into()),
            Refusal::NotPermitted(7),
            Refusal::TooMany(1024),
            Refusal::Lost,
            Refusal::System(5),
        ] {
            assert_eq!(Refusal::decode(&each.encode()), each);
        }
    }
}
