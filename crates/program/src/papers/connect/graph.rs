//! The graph: every rank draws its own edges, each from one of its vertices to any vertex.

use crosswind_schema::experiment::parameters::ConnectParameters;

use crate::random::Stream;

const PLACES: u64 = 7;
const EDGES: u64 = 8;

#[derive(Clone, Debug)]
pub(super) struct Graph {
    pub ranks: u32,
    pub vertices_per_rank: u64,
    pub seed: u64,
    counts: Vec<u64>,
}

impl Graph {
    pub fn new(parameters: &ConnectParameters, ranks: u32, seed: u64) -> Self {
        let vertices_per_rank = parameters.vertices_per_rank.get();
        let mean = (vertices_per_rank * parameters.edges_per_vertex.get()) as f64;
        // Loads rise linearly over the ranks, which are then shuffled.
        let mut counts: Vec<u64> = (0..ranks)
            .map(|place| {
                let above = (2.0 * f64::from(place) + 1.0) / f64::from(ranks) - 1.0;
                (mean * (1.0 + parameters.tilt.get() * above)).round() as u64
            })
            .collect();
        Stream::new(seed, 0, PLACES).shuffle(&mut counts);
        Self { ranks, vertices_per_rank, seed, counts }
    }

    pub fn vertices(&self) -> u64 {
        u64::from(self.ranks) * self.vertices_per_rank
    }

    /// Returns the edges of a rank. The first end is its own.
    pub fn edges(&self, rank: u32) -> impl Iterator<Item = (u64, u64)> {
        let stream = Stream::new(self.seed, u64::from(rank), EDGES);
        let (own, all) = (self.vertices_per_rank, self.vertices());
        let first = u64::from(rank) * own;
        (0..self.counts[rank as usize])
            .map(move |edge| (first + stream.below(2 * edge, own), stream.below(2 * edge + 1, all)))
    }

    /// Returns, for each vertex, the first vertex of its component, by a sequential search.
    pub fn plain(&self) -> Vec<u64> {
        let mut neighbours = vec![Vec::new(); self.vertices() as usize];
        for (a, b) in (0..self.ranks).flat_map(|rank| self.edges(rank)) {
            neighbours[a as usize].push(b);
            neighbours[b as usize].push(a);
        }
        let mut component = vec![u64::MAX; neighbours.len()];
        let mut open = Vec::new();
        for start in 0..neighbours.len() {
            if component[start] == u64::MAX {
                component[start] = start as u64;
                open.push(start);
            }
            while let Some(vertex) = open.pop() {
                for next in neighbours[vertex].iter().map(|next| *next as usize) {
                    if component[next] == u64::MAX {
                        component[next] = start as u64;
                        open.push(next);
                    }
                }
            }
        }
        component
    }
}
