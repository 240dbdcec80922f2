//! What this version greets with.

use crosswind_access::greeting::Protocol;

/// What agents, ranks and filters speak: all meet in the same way.
pub const PROTOCOL: Protocol = Protocol { magic: *b"XWFM", version: 5 };
