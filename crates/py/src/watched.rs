//! Long-running work that Python waits for and observes.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// Calls `run` without holding the GIL. The callback that it gets calls `progress` and checks signals, on the calling
/// thread. An exception of either ends the work and is returned.
pub fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    run: impl FnOnce(&mut dyn FnMut(u64) -> bool) -> T + Send,
) -> PyResult<T> {
    let mut raised = None;
    let mut watch = |done: u64| {
        let answer = Python::attach(|py| {
            py.check_signals()?;
            progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, (done,)).map(drop))
        });
        answer.map_err(|error| raised = Some(error)).is_ok()
    };
    let done = py.detach(|| run(&mut watch));
    raised.map_or(Ok(done), Err)
}

/// Locks a mutex, even if it is poisoned.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Poll interval for signals during a wait.
pub const LOOK: Duration = Duration::from_millis(100);

/// Calls `ready` repeatedly without holding the GIL, for at most `timeout_s`, and checks signals in between. `None`
/// means that the time is over. `ready` waits for at most the duration that it gets.
pub fn waited<T: Send>(
    py: Python<'_>,
    timeout_s: f64,
    mut ready: impl FnMut(Duration) -> Option<T> + Send,
) -> PyResult<Option<T>> {
    let until = Instant::now() + Duration::from_secs_f64(timeout_s.clamp(0.0, 1e9));
    loop {
        let left = until.saturating_duration_since(Instant::now()).min(LOOK);
        if let Some(done) = py.detach(|| ready(left)) {
            return Ok(Some(done));
        }
        py.check_signals()?;
        if Instant::now() >= until {
            return Ok(None);
        }
    }
}
