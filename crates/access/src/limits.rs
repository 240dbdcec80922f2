//! Resource limits for unauthenticated connections. SECURITY.md has the table of all limits.

use std::time::Duration;

/// Time limit from the connection to the proof.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum number of concurrent unauthenticated connections per listener.
pub const UNAUTHENTICATED: usize = 64;
/// Maximum size of a frame from an unauthenticated peer, bytes.
pub const LARGEST_UNAUTHENTICATED: usize = 4 << 10;
