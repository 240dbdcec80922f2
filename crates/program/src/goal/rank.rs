//! A rank of a GOAL schedule: executes operations in the order in which they become free.

use std::collections::VecDeque;
use std::sync::Arc;

use super::requirements::Requirements;
use super::{Act, Schedule};
use crate::op::{Body, Kind, Op};
use crate::rank::{Rank, Reply};

/// Number of receives named in a deadlock's error message.
const NAMED: usize = 3;

/// Free operations that need the processor, each with its position in the order in which they became free.
type Queue = VecDeque<(u32, u32)>;

pub struct GoalRank {
    schedule: Arc<Schedule>,
    requirements: Requirements,
    sends: Queue,
    calcs: Queue,
    /// Position of the operation that began last, in the order in which they became free.
    issued: u32,
    /// The send that has been issued but is not over, and whether it has begun.
    sending: Option<(u32, bool)>,
    /// Receives posted, and messages without a matching receive so far, both in order.
    posted: VecDeque<u32>,
    unexpected: VecDeque<(u32, u64)>,
}

impl GoalRank {
    pub(super) fn new(schedule: Arc<Schedule>) -> Self {
        let mut rank = Self {
            requirements: Requirements::new(Arc::clone(&schedule)),
            schedule,
            sends: Queue::new(),
            calcs: Queue::new(),
            issued: 0,
            sending: None,
            posted: VecDeque::new(),
            unexpected: VecDeque::new(),
        };
        rank.release();
        rank
    }

    /// Returns how many operations have become free that need the processor.
    #[must_use]
    pub fn freed(&self) -> u32 {
        self.requirements.freed()
    }

    /// Returns the position of the operation that [`Rank::next`] returned last, in the order in which they became free. One
    /// below the number that were free when a message came does not need it.
    #[must_use]
    pub fn issued(&self) -> u32 {
        self.issued
    }

    /// Records that an operation has begun or ended, and releases operations that waited for this.
    fn happened(&mut self, at: u32, over: bool) {
        self.requirements.record(at, over);
        self.release();
    }

    fn release(&mut self) {
        let Self { schedule, requirements, sends, calcs, posted, unexpected, .. } = self;
        let acts = &schedule.acts;
        let post = |at: u32| {
            let place = unexpected.iter().position(|&(from, tag)| asks_for(acts[at as usize], from, tag));
            match place {
                Some(place) => _ = unexpected.remove(place),
                None => posted.push_back(at),
            }
            place.is_some()
        };
        requirements.release(post, |order, at| {
            let queue = if matches!(acts[at as usize], Act::Send { .. }) { &mut *sends } else { &mut *calcs };
            queue.push_back((order, at));
        });
    }

    fn begun_and_over(&mut self, at: u32) {
        self.happened(at, false);
        self.happened(at, true);
    }

    fn compute(&mut self) -> Option<u64> {
        let (order, at) = self.calcs.pop_front()?;
        self.issued = order;
        self.begun_and_over(at);
        match self.schedule.acts[at as usize] {
            Act::Calc { ns } => Some(ns),
            Act::Send { .. } | Act::Receive { .. } => None,
        }
    }
}

pub(super) fn asks_for(act: Act, source: u32, mark: u64) -> bool {
    match act {
        Act::Receive { from, tag } => from.is_none_or(|from| from == source) && tag.is_none_or(|tag| tag == mark),
        Act::Send { .. } | Act::Calc { .. } => false,
    }
}

impl Rank for GoalRank {
    const ITSELF_BY_NETWORK: bool = true;

    fn next(&mut self) -> Op {
        self.sent();
        let computes_first = match (self.calcs.front(), self.sends.front()) {
            (Some(calc), Some(send)) => calc < send,
            (calc, _) => calc.is_some(),
        };
        if computes_first && let Some(ns) = self.compute() {
            return Op::Compute { ns };
        }
        if let Some((order, at)) = self.sends.pop_front()
            && let Act::Send { to, tag, bytes } = self.schedule.acts[at as usize]
        {
            self.issued = order;
            self.sending = Some((at, false));
            let body = Body::Pair([tag, 0]);
            return Op::Message { to, kind: Kind::Post, bytes: bytes.max(1), body };
        }
        if self.requirements.left() == 0 { Op::Done } else { Op::Wait }
    }

    fn begun(&mut self) {
        if let Some((at, false)) = self.sending {
            self.sending = Some((at, true));
            self.happened(at, false);
        }
    }

    fn sent(&mut self) {
        self.begun();
        if let Some((at, _)) = self.sending.take() {
            self.happened(at, true);
        }
    }

    fn meanwhile(&mut self) -> Option<u64> {
        self.compute()
    }

    fn handle(&mut self, from: u32, _kind: Kind, body: Body) -> Reply {
        let tag = if let Body::Pair([tag, _]) = body { tag } else { 0 };
        let acts = &self.schedule.acts;
        match self.posted.iter().position(|&at| asks_for(acts[at as usize], from, tag)) {
            Some(place) => {
                if let Some(at) = self.posted.remove(place) {
                    self.happened(at, true);
                }
            }
            None => self.unexpected.push_back((from, tag)),
        }
        Reply::default()
    }

    fn waits_for(&self) -> String {
        receives_named(&self.schedule.acts, &self.posted)
    }

    fn result(&self) -> Vec<u64> {
        vec![u64::from(self.requirements.left()), self.unexpected.len() as u64]
    }
}

/// Describes the receives that a rank has posted, for a deadlock's error message.
pub(super) fn receives_named(acts: &[Act], posted: &VecDeque<u32>) -> String {
    let any = |value: Option<u64>| value.map_or_else(|| "any".into(), |value| value.to_string());
    let receives: Vec<String> = (posted.iter().take(NAMED))
        .filter_map(|&at| match acts[at as usize] {
            Act::Receive { from, tag } => {
                Some(format!("receive from {} with tag {}", any(from.map(u64::from)), any(tag)))
            }
            Act::Send { .. } | Act::Calc { .. } => None,
        })
        .collect();
    let more = posted.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    if receives.is_empty() { "operations that wait for each other".into() } else { receives.join(", ") + &more }
}
