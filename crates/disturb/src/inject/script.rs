//! What to inject: for each rank, the intervals in which its processor is taken away.

use crosswind_schema::DescriptionError;
use crosswind_schema::disturbance::{Disturbance, Source, Timelines};

use super::outcome::How;

/// An interval in which a rank's processor is away; ns since time 0, which is the command's start unless the command
/// sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Away {
    pub start_ns: u64,
    /// End, later than the start.
    pub end_ns: u64,
    /// Index of its cause in the script.
    pub cause: u16,
}

/// The intervals of one rank, ordered by start.
pub type Intervals = Box<dyn Iterator<Item = Away> + Send>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    pub name: String,
    /// Whether it is a daemon that needs the rank's CPU; otherwise the rank itself is away, as for a time slice.
    pub is_daemon: bool,
}

/// A complete disturbance, ready to be injected.
pub trait Script: Send + Sync {
    /// Returns the causes that the intervals refer to.
    fn causes(&self) -> &[Cause];
    /// Returns the intervals of a rank, the same at every call.
    fn intervals(&self, rank: u32) -> Intervals;
}

/// Number of ranks if it is not given: a timeline is created only when its rank is first observed.
const ANY_NUMBER: u32 = 1 << 24;

/// A disturbance file as a script.
pub struct Described {
    timelines: Timelines,
    causes: Vec<Cause>,
}

impl Described {
    /// Creates the script for `ranks` ranks, or for any number.
    ///
    /// # Errors
    /// When the disturbance names a rank that does not exist.
    pub fn new(disturbance: &Disturbance, ranks: Option<u32>, seed: u64) -> Result<Self, DescriptionError> {
        let timelines = Timelines::new(disturbance, ranks.unwrap_or(ANY_NUMBER), seed)?;
        let causes = disturbance.sources.iter().flat_map(|source| {
            let is_daemon = matches!(source, Source::Daemon(_) | Source::Recorded(_));
            source.causes().iter().map(move |name| Cause { name: name.clone(), is_daemon })
        });
        Ok(Self { timelines, causes: causes.collect() })
    }
}

impl Script for Described {
    fn causes(&self) -> &[Cause] {
        &self.causes
    }

    fn intervals(&self, rank: u32) -> Intervals {
        let mut timeline = self.timelines.rank(rank);
        Box::new(std::iter::from_fn(move || timeline.interval()).map(|interval| Away {
            start_ns: interval.start,
            end_ns: interval.end,
            cause: interval.cause,
        }))
    }
}

/// Returns the methods that suit a cause, the best first. A daemon takes the CPU, which has an effect only if the
/// rank is bound to one CPU. A time slice takes the rank itself.
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
