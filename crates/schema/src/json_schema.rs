//! JSON Schema of each file kind, generated from the types, for completion and checks in editors.

use schemars::schema_for;
use serde_json::Value;

use crate::{
    AnyExperiment, Disturbance, Hosts, Links, Measurement, Overlap, Plan, Platform, ProgramRuns, Runs, StreamsRuns,
    Trace,
};

/// The file kinds that have a schema.
pub const KINDS: [&str; 12] = [
    "platform",
    "links",
    "experiment",
    "disturbance",
    "measurement",
    "plan",
    "runs",
    "program-runs",
    "streams-runs",
    "trace",
    "overlap",
    "hosts",
];

/// Returns the JSON Schema of a file kind; `None` for a kind that does not exist.
#[must_use]
pub fn of(kind: &str) -> Option<Value> {
    Some(match kind {
        "platform" => schema_for!(Platform).to_value(),
        "links" => schema_for!(Links).to_value(),
        "experiment" => schema_for!(AnyExperiment).to_value(),
        "disturbance" => schema_for!(Disturbance).to_value(),
        "measurement" => schema_for!(Measurement).to_value(),
        "plan" => schema_for!(Plan).to_value(),
        "runs" => schema_for!(Runs).to_value(),
        "program-runs" => schema_for!(ProgramRuns).to_value(),
        "streams-runs" => schema_for!(StreamsRuns).to_value(),
        "trace" => schema_for!(Trace).to_value(),
        "overlap" => schema_for!(Overlap).to_value(),
        "hosts" => schema_for!(Hosts).to_value(),
        _ => return None,
    })
}
