//! EM3D: electromagnetic waves on an irregular bipartite graph (Culler and others 1993, "Parallel Programming in Split-C";
//! scheduling-and-communication, section 2.3).
//!
//! Every node of the electric field takes the weighted sum of nodes of the magnetic field, then the reverse. Values
//! that other ranks need are pushed to *ghosts* there as soon as they are computed: one store per destination and
//! half-step, between pieces of computation, in a random order of destinations. A barrier ends the half-step. Each rank
//! then waits for the stores to itself (not for those to others, as a store sync would). Ghosts are set up first:
//! active messages request values, integer stores give their addresses, and requests fetch the initial values.

mod graph;
mod rank;

use crosswind_schema::experiment::parameters::Em3dParameters;

use self::graph::Graph;
pub use self::rank::Em3dRank;
use crate::rank::Program;

#[derive(Clone, Debug)]
pub struct Em3d {
    graph: Graph,
    parameters: Em3dParameters,
}

impl Em3d {
    /// Creates the program on `ranks` ranks, at least 1, with data drawn from `seed`.
    #[must_use]
    pub fn new(parameters: &Em3dParameters, ranks: u32, seed: u64) -> Self {
        Self { graph: Graph::new(parameters, ranks, seed), parameters: parameters.clone() }
    }
}

impl Program for Em3d {
    type Rank = Em3dRank;

    fn ranks(&self) -> u32 {
        self.graph.ranks
    }

    fn rank(&self, rank: u32) -> Em3dRank {
        Em3dRank::new(&self.graph, rank, self.parameters.steps.get(), self.parameters.operation_s)
    }

    /// Each rank's values, electric then magnetic, must equal the sequential computation to the last bit, since every
    /// node sums in the order of its edges.
    fn check(&self, results: &[Vec<u64>]) -> Result<(), String> {
        let fields = self.graph.plain(self.parameters.steps.get());
        let nodes = self.graph.nodes as usize;
        if results.len() != self.graph.ranks as usize {
            return Err(format!("{} results of {} ranks", results.len(), self.graph.ranks));
        }
        for (rank, found) in results.iter().enumerate() {
            let wanted = fields.iter().flat_map(|field| &field[rank * nodes..(rank + 1) * nodes]);
            if found.len() != 2 * nodes {
                return Err(format!("rank {rank} holds {} values instead of {}", found.len(), 2 * nodes));
            }
            for (node, (found, wanted)) in found.iter().zip(wanted).enumerate() {
                if *found != wanted.to_bits() {
                    return Err(format!(
                        "node {node} of rank {rank} is {} instead of {wanted}",
                        f64::from_bits(*found)
                    ));
                }
            }
        }
        Ok(())
    }
}
