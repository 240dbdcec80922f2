//! Long work that Python looks on at, and waits for.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

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

/// What a mutex guards, whatever became of a thread that held it.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Poll interval for signals during a wait.
pub const LOOK: Duration = Duration::from_millis(100);

/// Asks `ready` again and again, without holding Python, for at most so long, and looks at signals in between; none: the time
/// is over. `ready` waits as long as it is told to.
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
