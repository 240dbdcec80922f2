//! Event loop of the fat tree: a packet leaves a link, or a processor completes what it was doing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crosswind_policy::window::{Credits, WindowSettings};
use crosswind_program::{Program, Rank};
use crosswind_schema::disturbance::{NEVER, Timelines};

use super::super::meeting::Meeting;
use super::super::network::Network;
use super::super::node::State;
use super::super::outcome::{Outcome, all_are_done};
use super::super::wires::Totals;
use super::FatTree;
use super::processor::{Next, Processor, Shared};
use super::switches::Switches;
use crate::error::SimError;

/// Events between two calls of the caller's callback.
const EVENTS_PER_CALL: u64 = 1 << 20;
/// Time of a step that happens only when the rank is notified.
const WHEN_NOTIFIED: u64 = u64::MAX;

/// Simulates a parallel program on a fat tree; see [`super::super::simulate`].
pub fn simulate<P: Program>(
    program: &P,
    network: &Network,
    tree: FatTree,
    window: WindowSettings,
    timelines: &Timelines,
    watch: &mut dyn FnMut(u64) -> bool,
) -> Result<Outcome<P::Rank>, SimError> {
    let ranks = program.ranks();
    super::super::check(ranks, network, timelines)?;
    tree.check(ranks, &window, timelines)?;
    let processor = |rank: u32| {
        let credits = window.limits().then(|| Credits::new(&window));
        Processor::new(program.rank(rank), ranks, timelines.rank(rank), credits)
    };
    let shared = Shared {
        network: *network,
        window,
        ranks,
        polls_per_send: tree.polls_per_send,
        switches: Switches::new(ranks, network.latency_ns, &tree),
        meeting: Meeting::default(),
        totals: Totals::default(),
        one_way: 0,
    };
    let steps = Steps::of(ranks);
    Engine { processors: (0..ranks).map(processor).collect(), shared, steps }.run(watch)
}

/// Time of each processor's next step.
struct Steps {
    /// Times, ranks and stamps. Entries with an old stamp have been replaced.
    agenda: BinaryHeap<Reverse<(u64, u32, u32)>>,
    stamps: Vec<u32>,
    /// By rank: whether a notification triggers its next step.
    listens: Vec<bool>,
}

impl Steps {
    fn of(ranks: u32) -> Self {
        let mut steps =
            Self { agenda: BinaryHeap::new(), stamps: vec![0; ranks as usize], listens: vec![false; ranks as usize] };
        for rank in 0..ranks {
            steps.set(rank, Next::At(0));
        }
        steps
    }

    fn set(&mut self, rank: u32, next: Next) {
        let stamp = &mut self.stamps[rank as usize];
        *stamp = stamp.wrapping_add(1);
        let at = match next {
            Next::At(at) | Next::Notified(at) => at,
        };
        self.listens[rank as usize] = matches!(next, Next::Notified(_));
        if at < WHEN_NOTIFIED {
            self.agenda.push(Reverse((at, rank, *stamp)));
        }
    }

    /// Returns the first step that is still valid.
    fn first(&mut self) -> Option<(u64, u32)> {
        while let Some(&Reverse((at, rank, stamp))) = self.agenda.peek() {
            if self.stamps[rank as usize] == stamp {
                return Some((at, rank));
            }
            self.agenda.pop();
        }
        None
    }
}

struct Engine<R> {
    processors: Vec<Processor<R>>,
    shared: Shared,
    steps: Steps,
}

impl<R: Rank> Engine<R> {
    fn run(mut self, watch: &mut dyn FnMut(u64) -> bool) -> Result<Outcome<R>, SimError> {
        let mut events = 0;
        loop {
            let moves = self.shared.switches.next();
            let now = match self.steps.first() {
                Some((at, rank)) if at < moves => {
                    self.steps.agenda.pop();
                    self.step(rank, at)?;
                    at
                }
                None if moves == u64::MAX => return self.outcome(),
                _ => {
                    self.shared.switches.step();
                    moves
                }
            };
            if now >= NEVER {
                return Err(SimError::Endless);
            }
            self.tell(now);
            events += 1;
            if events >= EVENTS_PER_CALL {
                events = 0;
                if !watch(self.shared.totals.operations) {
                    return Err(SimError::Interrupted);
                }
            }
        }
    }

    fn step(&mut self, rank: u32, now: u64) -> Result<(), SimError> {
        let next = self.processors[rank as usize].step(rank, now, &mut self.shared)?;
        self.steps.set(rank, next);
        let ranks = self.processors.len() as u32;
        if let Some(since) = self.shared.meeting.over(ranks, self.shared.one_way) {
            self.shared.totals.meetings += 1;
            let at = since + self.shared.network.control_ns;
            for rank in 0..ranks {
                self.processors[rank as usize].state = State::Released(at);
                if self.steps.listens[rank as usize] {
                    self.steps.set(rank, Next::Notified(at));
                }
            }
        }
        Ok(())
    }

    /// Schedules a step at `now` for each waiting processor whose interface has changed.
    fn tell(&mut self, now: u64) {
        while let Some(rank) = self.shared.switches.notified.pop() {
            if self.steps.listens[rank as usize] {
                self.steps.set(rank, Next::At(now));
            }
        }
    }

    fn outcome(self) -> Result<Outcome<R>, SimError> {
        let waiting: Vec<(u32, String)> =
            (0..).zip(&self.processors).filter_map(|(rank, one)| Some((rank, one.waits_for()?))).collect();
        let makespan_ns = self.processors.iter().map(|one| one.times().end_ns).max().unwrap_or_default();
        all_are_done(self.processors.len(), &waiting, makespan_ns)?;
        if self.shared.switches.held() > 0 || !self.processors.iter().all(Processor::is_settled) {
            return Err(SimError::Broken("a packet, a credit or an answer was lost"));
        }
        Ok(Outcome {
            makespan_ns,
            totals: self.shared.totals,
            times: self.processors.iter().map(Processor::times).collect(),
            ranks: self.processors.into_iter().map(|one| one.rank).collect(),
        })
    }
}
