//! A rank of a GOAL schedule: operations in the order in which they become free.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Act, Schedule};
use crate::op::{Body, Kind, Op};
use crate::rank::{Rank, Reply};

/// Receives that are named when nothing can happen any more.
const NAMED: usize = 3;

/// One rank.
pub struct GoalRank {
    schedule: Arc<Schedule>,
    /// For each operation, how many others it still waits for.
    needs: Vec<u32>,
    /// Free operations, in their order.
    free: VecDeque<u32>,
    /// Receives that have been posted, and messages that nobody has asked for, both in their order.
    posted: VecDeque<u32>,
    unexpected: VecDeque<(u32, u32)>,
    /// Operations that are not over.
    left: u32,
}

impl GoalRank {
    pub(super) fn new(schedule: Arc<Schedule>) -> Self {
        let needs = schedule.needs.clone();
        let left = needs.len() as u32;
        let mut rank =
            Self { schedule, needs, free: VecDeque::new(), posted: VecDeque::new(), unexpected: VecDeque::new(), left };
        let mut first: Vec<u32> = (0..left).filter(|&at| rank.needs[at as usize] == 0).collect();
        first.sort_by_key(|&at| rank.schedule.acts[at as usize].turn());
        rank.free.extend(first);
        rank
    }

    /// An operation has begun, or is over: what waited for that may be free.
    fn happened(&mut self, at: u32, over: bool) {
        let range = self.schedule.starts[at as usize] as usize..self.schedule.starts[at as usize + 1] as usize;
        let before = self.free.len();
        for &(follower, begun) in &self.schedule.followers[range] {
            if begun == over {
                continue;
            }
            self.needs[follower as usize] -= 1;
            if self.needs[follower as usize] == 0 {
                self.free.push_back(follower);
            }
        }
        let acts = &self.schedule.acts;
        self.free.make_contiguous()[before..].sort_by_key(|&at| (acts[at as usize].turn(), at));
        self.left -= u32::from(over);
    }

    fn begun_and_over(&mut self, at: u32) {
        self.happened(at, false);
        self.happened(at, true);
    }
}

fn asks_for(act: Act, source: u32, mark: u32) -> bool {
    match act {
        Act::Receive { from, tag } => from.is_none_or(|from| from == source) && tag.is_none_or(|tag| tag == mark),
        Act::Send { .. } | Act::Calc { .. } => false,
    }
}

impl Rank for GoalRank {
    fn next(&mut self) -> Op {
        while let Some(at) = self.free.pop_front() {
            match self.schedule.acts[at as usize] {
                Act::Calc { ns } => {
                    self.begun_and_over(at);
                    return Op::Compute { ns };
                }
                Act::Send { to, tag, bytes } => {
                    self.begun_and_over(at);
                    let body = Body::Pair([u64::from(tag), 0]);
                    return Op::Message { to, kind: Kind::Post, bytes: bytes.max(1), body };
                }
                act @ Act::Receive { .. } => {
                    self.happened(at, false);
                    match self.unexpected.iter().position(|&(from, tag)| asks_for(act, from, tag)) {
                        Some(place) => {
                            self.unexpected.remove(place);
                            self.happened(at, true);
                        }
                        None => self.posted.push_back(at),
                    }
                }
            }
        }
        if self.left == 0 { Op::Done } else { Op::Wait }
    }

    fn handle(&mut self, from: u32, _kind: Kind, body: Body) -> Reply {
        let tag = if let Body::Pair([tag, _]) = body { tag as u32 } else { 0 };
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
        let any = |value: Option<u32>| value.map_or_else(|| "any".into(), |value| value.to_string());
        let receives: Vec<String> = (self.posted.iter().take(NAMED))
            .filter_map(|&at| match self.schedule.acts[at as usize] {
                Act::Receive { from, tag } => Some(format!("receive from {} with tag {}", any(from), any(tag))),
                Act::Send { .. } | Act::Calc { .. } => None,
            })
            .collect();
        let more = self.posted.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        if receives.is_empty() { "operations that wait for each other".into() } else { receives.join(", ") + &more }
    }

    fn result(&self) -> Vec<u64> {
        vec![u64::from(self.left), self.unexpected.len() as u64]
    }
}
