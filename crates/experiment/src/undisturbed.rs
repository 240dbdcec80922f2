//! What programs come to when nothing disturbs them, simulated once in a process: a sweep over disturbances asks for it
//! again and again.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use crosswind_schema::experiment::ProgramExperiment;
use crosswind_schema::{Disturbance, ProgramRun};

use crate::ExperimentError;
use crate::pool::Watch;
use crate::program::ProgramPoint;

/// Runs of about a kilobyte that are remembered at most.
const MOST: usize = 4096;

/// One thread simulates while those that need the same wait.
type Once = Arc<Mutex<Option<ProgramRun>>>;

static KNOWN: LazyLock<Mutex<HashMap<String, Once>>> = LazyLock::new(Mutex::default);

/// A program's point as texts: the experiment, its disturbance, the GOAL file that it names.
#[derive(Clone, Copy)]
pub struct ProgramTexts<'a> {
    /// The experiment without a sweep, as JSON.
    pub point: &'a str,
    /// What takes processors away, as JSON; none: nothing does.
    pub disturbance: Option<&'a str>,
    /// The text of the GOAL file that the experiment names.
    pub goal: Option<&'a str>,
}

impl ProgramTexts<'_> {
    /// Simulates it. `dedicated_s`: what it takes undisturbed, where the caller knows it, s.
    ///
    /// # Errors
    /// Texts that are wrong, or a program that [`ProgramPoint::simulate`] refuses.
    pub fn simulate(&self, dedicated_s: Option<f64>, watch: Watch<'_>) -> Result<ProgramRun, ExperimentError> {
        let experiment = ProgramExperiment::from_json(self.point.as_bytes(), "experiment")?;
        let read = |text: &str| Disturbance::from_json(text.as_bytes(), "disturbance");
        let disturbance = self.disturbance.map(read).transpose()?;
        let goal = self.goal.map(str::as_bytes);
        ProgramPoint { experiment: &experiment, disturbance: disturbance.as_ref(), goal }.simulate(dedicated_s, watch)
    }

    /// The same, beside what `bare`, the point without a disturbance, comes to; that is remembered.
    ///
    /// # Errors
    /// As of [`Self::simulate`].
    pub fn simulate_beside(&self, bare: &str, watch: Watch<'_>) -> Result<ProgramRun, ExperimentError> {
        let once = once(bare, self.goal);
        let undisturbed = {
            let mut found = locked(&once);
            match &*found {
                Some(run) => run.clone(),
                None => {
                    let bare = ProgramTexts { point: bare, disturbance: None, goal: self.goal };
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

/// Takes note of what an undisturbed point came to earlier, in another process.
pub fn remember(bare: &str, goal: Option<&str>, run: ProgramRun) {
    locked(&once(bare, goal)).get_or_insert(run);
}

fn once(bare: &str, goal: Option<&str>) -> Once {
    let mut known = locked(&KNOWN);
    if known.len() >= MOST {
        known.clear(); // those that are being simulated stay with the threads that wait
    }
    Arc::clone(known.entry(format!("{bare}\n{}", goal.unwrap_or_default())).or_default())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
