//! An agent's record of its run: totals, rows of activities, the replay log and events. The root also collects every
//! agent's report.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

use crate::record::{Activity, AgentEvent, Log, Row, Totals};

/// Number of recent events kept for display on a status page.
const LAST_EVENTS: usize = 8;

/// Results, events and joined nodes that a node forwarded to its parent, for its status page.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Passed {
    /// Number of results, by the number of the node that computed them.
    pub results: BTreeMap<u32, u64>,
    pub events: VecDeque<AgentEvent>,
    /// Total number of events; `events` keeps only the last of them.
    pub happened: u64,
    /// Names of the nodes that joined below, by node number.
    pub joined: BTreeMap<u32, String>,
}

impl Passed {
    /// Adds an event, dropping the oldest beyond the display limit, and remembers the name of a node that joined.
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
    /// Part of the report: [`TOTALS`](crate::record::TOTALS), [`ROWS`](crate::record::ROWS) or
    /// [`LOG`](crate::record::LOG).
    pub part: u8,
    pub bytes: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Account {
    pub totals: Totals,
    pub rows: Vec<Row>,
    pub log: Option<Log>,
    pub agent_events: Vec<AgentEvent>,
    pub passed: Passed,
    pub pieces: Vec<Piece>,
}

impl Account {
    pub fn new(name: &str, log: bool) -> Self {
        Self {
            totals: Totals { name: name.into(), ..Totals::default() },
            rows: Vec::new(),
            log: log.then(Log::default),
            agent_events: Vec::new(),
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
