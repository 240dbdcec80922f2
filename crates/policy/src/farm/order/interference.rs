//! `interference`: the derived optimum for the port mode (interference-aware-scheduling, section 3.2, and K-10).
//!
//! A child whose tasks cost the parent at least as many of its own (`ir_send Z C >= 1`, with results
//! `ir_send (Z + Z') C >= 1`) is never served. The others are
//! ordered by lowest `ir_send` with several ports. With one port, whose time is scarce, they are ordered by most tasks
//! gained per second of it, `B (1 - ir_send Z C)`.

use crosswind_schema::plan::Ports;

use super::candidate::Candidate;

/// Returns a child's key, lowest first. `None`: it is never served.
#[must_use]
pub fn key(candidate: &Candidate) -> Option<f64> {
    let gain = 1.0 - candidate.cost();
    (gain > 0.0).then(|| match candidate.ports {
        Ports::Single => -candidate.receive_limit_mb_per_s * gain,
        Ports::Multi => candidate.ir_send_s_per_mb,
    })
}
