//! The verdict: which rank is slow, what it costs, and which ranks only wait for it.
//!
//! | question | module |
//! |---|---|
//! | which actions make up a step, and which ranks do the same? | `steps` |
//! | what kept a rank from running? | `absences` |
//! | how long does a rank take against its peers at the same place? | `series` |
//! | is that more than noise? | `noise` |
//! | how long does a suspect rank take against its peers alone? | `reference` |
//! | by how much is each of its times longer? | `excess` |
//! | what would the program save without it? | `shares` |
//! | does it have more rare long times than others by chance? | `chance` |
//! | what was it doing meanwhile? | `causes` |
//! | was the whole host busy? | `busy` |
//! | what is said in the end? | `verdict` |

mod absences;
mod busy;
mod causes;
mod chance;
mod excess;
pub mod noise;
mod reference;
mod series;
mod shares;
mod steps;
mod verdict;

pub use causes::Cause;
pub use verdict::{Culprit, Efficiencies, REPLAYED, Savings, Size, Verdict, judge, judge_with_timeline};
