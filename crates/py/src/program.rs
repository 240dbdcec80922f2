//! Parallel programs in virtual time, for Python.

use std::collections::BTreeMap;

use crosswind_model::disturbance::bounds;
use crosswind_policy::window::WindowSettings;
use crosswind_program::Program;
use crosswind_schema::disturbance::{Source, Timelines};
use crosswind_schema::experiment::{Params, ProgramExperiment};
use crosswind_schema::run::ComputedBy;
use crosswind_schema::{DescriptionError, Disturbance, ProgramRun, Spread};
use crosswind_sim::SimError;
use crosswind_sim::program::{Network, Outcome, simulate};
use pyo3::prelude::*;

use crate::chosen::{Unmade, With, with_program};
use crate::errors;
use crate::schema::json;

/// Ranks whose time away is added up, evenly spaced: walking through all intervals of all ranks takes as long as the run.
const RANKS_ADDED_UP: u32 = 1024;

enum Refusal {
    Description(DescriptionError),
    Run(SimError),
    Unmade(Unmade),
    /// The program computed something else than a plain computation does.
    Wrong(String),
}

impl From<DescriptionError> for Refusal {
    fn from(error: DescriptionError) -> Self {
        Self::Description(error)
    }
}

impl From<SimError> for Refusal {
    fn from(error: SimError) -> Self {
        Self::Run(error)
    }
}

/// What all programs of a point have in common.
struct Setting<'a> {
    point: &'a ProgramExperiment,
    disturbance: Option<&'a Disturbance>,
    /// What the program takes undisturbed, if the caller knows, s.
    dedicated_s: Option<f64>,
    watch: &'a mut dyn FnMut(u64) -> bool,
}

const fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
}

impl With for &mut Setting<'_> {
    type Out = Result<ProgramRun, Refusal>;

    fn with<P: Program>(self, program: &P) -> Result<ProgramRun, Refusal> {
        let ranks = program.ranks();
        let alone = Timelines::undisturbed(ranks);
        let timelines = match self.disturbance {
            Some(disturbance) => Timelines::new(disturbance, ranks, self.point.seed)?,
            None => alone.clone(),
        };
        let outcome = self.once(program, &timelines)?;
        let makespan_s = seconds(outcome.makespan_ns);
        let dedicated_s = match (self.disturbance, self.dedicated_s) {
            (None, _) => makespan_s,
            (Some(_), Some(known)) => known,
            (Some(_), None) => seconds(self.once(program, &alone)?.makespan_ns),
        };
        let jobs: f64 = self.disturbance.map_or(1.0, |disturbance| disturbance.sources.iter().map(jobs).product());
        let coscheduled_s = dedicated_s * jobs;
        let ratio = |of: f64| if of > 0.0 { makespan_s / of } else { 1.0 };
        Ok(ProgramRun {
            params: Params::default(),
            seed: self.point.seed,
            program: self.point.workload.program.name().into(),
            ranks,
            disturbance: self.disturbance.map(|disturbance| disturbance.name.clone()),
            compute: ComputedBy::Simulated,
            makespan_s,
            dedicated_s,
            coscheduled_s,
            slowdown: ratio(coscheduled_s),
            slowdown_dedicated: ratio(dedicated_s),
            messages: outcome.totals.messages,
            packets: outcome.totals.packets,
            stalled_s: seconds(outcome.stalled_ns()),
            bounds: closed_forms(self.disturbance, ranks, dedicated_s, outcome.totals.meetings),
            busy_s: Spread::of(outcome.times.iter().map(|times| seconds(times.busy_ns))),
            away_s: away(&timelines, outcome.makespan_ns),
            warnings: Vec::new(),
        })
    }
}

impl Setting<'_> {
    fn once<P: Program>(&mut self, program: &P, timelines: &Timelines) -> Result<Outcome<P::Rank>, Refusal> {
        let network = Network::of(&self.point.network.network());
        let window = WindowSettings::from_policy(&self.point.policy);
        let outcome = simulate(program, &network, window, timelines, self.watch)?;
        program.check(&outcome.results()).map_err(Refusal::Wrong)?;
        Ok(outcome)
    }
}

