//! Summary of an injection, and a preview of one.

use crosswind_linux::processes::own_group;
use serde_json::{Value, json};

use super::outcome::{Done, Ending, How, Outcome, RankDone};
use super::script::{Cause, Described, Script, ways};
use super::{InjectConfig, group, priority};
use crate::DisturbError;

fn s(ns: u64) -> f64 {
    ns as f64 * 1e-9
}

/// Summarises the injections of each rank, by cause, and how the command ended.
#[must_use]
pub fn summary(outcome: &Outcome, causes: &[Cause]) -> Value {
    let (ending, asked) = match outcome.ending {
        Ending::Exited => ("exited", None),
        Ending::Limit => ("limit", None),
        Ending::Asked(signal) => ("asked", Some(signal)),
        Ending::Unwatched => ("unwatched", None),
    };
    json!({
        "elapsed_s": outcome.elapsed_s, "start_s": outcome.start_s, "cpu_user_s": outcome.cpu_s.0, "cpu_system_s": outcome.cpu_s.1,
        "exit_status": outcome.status, "exit_signal": outcome.signal, "ended": ending, "asked_by_signal": asked,
        "ranks_told_by": outcome.identified_by, "priority": outcome.urgency.name(),
        "ranks": outcome.ranks.iter().map(|rank| of_rank(rank, causes, outcome.elapsed_s)).collect::<Vec<_>>(),
    })
}

fn of_rank(rank: &RankDone, causes: &[Cause], elapsed_s: f64) -> Value {
    let away_s = rank.done.iter().map(|one| s(one.end_ns - one.start_ns)).fold(0.0, |sum, one| sum + one);
    let late = |one: &Done| s(one.start_ns.saturating_sub(one.asked_ns));
    let longer = |one: &Done| s(one.end_ns - one.start_ns) - s(one.asked_for_ns);
    let count = rank.done.len().max(1) as f64;
    let by_cause: Vec<Value> = causes
        .iter()
        .enumerate()
        .filter_map(|(place, cause)| {
            let of = rank.done.iter().filter(|one| usize::from(one.cause) == place);
            let (intervals, sum) =
                of.clone().fold((0u64, 0.0), |(n, sum), one| (n + 1, sum + s(one.end_ns - one.start_ns)));
            let mut ways: Vec<&str> = of.map(|one| one.how.name()).collect();
            ways.sort_unstable();
            ways.dedup();
            (intervals > 0).then(|| json!({"cause": cause.name, "intervals": intervals, "away_s": sum, "how": ways}))
        })
        .collect();
    json!({
        "rank": rank.rank, "pids": rank.processes, "cpus": rank.cpus, "busy_cpus": rank.busy, "intervals": rank.done.len(),
        "away_s": away_s, "share": away_s / elapsed_s.max(1e-9),
        "late_mean_s": rank.done.iter().map(late).fold(0.0, |sum, one| sum + one) / count,
        "late_max_s": rank.done.iter().map(late).fold(0.0, f64::max),
        "longer_mean_s": rank.done.iter().map(longer).fold(0.0, |sum, one| sum + one) / count,
        "too_short": rank.too_short.0, "too_short_s": s(rank.too_short.1),
        "missed": rank.missed.0, "missed_s": s(rank.missed.1),
        "causes": by_cause, "complaints": rank.complaints, "exposed": rank.exposed,
    })
}

/// Most ranks and intervals of a preview.
const MOST_SHOWN: u32 = 64;
const MOST_INTERVALS: usize = 10;
const MOST_COUNTED: usize = 1_000_000;

/// Previews an injection without running it: the method for each cause, and the first seconds of each rank.
///
/// # Errors
/// When groups should be frozen and cannot be.
pub fn preview(config: &InjectConfig, script: &Described, name: &str, horizon_s: f64) -> Result<Value, DisturbError> {
    if config.how == Some(How::Freeze) {
        group::permitted()
            .map_err(|why| DisturbError::Setup(format!("control groups cannot be frozen here: {why}")))?;
    }
    let ways: Vec<Value> = script
        .causes()
        .iter()
        .map(|cause| {
            let ways: Vec<&str> = ways(cause, config.how, false).into_iter().map(How::name).collect();
            json!({"cause": cause.name, "daemon": cause.is_daemon, "how": ways})
        })
        .collect();
    let mut ranks: Vec<u32> = (0..config.ranks.unwrap_or(1).min(MOST_SHOWN)).collect();
    ranks.dedup();
    let ranks: Vec<Value> = ranks.into_iter().map(|rank| preview_of(script, rank, horizon_s)).collect();
    let groups = if config.how == Some(How::Freeze) { own_group() } else { None };
    Ok(json!({
        "name": name, "causes": ways, "horizon_s": horizon_s, "ranks": ranks,
        "priority": priority::permitted().name(), "cpus": priority::cpus_of(0), "groups_below": groups,
    }))
}

fn preview_of(script: &Described, rank: u32, horizon_s: f64) -> Value {
    let (mut count, mut away_s, mut first) = (0u64, 0.0, Vec::new());
    for away in script.intervals(rank).take(MOST_COUNTED).take_while(|away| s(away.start_ns) < horizon_s) {
        let end_s = s(away.end_ns).min(horizon_s);
        (count, away_s) = (count + 1, away_s + end_s - s(away.start_ns));
        if first.len() < MOST_INTERVALS {
            let name = script.causes().get(usize::from(away.cause)).map(|cause| &cause.name);
            first.push(json!([s(away.start_ns), s(away.end_ns - away.start_ns), name]));
        }
    }
    json!({"rank": rank, "intervals": count, "away_s": away_s, "share": away_s / horizon_s, "first": first})
}
