//! A program's point as live ranks are told of it, and the entry of such a run.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};

use crosswind_access::Access;
use crosswind_live::LiveError;
use crosswind_live::log::Log;
use crosswind_live::ranks::{Conductor, ConductorConfig, Joined, Outcome, RankConfig, RanksSettings, Stop};
use crosswind_program::{Program, ProgramVisitor, with_program};
use crosswind_schema::experiment::ProgramExperiment;
use crosswind_schema::{ComputedBy, Disturbance, ProgramRun, RankCompute, Spread};
use serde::{Deserialize, Serialize};

use crate::program::{ProgramPoint, Ran};

/// Ranks of one machine need no other.
const LOOPBACK: &str = "127.0.0.1:0";

/// What every rank makes the program of: a text that the conductor hands on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// An experiment's point as JSON.
    pub point: String,
    /// The text of the GOAL file that it names.
    pub goal: Option<String>,
}

/// When a live program is given up.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankLimits {
    /// Ranks that are not there by then, s.
    pub start_s: f64,
    /// A rank that does not say for so long whether it moves, s.
    pub silence_s: f64,
    /// The whole run, s; none: never.
    pub limit_s: Option<f64>,
}

/// A program's point with all that it needs, read.
#[derive(Clone, Debug)]
pub struct LiveProgram {
    /// What the ranks are told of it.
    pub about: About,
    /// The experiment without a sweep.
    pub experiment: ProgramExperiment,
    pub disturbance: Option<Disturbance>,
}

fn wrong(what: &str, error: impl ToString) -> LiveError {
    LiveError::Setup(format!("{what}: {}", error.to_string()))
}

struct Ranks;

impl ProgramVisitor for Ranks {
    type Out = u32;

    fn visit<P: Program>(self, program: &P) -> u32 {
        program.ranks()
    }
}

impl About {
    /// Reads what the conductor handed on.
    ///
    /// # Errors
    /// A text that no conductor of this version writes.
    pub fn of(text: &str) -> Result<Self, LiveError> {
        serde_json::from_str(text).map_err(|error| wrong("the run", error))
    }

    /// Makes the program and has it visited.
    ///
    /// # Errors
    /// An experiment or a program that is wrong.
    pub fn with<V: ProgramVisitor>(&self, visitor: V) -> Result<V::Out, LiveError> {
        let goal = self.goal.as_deref().map(str::as_bytes);
        with_program(&self.experiment()?, goal, visitor).map_err(|error| wrong("the program", error))
    }

    fn experiment(&self) -> Result<ProgramExperiment, LiveError> {
        ProgramExperiment::from_json(self.point.as_bytes(), "experiment")
            .map_err(|error| wrong("the experiment", error))
    }
}

impl LiveProgram {
    /// Reads a point. `disturbance`: what takes processors away, as JSON.
    ///
    /// # Errors
    /// An experiment or a disturbance that is wrong.
    pub fn new(about: About, disturbance: Option<&str>) -> Result<Self, LiveError> {
        let experiment = about.experiment()?;
        let disturbance = disturbance.map(|text| Disturbance::from_json(text.as_bytes(), "disturbance")).transpose();
        let disturbance = disturbance.map_err(|error| wrong("the disturbance", error))?;
        Ok(Self { about, experiment, disturbance })
    }

    /// What the conductor tells every rank.
    ///
    /// # Errors
    /// A program that cannot be made.
    pub fn settings(&self, limits: &RankLimits) -> Result<RanksSettings, LiveError> {
        let experiment = &self.experiment;
        Ok(RanksSettings {
            ranks: match experiment.workload.ranks {
                Some(ranks) => ranks.try_into().unwrap_or(u32::MAX),
                None => self.about.with(Ranks)?,
            },
            compute: experiment.execution.compute,
            packet_bytes: experiment.network.network().packet_bytes.get().try_into().unwrap_or(u32::MAX),
            policy: experiment.policy.clone(),
            disturbance: self.disturbance.clone(),
            seed: experiment.seed,
            check: true,
            start_s: limits.start_s,
            quiet_s: 1.0_f64.min(limits.silence_s / 2.0),
            silence_s: limits.silence_s,
            limit_s: limits.limit_s,
            about: serde_json::to_string(&self.about).map_err(|error| wrong("the run", error))?,
        })
    }

