//! Thread placement. It decides the result, so it is applied exactly or refused.

use crate::error::MeasureError;
use crosswind_linux as linux;

/// Pins the calling thread and sets its nice level.
///
/// # Errors
/// When a CPU may not be used, or the nice level needs a privilege that is missing.
pub fn place_this_thread(what: &str, cpus: &[u32], nice: i32) -> Result<(), MeasureError> {
    linux::set_affinity(0, cpus).map_err(MeasureError::system(format!("placing {what} on CPUs {cpus:?}")))?;
    if nice != 0 {
        linux::set_nice(linux::thread_id(), nice)
            .map_err(MeasureError::system(format!("setting the nice level of {what} to {nice}")))?;
    }
    Ok(())
}

/// Restricts the calling thread to some CPUs, and restores its former CPUs when dropped.
#[derive(Debug)]
pub struct Stay {
    thread: i32,
    before: Vec<u32>,
}

impl Stay {
    /// Restricts the calling thread; an empty list changes nothing.
    ///
    /// # Errors
    /// When none of the CPUs may be used.
    pub fn on(cpus: &[u32]) -> Result<Self, MeasureError> {
        let before = linux::affinity(0).map_err(MeasureError::system("reading the affinity"))?;
        place_this_thread("the sampler", cpus, 0)?;
        Ok(Self { thread: linux::thread_id(), before })
    }

    /// Returns the CPUs that the thread had before.
    #[must_use]
    pub fn before(&self) -> &[u32] {
        &self.before
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        // The thread may have ended; then there is nothing to undo.
        let _ = linux::set_affinity(self.thread, &self.before);
    }
}
