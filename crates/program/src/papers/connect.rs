//! CONNECT: connected components of a random graph (after KLCY94, "Connected Components on Distributed Memory Machines";
//! scheduling-and-communication, section 2.3).
//!
//! First every rank joins the vertices connected by its own edges. Then, in rounds, all components toss coins. A
//! component with tails that has an edge to one with heads hooks itself onto it (a one-way active message to the owner
//! of its root). The ends of edges fetch their new roots (integer gets, one per distinct root, in batches between
//! syncs), and edges inside a component are dropped. When few edges are left in total, rank 0 joins the rest alone. At
//! the end every vertex finds its root by pointer jumping.

mod graph;
mod rank;
mod table;

use crosswind_schema::experiment::parameters::ConnectParameters;

use self::graph::Graph;
pub use self::rank::ConnectRank;
use crate::rank::Program;

#[derive(Clone, Debug)]
pub struct Connect {
    graph: Graph,
    parameters: ConnectParameters,
}

impl Connect {
    /// Creates the program on `ranks` ranks, at least 1, with data drawn from `seed`.
    #[must_use]
    pub fn new(parameters: &ConnectParameters, ranks: u32, seed: u64) -> Self {
        Self { graph: Graph::new(parameters, ranks, seed), parameters: parameters.clone() }
    }
}

impl Program for Connect {
    type Rank = ConnectRank;

    fn ranks(&self) -> u32 {
        self.graph.ranks
    }

    fn rank(&self, rank: u32) -> ConnectRank {
        ConnectRank::new(&self.graph, &self.parameters, rank)
    }

    /// The vertices' names, in order, must be equal exactly where a sequential search finds the same component.
    fn check(&self, results: &[Vec<u64>]) -> Result<(), String> {
        let wanted = self.graph.plain();
        let found: Vec<u64> = results.iter().flatten().copied().collect();
        if found.len() != wanted.len() {
            return Err(format!("{} vertices came out of {}", found.len(), wanted.len()));
        }
        // The root of a component is one of its vertices, so two components with the same name are detected at that
        // vertex.
        for (vertex, (name, component)) in found.iter().zip(&wanted).enumerate() {
            let Some(root) = wanted.get(*name as usize) else {
                return Err(format!("vertex {vertex} is in the component of {name}, which is no vertex"));
            };
            let first = found[*component as usize];
            if root != component || *name != first {
                return Err(format!(
                    "vertex {vertex} is in the component of vertex {name}, and vertex {component} of the same component in that of {first}"
                ));
            }
        }
        Ok(())
    }
}
