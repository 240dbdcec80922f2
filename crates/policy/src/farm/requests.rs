//! First come, first served: the unmet requests of children, in order of arrival.
//!
//! With a single port the oldest request of all is always the next, and a [`Queue`] is enough. With several ports a child
//! that is being sent to is passed over, so [`Requests`] numbers the requests of each child.

use std::collections::VecDeque;

use super::event::Child;

/// The requests of all children as one queue; consecutive ones of a child are one entry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue(VecDeque<(Child, u32)>);

impl Queue {
    #[inline]
    pub fn came(&mut self, child: Child, tasks: u32) {
        match self.0.back_mut() {
            Some((last, more)) if *last == child => *more += tasks,
            _ => self.0.push_back((child, tasks)),
        }
    }

    /// The child with the oldest request.
    #[inline]
    pub fn first(&self) -> Option<Child> {
        self.0.front().map(|&(child, _)| child)
    }

    #[inline]
    pub fn meet(&mut self) {
        let Some((_, tasks)) = self.0.front_mut() else { return };
        *tasks -= 1;
        if *tasks == 0 {
            self.0.pop_front();
        }
    }

    /// Removes all requests of a child.
    pub fn forget(&mut self, child: Child) {
        self.0.retain(|&(waiting, _)| waiting != child);
    }
}

/// Consecutive requests of one child.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Number of the first request.
    first: u64,
    tasks: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    came: u64,
    of: Vec<VecDeque<Run>>,
}

impl Requests {
    pub fn came(&mut self, child: Child, tasks: u64) {
        let (n, first) = (child as usize, self.came);
        if n >= self.of.len() {
            self.of.resize(n + 1, VecDeque::new());
        }
        self.came += tasks;
        match self.of[n].back_mut() {
            Some(run) if run.first + run.tasks == first => run.tasks += tasks,
            _ => self.of[n].push_back(Run { first, tasks }),
        }
    }

    /// Removes the oldest request of a child.
    pub fn meet(&mut self, child: Child) {
        let Some(runs) = self.of.get_mut(child as usize) else { return };
        let Some(run) = runs.front_mut() else { return };
        run.first += 1;
        run.tasks -= 1;
        if run.tasks == 0 {
            runs.pop_front();
        }
    }

    /// Number of a child's oldest request, as a key; infinite if it has none.
    pub fn oldest(&self, child: Child) -> f64 {
        self.of.get(child as usize).and_then(VecDeque::front).map_or(f64::INFINITY, |run| run.first as f64)
    }

    /// Removes all requests of a child.
    pub fn forget(&mut self, child: Child) {
        if let Some(runs) = self.of.get_mut(child as usize) {
            *runs = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_serves_in_order_of_arrival() {
        let mut queue = Queue::default();
        for (child, tasks) in [(0, 1), (0, 1), (2, 1), (0, 1), (1, 1)] {
            queue.came(child, tasks);
        }
        queue.forget(1);
        let mut served = Vec::new();
        while let Some(child) = queue.first() {
            queue.meet();
            served.push(child);
        }
        assert_eq!(served, [0, 0, 2, 0]);
    }

    #[test]
    fn the_oldest_request_of_each_child_is_met_first() {
        let mut requests = Requests::default();
        requests.came(0, 1);
        requests.came(0, 1);
        requests.came(2, 1);
        requests.came(0, 1);
        assert_eq!((requests.oldest(0), requests.oldest(1), requests.oldest(2)), (0.0, f64::INFINITY, 2.0));
        requests.meet(0);
        assert_eq!(requests.oldest(0), 1.0);
        requests.meet(0);
        assert_eq!(requests.oldest(0), 3.0);
        requests.meet(2);
        assert_eq!(requests.oldest(2), f64::INFINITY);
        requests.forget(0);
        assert_eq!(requests.oldest(0), f64::INFINITY);
        requests.came(0, u64::MAX / 2);
        assert_eq!(requests.oldest(0), 4.0);
    }
}
