//! The graph with most ranks folded into constants, for replays in which only a few ranks compute faster.
//!
//! Times of the folded ranks never change, so the time of each is the latest of some moments, each a constant after a
//! meeting is over. Where ranks meet all together, hundreds of their moments become one. The end is that of the whole graph,
//! to the nanosecond.

use crate::graph::{Do, Graph, Times};

/// A moment: a vertex, and how much later, ns.
type Moment = (u32, i64);

#[derive(Clone, Copy, Debug)]
enum Vertex {
    /// The latest of a range of moments.
    Latest { first: u32, end: u32 },
    /// An action of a rank that is not folded, after vertex `before`; `over`: the meeting that it waits for.
    Action { rank: u32, cell: u32, before: u32, over: u32, has_tail: bool },
}

/// No vertex.
const NONE: u32 = u32::MAX;
/// Earlier than any time, and far from overflow.
const NEVER: i64 = i64::MIN / 4;
/// A rank with more moments than this gets a vertex.
const MOMENTS: usize = 6;
/// Arrivals of a rank that are remembered until it waits.
const ARRIVALS: usize = 32;
/// Meetings before a meeting that are looked at to leave moments out.
const BEFORE: usize = 8;

#[derive(Clone, Debug, Default)]
pub struct Folded {
    vertices: Vec<Vertex>,
    moments: Vec<Moment>,
    steps: Vec<u32>,
    end: u32,
}

/// Memory of a replay, used again by the next.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    at: Vec<i64>,
    /// When each step ended on its last rank.
    pub steps: Vec<i64>,
}

/// What is known about a rank while the graph is folded.
#[derive(Clone, Default)]
struct Rank {
    /// Of a folded rank: it is where the latest of them is. Of one that is not: its last action.
    moments: Vec<Moment>,
    /// Meetings at which it arrived, and its moments then.
    arrivals: Vec<(u32, Vec<Moment>)>,
    is_kept: bool,
}

struct Builder<'a> {
    graph: &'a Graph,
    took: &'a [i64],
    folded: Folded,
    /// Vertices of meetings that are over, and the arrivals at those that are not.
    over: Vec<u32>,
    arrived: Vec<Vec<Moment>>,
}

