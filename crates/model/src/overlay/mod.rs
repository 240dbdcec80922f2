//! The overlay tree: among all trees that the links of a cluster allow, the one with the fastest exact plan.
//!
//! A tree is rated by its plan ([`crate::steady`]); this module decides which hosts are its inner nodes. All hosts that
//! the root reaches are in the tree, since one that gets nothing costs nothing.
//!
//! | file | question |
//! |---|---|
//! | `graph` | what are the rates of hosts and links for this kind of task? |
//! | `exact` | which tree is best? (few hosts) |
//! | `hung` | what is the throughput of a tree, and after a change of it? |
//! | `grow` | star, chain, widest links first, random: which trees to start from and compare with? |
//! | `search` | which tree is good? (many hosts) |
//! | `bound` | what is the upper bound for any tree? |
//! | `built` | the result, with names |

mod bound;
mod built;
mod exact;
mod graph;
mod grow;
mod hung;
mod search;

pub use built::{Built, Compared, How, Search, build_tree};
pub use exact::MOST_HOSTS as MOST_EXACT_HOSTS;

/// Relative differences below this are rounding. Of two trees this close, the one found first stays.
const ROUNDING: f64 = 1e-12;

/// Whether a rate exceeds another by more than rounding.
fn better(rate: f64, than: f64) -> bool {
    rate > than * (1.0 + ROUNDING)
}

/// A rooted tree over the hosts that its root reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shape {
    root: usize,
    /// Parent of each host: the root itself for the root, [`Shape::NOWHERE`] for a host that the root does not reach.
    parent: Vec<usize>,
}

impl Shape {
    const NOWHERE: usize = usize::MAX;
}
