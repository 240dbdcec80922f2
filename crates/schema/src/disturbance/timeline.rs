//! Timeline: when one rank's processor is available, and when work started at a time is done.
//!
//! It is lazy: it stores only the next interval of each source. Times are nanoseconds since the program's start.

use std::sync::Arc;

use super::Disturbance;
use super::stream::{Ready, Stream};
use crate::error::DescriptionError;

/// The end of time, ns: 146 years. Work that ends then or later never ends.
pub const NEVER: u64 = 1 << 62;

/// Most consecutive intervals without a gap; after that the processor counts as gone for good.
const MOST_TOUCHING: u32 = 1_000_000;

/// A time in which the processor is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// First nanosecond of the interval.
    pub start: u64,
    /// Nanosecond after the last; [`NEVER`] if the processor does not come back.
    pub end: u64,
    /// Its cause, as an index into [`Disturbance::causes`]. If several take the processor, the one that took it
    /// first, and after its end the one that keeps it longer.
    pub cause: u16,
}

/// The timelines of all ranks. Clones share the common data.
#[derive(Clone)]
pub struct Timelines {
    shared: Arc<Shared>,
    ranks: u32,
}

struct Shared {
    sources: Vec<Ready>,
    causes: Vec<String>,
    seed: u64,
}

impl Timelines {
    /// Creates the timelines of `ranks` ranks. The same seed gives the same intervals, in whatever order ranks are
    /// requested. A cause has the same intervals whatever other causes exist.
    ///
    /// # Errors
    /// When the disturbance refers to a rank that does not exist.
    ///
    /// # Examples
    /// ```
    /// use crosswind_schema::disturbance::{Disturbance, Timelines};
    ///
    /// let text = "schema_version = 1\nname = \"two jobs\"\n[[source]]\nkind = \"coscheduled\"\nquantum_s = 0.1\n";
    /// let timelines = Timelines::new(&Disturbance::from_toml(text.as_bytes(), "d.toml")?, 64, 1)?;
    /// let mut rank = timelines.rank(3);
    /// assert_eq!(rank.work(0, 50_000_000), 50_000_000);
    /// assert_eq!(rank.work(50_000_000, 70_000_000), 220_000_000); // 100 ms of it in another program's quantum
    /// # Ok::<(), crosswind_schema::DescriptionError>(())
    /// ```
    pub fn new(disturbance: &Disturbance, ranks: u32, seed: u64) -> Result<Self, DescriptionError> {
        disturbance.check_ranks(ranks)?;
        let causes = disturbance.causes().into_iter().map(str::to_owned).collect();
        Ok(Self { shared: Arc::new(Shared { sources: Ready::all(disturbance), causes, seed }), ranks })
    }

    /// Creates timelines without any disturbance.
    #[must_use]
    pub fn undisturbed(ranks: u32) -> Self {
        Self { shared: Arc::new(Shared { sources: Vec::new(), causes: Vec::new(), seed: 0 }), ranks }
    }

    /// Returns the number of ranks.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Whether any program that runs meanwhile takes messages off the network.
    #[must_use]
    pub fn polls(&self) -> bool {
        self.shared.sources.iter().any(|source| source.polls)
    }

    /// Returns the names of the causes.
    #[must_use]
    pub fn causes(&self) -> &[String] {
        &self.shared.causes
    }

    /// Returns a new timeline of a rank, from time 0. Code that queries times which another timeline has passed (for
    /// messages that arrived meanwhile) needs one of its own.
    #[must_use]
    pub fn rank(&self, rank: u32) -> Timeline {
        Timeline::new(&self.shared, rank)
    }

    /// Returns how long each cause keeps a rank away from 0 to `until`, ns.
    #[must_use]
    pub fn away(&self, rank: u32, until: u64) -> Vec<u64> {
        let mut away = vec![0; self.shared.causes.len()];
        let mut timeline = self.rank(rank);
        while let Some(interval) = timeline.interval().filter(|interval| interval.start < until) {
            away[usize::from(interval.cause)] += interval.end.min(until) - interval.start;
        }
        away
    }
}

/// One rank's processor. No queried time may be earlier than a previous one, or than a result of
/// [`Timeline::next_on`] or [`Timeline::work`]: time only advances.
#[derive(Clone)]
pub struct Timeline {
    /// Start of the next interval, or of the one queried last; [`NEVER`] when there are no more.
    start: u64,
    end: u64,
    cause: u16,
    polls: bool,
    /// `None` if the rank is never disturbed.
    sources: Option<Box<Sources>>,
}

#[derive(Clone)]
struct Sources {
    shared: Arc<Shared>,
    rank: u32,
    streams: Vec<Stream>,
    /// End of all queued intervals.
    queue: u64,
    /// The end of the last interval.
    last: u64,
    touching: u32,
}

