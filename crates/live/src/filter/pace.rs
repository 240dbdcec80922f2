//! A link with a rate: frames leave it one after another, each after its transmission time.
//!
//! It emulates a link, or shapes a real one just below its rate. Frames then wait here, where the next one is chosen, and
//! not in a kernel or a network card. A late call returns all frames that have left meanwhile, so the rate is kept.

use crosswind_policy::queue::{DoubleQueue, QueueSettings};
use crosswind_schema::Class;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    pub mb_per_s: f64,
    /// Shorter frames take as long as frames of this size, bytes.
    pub at_least_bytes: u32,
}

impl Rate {
    /// Returns the transmission time of a frame, ns, at least 1.
    #[must_use]
    pub fn frame_ns(&self, bytes: u32) -> u64 {
        ((f64::from(bytes.max(self.at_least_bytes)) * 1e3 / self.mb_per_s).round() as u64).max(1)
    }
}

pub(super) struct Paced<F> {
    queue: DoubleQueue<F>,
    rate: Rate,
    under_way: Option<(Class, u32, F)>,
    free_ns: u64,
}

impl<F> Paced<F> {
    pub fn new(queue: QueueSettings, rate: Rate) -> Self {
        Self { queue: DoubleQueue::new(queue), rate, under_way: None, free_ns: 0 }
    }

    pub fn push(&mut self, class: Class, bytes: u32, frame: F, now_ns: u64) {
        self.queue.push(class, bytes, frame);
        if self.under_way.is_none() {
            self.begin(now_ns);
        }
    }

    fn begin(&mut self, at_ns: u64) {
        if let Some((class, bytes, frame)) = self.queue.pop([true, true]) {
            self.free_ns = at_ns + self.rate.frame_ns(bytes);
            self.under_way = Some((class, bytes, frame));
        }
    }

    /// Returns the next frame that has left by now, and when it left, ns.
    pub fn take(&mut self, now_ns: u64) -> Option<(Class, u32, F, u64)> {
        let left_ns = self.free_ns;
        let (class, bytes, frame) = if left_ns <= now_ns { self.under_way.take()? } else { return None };
        self.begin(left_ns);
        Some((class, bytes, frame, left_ns))
    }

    /// Returns the number of frames that have not left.
    pub fn len(&self) -> usize {
        Class::BOTH.iter().map(|class| self.queue.len(*class)).sum::<usize>() + usize::from(self.under_way.is_some())
    }

    /// Returns when the current frame leaves, ns.
    pub fn due(&self) -> Option<u64> {
        self.under_way.as_ref().map(|_| self.free_ns)
    }
}

#[cfg(test)]
mod tests {
    use Class::{Local, Parallel};

    use super::*;

    #[test]
    fn a_late_look_finds_all_that_left_meanwhile_each_at_its_own_time() {
        let rate = Rate { mb_per_s: 1.0, at_least_bytes: 100 };
        let mut link = Paced::new(QueueSettings::fifo(1000), rate);
        link.push(Local, 1000, "long", 5);
        link.push(Parallel, 10, "short", 6);
        assert_eq!((link.due(), link.take(1_000_004)), (Some(1_000_005), None));
        assert_eq!(link.take(9_000_000), Some((Local, 1000, "long", 1_000_005)));
        assert_eq!(link.take(9_000_000), Some((Parallel, 10, "short", 1_100_005)));
        assert_eq!((link.take(9_000_000), link.due()), (None, None));
        link.push(Local, 1000, "later", 10_000_000);
        assert_eq!(link.due(), Some(11_000_000), "an idle link begins when there is something");
    }
}
