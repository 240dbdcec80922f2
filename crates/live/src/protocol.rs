//! Magic number and version in the greeting of this release.

use crosswind_access::greeting::Protocol;

/// Protocol of agents, ranks and filters; all three use the same handshake.
pub const PROTOCOL: Protocol = Protocol { magic: *b"XWFM", version: 9 };
