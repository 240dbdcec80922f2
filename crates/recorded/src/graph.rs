//! The program of all ranks as a graph in time, evaluated thousands of times.
//!
//! A rank computes, then arrives at a meeting, waits for one, or ends a step. A meeting is ready when the last of those
//! that it needs has arrived; a rank that waits continues `took` later, plus its own `tail`. Evaluation is one pass over the
//! actions, in an order that is found once.

/// What a rank does after computing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Do {
    Arrive(u32),
    Wait(u32),
    Step(u32),
    /// Nothing; its tail counts as its own time.
    Nothing,
}

#[derive(Clone, Copy, Debug)]
pub struct Node {
    pub rank: u32,
    /// Index of its computing and its tail.
    pub cell: u32,
    pub does: Do,
}

/// Times of all actions: computing before them, and lateness after them, ns.
#[derive(Clone, Debug, Default)]
pub struct Times {
    pub computing: Vec<i64>,
    pub tail: Vec<i64>,
}

/// What has to come before a meeting can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The end of another meeting.
    Over(u32),
    /// All arrivals of another meeting, and what that needs itself: ranks of a scan that are at lower places.
    Arrived(u32),
}

impl After {
    fn meeting(self) -> u32 {
        match self {
            Self::Over(meeting) | Self::Arrived(meeting) => meeting,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// In an order in which they can be evaluated.
    pub nodes: Vec<Node>,
    /// When each rank begins, ns.
    pub starts: Vec<i64>,
    pub steps: u32,
    pub meetings: u32,
    /// For each meeting, what has to come before it.
    pub after: Vec<Option<After>>,
}

/// For each rank, the range of its cells in [`Times`].
pub type Cells = Vec<std::ops::Range<usize>>;

impl Graph {
    /// Orders the actions of all ranks. If some ranks can never continue, they are returned instead, each with its action.
    ///
    /// # Errors
    /// The ranks that wait for each other.
    pub fn new(
        ranks: &[Vec<Do>],
        starts: Vec<i64>,
        after: Vec<Option<After>>,
        steps: u32,
    ) -> Result<Self, Vec<(u32, usize)>> {
        let meetings = after.len() as u32;
        let mut missing = vec![0u32; after.len()];
        for does in ranks.iter().flatten() {
            if let Do::Arrive(meeting) = does {
                missing[*meeting as usize] += 1;
            }
        }
        let mut behind: Vec<(u32, u32)> = Vec::new();
        for (meeting, after) in (0..meetings).zip(&after) {
            if let Some(after) = after {
                behind.push((after.meeting(), meeting));
                missing[meeting as usize] += 1;
            }
        }
        behind.sort_unstable();
        let mut cells = Vec::with_capacity(ranks.len());
        let mut total = 0u32;
        for rank in ranks {
            cells.push(total);
            total += rank.len() as u32;
        }
        let mut nodes = Vec::with_capacity(total as usize);
        let mut at = vec![0usize; ranks.len()];
        let mut waiting: Vec<Vec<u32>> = vec![Vec::new(); meetings as usize];
        let mut ready: Vec<u32> = (0..ranks.len() as u32).rev().collect();
        // Lets ranks that wait continue once all have arrived at a meeting, and at those before it.
        let complete = |first: u32, missing: &mut [u32], waiting: &mut [Vec<u32>], ready: &mut Vec<u32>| {
            let mut path = vec![first];
            while let Some(meeting) = path.pop() {
                ready.append(&mut waiting[meeting as usize]);
                let from = behind.partition_point(|one| one.0 < meeting);
                for &(_, next) in behind[from..].iter().take_while(|one| one.0 == meeting) {
                    missing[next as usize] -= 1;
                    if missing[next as usize] == 0 {
                        path.push(next);
                    }
                }
            }
        };
        let empty: Vec<u32> = (0..meetings).filter(|&meeting| missing[meeting as usize] == 0).collect();
        for meeting in empty {
            complete(meeting, &mut missing, &mut waiting, &mut ready);
        }
        while let Some(rank) = ready.pop() {
            let does = &ranks[rank as usize];
            while let Some(&next) = does.get(at[rank as usize]) {
                if let Do::Wait(meeting) = next
                    && missing[meeting as usize] > 0
                {
                    waiting[meeting as usize].push(rank);
                    break;
                }
                nodes.push(Node { rank, cell: cells[rank as usize] + at[rank as usize] as u32, does: next });
                at[rank as usize] += 1;
                if let Do::Arrive(meeting) = next {
                    missing[meeting as usize] -= 1;
                    if missing[meeting as usize] == 0 {
                        complete(meeting, &mut missing, &mut waiting, &mut ready);
                    }
                }
            }
        }
        let stuck: Vec<(u32, usize)> =
            (0..ranks.len()).filter(|&rank| at[rank] < ranks[rank].len()).map(|rank| (rank as u32, at[rank])).collect();
        if stuck.is_empty() { Ok(Self { nodes, starts, steps, meetings, after }) } else { Err(stuck) }
    }

    /// Returns the meeting before a meeting, and how much later than its end this one can begin, ns; less than 0 where it
    /// needs only the arrivals.
    #[inline]
    #[must_use]
    pub fn before(&self, meeting: u32, took: &[i64]) -> Option<(u32, i64)> {
        self.after[meeting as usize].map(|after| match after {
            After::Over(before) => (before, 0),
            After::Arrived(before) => (before, 0i64.saturating_sub(took[before as usize])),
        })
    }

    /// Returns when a meeting is over. All ranks have arrived, and so they have at those before it.
    #[inline]
    fn over(&self, meeting: u32, took: &[i64], memory: &mut Memory) -> i64 {
        let mut first = meeting as usize;
        memory.path.clear();
        while memory.over[first] == i64::MIN {
            memory.path.push(first as u32);
            match self.after[first] {
                Some(after) => first = after.meeting() as usize,
                None => break,
            }
        }
        while let Some(next) = memory.path.pop() {
            let next = next as usize;
            let before = self.before(next as u32, took);
            let begins = before.map_or(i64::MIN, |(before, later)| memory.over[before as usize].saturating_add(later));
            memory.over[next] = memory.ready[next].max(begins).saturating_add(took[next]);
        }
        memory.over[meeting as usize]
    }

    /// Returns the end of the program, ns, and leaves the end of each step in `memory`. `times` chooses the times of a rank.
    pub fn replay<'a>(&self, times: impl Fn(u32) -> &'a Times, took: &[i64], memory: &mut Memory) -> i64 {
        self.replay_on(times, took, memory, &mut |_, from, ns| from.saturating_add(ns))
    }

    /// The same on processors that are not always available. `work` is given a rank, when it begins to work and
    /// for how long, ns; it returns when that is done. Work of 0 ns is done when the rank next has its processor. Transfers need no
    /// processor.
    pub fn replay_on<'a>(
        &self,
        times: impl Fn(u32) -> &'a Times,
        took: &[i64],
        memory: &mut Memory,
        work: &mut impl FnMut(u32, i64, i64) -> i64,
    ) -> i64 {
        memory.now.clear();
        memory.now.extend_from_slice(&self.starts);
        memory.ready.clear();
        memory.ready.resize(self.meetings as usize, i64::MIN);
        memory.over.clear();
        memory.over.resize(self.meetings as usize, i64::MIN);
        memory.steps.clear();
        memory.steps.resize(self.steps as usize, 0);
        let of: Vec<&Times> = (0..self.starts.len() as u32).map(times).collect();
        for node in &self.nodes {
            let (rank, cell) = (node.rank as usize, node.cell as usize);
            let mut now = work(node.rank, memory.now[rank], of[rank].computing[cell]);
            match node.does {
                Do::Arrive(meeting) => {
                    now = work(node.rank, now, 0);
                    let ready = &mut memory.ready[meeting as usize];
                    *ready = now.max(*ready);
                }
                Do::Wait(meeting) => {
                    let over = now.max(self.over(meeting, took, memory));
                    now = work(node.rank, over, of[rank].tail[cell]);
                }
                Do::Step(step) => {
                    let end = &mut memory.steps[step as usize];
                    *end = now.max(*end);
                }
                Do::Nothing => now = work(node.rank, now, of[rank].tail[cell]),
            }
            memory.now[rank] = now;
        }
        memory.now.iter().copied().max().unwrap_or_default()
    }
}

