//! The overlay tree: of all trees that the links of a cluster allow, the one whose exact plan is fastest.
//!
//! A tree is worth what its plan reaches ([`crate::steady`]). Which hosts are its inner nodes is the question here. Hosts
//! that the root reaches are all in the tree: one that gets nothing costs nothing.
//!
//! | file | question |
//! |---|---|
//! | `graph` | what does each host do, and what each link, for this kind of task? |
//! | `exact` | which tree is best? (few hosts) |
//! | `hung` | what does a tree reach, and what after a change of it? |
//! | `grow` | star, chain, widest links first, at random: where does one begin, and with what does one compare? |
//! | `search` | which tree is good? (many hosts) |
//! | `bound` | what can no tree beat? |
//! | `built` | the answer, with names |

mod bound;
mod built;
mod exact;
mod graph;
mod grow;
mod hung;
mod random;
mod search;

pub use built::{Built, Compared, How, Search, build_tree};
pub use exact::MOST_HOSTS as MOST_EXACT_HOSTS;

/// A difference below this part is rounding: of two trees so near to each other, the one found first stays.
const ROUNDING: f64 = 1e-12;

/// Whether a rate is better than another by more than rounding.
fn better(rate: f64, than: f64) -> bool {
    rate > than * (1.0 + ROUNDING)
}

/// A rooted tree over the hosts that its root reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shape {
    root: usize,
    /// Each host's parent; the root's is itself, [`Shape::NOWHERE`] that of a host which the root does not reach.
    parent: Vec<usize>,
}

impl Shape {
    const NOWHERE: usize = usize::MAX;
}
