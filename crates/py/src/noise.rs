//! `crosswind-live`'s recording of noise for Python: it runs on threads of its own, and Python waits and stops it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crosswind_live::LiveError;
use crosswind_live::noise::blame::{Piece, is_ours};
use crosswind_live::noise::outcome::{CpuNoise, Means, Recording};
use crosswind_live::noise::{RecordConfig, Recorder, own_ns, trace};
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::farm::exception;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    seconds: f64,
    cpus: Vec<usize>,
    threshold_us: f64,
    how: Option<String>,
}

fn value(field: &str, value: impl ToString, permitted: &str) -> LiveError {
    LiveError::Value { field: field.into(), value: value.to_string(), permitted: permitted.into() }
}

impl Config {
    fn checked(self) -> Result<RecordConfig, LiveError> {
        let length = Duration::try_from_secs_f64(self.seconds).ok().filter(|length| !length.is_zero());
        let threshold = Duration::try_from_secs_f64(self.threshold_us * 1e-6).ok().filter(|one| !one.is_zero());
        let means = match self.how.as_deref() {
            None => None,
            Some("trace") => Some(Means::Trace),
            Some("loop") => Some(Means::Loop),
            Some(other) => return Err(value("how", format!("{other:?}"), "trace or loop")),
        };
        Ok(RecordConfig {
            length: length.ok_or_else(|| value("seconds", self.seconds, "greater than 0 s and finite"))?,
            threshold: threshold.ok_or_else(|| value("threshold_us", self.threshold_us, "at least 0.001 us"))?,
            cpus: self.cpus,
            means,
        })
    }
}

/// A recording that goes on.
#[pyclass(frozen, name = "NoiseRecorder", module = "crosswind._core")]
struct PyNoiseRecorder(Mutex<Recorder>);

impl PyNoiseRecorder {
    fn lock(&self) -> MutexGuard<'_, Recorder> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyNoiseRecorder {
    #[new]
    fn new(py: Python<'_>, config: &str) -> PyResult<Self> {
        let config: Result<Config, _> = serde_json::from_str(config);
        let config = config.map_err(|error| LiveError::Setup(format!("the recording: {error}")));
        let recorder = config.and_then(Config::checked).and_then(Recorder::start);
        recorder.map(|recorder| Self(Mutex::new(recorder))).map_err(|error| exception(py, &error))
    }

    /// Waits for its end, at most so long; whether it has come.
    fn wait(&self, py: Python<'_>, timeout_s: f64) -> bool {
        py.detach(|| self.lock().wait(Duration::from_secs_f64(timeout_s.clamp(0.0, 1e9))))
    }

    /// Ends it before its time.
    fn stop(&self) {
        self.lock().stop();
    }

    /// Seconds since its start.
    fn elapsed_s(&self) -> f64 {
        self.lock().elapsed_s()
    }

    /// What was recorded, in numbers as JSON, and as a disturbance in TOML; once, after the end.
    fn recording(&self, py: Python<'_>, name: &str) -> PyResult<(String, String)> {
        let result = py.detach(|| {
            let recording = self.lock().recording()?;
            let disturbance = recording.disturbance(name).map(|disturbance| disturbance.to_toml()).transpose();
            let toml = disturbance.map_err(|error| LiveError::Setup(error.to_string()))?;
            Ok((summary(&recording).to_string(), toml.unwrap_or_default()))
        });
        result.map_err(|error: LiveError| exception(py, &error))
    }
}

fn s(ns: u64) -> f64 {
    ns as f64 * 1e-9
}

fn length(piece: &Piece) -> u64 {
    piece.end_ns - piece.start_ns
}

fn summary(recording: &Recording) -> Value {
    let all: Vec<&Piece> = recording.noise().collect();
    let whole_ns = recording.length_ns * recording.cpus.len() as u64;
    json!({
        "length_s": s(recording.length_ns), "how": recording.means.name(), "no_trace": recording.no_trace,
        "lost_events": recording.lost_events, "interrupted": recording.interrupted, "full": recording.full,
        "own_share": own_ns(recording) as f64 / whole_ns.max(1) as f64,
        "total": of(recording, &all, whole_ns),
        "cpus": recording.cpus.iter().map(|cpu| of_cpu(recording, cpu)).collect::<Vec<_>>(),
    })
}

fn of_cpu(recording: &Recording, cpu: &CpuNoise) -> Value {
    let pieces: Vec<&Piece> = cpu.pieces.iter().filter(|piece| !is_ours(piece.who)).collect();
    let mut found = of(recording, &pieces, recording.length_ns);
    found["cpu"] = json!(cpu.cpu);
    found
}

/// Share, number, longest, and the same by cause, the worst first.
fn of(recording: &Recording, pieces: &[&Piece], whole_ns: u64) -> Value {
    let mut causes: Vec<(&str, u64, u64, u64)> = Vec::new();
    for piece in pieces {
        let name = recording.name(piece.who);
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
        "longest_cause": longest.map(|piece| recording.name(piece.who)),
        "causes": causes.iter().map(|(name, count, sum, longest)| json!({
            "cause": name, "share": share(*sum), "intervals": count, "longest_s": s(*longest),
        })).collect::<Vec<_>>(),
    })
}

/// Why the kernel's trace can't be had here; None: it can.
#[pyfunction]
fn no_trace(py: Python<'_>) -> Option<String> {
    py.detach(trace::permitted).err()
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyNoiseRecorder>()?;
    module.add_function(wrap_pyfunction!(no_trace, module)?)
}
