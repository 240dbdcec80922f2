//! What each rank did when, as the replay has it, and which rank caused each of its waits.
//!
//! The rank that a wait ends with is known: it arrives last. Often it is late only because it waited, too. So each rank
//! carries along by how much the slowest ranks prolonged the chain of actions that led to where it is. A wait is caused by
//! the rank that prolonged the chain of the last to arrive more than that of the rank that waits.
//!
//! | question | module |
//! |---|---|
//! | which part is shown on a page? | [`excerpt`] |
//! | all of it, for Perfetto | `perfetto` |

use std::sync::Arc;

use crate::graph::{Do, Graph, Memory, Times};

pub mod excerpt;
mod perfetto;

/// No rank, or no operation.
pub const NONE: u32 = u32::MAX;
/// Ranks whose lateness is followed: those with most of it.
const ORIGINS: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    Compute,
    /// In an operation that all ranks that it needs have reached.
    Call,
    /// In an operation that a rank which it needs has not reached.
    Wait,
}

impl Doing {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Call => "call",
            Self::Wait => "wait",
        }
    }
}

/// What a rank did from `start` to `end`, ns since the program began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub start: i64,
    pub end: i64,
    pub doing: Doing,
    /// Index in [`Timeline::operations`], or [`NONE`].
    pub operation: u32,
    /// The rank that arrived last, as an index; [`NONE`] where the rank did not wait.
    pub awaited: u32,
    /// The rank whose lateness makes up at least half of the wait, as an index, or [`NONE`].
    pub cause: u32,
    /// Counted from 0.
    pub step: u32,
}

#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Number of each rank in the program.
    pub ranks: Vec<u32>,
    /// For each rank what it did, in order of time.
    pub lanes: Vec<Vec<Span>>,
    pub operations: Vec<Arc<str>>,
}

/// A replayed program, with what the graph does not say of its cells.
pub struct Replayed<'a> {
    pub graph: &'a Graph,
    pub own: &'a Times,
    pub took: &'a [i64],
    /// How much longer than usual each cell takes, ns.
    pub excess: &'a Times,
    /// The step of each cell.
    pub steps: &'a [u32],
    /// The operation of each cell, as an index, or [`NONE`].
    pub operations: &'a [u32],
}

impl Timeline {
    /// Returns what the ranks with these numbers did. `operations`: names, by index.
    #[must_use]
    pub fn new(ranks: Vec<u32>, operations: Vec<Arc<str>>, of: &Replayed<'_>) -> Self {
        let mut memory = Memory::default();
        of.graph.replay(|_| of.own, of.took, &mut memory);
        let mut pass = Pass::new(of, &memory);
        for &node in &of.graph.nodes {
            let mut now = pass.compute(node.rank, node.cell);
            match node.does {
                Do::Arrive(meeting) => pass.arrive(node.rank, meeting),
                Do::Wait(meeting) => {
                    pass.wait(node.rank, node.cell, meeting);
                    now = pass.now[node.rank as usize];
                    pass.tail(node.rank, node.cell, now);
                }
                Do::Nothing => pass.tail(node.rank, node.cell, now),
                Do::Step(_) => {}
            }
        }
        Self { ranks, lanes: pass.lanes, operations }
    }
}

/// By how much each followed rank prolonged the chain that led to an action, ns.
type Late = [i64; ORIGINS];

/// The last to arrive at a meeting.
#[derive(Clone, Copy)]
struct Arrival {
    at: i64,
    rank: u32,
    late: Late,
}

struct Pass<'a> {
    of: &'a Replayed<'a>,
    memory: &'a Memory,
    now: Vec<i64>,
    late: Vec<Late>,
    last: Vec<Option<Arrival>>,
    /// The meeting that decided when a meeting was ready: itself, or one before it.
    decided: Vec<Option<u32>>,
    /// The followed ranks, and for each rank its place among them.
    origins: Vec<u32>,
    place: Vec<Option<usize>>,
    lanes: Vec<Vec<Span>>,
}

