//! Recorded programs for Python: readers that take bytes as they come, the verdict as JSON, and programs to run again.

use std::sync::{Mutex, PoisonError};

use crosswind_experiment::recorded::Identified;
use crosswind_recorded::read::{Found, traces};
use crosswind_recorded::timeline::excerpt::Excerpt;
use crosswind_recorded::{ReadError, Reader, Recording, Verdict, judge, judge_with_timeline};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors;
use crate::schema::json;

enum State {
    Reading(Option<Reader>),
    Read(Vec<Found>),
}

/// One file of a recorded program: fed with its bytes, then finished.
#[pyclass(frozen, module = "crosswind._core")]
pub struct RecordedFile {
    source: String,
    state: Mutex<State>,
}

fn exception(py: Python<'_>, source: &str, error: &ReadError) -> PyErr {
    let message = if source.is_empty() { error.to_string() } else { format!("{source}: {error}") };
    errors::raise(py, "DescriptionError", &message, "trace", None)
}

#[pymethods]
impl RecordedFile {
    #[new]
    fn new(source: &str) -> Self {
        Self { source: source.into(), state: Mutex::new(State::Reading(Some(Reader::new(source)))) }
    }

    /// Takes the next bytes of the file.
    fn feed(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<()> {
        let fed = py.detach(|| match &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Reading(Some(reader)) => reader.feed(bytes),
            State::Reading(None) | State::Read(_) => Ok(()),
        });
        fed.map_err(|error| exception(py, &self.source, &error))
    }

    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let finished = py.detach(|| {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if let State::Reading(reader) = &mut *state
                && let Some(reader) = reader.take()
            {
                *state = State::Read(reader.finish()?);
            }
            Ok(())
        });
        finished.map_err(|error| exception(py, &self.source, &error))
    }
}

/// Takes the content out of files that were read.
fn contents(files: &[Bound<'_, RecordedFile>]) -> Vec<Found> {
    let mut found = Vec::new();
    for file in files {
        if let State::Read(read) = &mut *file.get().state.lock().unwrap_or_else(PoisonError::into_inner) {
            found.append(read);
        }
    }
    found
}

/// A recorded program that can be run again. Takes each file's content out of it; `identity` is a digest of the files.
#[pyclass(frozen, module = "crosswind._core")]
pub struct RecordedRanks(pub Identified);

#[pymethods]
impl RecordedRanks {
    #[new]
    fn new(py: Python<'_>, files: Vec<Bound<'_, RecordedFile>>, identity: String) -> PyResult<Self> {
        let found = contents(&files);
        let read = py.detach(|| traces(found).map(Recording::new)).map_err(|error| exception(py, "", &error))?;
        let refused = |reason: String| errors::raise(py, "DescriptionError", &reason, "recording", None);
        Ok(Self(Identified { recording: read.map_err(refused)?, identity }))
    }

    /// Number of ranks, times of the recorded run and of its undisturbed replay, s, and how often all ranks wait for
    /// each other.
    fn facts(&self) -> (u32, f64, f64, u64) {
        let of = &self.0.recording;
        (of.ranks(), of.recorded_ns() as f64 * 1e-9, of.replayed_ns() as f64 * 1e-9, of.meetings_of_all())
    }
}

#[derive(serde::Serialize)]
struct Judged {
    #[serde(flatten)]
    verdict: Verdict,
    timeline: Option<Excerpt>,
}

/// Judges which recorded rank is slow. Takes each file's content out of it; returns the verdict as JSON. With `timeline`,
/// its field of that name holds what each rank did when, in part; `perfetto` is called with all of it, as parts of a file.
#[pyfunction]
#[pyo3(signature = (files, timeline = false, perfetto = None))]
fn judge_recorded(
    py: Python<'_>,
    files: Vec<Bound<'_, RecordedFile>>,
    timeline: bool,
    perfetto: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let found = contents(&files);
    let wanted = timeline || perfetto.is_some();
    let judged = py.detach(|| -> Result<_, ReadError> {
        let found = traces(found)?;
        Ok(if wanted { judge_with_timeline(found) } else { (judge(found), None) })
    });
    let (verdict, whole) = judged.map_err(|error| exception(py, "", &error))?;
    if !wanted {
        return json(&verdict);
    }
    let whole = whole.unwrap_or_default();
    if let Some(write) = perfetto {
        whole.perfetto(|part| write.call1((PyBytes::new(py, part),)).map(drop))?;
    }
    let ranks: Vec<u32> = verdict.culprits.iter().flat_map(|culprit| culprit.ranks.iter().copied()).collect();
    json(&Judged { timeline: (!whole.ranks.is_empty()).then(|| whole.excerpt(&ranks)), verdict })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<RecordedFile>()?;
    module.add_class::<RecordedRanks>()?;
    module.add_function(wrap_pyfunction!(judge_recorded, module)?)
}