/// Memory of a replay, used again by the next.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    now: Vec<i64>,
    /// When the last rank arrived at each meeting, and when it was over; `i64::MIN`: no rank waited for it.
    pub(crate) ready: Vec<i64>,
    pub(crate) over: Vec<i64>,
    path: Vec<u32>,
    /// When each step ended on its last rank.
    pub steps: Vec<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_to_arrive_decides() {
        let ranks = vec![vec![Do::Arrive(0), Do::Wait(0), Do::Step(0)], vec![Do::Arrive(0), Do::Wait(0), Do::Step(0)]];
        let graph = Graph::new(&ranks, vec![0, 5], vec![None], 1).unwrap();
        let own = Times { computing: vec![10, 0, 1, 20, 0, 2], tail: vec![0, 3, 0, 0, 4, 0] };
        let mut memory = Memory::default();
        assert_eq!(graph.replay(|_| &own, &[7], &mut memory), 25 + 7 + 4 + 2);
        assert_eq!(memory.steps, [38]);
        let faster = Times { computing: vec![10, 0, 1, 1, 0, 2], ..own.clone() };
        assert_eq!(graph.replay(|rank| if rank == 1 { &faster } else { &own }, &[7], &mut memory), 10 + 7 + 4 + 2);
    }

    #[test]
    fn ranks_that_wait_for_each_other_are_named() {
        let ranks = vec![vec![Do::Wait(0), Do::Arrive(1)], vec![Do::Wait(1), Do::Arrive(0)]];
        assert_eq!(Graph::new(&ranks, vec![0, 0], vec![None; 2], 0).unwrap_err(), [(0, 0), (1, 0)]);
    }
}