    /// The run's entry in `runs.json`, closed forms left out. `dedicated_s`: what the same took undisturbed, s; none:
    /// this run was.
    #[must_use]
    pub fn entry(&self, outcome: &Outcome, dedicated_s: Option<f64>) -> ProgramRun {
        let ranks = &outcome.ranks;
        let point = ProgramPoint { experiment: &self.experiment, disturbance: self.disturbance.as_ref(), goal: None };
        point.entry(Ran {
            compute: match self.experiment.execution.compute {
                RankCompute::Emulated => ComputedBy::Emulated,
                RankCompute::Burn => ComputedBy::Burn,
            },
            ranks: ranks.len() as u32,
            makespan_s: outcome.makespan_s,
            dedicated_s: dedicated_s.unwrap_or(outcome.makespan_s),
            messages: ranks.iter().map(|rank| rank.messages).sum(),
            packets: ranks.iter().map(|rank| rank.packets).sum(),
            stalled_s: ranks.iter().map(|rank| rank.stalled_s).sum(),
            bounds: Default::default(),
            busy_s: Spread::of(ranks.iter().map(|rank| rank.busy_s)),
            away_s: Spread::of(ranks.iter().map(|rank| rank.away_s)),
        })
    }
}

/// What a conductor is asked for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConductorAsked {
    /// What every rank makes the program of.
    pub about: About,
    /// What takes processors away, as JSON.
    pub disturbance: Option<String>,
    /// When the run is given up.
    pub limits: RankLimits,
    /// File of the log; none: standard error.
    pub log: Option<PathBuf>,
    /// A file that is made when the ranks are about to begin: time 0 on the monotonic clock, ns.
    pub start_file: Option<PathBuf>,
}

/// What comes of a run of ranks.
pub type Ended = Result<Outcome, LiveError>;

/// A conductor that listens, and has not begun.
pub struct Opened {
    /// Runs the program to its end; for a thread of its own.
    pub begin: Box<dyn FnOnce() + Send>,
    /// Where the end is told.
    pub ended: Receiver<Ended>,
    pub stop: Stop,
    /// HOST:PORT at which it listens.
    pub address: String,
    /// How many ranks there must be.
    pub ranks: u32,
    pub program: LiveProgram,
}

struct Conducted<'a>(Conductor, &'a mut dyn FnMut(u64));

impl ProgramVisitor for Conducted<'_> {
    type Out = Ended;

    fn visit<P: Program>(self, program: &P) -> Ended {
        self.0.run(program, self.1)
    }
}

/// A program that waits for the file sees all of it or nothing. If it cannot be made, that program reports the timeout itself.
fn say_the_start(file: &Path, zero_ns: u64) {
    let part = file.with_extension("part");
    let _ = std::fs::write(&part, zero_ns.to_string()).and_then(|()| std::fs::rename(&part, file));
}

impl ConductorAsked {
    /// Opens the conductor.
    ///
    /// # Errors
    /// A program, limits or an address that are wrong.
    pub fn open(self, access: Access) -> Result<Opened, LiveError> {
        let program = LiveProgram::new(self.about, self.disturbance.as_deref())?;
        let run = program.settings(&self.limits)?;
        let ranks = run.ranks;
        let log = Log::at("conductor", self.log.as_ref())?;
        let conductor = Conductor::open(ConductorConfig { run, listen: LOOPBACK.into(), access, log })?;
        let (stop, address) = (conductor.stop(), conductor.address()?);
        let (tell, ended) = channel();
        let (about, start_file) = (program.about.clone(), self.start_file);
        let begin = Box::new(move || {
            let mut started = |zero_ns| start_file.iter().for_each(|file| say_the_start(file, zero_ns));
            let outcome = about.with(Conducted(conductor, &mut started));
            // The receiver may be gone: the run was given up.
            let _ = tell.send(outcome.unwrap_or_else(Err));
        });
        Ok(Opened { begin, ended, stop, address, ranks, program })
    }
}

/// What a rank is asked for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankAsked {
    pub rank: u32,
    /// HOST:PORT of the conductor.
    pub conductor: String,
    /// How long it tries to reach it, s.
    pub patience_s: f64,
    /// File of the log; none: standard error.
    pub log: Option<PathBuf>,
}

struct AsRank(Joined);

impl ProgramVisitor for AsRank {
    type Out = Result<(), LiveError>;

    fn visit<P: Program>(self, program: &P) -> Result<(), LiveError> {
        self.0.run(program)
    }
}

impl RankAsked {
    /// Is a rank until the run ends; the end of standard input ends it.
    ///
    /// # Errors
    /// What ended it, where that was no good end.
    pub fn run(self, access: Access) -> Result<(), LiveError> {
        let joined = Joined::join(RankConfig {
            rank: self.rank,
            conductor: self.conductor,
            listen: LOOPBACK.into(),
            access,
            patience_s: self.patience_s,
            watch_input: true,
            log: Log::at(&format!("rank {}", self.rank), self.log.as_ref())?,
        })?;
        About::of(&joined.settings().about)?.with(AsRank(joined))?
    }
}
