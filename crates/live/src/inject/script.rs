//! What is to be injected: per rank, intervals in which its processor is taken away.

use super::outcome::How;

/// An interval in which a rank's processor is away; ns since the command began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Away {
    /// Its begin.
    pub start_ns: u64,
    /// Its end, later than its begin.
    pub end_ns: u64,
    /// Place of its cause among those of the script.
    pub cause: u16,
}

/// The intervals of one rank, by their begin.
pub type Intervals = Box<dyn Iterator<Item = Away> + Send>;

/// A cause, and what fits it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Its name.
    pub name: String,
    /// Whether it is a daemon beside the rank, which needs its CPU; otherwise the rank itself is away: a slice of time.
    pub is_daemon: bool,
}

/// A whole disturbance, ready to be injected.
pub trait Script: Send + Sync {
    /// The causes that intervals name.
    fn causes(&self) -> &[Cause];
    /// The intervals of a rank; the same at every call.
    fn intervals(&self, rank: u32) -> Intervals;
}

/// The ways that suit a cause, the best first: a daemon takes the CPU (which does something only where the rank is bound
/// to one), a slice of time takes the rank.
#[must_use]
pub fn ways(cause: &Cause, asked: Option<How>, freezer: bool) -> Vec<How> {
    let hold = match asked {
        Some(How::Freeze) => How::Freeze,
        Some(How::Stop) => How::Stop,
        _ if freezer => How::Freeze,
        _ => How::Stop,
    };
    match asked {
        Some(How::Burn) => vec![How::Burn, hold],
        None if cause.is_daemon => vec![How::Burn, hold],
        _ => vec![hold],
    }
}
