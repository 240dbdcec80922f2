//! `crosswind-live`'s ranks for Python: the conductor of a parallel program on a thread of its own, and a rank on this one.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crosswind_access::Access;
use crosswind_live::LiveError;
use crosswind_live::ranks::{Conductor, ConductorConfig, Joined, Outcome, RankConfig, RanksSettings, Stop};
use crosswind_program::Program;
use crosswind_schema::experiment::{ProgramExperiment, RankCompute};
use crosswind_schema::run::ComputedBy;
use crosswind_schema::{Disturbance, ProgramRun, Spread};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use crate::chosen::{With, with_program};
use crate::errors;
use crate::farm::{diary, exception};
use crate::schema::json;

/// Poll interval for signals during a wait.
const LOOK: Duration = Duration::from_millis(100);

/// What every rank makes the program of.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    /// An experiment's point.
    point: String,
    /// The text of the GOAL file that it names.
    goal: Option<String>,
}

impl About {
    fn point(&self) -> Result<ProgramExperiment, LiveError> {
        ProgramExperiment::from_json(self.point.as_bytes(), "experiment")
            .map_err(|error| wrong("the experiment", error))
    }

    fn with<W: With>(&self, point: &ProgramExperiment, with: W) -> Result<W::Out, LiveError> {
        let goal = self.goal.as_deref().map(str::as_bytes);
        with_program(point, goal, with).map_err(|error| wrong("the program", error))
    }
}

struct Ranks;

impl With for Ranks {
    type Out = u32;

    fn with<P: Program>(self, program: &P) -> u32 {
        program.ranks()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    about: About,
    disturbance: Option<String>,
    log: Option<PathBuf>,
    start_s: f64,
    silence_s: f64,
    limit_s: Option<f64>,
    /// A file that is made when the ranks are about to begin: time 0 on the monotonic clock, ns.
    start_file: Option<PathBuf>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wrong(what: &str, error: impl ToString) -> LiveError {
    LiveError::Setup(format!("{what}: {}", error.to_string()))
}

type Told = Result<Outcome, LiveError>;
type Begin = Box<dyn FnOnce() + Send>;

struct Conducted<'a>(Conductor, &'a mut dyn FnMut(u64));

impl With for Conducted<'_> {
    type Out = Told;

    fn with<P: Program>(self, program: &P) -> Told {
        self.0.run(program, self.1)
    }
}

/// The conductor of a program.
#[pyclass(frozen, name = "Conductor", module = "crosswind._core")]
struct PyConductor {
    begin: Mutex<Option<Begin>>,
    told: Mutex<Receiver<Told>>,
    outcome: Mutex<Option<Outcome>>,
    stop: Stop,
    address: String,
    ranks: u32,
    point: ProgramExperiment,
    disturbance: Option<Disturbance>,
}

/// A program that waits for the file sees all of it or nothing. If it cannot be made, that program reports the timeout itself.
fn say_the_start(file: &Path, zero_ns: u64) {
    let part = file.with_extension("part");
    let _ = std::fs::write(&part, zero_ns.to_string()).and_then(|()| std::fs::rename(&part, file));
}

fn open(config: &str, token: &str) -> Result<PyConductor, LiveError> {
    let config: Config = serde_json::from_str(config).map_err(|error| wrong("the run", error))?;
    let access = Access::of(Some(token), None)?;
    let point = config.about.point()?;
    let disturbance = config.disturbance.map(|text| Disturbance::from_json(text.as_bytes(), "disturbance")).transpose();
    let disturbance = disturbance.map_err(|error| wrong("the disturbance", error))?;
    let run = RanksSettings {
        ranks: match point.workload.ranks {
            Some(ranks) => ranks.try_into().unwrap_or(u32::MAX),
            None => config.about.with(&point, Ranks)?,
        },
        compute: point.execution.compute,
        packet_bytes: point.network.network().packet_bytes.get().try_into().unwrap_or(u32::MAX),
        policy: point.policy.clone(),
        disturbance: disturbance.clone(),
        seed: point.seed,
        check: true,
        start_s: config.start_s,
        quiet_s: 1.0_f64.min(config.silence_s / 2.0),
        silence_s: config.silence_s,
        limit_s: config.limit_s,
        about: serde_json::to_string(&config.about).map_err(|error| wrong("the run", error))?,
    };
    let ranks = run.ranks;
    let diary = diary("conductor", config.log.as_ref())?;
    let conductor = Conductor::open(ConductorConfig { run, listen: "127.0.0.1:0".into(), access, diary })?;
    let (stop, address) = (conductor.stop(), conductor.address()?);
    let (tell, told) = channel();
    let (of, about, start_file) = (point.clone(), config.about, config.start_file);
    let begin: Begin = Box::new(move || {
        let mut started = |zero_ns| start_file.iter().for_each(|file| say_the_start(file, zero_ns));
        let outcome = about.with(&of, Conducted(conductor, &mut started));
        // The receiver may be gone: the run was given up.
        let _ = tell.send(outcome.unwrap_or_else(Err));
    });
    Ok(PyConductor {
        begin: Mutex::new(Some(begin)),
        told: Mutex::new(told),
        outcome: Mutex::new(None),
        stop,
        address,
        ranks,
        point,
        disturbance,
    })
}

