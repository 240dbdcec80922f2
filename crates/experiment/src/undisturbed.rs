//! Cache of undisturbed runs of programs. Each is simulated once per process, since a sweep over disturbances needs
//! it repeatedly.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use crosswind_schema::experiment::ProgramExperiment;
use crosswind_schema::{Disturbance, ProgramRun};

use crate::ExperimentError;
use crate::pool::Watch;
use crate::program::ProgramPoint;
use crate::recorded::Identified;

/// Most runs in the cache, about a kilobyte each.
const MOST: usize = 4096;

/// One thread simulates while others that need the same run wait.
type Once = Arc<Mutex<Option<ProgramRun>>>;

static KNOWN: LazyLock<Mutex<HashMap<String, Once>>> = LazyLock::new(Mutex::default);

/// A program's point as texts: the experiment, its disturbance, and its GOAL file; or the recording of the program.
#[derive(Clone, Copy)]
pub struct ProgramTexts<'a> {
    /// The experiment without a sweep, as JSON.
    pub point: &'a str,
    /// The disturbance, as JSON; `None`: no disturbance.
    pub disturbance: Option<&'a str>,
    /// Content of the GOAL file that the experiment refers to.
    pub goal: Option<&'a str>,
    /// The recording that the experiment refers to.
    pub recording: Option<&'a Identified>,
    /// Threads that simulate it; the run does not depend on them.
    pub threads: usize,
}

impl ProgramTexts<'_> {
    /// Simulates it. `dedicated_s` is the time of the undisturbed program, s; with `None` that is simulated too.
    ///
    /// # Errors
    /// When a text is invalid, or [`ProgramPoint::simulate`] fails.
    pub fn simulate(&self, dedicated_s: Option<f64>, watch: Watch<'_>) -> Result<ProgramRun, ExperimentError> {
        let experiment = ProgramExperiment::from_json(self.point.as_bytes(), "experiment")?;
        let read = |text: &str| Disturbance::from_json(text.as_bytes(), "disturbance");
        let disturbance = self.disturbance.map(read).transpose()?;
        let goal = self.goal.map(str::as_bytes);
        let recording = self.recording.map(|identified| &identified.recording);
        let (disturbance, threads) = (disturbance.as_ref(), self.threads);
        let point = ProgramPoint { experiment: &experiment, disturbance, goal, recording, threads };
        point.simulate(dedicated_s, watch)
    }

    /// Simulates it with the undisturbed run taken from the cache, or simulated and cached. `bare` is the point
    /// without a disturbance.
    ///
    /// # Errors
    /// As [`Self::simulate`].
    pub fn simulate_beside(&self, bare: &str, watch: Watch<'_>) -> Result<ProgramRun, ExperimentError> {
        let once = once(bare, self.recording.map(|identified| &*identified.identity).or(self.goal));
        let undisturbed = {
            let mut found = locked(&once);
            match &*found {
                Some(run) => run.clone(),
                None => {
                    let bare = ProgramTexts { point: bare, disturbance: None, ..*self };
                    found.insert(bare.simulate(None, watch)?).clone()
                }
            }
        };
        if self.disturbance.is_some() {
            return self.simulate(Some(undisturbed.makespan_s), watch);
        }
        let seed = ProgramExperiment::from_json(self.point.as_bytes(), "experiment")?.seed;
        Ok(ProgramRun { seed, ..undisturbed })
    }
}

/// Adds the run of an undisturbed point, simulated in another process, to the cache.
pub fn remember(bare: &str, goal: Option<&str>, run: ProgramRun) {
    locked(&once(bare, goal)).get_or_insert(run);
}

/// Returns the entry of a point and what it refers to: the text of a GOAL file, or the identity of a recording.
fn once(bare: &str, of: Option<&str>) -> Once {
    let mut known = locked(&KNOWN);
    if known.len() >= MOST {
        known.clear(); // entries being simulated stay with the waiting threads
    }
    Arc::clone(known.entry(format!("{bare}\n{}", of.unwrap_or_default())).or_default())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
