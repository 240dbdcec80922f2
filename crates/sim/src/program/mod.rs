//! Simulation of parallel programs: ranks on disturbed processors, a network, and flow control by windows.
//!
//! A rank's processor does one thing at a time, at the speed given by its
//! [`Timeline`](crosswind_schema::disturbance::Timeline). Arriving packets wait until the rank polls: before each
//! operation except computing, and while it waits. Decisions about credits come from `crosswind_policy::window`, random
//! draws from the schema crate, and programs from `crosswind-program`.
//!
//! # How
//!
//! An action of a rank at `t` affects no other rank before `t` + latency + overhead. Time is therefore cut into windows
//! of that length. Within a window, ranks can be advanced one by one in any order, because everything that arrives in
//! the window was sent before it began. Packets are handled in the order of arrival, source and number, so the order in
//! which ranks were advanced does not show in the results. A rank that computes beyond the window's end, or waits, is
//! entered in the calendar for the window in which it can continue. Windows in which no rank can continue are skipped.
//!
//! For the same reason several threads can share the ranks of one simulation. Each advances a group of ranks through a
//! window; at its end they exchange packets and agree on the next window. The results are the same to the byte.
//!
//! | question | file |
//! |---|---|
//! | what does a message cost? | `network` |
//! | what does a rank do next? | `node` |
//! | which packets are in transit to it, and when do they arrive? | `inbox` |
//! | what has just been sent? | `outbox` |
//! | which rank is visited next? | `calendar` |
//! | how does a thread advance its ranks? | `group` |
//! | what do several threads exchange? | `threads` |
//! | what if packets arrive while it is away? | `watch` |
//! | are all at the barrier? | `meeting` |
//! | which send belongs to which receive? | `matching` |
//! | what if the network's buffers fill? | `fat_tree` |
//! | what if ranks have several processors? | `processors` |

mod calendar;
mod fat_tree;
mod group;
mod inbox;
mod matching;
mod meeting;
mod memory;
mod network;
mod node;
mod outbox;
mod outcome;
mod processors;
mod threads;
mod watch;
mod wires;

use crosswind_policy::window::{Away, WindowSettings};
use crosswind_program::Program;
use crosswind_schema::disturbance::Timelines;

use self::group::Group;
use crate::error::SimError;

pub use self::fat_tree::FatTree;
pub use self::network::Network;
pub use self::outcome::{Outcome, RankTimes};
pub use self::processors::simulate_processors;
pub use self::wires::Totals;

/// Simulates a parallel program.
///
/// `watch` is called periodically with the number of operations begun so far. Returning `false` ends the run.
///
/// # Errors
/// [`SimError::Deadlock`] when no event is pending and some ranks have not finished; [`SimError::Network`] and others
/// when the description cannot be simulated; [`SimError::Interrupted`].
pub fn simulate<P: Program>(
    program: &P,
    network: &Network,
    window: WindowSettings,
    timelines: &Timelines,
    watch: &mut dyn FnMut(u64) -> bool,
) -> Result<Outcome<P::Rank>, SimError> {
    if let Some(tree) = network.fat_tree {
        return fat_tree::simulate(program, network, tree, window, timelines, watch);
    }
    check_all(program.ranks(), network, window, timelines)?;
    Group::new(program, network, window, timelines, 0..program.ranks()).run(watch)
}

/// Simulates a parallel program on several threads. The outcome is that of [`simulate`] to the byte, whatever their
/// number. A fat tree is simulated by one.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_on_threads<P: Program>(
    program: &P,
    network: &Network,
    window: WindowSettings,
    timelines: &Timelines,
    threads: usize,
    watch: &mut dyn FnMut(u64) -> bool,
) -> Result<Outcome<P::Rank>, SimError> {
    let threads = threads.min(program.ranks() as usize);
    if threads < 2 || network.fat_tree.is_some() {
        return simulate(program, network, window, timelines, watch);
    }
    check_all(program.ranks(), network, window, timelines)?;
    match threads::simulate(program, network, window, timelines, threads, watch) {
        // Of several errors in one window, one thread finds the first: it is the one to report.
        Err(threads::Ended::ByError) => simulate(program, network, window, timelines, watch),
        Err(threads::Ended::Interrupted) => Err(SimError::Interrupted),
        Ok(groups) => group::outcome(groups),
    }
}

/// # Errors
/// The network cannot be simulated, there are no ranks, or the disturbance is for another number of ranks.
fn check(ranks: u32, network: &Network, timelines: &Timelines) -> Result<(), SimError> {
    network.check()?;
    if ranks == 0 {
        return Err(SimError::NoRanks);
    }
    if timelines.ranks() != ranks {
        return Err(SimError::Timelines { ranks, timelines: timelines.ranks() });
    }
    Ok(())
}

/// # Errors
/// As [`check`], or packets would be sent again before the notice that they were discarded.
fn check_all(ranks: u32, network: &Network, window: WindowSettings, timelines: &Timelines) -> Result<(), SimError> {
    check(ranks, network, timelines)?;
    if let Away::Discard { resend_ns } = window.away {
        let round_trip = 2 * (network.latency_ns + network.overhead_ns);
        if resend_ns < round_trip {
            return Err(SimError::Resend { resend_ns, round_trip_ns: round_trip });
        }
    }
    Ok(())
}
