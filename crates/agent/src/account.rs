//! What an agent tells of itself: totals, rows, the log for a replay, what happened; at the root, what all told.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

use crate::record::{Activity, AgentEvent, Log, Row, Totals};

/// Events that a page can still show.
const LAST_EVENTS: usize = 8;

/// What has passed through a node on its way up, for a page about it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Passed {
    /// Results, by the number of the node that computed them.
    pub results: BTreeMap<u32, u64>,
    pub events: VecDeque<AgentEvent>,
    /// How many events there were in all.
    pub happened: u64,
    /// Names of the nodes that joined below, by their numbers.
    pub joined: BTreeMap<u32, String>,
}

impl Passed {
    /// Takes note of an event.
    pub(crate) fn note(&mut self, event: &AgentEvent) {
        if let (Some(number), Some(name)) = (event.number, &event.node) {
            self.joined.insert(number, name.clone());
        }
        self.happened += 1;
        self.events.push_back(event.clone());
        if self.events.len() > LAST_EVENTS {
            self.events.pop_front();
        }
    }
}

/// A piece of an agent's report.
#[derive(Debug)]
pub struct Piece {
    pub node: u32,
    /// Which part.
    pub part: u8,
    pub bytes: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Account {
    pub totals: Totals,
    pub rows: Vec<Row>,
    pub log: Option<Log>,
    pub happened: Vec<AgentEvent>,
    pub passed: Passed,
    pub pieces: Vec<Piece>,
}

impl Account {
    pub fn new(name: &str, log: bool) -> Self {
        Self {
            totals: Totals { name: name.into(), ..Totals::default() },
            rows: Vec::new(),
            log: log.then(Log::default),
            happened: Vec::new(),
            passed: Passed::default(),
            pieces: Vec::new(),
        }
    }

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