impl Timeline {
    fn new(shared: &Arc<Shared>, rank: u32) -> Self {
        let mut streams = Vec::new();
        for (place, source) in shared.sources.iter().enumerate() {
            if source.is_on(rank) {
                streams.push(Stream::new(source, place, rank, shared.seed));
            }
        }
        let sources = (!streams.is_empty())
            .then(|| Box::new(Sources { shared: Arc::clone(shared), rank, streams, queue: 0, last: 0, touching: 0 }));
        let mut timeline = Self { start: NEVER, end: NEVER, cause: 0, polls: false, sources };
        timeline.advance();
        timeline
    }

    /// Returns the first time from `at` on when the processor is available; at least [`NEVER`] if it does not come
    /// back.
    #[inline]
    pub fn next_on(&mut self, at: u64) -> u64 {
        if at < self.start { at } else { self.next_on_beyond(at) }
    }

    /// Returns when work that begins at `from` and takes `ns` on an undisturbed processor is done; at least [`NEVER`]
    /// if never.
    #[inline(always)]
    pub fn work(&mut self, from: u64, ns: u64) -> u64 {
        let done = from.wrapping_add(ns);
        // If the sum overflowed, or the next interval starts before its end, it takes longer.
        if done <= self.start && done >= from { done } else { self.work_beyond(from, ns) }
    }

    /// Whether the processor is available at `at`. Advances no further than `at`, so later times in the same interval
    /// may be queried next. For code that observes a processor rather than uses it.
    #[inline]
    pub fn is_on(&mut self, at: u64) -> bool {
        if at < self.start {
            return true;
        }
        self.skip(at);
        self.start > at
    }

    /// Returns the next time after `at` when the processor is taken away or comes back; at least [`NEVER`] if
    /// neither. Like [`Timeline::is_on`], it advances no further than `at`.
    #[inline]
    pub fn changes(&mut self, at: u64) -> u64 {
        if self.is_on(at) { self.start } else { self.end }
    }

    /// If the processor is away at `at` with a program that takes messages off the network, returns the end of that
    /// time.
    #[inline]
    pub fn is_polled(&mut self, at: u64) -> Option<u64> {
        if at < self.start {
            return None;
        }
        self.skip(at);
        (self.start <= at && self.polls).then_some(self.end)
    }

    /// Returns the next interval and advances. Intervals are sorted and do not overlap, but may follow without a gap.
    pub fn interval(&mut self) -> Option<Interval> {
        if self.start >= NEVER {
            return None;
        }
        let interval = Interval { start: self.start, end: self.end, cause: self.cause };
        self.advance();
        Some(interval)
    }

    #[inline(never)]
    fn next_on_beyond(&mut self, at: u64) -> u64 {
        let mut at = at;
        self.skip(at);
        while self.start <= at {
            if self.end >= NEVER {
                return NEVER;
            }
            at = self.end;
            self.skip(at);
        }
        at
    }

    #[inline(never)]
    fn work_beyond(&mut self, from: u64, ns: u64) -> u64 {
        let (mut at, mut left) = (from, ns);
        loop {
            self.skip(at);
            if self.start > at {
                let free = self.start - at;
                if left <= free {
                    return at + left;
                }
                left -= free;
            }
            if self.end >= NEVER {
                return NEVER;
            }
            at = self.end;
        }
    }

    /// Skips intervals that end at `at` or before.
    #[inline]
    fn skip(&mut self, at: u64) {
        while self.end <= at && self.end < NEVER {
            self.advance();
        }
    }

    /// Advances to the next interval.
    fn advance(&mut self) {
        match self.sources.as_mut().and_then(|sources| sources.next()) {
            None => (self.start, self.end, self.polls) = (NEVER, NEVER, false),
            Some((Interval { start, end, cause }, polls)) => {
                (self.start, self.end, self.cause, self.polls) = (start, end, cause, polls);
            }
        }
    }
}

impl Sources {
    fn next(&mut self) -> Option<(Interval, bool)> {
        if self.last >= NEVER {
            return None;
        }
        loop {
            let stream = self.streams.iter_mut().min_by_key(|stream| stream.start)?;
            if stream.start >= NEVER {
                return None;
            }
            let source = &self.shared.sources[usize::from(stream.source)];
            let (mut start, length, cause) = (stream.start, stream.length, stream.cause);
            stream.next(source, self.rank);
            if source.queues {
                start = start.max(self.queue);
                self.queue = start + length;
            }
            let end = (start + length).min(NEVER);
            let start = start.max(self.last);
            if end <= start {
                continue; // within time that is away already
            }
            self.touching = if start == self.last { self.touching + 1 } else { 0 };
            let end = if self.touching > MOST_TOUCHING { NEVER } else { end };
            self.last = end;
            return Some((Interval { start, end, cause }, source.polls));
        }
    }
}
