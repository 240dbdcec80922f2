//! A rank of a skeleton: computes, sends, and waits for the messages of the superstep.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Skeleton;
use super::steps::Step;
use crate::op::{Body, Kind, Op};
use crate::rank::{Rank, Reply};

#[derive(Clone, Copy, Debug)]
enum Phase {
    Computes,
    /// Sends to the receiver with this index next.
    Sends(u32),
    Awaits,
}

#[derive(Clone, Debug)]
pub struct SkeletonRank {
    steps: Arc<[Step]>,
    me: u32,
    hosts: u32,
    step: u32,
    phase: Phase,
    value: u64,
    /// Number and sum of the messages received for this superstep and later ones, since other ranks may be ahead.
    came: VecDeque<(u32, u64)>,
}

impl SkeletonRank {
    pub(super) fn new(steps: Arc<[Step]>, me: u32, hosts: u32) -> Self {
        let value = Skeleton::first(me);
        Self { steps, me, hosts, step: 0, phase: Phase::Computes, value, came: VecDeque::new() }
    }
}

impl Rank for SkeletonRank {
    fn next(&mut self) -> Op {
        loop {
            let Some(step) = self.steps.get(self.step as usize) else { return Op::Done };
            match self.phase {
                Phase::Computes => {
                    self.phase = Phase::Sends(0);
                    let ns = (step.compute_s * 1e9).round() as u64;
                    if ns > 0 {
                        return Op::Compute { ns };
                    }
                }
                Phase::Sends(place) => {
                    let Some(to) = step.exchange.receiver(self.me, place, self.hosts) else {
                        self.phase = Phase::Awaits;
                        continue;
                    };
                    self.phase = Phase::Sends(place + 1);
                    let body = Body::Pair([u64::from(self.step), Skeleton::sent(self.value, self.step, to)]);
                    return Op::Message { to, kind: Kind::Store, bytes: step.bytes.into(), body };
                }
                Phase::Awaits => {
                    let (count, sum) = self.came.front().copied().unwrap_or_default();
                    if count < step.exchange.received(self.me, self.hosts) {
                        return Op::Wait;
                    }
                    self.came.pop_front();
                    self.value = Skeleton::with(self.value, sum);
                    self.step += 1;
                    self.phase = Phase::Computes;
                }
            }
        }
    }

    fn handle(&mut self, _from: u32, _kind: Kind, body: Body) -> Reply {
        if let Body::Pair([step, word]) = body {
            let ahead = step.saturating_sub(u64::from(self.step)) as usize;
            if self.came.len() <= ahead {
                self.came.resize(ahead + 1, (0, 0));
            }
            let (count, sum) = &mut self.came[ahead];
            *count += 1;
            *sum = sum.wrapping_add(word);
        }
        Reply::default()
    }

    fn waits_for(&self) -> String {
        let came = self.came.front().map_or(0, |(count, _)| *count);
        let all = self.steps.get(self.step as usize).map_or(0, |step| step.exchange.received(self.me, self.hosts));
        format!("{} more messages of superstep {}", all.saturating_sub(came), self.step)
    }

    fn result(&self) -> Vec<u64> {
        vec![self.value]
    }
}
