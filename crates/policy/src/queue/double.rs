//! The two queues of a network interface, and which frame leaves next.

use std::collections::VecDeque;

use crosswind_schema::Class;
use crosswind_schema::experiment::streams::Discipline;

use super::settings::QueueSettings;

#[derive(Clone, Debug)]
struct Waiting<F> {
    /// Arrival number, over both classes.
    number: u64,
    bytes: u32,
    frame: F,
}

/// Frames of two classes, and which of them leaves next. Frames of one class leave in order of arrival.
///
/// - `Fifo`: in order of arrival, regardless of class.
/// - `Threshold`: while both classes wait, `threshold` parallel frames, then one local frame, or up to `batch` of them.
///   The count restarts when one of the queues was empty; in the printed algorithm (`literal`) it does not.
/// - `Drr`: the same in bytes. The first local frame leaves once parallel frames of `threshold` times its length have
///   left while it waited. Any excess counts for the next local frame, so neither class gains by long or short frames
///   (E4-14). With `pad`, every frame counts as the longest, because it takes as much time. This is deficit round robin
///   of two queues with the smallest quantum that releases the first local frame.
/// - `Strict`: a local frame leaves only if no parallel frame can.
///
/// # Examples
///
/// ```
/// use crosswind_policy::queue::{Discipline, DoubleQueue, QueueSettings};
/// use crosswind_schema::Class::{Local, Parallel};
///
/// let settings = QueueSettings { discipline: Discipline::Drr, threshold: 2, ..QueueSettings::fifo(1024) };
/// let mut queue = DoubleQueue::new(settings);
/// for number in 0..3 {
///     queue.push(Local, 1024, number);
///     queue.push(Parallel, 1024, number);
/// }
/// let order: Vec<_> = std::iter::from_fn(|| queue.pop([true, true])).map(|(class, _, number)| (class, number)).collect();
/// assert_eq!(order, [(Parallel, 0), (Parallel, 1), (Local, 0), (Parallel, 2), (Local, 1), (Local, 2)]);
/// ```
#[derive(Clone, Debug)]
pub struct DoubleQueue<F> {
    settings: QueueSettings,
    queues: [VecDeque<Waiting<F>>; 2],
    bytes: [u64; 2],
    /// Number of frames ever pushed.
    came: u64,
    /// Balance of the first local frame: parallel frames (threshold) or bytes (drr) that left while it waited.
    earned: u64,
    /// Local frames of the current batch that may still follow.
    following: u32,
    /// Printed algorithm: whether the last frame was parallel and no local frame was considered since.
    after_parallel: bool,
}

const PARALLEL: usize = Class::Parallel as usize;
const LOCAL: usize = Class::Local as usize;

impl<F> DoubleQueue<F> {
    #[must_use]
    pub const fn new(settings: QueueSettings) -> Self {
        // The printed count starts at 1.
        let earned = if settings.literal { 1 } else { 0 };
        let queues = [VecDeque::new(), VecDeque::new()];
        Self { settings, queues, bytes: [0; 2], came: 0, earned, following: 0, after_parallel: false }
    }

    #[must_use]
    pub const fn settings(&self) -> &QueueSettings {
        &self.settings
    }

    #[inline]
    pub fn push(&mut self, class: Class, bytes: u32, frame: F) {
        self.came += 1;
        self.bytes[class as usize] += u64::from(bytes);
        self.queues[class as usize].push_back(Waiting { number: self.came, bytes, frame });
    }

    /// Removes the frame that leaves next. Returns its class, its length in bytes and the frame. `may_send` states for
    /// each class whether it may send now; a class that may not is skipped. Returns `None` if no frame can leave.
    #[inline]
    pub fn pop(&mut self, may_send: [bool; 2]) -> Option<(Class, u32, F)> {
        let ready = [
            may_send[PARALLEL] && !self.queues[PARALLEL].is_empty(),
            may_send[LOCAL] && !self.queues[LOCAL].is_empty(),
        ];
        let class = match self.settings.discipline {
            Discipline::Fifo => self.first_come(ready),
            Discipline::Strict => strict(ready),
            Discipline::Drr => self.by_bytes(ready),
            Discipline::Threshold if self.settings.literal => self.as_printed(ready),
            Discipline::Threshold => self.by_frames(ready),
        }?;
        let Waiting { bytes, frame, .. } = self.queues[class as usize].pop_front()?;
        self.bytes[class as usize] -= u64::from(bytes);
        Some((class, bytes, frame))
    }

