//! `crosswind-live`'s injection for Python: it runs on threads of its own, and Python waits, looks at its signals, and stops it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crosswind_live::LiveError;
use crosswind_live::inject::outcome::{Done, Ending, How, Outcome, RankDone};
use crosswind_live::inject::script::{Cause, Described, Script, ways};
use crosswind_live::inject::{InjectConfig, Injection, group, priority};
use crosswind_schema::Disturbance;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::errors;
use crate::farm::exception;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    command: Vec<OsString>,
    ranks: Option<u32>,
    seed: u64,
    limit_s: f64,
    how: Option<String>,
    pin: bool,
    busy: bool,
    keep_running: bool,
    start_file: Option<PathBuf>,
    stdout_to_stderr: bool,
}

impl Config {
    fn how(&self) -> Result<Option<How>, LiveError> {
        let ways = [How::Stop, How::Freeze, How::Burn];
        match self.how.as_deref() {
            None => Ok(None),
            Some(name) => ways.into_iter().find(|way| way.name() == name).map(Some).ok_or_else(|| LiveError::Value {
                field: "how".into(),
                value: format!("{name:?}"),
                permitted: "stop, freeze or burn".into(),
            }),
        }
    }
}

/// Configuration and script, as Python describes them.
fn prepared(
    py: Python<'_>,
    config: &str,
    disturbance: &[u8],
    file: &str,
) -> PyResult<(InjectConfig, Described, String)> {
    let wrong = |error: &LiveError| exception(py, error);
    let config: Config =
        serde_json::from_str(config).map_err(|error| wrong(&LiveError::Setup(format!("the injection: {error}"))))?;
    let read = if file.ends_with(".json") { Disturbance::from_json } else { Disturbance::from_toml };
    let disturbance = read(disturbance, file).map_err(|error| errors::description(py, &error))?;
    let script =
        Described::new(&disturbance, config.ranks, config.seed).map_err(|error| errors::description(py, &error))?;
    let how = config.how().map_err(|error| wrong(&error))?;
    let limit = Duration::try_from_secs_f64(config.limit_s).ok().filter(|limit| !limit.is_zero());
    let limit = limit.ok_or_else(|| {
        let (value, permitted) = (format!("{} s", config.limit_s), "greater than 0 s and finite".into());
        wrong(&LiveError::Value { field: "limit_s".into(), value, permitted })
    })?;
    let config = InjectConfig {
        command: config.command,
        ranks: config.ranks,
        limit,
        how,
        pin: config.pin,
        busy: config.busy,
        keep_running: config.keep_running,
        start_file: config.start_file,
        stdout_to_stderr: config.stdout_to_stderr,
    };
    Ok((config, script, disturbance.name))
}

/// A command that is being injected into.
#[pyclass(frozen, name = "Injection", module = "crosswind._core")]
struct PyInjection {
    inner: Mutex<Injection>,
    causes: Vec<Cause>,
    name: String,
}

impl PyInjection {
    fn inner(&self) -> MutexGuard<'_, Injection> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyInjection {
    #[new]
    fn new(py: Python<'_>, config: &str, disturbance: &[u8], file: &str) -> PyResult<Self> {
        let (config, script, name) = prepared(py, config, disturbance, file)?;
        let causes = script.causes().to_vec();
        let inner = py.detach(|| Injection::start(config, Arc::new(script))).map_err(|error| exception(py, &error))?;
        Ok(Self { inner: Mutex::new(inner), causes, name })
    }

    /// Waits for its end, at most so long; whether it has come.
    fn wait(&self, py: Python<'_>, timeout_s: f64) -> bool {
        py.detach(|| self.inner().wait(Duration::from_secs_f64(timeout_s.clamp(0.0, 1e9))))
    }

    /// Asks it to end with a signal, which the command gets too.
    fn stop(&self, signal: i32) {
        self.inner().stop(signal);
    }

    /// Seconds since its start.
    fn elapsed_s(&self) -> f64 {
        self.inner().elapsed_s()
    }

    /// What was injected, as JSON, and as a disturbance in TOML that replays it; once, after the end.
    fn outcome(&self, py: Python<'_>) -> PyResult<(String, String)> {
        let outcome = py.detach(|| self.inner().outcome()).map_err(|error| exception(py, &error))?;
        let recorded = outcome.recorded(&format!("{}, as it was injected", self.name), &self.causes);
        let toml = recorded.map(|recorded| recorded.to_toml()).transpose();
        let toml = toml.map_err(|error| exception(py, &LiveError::Setup(error.to_string())))?;
        Ok((summary(&outcome, &self.causes).to_string(), toml.unwrap_or_default()))
    }
}

fn s(ns: u64) -> f64 {
    ns as f64 * 1e-9
}

fn summary(outcome: &Outcome, causes: &[Cause]) -> Value {
    let (ending, asked) = match outcome.ending {
        Ending::Exited => ("exited", None),
        Ending::Limit => ("limit", None),
        Ending::Asked(signal) => ("asked", Some(signal)),
        Ending::Unwatched => ("unwatched", None),
    };
    json!({
        "elapsed_s": outcome.elapsed_s, "start_s": outcome.start_s, "cpu_user_s": outcome.cpu_s.0, "cpu_system_s": outcome.cpu_s.1,
        "exit_status": outcome.status, "exit_signal": outcome.signal, "ended": ending, "asked_by_signal": asked,
        "ranks_told_by": outcome.told_by, "priority": outcome.urgency.name(),
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
        "causes": by_cause, "complaints": rank.complaints,
    })
}

/// What an injection would do, as JSON, without doing it: how each cause would be injected, and rank 0's first seconds.
#[pyfunction]
fn injection_preview(py: Python<'_>, config: &str, disturbance: &[u8], file: &str, horizon_s: f64) -> PyResult<String> {
    let (config, script, name) = prepared(py, config, disturbance, file)?;
    if config.how == Some(How::Freeze) {
        let why = group::permitted().err();
        why.map_or(Ok(()), |why| {
            Err(exception(py, &LiveError::Setup(format!("control groups cannot be frozen here: {why}"))))
        })?;
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
    let ranks: Vec<Value> = ranks.into_iter().map(|rank| preview_of(&script, rank, horizon_s)).collect();
    let groups = if config.how == Some(How::Freeze) { group::own_group() } else { None };
    Ok(json!({
        "name": name, "causes": ways, "horizon_s": horizon_s, "ranks": ranks,
        "priority": priority::permitted().name(), "cpus": priority::cpus_of(0), "groups_below": groups,
    })
    .to_string())
}

/// Most ranks and intervals of a preview.
const MOST_SHOWN: u32 = 64;
const MOST_INTERVALS: usize = 10;
const MOST_COUNTED: usize = 1_000_000;

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

/// What injection can do here, as JSON: the priority of what takes a CPU, and why groups can't be frozen (null: they can).
#[pyfunction]
fn injection_means(py: Python<'_>) -> String {
    let (urgency, freezer) = py.detach(|| (priority::permitted(), group::permitted()));
    json!({"priority": urgency.name(), "no_freezer": freezer.err()}).to_string()
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyInjection>()?;
    module.add_function(wrap_pyfunction!(injection_preview, module)?)?;
    module.add_function(wrap_pyfunction!(injection_means, module)?)
}
