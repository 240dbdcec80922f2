//! The journal of a farm for Python: results of earlier runs, looked up before a task is submitted.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crosswind_live::LiveError;
use crosswind_live::farm::journal::{Journal, JournalIndex};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::farm::exception;

/// A journal with its entries. A farm can take it once.
#[pyclass(frozen, name = "Journal", module = "crosswind._core")]
pub struct PyJournal {
    pub journal: Mutex<Option<Journal>>,
    index: Mutex<JournalIndex>,
}

#[pymethods]
impl PyJournal {
    /// Opens the journal of a run: resumes it with `resume` if the file exists, otherwise creates it.
    #[new]
    fn new(py: Python<'_>, path: PathBuf, digest: &str, resume: bool) -> PyResult<Self> {
        let opened = py.detach(|| {
            if resume && path.exists() {
                Journal::resume(&path, digest)
            } else {
                Ok((Journal::create(&path, digest)?, JournalIndex::default()))
            }
        });
        let (journal, index) = opened.map_err(|error| exception(py, &error))?;
        Ok(Self { journal: Mutex::new(Some(journal)), index: Mutex::new(index) })
    }

    /// Path to which a journal with a damaged head was moved; None: it was intact, or new.
    #[getter]
    fn set_aside(&self) -> Option<PathBuf> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner).set_aside().map(PathBuf::from)
    }

    /// Returns the number of records of results in a journal, and of tasks that have failed and were not done since;
    /// None: it is damaged or of another run.
    #[staticmethod]
    fn counts(py: Python<'_>, path: PathBuf, digest: &str) -> PyResult<Option<(u64, u64)>> {
        Ok(py.detach(|| Journal::counts(&path, digest))?)
    }

    /// Returns the last recorded `(input, recipe, ok, bytes)` of a task and marks it as requested; None: not
    /// recorded.
    fn known(&self, py: Python<'_>, label: &[u8]) -> PyResult<Option<(u64, u64, bool, u64)>> {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let known = index.known(label).map_err(LiveError::system("reading the journal"));
        let known = known.map_err(|error| exception(py, &error))?;
        Ok(known.map(|known| (known.input, known.recipe, known.ok, known.bytes)))
    }

    /// Returns the number of recorded tasks that were not requested, and the labels of the first `most`.
    fn gone<'py>(&self, py: Python<'py>, most: usize) -> PyResult<(usize, Vec<Bound<'py, PyBytes>>)> {
        let index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let found = index.gone(most).map_err(LiveError::system("reading the journal"));
        let (count, labels) = found.map_err(|error| exception(py, &error))?;
        Ok((count, labels.iter().map(|label| PyBytes::new(py, label)).collect()))
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyJournal>()
}
