//! CONNECT: connected components of a random graph (after KLCY94, "Connected Components on Distributed Memory Machines";
//! scheduling-and-communication, section 2.3).
//!
//! First every rank joins what its own edges join. Then in rounds: all components toss coins; one with tails that has an edge to one
//! with heads hooks itself onto it (a one-way active message to the owner of its root); the ends of edges learn their new roots
//! (integer gets, one for each distinct root, in batches between syncs), edges inside a component are dropped. When few edges are
//! left in all, rank 0 joins the rest alone. At the end every vertex finds its root by pointer jumping.

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
    /// The program on so many ranks, at least 1, with data of a seed.
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

    /// Each rank's vertices, in their order, must have names that are the same where a plain search finds the same component, and
    /// differ where it does not.
    fn check(&self, results: &[Vec<u64>]) -> Result<(), String> {
        let wanted = self.graph.plain();
        let found: Vec<u64> = results.iter().flatten().copied().collect();
        if found.len() != wanted.len() {
            return Err(format!("{} vertices came out of {}", found.len(), wanted.len()));
        }
        // The root of a component is one of its vertices, so two components with one name show at that vertex.
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
