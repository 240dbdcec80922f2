//! The graph: which node depends on which, drawn so that every rank can draw its own part.

use crosswind_schema::experiment::parameters::Em3dParameters;

use crate::random::Stream;

/// One edge: the global number of the node of the other field that is read, and its weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Edge {
    pub source: u64,
    pub weight: f32,
}

pub(super) const ELECTRIC: usize = 0;
pub(super) const MAGNETIC: usize = 1;

#[derive(Clone, Debug)]
pub(super) struct Graph {
    pub ranks: u32,
    /// Nodes of each field at each rank.
    pub nodes: u64,
    pub degree: u64,
    pub remote: f64,
    pub seed: u64,
}

impl Graph {
    pub fn new(parameters: &Em3dParameters, ranks: u32, seed: u64) -> Self {
        Self {
            ranks,
            nodes: parameters.nodes_per_rank.get(),
            degree: parameters.edges_per_node.get(),
            remote: parameters.remote.get(),
            seed,
        }
    }

    pub fn owner(&self, node: u64) -> u32 {
        (node / self.nodes) as u32
    }

    /// Returns the edges into a node of a field.
    pub fn edges(&self, field: usize, node: u64) -> impl Iterator<Item = Edge> + '_ {
        let stream = Stream::new(self.seed, node, 1 + field as u64);
        (0..self.degree).map(move |edge| {
            let rank = if stream.unit(4 * edge) < self.remote {
                stream.below(4 * edge + 1, u64::from(self.ranks))
            } else {
                u64::from(self.owner(node))
            };
            let source = rank * self.nodes + stream.below(4 * edge + 2, self.nodes);
            // Weights have both signs, and their squares sum to about 1, so values neither grow nor vanish quickly.
            Edge {
                source,
                weight: ((2.0 * stream.unit(4 * edge + 3) - 1.0) * 1.7 / (self.degree as f64).sqrt()) as f32,
            }
        })
    }

    /// Returns the initial value of a node.
    pub fn start(&self, field: usize, node: u64) -> f64 {
        Stream::new(self.seed, node, 3 + field as u64).unit(0)
    }

    /// Returns both fields after `steps` steps, computed sequentially over the whole graph.
    pub fn plain(&self, steps: u64) -> [Vec<f64>; 2] {
        let all = u64::from(self.ranks) * self.nodes;
        let mut fields = [ELECTRIC, MAGNETIC].map(|field| (0..all).map(|n| self.start(field, n)).collect::<Vec<f64>>());
        let edges =
            [ELECTRIC, MAGNETIC].map(|field| (0..all).flat_map(|n| self.edges(field, n)).collect::<Vec<Edge>>());
        for _ in 0..steps {
            for field in [ELECTRIC, MAGNETIC] {
                let next = edges[field].chunks_exact(self.degree as usize).map(|edges| {
                    edges
                        .iter()
                        .fold(0.0, |sum, edge| sum + f64::from(edge.weight) * fields[1 - field][edge.source as usize])
                });
                fields[field] = next.collect();
            }
        }
        fields
    }
}
