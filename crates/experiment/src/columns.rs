//! Activities of a run, simulated or live, as columns of bytes in native order: the content of a trace file.

use crosswind_agent::record::{NO_NODE, Row};
use crosswind_agent::settings::LATE_JOINERS;
use crosswind_live::farm::root::RunSummary;
use crosswind_sim::Trace;

/// Names and bytes of the columns: `kind` (1 byte), `node`, `child` (u32; [`NO_NODE`]: none), `task` (u64),
/// `start_s`, `end_s`, `mb`, `work` (f64), `cut` (1 byte; empty if not known).
pub type Columns = [(&'static str, Vec<u8>); 9];

fn bytes<T, const N: usize>(values: impl Iterator<Item = T>, encode: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    values.flat_map(encode).collect()
}

#[must_use]
pub fn of_trace(trace: &Trace) -> Columns {
    let amounts = |values: &[f64]| bytes(values.iter(), |value| value.to_ne_bytes());
    [
        ("kind", trace.kind.iter().map(|kind| *kind as u8).collect()),
        ("node", bytes(trace.node.iter(), |node| node.to_ne_bytes())),
        ("child", bytes(trace.child.iter(), |child| child.unwrap_or(NO_NODE).to_ne_bytes())),
        ("task", bytes(trace.task.iter(), |task| task.to_ne_bytes())),
        ("start_s", amounts(&trace.start_s)),
        ("end_s", amounts(&trace.end_s)),
        ("mb", amounts(&trace.mb)),
        ("work", amounts(&trace.work)),
        ("cut", trace.cut.iter().map(|&cut| u8::from(cut)).collect()),
    ]
}

/// Returns the columns of a live run. Activities of nodes that are not in the platform are left out.
#[must_use]
pub fn of_run(summary: &RunSummary) -> Columns {
    let known = |number: u32| number < LATE_JOINERS || number == NO_NODE;
    let rows: Vec<&Row> = summary.rows.iter().filter(|row| known(row.node) && known(row.child)).collect();
    let amounts = |of: &dyn Fn(&Row) -> f64| bytes(rows.iter(), |row| of(row).to_ne_bytes());
    [
        ("kind", rows.iter().map(|row| row.activity as u8).collect()),
        ("node", bytes(rows.iter(), |row| row.node.to_ne_bytes())),
        ("child", bytes(rows.iter(), |row| row.child.to_ne_bytes())),
        ("task", bytes(rows.iter(), |row| row.task.to_ne_bytes())),
        ("start_s", amounts(&|row| row.start_ns as f64 * 1e-9)),
        ("end_s", amounts(&|row| row.end_ns as f64 * 1e-9)),
        ("mb", amounts(&|row| row.bytes as f64 * 1e-6)),
        ("work", amounts(&|row| row.work)),
        ("cut", Vec::new()),
    ]
}
