//! A parallel program under a disturbance in virtual time, compared with its undisturbed run and with closed forms.

use std::collections::BTreeMap;

use crosswind_model::disturbance::bounds;
use crosswind_policy::window::WindowSettings;
use crosswind_program::goal::processors::RankProcessors;
use crosswind_program::{Goal, NoProgram, Program, ProgramVisitor, with_program};
use crosswind_recorded::Recording;
use crosswind_schema::disturbance::Timelines;
use crosswind_schema::experiment::{Params, ProgramExperiment};
use crosswind_schema::{ComputedBy, Disturbance, ProgramRun, Spread};
use crosswind_sim::SimError;
use crosswind_sim::program::{Network, Outcome, simulate_on_threads, simulate_processors};

use crate::{ExperimentError, recorded};

/// Most ranks, evenly spaced, whose time away is summed: all intervals of all ranks would take as long as the run.
const RANKS_ADDED_UP: u32 = 1024;
/// With fewer ranks, a thread waits for the others longer than it computes.
const RANKS_OF_A_THREAD: u32 = 128;

/// One point of a program experiment.
#[derive(Clone, Copy)]
pub struct ProgramPoint<'a> {
    /// The experiment without a sweep.
    pub experiment: &'a ProgramExperiment,
    /// The disturbance; `None`: no disturbance.
    pub disturbance: Option<&'a Disturbance>,
    /// Content of the GOAL file that the experiment refers to.
    pub goal: Option<&'a [u8]>,
    /// The recording that the experiment refers to.
    pub recording: Option<&'a Recording>,
    /// Threads that simulate it; the run does not depend on them.
    pub threads: usize,
}

/// Activity of the ranks of a run, simulated or live.
pub(crate) struct Ran {
    pub compute: ComputedBy,
    pub ranks: u32,
    pub makespan_s: f64,
    /// Time of the undisturbed program, s.
    pub dedicated_s: f64,
    pub messages: u64,
    pub packets: u64,
    pub stalled_s: f64,
    pub bounds: BTreeMap<String, f64>,
    pub busy_s: Spread,
    pub away_s: Spread,
}

impl ProgramPoint<'_> {
    /// Simulates it. `dedicated_s` is the time of the undisturbed program, s; with `None` that is simulated too.
    /// `watch` is called periodically with the number of started operations; false ends the run.
    ///
    /// # Errors
    /// When the program is invalid, deadlocks, or its result differs from that of a plain computation.
    pub fn simulate(
        &self,
        dedicated_s: Option<f64>,
        watch: &mut dyn FnMut(u64) -> bool,
    ) -> Result<ProgramRun, ExperimentError> {
        if let Some(recording) = self.recording {
            return recorded::simulate(self, recording, dedicated_s, watch);
        }
        with_program(self.experiment, self.goal, Simulation { point: self, dedicated_s, meetings: None, watch })?
    }

    /// Returns the timelines of its ranks.
    pub(crate) fn timelines(&self, ranks: u32) -> Result<Timelines, ExperimentError> {
        Ok(match self.disturbance {
            Some(disturbance) => Timelines::new(disturbance, ranks, self.experiment.seed)?,
            None => Timelines::undisturbed(ranks),
        })
    }

    /// Returns the run's entry in `runs.json`.
    pub(crate) fn entry(&self, ran: Ran) -> ProgramRun {
        let coscheduled_s = ran.dedicated_s * self.disturbance.map_or(1, Disturbance::jobs) as f64;
        let ratio = |of: f64| if of > 0.0 { ran.makespan_s / of } else { 1.0 };
        ProgramRun {
            params: Params::default(),
            seed: self.experiment.seed,
            program: self.experiment.workload.program.name().into(),
            ranks: ran.ranks,
            disturbance: self.disturbance.map(|disturbance| disturbance.name.clone()),
            compute: ran.compute,
            makespan_s: ran.makespan_s,
            dedicated_s: ran.dedicated_s,
            coscheduled_s,
            slowdown: ratio(coscheduled_s),
            slowdown_dedicated: ratio(ran.dedicated_s),
            messages: ran.messages,
            packets: ran.packets,
            stalled_s: ran.stalled_s,
            bounds: ran.bounds,
            busy_s: ran.busy_s,
            away_s: ran.away_s,
            recorded: None,
            switches: None,
            warnings: Vec::new(),
        }
    }
}