    /// The first frame of a class, with its length in bytes.
    #[must_use]
    #[inline]
    pub fn front(&self, class: Class) -> Option<(u32, &F)> {
        self.queues[class as usize].front().map(|first| (first.bytes, &first.frame))
    }

    /// The class of the frame that has waited longest.
    #[must_use]
    #[inline]
    pub fn longest_waiting(&self) -> Option<Class> {
        self.first_come([!self.queues[PARALLEL].is_empty(), !self.queues[LOCAL].is_empty()])
    }

    /// Number of waiting frames of a class.
    #[must_use]
    #[inline]
    pub fn len(&self, class: Class) -> usize {
        self.queues[class as usize].len()
    }

    /// Number of waiting bytes of a class.
    #[must_use]
    pub const fn bytes(&self, class: Class) -> u64 {
        self.bytes[class as usize]
    }

    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queues.iter().all(VecDeque::is_empty)
    }

    #[inline]
    fn first_come(&self, ready: [bool; 2]) -> Option<Class> {
        match ready {
            [true, true] => {
                let number = |class: usize| self.queues[class].front().map(|first| first.number);
                Some(if number(PARALLEL) < number(LOCAL) { Class::Parallel } else { Class::Local })
            }
            _ => strict(ready),
        }
    }

    #[inline]
    fn by_frames(&mut self, ready: [bool; 2]) -> Option<Class> {
        let threshold = self.settings.at_least_one();
        if self.following > 0 {
            self.following = if ready[LOCAL] { self.following - 1 } else { 0 };
            if ready[LOCAL] {
                return Some(Class::Local);
            }
        }
        if ready[PARALLEL] && !(ready[LOCAL] && self.earned >= threshold) {
            // A local frame without credit keeps its turn but cannot save up a second one.
            let waits = !self.queues[LOCAL].is_empty();
            self.earned = if waits { (self.earned + 1).min(threshold) } else { 0 };
            return Some(Class::Parallel);
        }
        ready[LOCAL].then(|| {
            self.earned = 0;
            self.following = self.settings.batch.saturating_sub(1);
            Class::Local
        })
    }

    #[inline]
    fn by_bytes(&mut self, ready: [bool; 2]) -> Option<Class> {
        let price = |waiting: &Waiting<F>| self.settings.at_least_one() * self.settings.weight(waiting.bytes);
        let price = self.queues[LOCAL].front().map_or(0, price);
        if ready[PARALLEL] && !(ready[LOCAL] && self.earned >= price) {
            let sent = self.queues[PARALLEL].front().map_or(0, |first| self.settings.weight(first.bytes));
            self.earned = match (self.queues[LOCAL].is_empty(), ready[LOCAL]) {
                (true, _) => 0,
                (false, true) => self.earned + sent,
                (false, false) => (self.earned + sent).min(price),
            };
            return Some(Class::Parallel);
        }
        ready[LOCAL].then(|| {
            // The balance is lost if the local queue becomes empty, or if the frame left only because no parallel one
            // could.
            let goes_on = ready[PARALLEL] && self.queues[LOCAL].len() > 1;
            self.earned = if goes_on { self.earned - price } else { 0 };
            Class::Local
        })
    }

    /// The printed loop, one frame per call. `earned` is its `count`.
    #[inline]
    fn as_printed(&mut self, ready: [bool; 2]) -> Option<Class> {
        let above = self.earned > u64::from(self.settings.threshold);
        if std::mem::take(&mut self.after_parallel) && above && ready[LOCAL] {
            self.earned = 1;
            return Some(Class::Local);
        }
        if ready[PARALLEL] {
            self.earned += 1;
            self.after_parallel = true;
            return Some(Class::Parallel);
        }
        ready[LOCAL].then_some(Class::Local)
    }
}

#[inline]
const fn strict(ready: [bool; 2]) -> Option<Class> {
    match ready {
        [true, _] => Some(Class::Parallel),
        [false, true] => Some(Class::Local),
        [false, false] => None,
    }
}