impl Builder<'_> {
    fn add(&mut self, vertex: Vertex) -> u32 {
        self.folded.vertices.push(vertex);
        (self.folded.vertices.len() - 1) as u32
    }

    fn latest(&mut self, mut moments: Vec<Moment>) -> u32 {
        // Of those after the same vertex, the latest.
        moments.sort_unstable_by_key(|&(vertex, later)| (vertex, std::cmp::Reverse(later)));
        moments.dedup_by_key(|moment| moment.0);
        let first = self.folded.moments.len() as u32;
        self.folded.moments.append(&mut moments);
        let end = self.folded.moments.len() as u32;
        self.add(Vertex::Latest { first, end })
    }

    /// Returns the vertex of a meeting at which all have arrived.
    fn over(&mut self, meeting: u32) -> u32 {
        let mut path = vec![meeting];
        while let Some(&next) = path.last() {
            let before = self.graph.before(next, self.took);
            match before {
                _ if self.over[next as usize] != NONE => {
                    path.pop();
                }
                Some((before, _)) if self.over[before as usize] == NONE => path.push(before),
                _ => {
                    let took = self.took[next as usize];
                    let mut moments = std::mem::take(&mut self.arrived[next as usize]);
                    moments.extend(before.map(|(before, later)| (self.over[before as usize], later)));
                    moments.iter_mut().for_each(|moment| moment.1 = moment.1.saturating_add(took));
                    self.over[next as usize] = self.latest(moments);
                    path.pop();
                }
            }
        }
        self.over[meeting as usize]
    }

    /// Returns whether a moment of a rank is never later than the end of a meeting at which the rank has arrived.
    fn is_before(&self, moment: Moment, meeting: u32, arrival: &[Moment]) -> bool {
        let took = self.took[meeting as usize];
        if arrival.iter().any(|then| then.0 == moment.0 && moment.1 <= then.1.saturating_add(took)) {
            return true;
        }
        let (mut since, mut at) = (took, meeting);
        for _ in 0..BEFORE {
            let Some((before, later)) = self.graph.before(at, self.took) else { return false };
            since = since.saturating_add(later);
            if self.over[before as usize] == moment.0 {
                return moment.1 <= since;
            }
            since = since.saturating_add(self.took[before as usize]);
            at = before;
        }
        false
    }

    fn wait(&mut self, rank: &mut Rank, meeting: u32, tail: i64) {
        let over = self.over(meeting);
        let at = rank.arrivals.iter().position(|arrival| arrival.0 == meeting);
        let arrival = at.map(|at| rank.arrivals.remove(at).1).unwrap_or_default();
        rank.moments.retain(|&moment| moment.0 == over || !self.is_before(moment, meeting, &arrival));
        match rank.moments.iter_mut().find(|moment| moment.0 == over) {
            Some(moment) => moment.1 = moment.1.max(0),
            None => rank.moments.push((over, 0)),
        }
        rank.moments.iter_mut().for_each(|moment| moment.1 = moment.1.saturating_add(tail));
        if rank.moments.len() > MOMENTS {
            let vertex = self.latest(std::mem::take(&mut rank.moments));
            rank.moments.push((vertex, 0));
        }
    }

    fn build(mut self, own: &Times, kept: &[u32]) -> Folded {
        // The first vertex is time 0.
        self.add(Vertex::Latest { first: 0, end: 0 });
        let mut ranks: Vec<Rank> = Vec::with_capacity(self.graph.starts.len());
        for (rank, &start) in (0u32..).zip(&self.graph.starts) {
            let is_kept = kept.contains(&rank);
            let moment = if is_kept { (self.latest(vec![(0, start)]), 0) } else { (0, start) };
            ranks.push(Rank { moments: vec![moment], is_kept, ..Rank::default() });
        }
        let mut steps: Vec<Vec<Moment>> = vec![vec![(0, 0)]; self.graph.steps as usize];
        for node in &self.graph.nodes {
            let (rank, cell) = (&mut ranks[node.rank as usize], node.cell as usize);
            if rank.is_kept {
                let over = if let Do::Wait(meeting) = node.does { self.over(meeting) } else { NONE };
                let has_tail = matches!(node.does, Do::Wait(_) | Do::Nothing);
                let action =
                    Vertex::Action { rank: node.rank, cell: node.cell, before: rank.moments[0].0, over, has_tail };
                rank.moments[0].0 = self.add(action);
            } else {
                let computing = own.computing[cell];
                rank.moments.iter_mut().for_each(|moment| moment.1 = moment.1.saturating_add(computing));
            }
            match node.does {
                Do::Arrive(meeting) => {
                    self.arrived[meeting as usize].extend(&rank.moments);
                    if !rank.is_kept && self.over[meeting as usize] == NONE {
                        if rank.arrivals.len() == ARRIVALS {
                            rank.arrivals.remove(0);
                        }
                        rank.arrivals.push((meeting, rank.moments.clone()));
                    }
                }
                Do::Step(step) => steps[step as usize].extend(&rank.moments),
                Do::Wait(_) | Do::Nothing if rank.is_kept => {}
                Do::Wait(meeting) => self.wait(rank, meeting, own.tail[cell]),
                Do::Nothing => {
                    rank.moments.iter_mut().for_each(|moment| moment.1 = moment.1.saturating_add(own.tail[cell]));
                }
            }
        }
        self.folded.steps = steps.into_iter().map(|moments| self.latest(moments)).collect();
        self.folded.end = self.latest(ranks.into_iter().flat_map(|rank| rank.moments).collect());
        self.folded
    }
}

impl Folded {
    /// Folds all ranks but `kept`, which the replays may give other times than `own`.
    #[must_use]
    pub fn new(graph: &Graph, own: &Times, took: &[i64], kept: &[u32]) -> Self {
        let meetings = graph.meetings as usize;
        let builder = Builder {
            graph,
            took,
            folded: Self::default(),
            over: vec![NONE; meetings],
            arrived: vec![Vec::new(); meetings],
        };
        builder.build(own, kept)
    }

    /// Number of additions in a replay.
    #[must_use]
    pub fn size(&self) -> usize {
        self.vertices.len() + self.moments.len()
    }

    /// Returns the end of the program, ns. `times` chooses the times of a rank that is not folded.
    pub fn replay<'a>(&self, times: impl Fn(u32) -> &'a Times, memory: &mut Memory) -> i64 {
        let at = &mut memory.at;
        at.clear();
        for vertex in &self.vertices {
            let now = match *vertex {
                Vertex::Latest { first, end } => self.moments[first as usize..end as usize]
                    .iter()
                    .fold(NEVER, |latest, &(vertex, later)| latest.max(at[vertex as usize].saturating_add(later))),
                Vertex::Action { rank, cell, before, over, has_tail } => {
                    let times = times(rank);
                    let mut now = at[before as usize].saturating_add(times.computing[cell as usize]);
                    if over != NONE {
                        now = now.max(at[over as usize]);
                    }
                    if has_tail { now.saturating_add(times.tail[cell as usize]) } else { now }
                }
            };
            // The first is the beginning.
            at.push(if at.is_empty() { 0 } else { now });
        }
        memory.steps.clear();
        memory.steps.extend(self.steps.iter().map(|&step| at[step as usize]));
        at[self.end as usize]
    }
}