pub(crate) struct Simulation<'a, 'w> {
    pub point: &'a ProgramPoint<'a>,
    pub dedicated_s: Option<f64>,
    /// How often all ranks wait for each other, if not at the simulator's barriers.
    pub meetings: Option<u64>,
    pub watch: &'w mut dyn FnMut(u64) -> bool,
}

pub(crate) const fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
}

impl ProgramVisitor for Simulation<'_, '_> {
    type Out = Result<ProgramRun, ExperimentError>;

    fn visit<P: Program>(self, program: &P) -> Self::Out {
        let threads = self.point.threads.min((program.ranks() / RANKS_OF_A_THREAD) as usize);
        self.run(program.ranks(), |network, window, timelines, watch| {
            let outcome = simulate_on_threads(program, network, window, timelines, threads, watch)?;
            Ok((program.check(&outcome.results()), outcome.without_ranks()))
        })
    }

    fn visit_processors(self, goal: &Goal) -> Result<Self::Out, NoProgram> {
        Ok(self.run(goal.ranks(), |network, window, timelines, watch| {
            let outcome = simulate_processors(goal, network, window, timelines, watch)?;
            let results: Vec<Vec<u64>> = outcome.ranks.iter().map(RankProcessors::result).collect();
            Ok((goal.check(&results), outcome.without_ranks()))
        }))
    }
}

/// The outcome of a simulation, and whether the program's result is right.
type Checked = (Result<(), String>, Outcome<()>);

impl Simulation<'_, '_> {
    fn run(
        self,
        ranks: u32,
        simulate: impl Fn(&Network, WindowSettings, &Timelines, &mut dyn FnMut(u64) -> bool) -> Result<Checked, SimError>,
    ) -> Result<ProgramRun, ExperimentError> {
        let point = self.point;
        let network = Network::of(&point.experiment.network.network()).seeded(point.experiment.seed);
        let window = WindowSettings::from_policy(&point.experiment.policy);
        let mut once = |timelines: &Timelines| -> Result<Outcome<()>, ExperimentError> {
            let (result, outcome) = simulate(&network, window, timelines, self.watch)?;
            result.map_err(ExperimentError::WrongResult)?;
            Ok(outcome)
        };
        let timelines = point.timelines(ranks)?;
        let outcome = once(&timelines)?;
        let makespan_s = seconds(outcome.makespan_ns);
        let dedicated_s = match (point.disturbance, self.dedicated_s) {
            (None, _) => makespan_s,
            (Some(_), Some(known)) => known,
            (Some(_), None) => seconds(once(&Timelines::undisturbed(ranks))?.makespan_ns),
        };
        Ok(point.entry(Ran {
            compute: ComputedBy::Simulated,
            ranks,
            makespan_s,
            dedicated_s,
            messages: outcome.totals.messages,
            packets: outcome.totals.packets,
            stalled_s: seconds(outcome.stalled_ns()),
            bounds: closed_forms(
                point.disturbance,
                ranks,
                dedicated_s,
                self.meetings.unwrap_or(outcome.totals.meetings),
            ),
            busy_s: Spread::of(outcome.times.iter().map(|times| seconds(times.busy_ns))),
            away_s: away(&timelines, outcome.makespan_ns),
        }))
    }
}

/// Returns the closed forms of the slowdown that apply: those of any program, and those of programs whose ranks
/// synchronise regularly.
pub(crate) fn closed_forms(
    disturbance: Option<&Disturbance>,
    ranks: u32,
    dedicated_s: f64,
    meetings: u64,
) -> BTreeMap<String, f64> {
    let work_s = (meetings > 0 && dedicated_s > 0.0).then(|| dedicated_s / meetings as f64);
    // Without a disturbance there is nothing to bound. A disturbance whose sources take the whole processor has no
    // bounds.
    disturbance.and_then(|disturbance| bounds(disturbance, ranks, work_s).ok()).unwrap_or_default().by_name()
}

pub(crate) fn away(timelines: &Timelines, until: u64) -> Spread {
    let step = timelines.ranks().div_ceil(RANKS_ADDED_UP).max(1) as usize;
    let of = |rank: u32| seconds(timelines.away(rank, until).iter().sum());
    Spread::of((0..timelines.ranks()).step_by(step).map(of))
}