#[pymethods]
impl PyConductor {
    #[new]
    fn new(py: Python<'_>, config: &str, token: &str) -> PyResult<Self> {
        py.detach(|| open(config, token)).map_err(|error| exception(py, &error))
    }

    /// How many ranks there must be.
    #[getter]
    fn ranks(&self) -> u32 {
        self.ranks
    }

    /// HOST:PORT at which ranks knock.
    #[getter]
    fn address(&self) -> &str {
        &self.address
    }

    /// Starts the conductor's thread.
    fn start(&self) -> PyResult<()> {
        if let Some(begin) = locked(&self.begin).take() {
            std::thread::Builder::new().name("cw-conductor".into()).spawn(begin)?;
        }
        Ok(())
    }

    /// The user wants no more of it.
    fn interrupt(&self) {
        self.stop.interrupt();
    }

    /// It cannot go on: a process has ended.
    fn fail(&self, why: &str) {
        self.stop.fail(why);
    }

    /// Waits for the end, at most so long; whether it has come. Raises what ended the run.
    fn wait(&self, py: Python<'_>, timeout_s: f64) -> PyResult<bool> {
        let until = Instant::now() + Duration::from_secs_f64(timeout_s.clamp(0.0, 1e9));
        loop {
            let left = until.saturating_duration_since(Instant::now()).min(LOOK);
            let told = py.detach(|| locked(&self.told).recv_timeout(left));
            py.check_signals()?;
            match told {
                Ok(Ok(outcome)) => {
                    *locked(&self.outcome) = Some(outcome);
                    return Ok(true);
                }
                Ok(Err(error)) => return Err(exception(py, &error)),
                Err(RecvTimeoutError::Disconnected) => return Ok(true),
                Err(RecvTimeoutError::Timeout) if Instant::now() >= until => return Ok(false),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// The run's entry of `runs.json` as JSON, closed forms left out; after `wait`. `dedicated_s`: what the same took
    /// undisturbed; none: this run was.
    fn entry(&self, dedicated_s: Option<f64>) -> PyResult<String> {
        let guard = locked(&self.outcome);
        let Some(outcome) = guard.as_ref() else { return Ok("null".into()) };
        let dedicated_s = dedicated_s.unwrap_or(outcome.makespan_s);
        let jobs = self.disturbance.as_ref().map_or(1, Disturbance::jobs) as f64;
        let ratio = |of: f64| if of > 0.0 { outcome.makespan_s / of } else { 1.0 };
        let ranks = &outcome.ranks;
        json(&ProgramRun {
            params: Default::default(),
            seed: self.point.seed,
            program: self.point.workload.program.name().into(),
            ranks: ranks.len() as u32,
            disturbance: self.disturbance.as_ref().map(|disturbance| disturbance.name.clone()),
            compute: match self.point.execution.compute {
                RankCompute::Emulated => ComputedBy::Emulated,
                RankCompute::Burn => ComputedBy::Burn,
            },
            makespan_s: outcome.makespan_s,
            dedicated_s,
            coscheduled_s: dedicated_s * jobs,
            slowdown: ratio(dedicated_s * jobs),
            slowdown_dedicated: ratio(dedicated_s),
            messages: ranks.iter().map(|rank| rank.messages).sum(),
            packets: ranks.iter().map(|rank| rank.packets).sum(),
            stalled_s: ranks.iter().map(|rank| rank.stalled_s).sum(),
            bounds: Default::default(),
            busy_s: Spread::of(ranks.iter().map(|rank| rank.busy_s)),
            away_s: Spread::of(ranks.iter().map(|rank| rank.away_s)),
            warnings: Vec::new(),
        })
    }

    /// What each rank did, as JSON; after `wait`.
    fn reports(&self) -> PyResult<String> {
        json(&locked(&self.outcome).as_ref().map(|outcome| outcome.ranks.clone()).unwrap_or_default())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Joining {
    rank: u32,
    conductor: String,
    patience_s: f64,
    log: Option<PathBuf>,
}

struct AsRank(Joined);

impl With for AsRank {
    type Out = Result<(), LiveError>;

    fn with<P: Program>(self, program: &P) -> Result<(), LiveError> {
        self.0.run(program)
    }
}

/// Is a rank of a program until its run ends; the end of the standard input ends it.
#[pyfunction]
fn run_rank(py: Python<'_>, config: &str, token: &str) -> PyResult<()> {
    let config: Joining = serde_json::from_str(config).map_err(|error| exception(py, &wrong("the rank", error)))?;
    let run = || {
        let name = format!("rank {}", config.rank);
        let joined = Joined::join(RankConfig {
            rank: config.rank,
            conductor: config.conductor,
            listen: "127.0.0.1:0".into(),
            access: Access::of(Some(token), None)?,
            patience_s: config.patience_s,
            watch_input: true,
            diary: diary(&name, config.log.as_ref())?,
        })?;
        let about: About = serde_json::from_str(&joined.settings().about).map_err(|error| wrong("the run", error))?;
        about.with(&about.point()?, AsRank(joined))?
    };
    py.detach(run).map_err(|error| match error {
        LiveError::Interrupted => {
            errors::raise(py, "AgentLost", "the process that started this one is gone", "agents-lost", None)
        }
        error => exception(py, &error),
    })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyConductor>()?;
    module.add_function(wrap_pyfunction!(run_rank, module)?)
}
