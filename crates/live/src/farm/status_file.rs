//! Status files of a running node, which another process reads to show a page about the node.
//!
//! `run.json` has the settings of the run, `now.json` what has passed through the node since it was admitted. Both
//! identify the connection to the parent. Each file is replaced as a whole. If the disk is full, the page is missing but
//! the run continues.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crosswind_agent::Agent;
use crosswind_agent::account::Passed;
use crosswind_agent::record::AgentEvent;
use crosswind_agent::settings::RunSettings;
use serde::Serialize;

use crate::farm::payload::Payload;

/// Interval at which changes are written, ns.
const EVERY_NS: u64 = 500_000_000;

#[derive(Serialize)]
struct About<'a> {
    since_ns: u64,
    node: &'a str,
    run: &'a RunSettings,
}

#[derive(Serialize)]
struct Now<'a> {
    since_ns: u64,
    results: BTreeMap<&'a str, u64>,
    events: Vec<&'a AgentEvent>,
    happened: u64,
}

/// Writer of the status files of one node.
pub(crate) struct StatusFile {
    directory: PathBuf,
    since_ns: u64,
    due_ns: u64,
    written: Option<Passed>,
}

impl StatusFile {
    /// Creates the writer for a node that was just admitted.
    pub fn new(directory: PathBuf, now_ns: u64) -> Self {
        Self { directory, since_ns: now_ns, due_ns: now_ns, written: None }
    }

    /// Writes the status if it changed and the interval has passed.
    pub fn look(&mut self, agent: &Agent<Payload>, now_ns: u64) {
        if now_ns >= self.due_ns {
            self.due_ns = now_ns + EVERY_NS;
            self.write_all(agent);
        }
    }

    /// Writes the status if it changed, regardless of the interval.
    pub fn write_all(&mut self, agent: &Agent<Payload>) {
        let passed = agent.passed();
        if self.written.as_ref() == Some(passed) {
            return;
        }
        let known = |number: u32| agent.run().name(number);
        let name = |number: u32| known(number).or_else(|| passed.joined.get(&number).map(String::as_str));
        let mut results = BTreeMap::new();
        for (number, count) in &passed.results {
            *results.entry(name(*number).unwrap_or("an unknown node")).or_default() += count;
        }
        let now =
            Now { since_ns: self.since_ns, results, events: passed.events.iter().collect(), happened: passed.happened };
        let about = About { since_ns: self.since_ns, node: agent.name(), run: agent.run() };
        let described = self.written.is_some() || self.write("run.json", &about);
        if described && self.write("now.json", &now) {
            self.written = Some(passed.clone());
        }
    }

    fn write(&self, name: &str, content: &impl Serialize) -> bool {
        let part = self.directory.join(format!("{name}.part"));
        let Ok(text) = serde_json::to_vec(content) else { return false };
        fs::write(&part, text).and_then(|()| fs::rename(&part, self.directory.join(name))).is_ok()
    }
}
