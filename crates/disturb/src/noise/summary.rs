//! Summary of a recording.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::blame::{Piece, is_own};
use super::events::CauseId;
use super::outcome::{CpuNoise, Recording};
use super::own_ns;
use crate::process::Process;

/// Most processes that are listed for a cause.
const MOST_PROCESSES: usize = 5;

fn s(ns: u64) -> f64 {
    ns as f64 * 1e-9
}

fn length(piece: &Piece) -> u64 {
    piece.end_ns - piece.start_ns
}

/// Summarises shares, counts and longest pieces: of all CPUs, of each CPU, and by cause.
#[must_use]
pub fn summary(recording: &Recording) -> Value {
    let all: Vec<&Piece> = recording.noise().collect();
    let whole_ns = recording.length_ns * recording.cpus.len() as u64;
    let mut total = of(recording, &all, whole_ns);
    let mut of_each: BTreeMap<CauseId, u64> = BTreeMap::new();
    all.iter().for_each(|piece| *of_each.entry(piece.cause).or_default() += length(piece));
    for cause in total["causes"].as_array_mut().into_iter().flatten() {
        cause["processes"] = processes(recording, &of_each, cause["cause"].as_str().unwrap_or_default(), whole_ns);
    }
    json!({
        "length_s": s(recording.length_ns), "how": recording.means.name(), "no_trace": recording.no_trace,
        "lost_events": recording.lost_events, "throttled": recording.throttled, "interrupted": recording.interrupted, "full": recording.full,
        "own_share": own_ns(recording) as f64 / whole_ns.max(1) as f64,
        "total": total,
        "cpus": recording.cpus.iter().map(|cpu| of_cpu(recording, cpu)).collect::<Vec<_>>(),
    })
}

/// Returns the processes of a cause, the one with the largest share first.
fn processes(recording: &Recording, of_each: &BTreeMap<CauseId, u64>, name: &str, whole_ns: u64) -> Value {
    let of_name = of_each.iter().filter(|(cause, _)| recording.name(**cause) == name);
    let mut found: Vec<(&Process, u64)> =
        of_name.filter_map(|(cause, ns)| Some((recording.process(*cause)?, *ns))).collect();
    found.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let shown = found.into_iter().take(MOST_PROCESSES).map(|(process, ns)| {
        let mut shown = process.as_json();
        shown["share"] = json!(ns as f64 / whole_ns.max(1) as f64);
        shown
    });
    shown.collect()
}

fn of_cpu(recording: &Recording, cpu: &CpuNoise) -> Value {
    let pieces: Vec<&Piece> = cpu.pieces.iter().filter(|piece| !is_own(piece.cause)).collect();
    let mut found = of(recording, &pieces, recording.length_ns);
    found["cpu"] = json!(cpu.cpu);
    found
}

/// Returns share, count and longest piece, and the same by cause, the largest first.
fn of(recording: &Recording, pieces: &[&Piece], whole_ns: u64) -> Value {
    let mut causes: Vec<(&str, u64, u64, u64)> = Vec::new();
    for piece in pieces {
        let name = recording.name(piece.cause);
        match causes.iter_mut().find(|(other, ..)| *other == name) {
            Some((_, count, sum, longest)) => {
                (*count, *sum, *longest) = (*count + 1, *sum + length(piece), length(piece).max(*longest));
            }
            None => causes.push((name, 1, length(piece), length(piece))),
        }
    }
    causes.sort_by_key(|(_, _, sum, _)| std::cmp::Reverse(*sum));
    let share = |ns: u64| ns as f64 / whole_ns.max(1) as f64;
    let longest = pieces.iter().max_by_key(|piece| length(piece));
    json!({
        "share": share(pieces.iter().map(|piece| length(piece)).sum()), "intervals": pieces.len(),
        "longest_s": longest.map_or(0.0, |piece| s(length(piece))),
        "longest_cause": longest.map(|piece| recording.name(piece.cause)),
        "causes": causes.iter().map(|(name, count, sum, longest)| json!({
            "cause": name, "share": share(*sum), "intervals": count, "longest_s": s(*longest),
        })).collect::<Vec<_>>(),
    })
}