impl<'a> Pass<'a> {
    fn new(of: &'a Replayed<'a>, memory: &'a Memory) -> Self {
        let count = of.graph.starts.len();
        let mut total = vec![0i64; count];
        for node in &of.graph.nodes {
            let cell = node.cell as usize;
            let excess = of.excess.computing[cell].saturating_add(of.excess.tail[cell]).max(0);
            total[node.rank as usize] = total[node.rank as usize].saturating_add(excess);
        }
        let mut origins: Vec<u32> = (0..count as u32).filter(|&rank| total[rank as usize] > 0).collect();
        origins.sort_by_key(|&rank| std::cmp::Reverse(total[rank as usize]));
        origins.truncate(ORIGINS);
        let mut place = vec![None; count];
        origins.iter().enumerate().for_each(|(at, &rank)| place[rank as usize] = Some(at));
        Self {
            of,
            memory,
            now: of.graph.starts.clone(),
            late: vec![[0; ORIGINS]; count],
            last: vec![None; of.graph.meetings as usize],
            decided: vec![None; of.graph.meetings as usize],
            origins,
            place,
            lanes: vec![Vec::new(); count],
        }
    }

    fn push(&mut self, rank: u32, cell: u32, end: i64, doing: Doing, between: (u32, u32)) {
        let start = self.now[rank as usize];
        self.now[rank as usize] = end;
        if end <= start {
            return;
        }
        let operation = if doing == Doing::Compute { NONE } else { self.of.operations[cell as usize] };
        let step = self.of.steps[cell as usize];
        let (awaited, cause) = between;
        let lane = &mut self.lanes[rank as usize];
        if let Some(last) = lane.last_mut()
            && (last.doing, last.operation, last.step, last.awaited) == (doing, operation, step, awaited)
            && last.end == start
            && doing == Doing::Compute
        {
            last.end = end;
            return;
        }
        lane.push(Span { start, end, doing, operation, awaited, cause, step });
    }

    fn grow(&mut self, rank: u32, excess: i64) {
        if let Some(place) = self.place[rank as usize] {
            let late = &mut self.late[rank as usize][place];
            *late = late.saturating_add(excess);
        }
    }

    /// Lets a rank compute, and returns when it is done.
    fn compute(&mut self, rank: u32, cell: u32) -> i64 {
        let end = self.now[rank as usize].saturating_add(self.of.own.computing[cell as usize]);
        self.push(rank, cell, end, Doing::Compute, (NONE, NONE));
        self.grow(rank, self.of.excess.computing[cell as usize]);
        end
    }

    /// Lets a rank stay in an operation for its own lateness there.
    fn tail(&mut self, rank: u32, cell: u32, now: i64) {
        let end = now.saturating_add(self.of.own.tail[cell as usize]);
        self.push(rank, cell, end, Doing::Call, (NONE, NONE));
        self.grow(rank, self.of.excess.tail[cell as usize]);
    }

    fn arrive(&mut self, rank: u32, meeting: u32) {
        let at = self.now[rank as usize];
        let last = &mut self.last[meeting as usize];
        if last.is_none_or(|last| last.at < at) {
            *last = Some(Arrival { at, rank, late: self.late[rank as usize] });
        }
    }

    /// Returns the meeting whose last arrival decided when this one was ready.
    fn decider(&mut self, meeting: u32) -> u32 {
        let mut path = Vec::new();
        let mut at = meeting;
        let found = loop {
            if let Some(known) = self.decided[at as usize] {
                break known;
            }
            path.push(at);
            let before = self.of.graph.before(at, self.of.took);
            let decides = |(before, later): &(u32, i64)| {
                self.memory.over[*before as usize].saturating_add(*later) > self.memory.ready[at as usize]
            };
            match before.filter(decides) {
                Some((before, _)) => at = before,
                None => break at,
            }
        };
        path.into_iter().for_each(|one| self.decided[one as usize] = Some(found));
        found
    }

    fn wait(&mut self, rank: u32, cell: u32, meeting: u32) {
        let now = self.now[rank as usize];
        let over = self.memory.over[meeting as usize];
        if over <= now {
            return;
        }
        let ready = over.saturating_sub(self.of.took[meeting as usize]);
        let decider = self.decider(meeting);
        let Some(last) = self.last[decider as usize] else { return };
        if ready > now {
            let cause = self.cause(rank, &last, ready.saturating_sub(now));
            self.push(rank, cell, ready, Doing::Wait, (last.rank, cause));
        }
        self.push(rank, cell, over, Doing::Call, (NONE, NONE));
        self.late[rank as usize] = last.late;
    }

