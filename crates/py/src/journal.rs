//! The journal of a farm for Python: what earlier runs did, asked before a task is handed over.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crosswind_live::LiveError;
use crosswind_live::farm::journal::{Journal, Past};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::farm::exception;

/// A journal, and what it knows. The farm that it is given to takes it, once.
#[pyclass(frozen, name = "Journal", module = "crosswind._core")]
pub struct PyJournal {
    pub journal: Mutex<Option<Journal>>,
    past: Mutex<Past>,
}

#[pymethods]
impl PyJournal {
    /// Opens the journal of a run, to go on with (`resume`, where there is one) or as a new one.
    #[new]
    fn new(py: Python<'_>, path: PathBuf, digest: &str, resume: bool) -> PyResult<Self> {
        let opened = py.detach(|| {
            if resume && path.exists() {
                Journal::resume(&path, digest)
            } else {
                Ok((Journal::create(&path, digest)?, Past::default()))
            }
        });
        let (journal, past) = opened.map_err(|error| exception(py, &error))?;
        Ok(Self { journal: Mutex::new(Some(journal)), past: Mutex::new(past) })
    }

    /// Where a journal with a damaged head was moved to; None: it was whole, or new.
    #[getter]
    fn set_aside(&self) -> Option<PathBuf> {
        self.past.lock().unwrap_or_else(PoisonError::into_inner).set_aside().map(PathBuf::from)
    }

    /// `(input, recipe, ok, bytes)` as noted last of a task; it counts as asked for. None: not known.
    fn known(&self, py: Python<'_>, label: &[u8]) -> PyResult<Option<(u64, u64, bool, u64)>> {
        let mut past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        let known = past.known(label).map_err(LiveError::system("reading the journal"));
        let known = known.map_err(|error| exception(py, &error))?;
        Ok(known.map(|known| (known.input, known.recipe, known.ok, known.bytes)))
    }

    /// Tasks that nothing has asked for: how many, and the labels of the first of them.
    fn gone<'py>(&self, py: Python<'py>, most: usize) -> PyResult<(usize, Vec<Bound<'py, PyBytes>>)> {
        let past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        let found = past.gone(most).map_err(LiveError::system("reading the journal"));
        let (count, labels) = found.map_err(|error| exception(py, &error))?;
        Ok((count, labels.iter().map(|label| PyBytes::new(py, label)).collect()))
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyJournal>()
}