/// Closed forms of the slowdown, those that apply: of any program, and where ranks meet of one that meets so often.
fn closed_forms(
    disturbance: Option<&Disturbance>,
    ranks: u32,
    dedicated_s: f64,
    meetings: u64,
) -> BTreeMap<String, f64> {
    let work_s = (meetings > 0 && dedicated_s > 0.0).then(|| dedicated_s / meetings as f64);
    // Without a disturbance there is nothing to bound; one whose sources leave nothing of a processor has no bounds.
    let bounds = disturbance.and_then(|disturbance| bounds(disturbance, ranks, work_s).ok()).unwrap_or_default();
    bounds.named().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Jobs among which a source divides every processor.
fn jobs(source: &Source) -> f64 {
    match source {
        Source::Coscheduled(gang) => f64::from(gang.jobs),
        Source::Local(local) => f64::from(local.jobs),
        Source::Daemon(_) | Source::Job(_) | Source::Recorded(_) => 1.0,
    }
}

fn away(timelines: &Timelines, until: u64) -> Spread {
    let step = timelines.ranks().div_ceil(RANKS_ADDED_UP).max(1) as usize;
    let of = |rank: u32| seconds(timelines.away(rank, until).iter().sum());
    Spread::of((0..timelines.ranks()).step_by(step).map(of))
}

fn simulated(
    point: &[u8],
    disturbance: Option<&[u8]>,
    goal: Option<&[u8]>,
    dedicated_s: Option<f64>,
    watch: &mut dyn FnMut(u64) -> bool,
) -> Result<ProgramRun, Refusal> {
    let point = ProgramExperiment::from_json(point, "experiment")?;
    let disturbance = disturbance.map(|text| Disturbance::from_json(text, "disturbance")).transpose()?;
    let mut setting = Setting { point: &point, disturbance: disturbance.as_ref(), dedicated_s, watch };
    with_program(&point, goal, &mut setting).map_err(Refusal::Unmade)?
}

/// Simulates one point of an experiment of kind program: its entry of `runs.json` as JSON.
///
/// The disturbance is what the point names or holds, `goal` the text of the GOAL file that it names. `dedicated_s` is what the same program takes undisturbed, where the
/// caller knows it; otherwise that is simulated too. `progress` is called now and then with the operations begun, on the
/// calling thread; what it raises ends the run.
#[pyfunction]
#[pyo3(signature = (point, disturbance = None, goal = None, *, dedicated_s = None, progress = None))]
fn simulate_program(
    py: Python<'_>,
    point: &str,
    disturbance: Option<&str>,
    goal: Option<&str>,
    dedicated_s: Option<f64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let mut raised = None;
    let mut watch = |done: u64| {
        let told = Python::attach(|py| {
            py.check_signals()?;
            progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, (done,)).map(drop))
        });
        told.map_err(|error| raised = Some(error)).is_ok()
    };
    let (disturbance, goal) = (disturbance.map(str::as_bytes), goal.map(str::as_bytes));
    let done = py.detach(|| simulated(point.as_bytes(), disturbance, goal, dedicated_s, &mut watch));
    if let Some(error) = raised {
        return Err(error);
    }
    let run = done.map_err(|refusal| match refusal {
        Refusal::Description(error) => errors::description(py, &error),
        Refusal::Unmade(Unmade::Description(error)) => errors::description(py, &error),
        Refusal::Unmade(error) => errors::raise(py, "DescriptionError", &error.to_string(), "description", None),
        Refusal::Run(error) => errors::raise(py, "InfeasibleError", &error.to_string(), "infeasible", None),
        Refusal::Wrong(what) => errors::raise(py, "CrosswindError", &format!("wrong result: {what}"), "wrong", None),
    })?;
    json(&run)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(simulate_program, module)?)
}