    /// Returns the rank that prolonged the chain of the last to arrive more than that of the rank that waits.
    fn cause(&self, rank: u32, last: &Arrival, waited: i64) -> u32 {
        let own = &self.late[rank as usize];
        let more = |at: usize| last.late[at].saturating_sub(own[at]);
        let others = (0..self.origins.len()).filter(|&at| self.origins[at] != rank);
        match others.max_by_key(|&at| more(at)) {
            Some(at) if more(at).saturating_mul(2) >= waited => self.origins[at],
            _ => NONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_ring(ranks: usize, late: usize, steps: u32) -> Timeline {
        // Each rank passes on to the next, then all wait for the last: a chain in which one rank is late.
        let mut does: Vec<Vec<Do>> = vec![Vec::new(); ranks];
        let mut after = Vec::new();
        for step in 0..steps {
            let first = after.len() as u32;
            for (rank, does) in does.iter_mut().enumerate() {
                let meeting = first + rank as u32;
                if rank > 0 {
                    does.push(Do::Wait(meeting - 1));
                }
                does.push(Do::Arrive(meeting));
                after.push(None);
                does.push(Do::Wait(first + ranks as u32 - 1));
                does.push(Do::Step(step));
            }
        }
        let cells: usize = does.iter().map(Vec::len).sum();
        let graph = Graph::new(&does, vec![0; ranks], after, steps).unwrap();
        let mut own = Times { computing: vec![0; cells], tail: vec![0; cells] };
        let (mut excess, mut of_step, mut operations) = (own.clone(), vec![0; cells], vec![NONE; cells]);
        let mut cell = 0;
        for (rank, does) in does.iter().enumerate() {
            let (mut step, mut first) = (0, true);
            for one in does {
                of_step[cell] = step;
                operations[cell] = 0;
                if first {
                    own.computing[cell] = 100 + if rank == late { 500 } else { 0 };
                    excess.computing[cell] = if rank == late { 500 } else { 0 };
                }
                first = matches!(one, Do::Step(_));
                step += u32::from(first);
                cell += 1;
            }
        }
        let took = vec![7; graph.meetings as usize];
        let of = Replayed {
            graph: &graph,
            own: &own,
            took: &took,
            excess: &excess,
            steps: &of_step,
            operations: &operations,
        };
        Timeline::new((0..ranks as u32).map(|rank| rank + 10).collect(), vec!["send".into()], &of)
    }

    #[test]
    fn a_wait_is_caused_by_the_rank_that_is_slow_and_not_by_the_one_that_waited_before() {
        let found = of_ring(4, 1, 3);
        for (rank, lane) in found.lanes.iter().enumerate() {
            // Shorter ones are for messages under way, not for a late rank.
            let long = |span: &&Span| span.doing == Doing::Wait && span.end - span.start > 100;
            let waits: Vec<&Span> = lane.iter().filter(long).collect();
            for wait in &waits {
                let own = if rank == 1 { NONE } else { 1 };
                assert_eq!(wait.cause, own, "rank {rank}: {wait:?}");
            }
            assert!(rank == 1 || !waits.is_empty());
        }
        // Rank 3 waits for rank 2 directly, which is late for rank 1.
        assert!(found.lanes[3].iter().any(|span| (span.awaited, span.cause) == (2, 1)));
    }

    #[test]
    fn spans_of_a_rank_follow_each_other_without_gaps() {
        for lane in of_ring(5, 2, 4).lanes {
            assert_eq!(lane[0].start, 0);
            assert!(lane.windows(2).all(|pair| pair[0].end == pair[1].start && pair[0].step <= pair[1].step));
        }
    }

    #[test]
    fn ranks_that_are_late_in_no_step_cause_nothing() {
        let found = of_ring(4, 9, 2);
        assert!(found.lanes.iter().flatten().all(|span| span.cause == NONE));
    }
}
