//! Which operations of a rank have become free, and in which order: all that they require has begun or ended.

use std::sync::Arc;

use super::{Act, Schedule};

pub(super) struct Requirements {
    schedule: Arc<Schedule>,
    /// For each operation, the number of others that it still waits for.
    needs: Vec<u32>,
    /// Number of operations that have not ended.
    left: u32,
    /// Number of operations that have become free and need a processor.
    freed: u32,
    /// Work lists: operations that have begun or ended (`true`), and those that become free as a result.
    news: Vec<(u32, bool)>,
    receives: Vec<u32>,
    batch: Vec<u32>,
}

impl Requirements {
    /// What requires nothing is free, and waits for [`Self::release`].
    pub fn new(schedule: Arc<Schedule>) -> Self {
        let needs = schedule.needs.clone();
        let left = needs.len() as u32;
        let free = (0..left).filter(|&at| needs[at as usize] == 0);
        let (receives, batch) = free.partition(|&at| matches!(schedule.acts[at as usize], Act::Receive { .. }));
        Self { schedule, needs, left, freed: 0, news: Vec::new(), receives, batch }
    }

    pub fn left(&self) -> u32 {
        self.left
    }

    pub fn freed(&self) -> u32 {
        self.freed
    }

    /// Records that an operation has begun (`over`: ended), and collects what has become free.
    pub fn record(&mut self, at: u32, over: bool) {
        self.news.push((at, over));
        self.follow();
    }

    fn follow(&mut self) {
        for (at, over) in self.news.drain(..) {
            self.left -= u32::from(over);
            let range = self.schedule.starts[at as usize] as usize..self.schedule.starts[at as usize + 1] as usize;
            for &(follower, begun) in &self.schedule.followers[range] {
                if begun != over {
                    self.needs[follower as usize] -= 1;
                    if self.needs[follower as usize] == 0 {
                        let receives = matches!(self.schedule.acts[follower as usize], Act::Receive { .. });
                        (if receives { &mut self.receives } else { &mut self.batch }).push(follower);
                    }
                }
            }
        }
    }

    /// Posts receives, which takes no processor, then queues the other operations that have become free: sends before
    /// computing, each in the order of the file. `post` returns whether the receive is over at once; `queue` is given
    /// the position of an operation in the order of all that became free, and the operation.
    pub fn release(&mut self, mut post: impl FnMut(u32) -> bool, mut queue: impl FnMut(u32, u32)) {
        while !self.receives.is_empty() {
            let mut receives = std::mem::take(&mut self.receives);
            receives.sort_unstable();
            for at in receives {
                self.news.push((at, false));
                if post(at) {
                    self.news.push((at, true));
                }
            }
            self.follow();
        }
        let acts = &self.schedule.acts;
        self.batch.sort_unstable_by_key(|&at| (acts[at as usize].turn(), at));
        for at in self.batch.drain(..) {
            queue(self.freed, at);
            self.freed += 1;
        }
    }
}
