//! Helpers for the interface tests: experiments, and an observer that records.
#![allow(dead_code)] // not every test uses all of it

use crosswind_schema::{Class, StreamsExperiment};
use crosswind_sim::interface::{Job, Measured, Observed, Observer, Present, measure};

/// Time of a frame of 1 KiB on a link of 155 Mb/s, and the latency, s.
pub const FRAME_S: f64 = 1024.0 / 19.375e6;
pub const LATENCY_S: f64 = 10e-6;

/// Builds an experiment from the text of its tables.
pub fn experiment(rest: &str) -> StreamsExperiment {
    let text = format!("schema_version = 1\nname = \"test\"\n{rest}");
    StreamsExperiment::from_toml(text.as_bytes(), "experiment.toml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the text of one stream of an experiment.
pub fn stream(name: &str, class: Class, from: u32, to: u32, rest: &str) -> String {
    let class = class.name();
    format!("[[workload.stream]]\nname = \"{name}\"\nclass = \"{class}\"\nfrom = {from}\nto = {to}\n{rest}\n")
}

/// Runs all streams and jobs together to the end.
pub fn together<O: Observer>(experiment: &StreamsExperiment, jobs: &[Job], queued: bool, observer: &mut O) -> Measured {
    measure(experiment, jobs, Present::All, queued, None, observer, &mut |_| true).unwrap()
}

/// Events in the order in which they were reported.
#[derive(Debug, Default)]
pub struct Log {
    pub made: Vec<(u64, Observed)>,
    pub left: Vec<(u64, Observed)>,
    pub arrived: Vec<(u64, Observed)>,
    pub lost: Vec<(u64, Observed)>,
}

impl Observer for Log {
    fn made(&mut self, at: u64, message: Observed) {
        self.made.push((at, message));
    }
    fn leaves(&mut self, at: u64, frame: Observed) {
        self.left.push((at, frame));
    }
    fn arrives(&mut self, at: u64, frame: Observed) {
        self.arrived.push((at, frame));
    }
    fn lost(&mut self, at: u64, frame: Observed) {
        self.lost.push((at, frame));
    }
}

/// Whether two amounts differ by at most a fraction of the second.
pub fn within(found: f64, expected: f64, part: f64) -> bool {
    (found - expected).abs() <= part * expected.abs()
}
