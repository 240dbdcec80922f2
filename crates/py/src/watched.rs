//! Long work that Python looks on at.

use pyo3::prelude::*;

/// Runs something without holding Python. What it calls now and then calls `progress` and looks at signals, on the
/// calling thread; what that raises ends the work, and is returned.
pub fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    run: impl FnOnce(&mut dyn FnMut(u64) -> bool) -> T + Send,
) -> PyResult<T> {
    let mut raised = None;
    let mut watch = |done: u64| {
        let told = Python::attach(|py| {
            py.check_signals()?;
            progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, (done,)).map(drop))
        });
        told.map_err(|error| raised = Some(error)).is_ok()
    };
    let done = py.detach(|| run(&mut watch));
    raised.map_or(Ok(done), Err)
}
