//! Resource limits for unauthenticated connections. SECURITY.md has the table of all limits.

use std::time::Duration;

/// Timeout from the connection to the proof.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// Most connections at one listener, at a time, that have proved nothing.
pub const STRANGERS: usize = 64;
/// Most bytes of a frame from one of them.
pub const LARGEST_FROM_STRANGER: usize = 4 << 10;
