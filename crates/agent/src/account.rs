//! What an agent tells of itself: totals, rows, the log for a replay, what happened; at the root, what all told.

use crate::record::{Activity, AgentEvent, Log, Row, Totals};

/// A piece of an agent's report.
#[derive(Debug)]
pub struct Piece {
    /// Whose it is.
    pub node: u32,
    /// Which part.
    pub part: u8,
    /// The piece.
    pub bytes: Vec<u8>,
}

/// What is told.
#[derive(Debug)]
pub(crate) struct Account {
    pub totals: Totals,
    pub rows: Vec<Row>,
    pub log: Option<Log>,
    pub happened: Vec<AgentEvent>,
    /// At the root.
    pub pieces: Vec<Piece>,
}

impl Account {
    pub fn new(name: &str, log: bool) -> Self {
        Self {
            totals: Totals { name: name.into(), ..Totals::default() },
            rows: Vec::new(),
            log: log.then(Log::default),
            happened: Vec::new(),
            pieces: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row(
        &mut self,
        activity: Activity,
        (node, child): (u32, u32),
        task: u64,
        (start_ns, end_ns): (u64, u64),
        (bytes, work): (u64, f64),
    ) {
        self.rows.push(Row { activity, node, child, task, start_ns, end_ns, bytes, work });
    }
}
