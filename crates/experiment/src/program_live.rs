//! A program's point on live ranks: the settings sent to them, and the entry of the run.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
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

/// Default address: ranks on one machine need no other.
const LOOPBACK: &str = "127.0.0.1:0";

/// Description from which every rank builds the program; the conductor forwards it as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// An experiment's point as JSON.
    pub point: String,
    /// Content of the GOAL file that it refers to.
    pub goal: Option<String>,
}

/// Time limits of a live program.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankLimits {
    /// Time limit for ranks to connect, s.
    pub start_s: f64,
    /// Time without a progress report from a rank after which the run is given up, s.
    pub silence_s: f64,
    /// Time limit of the whole run, s; `None`: no limit.
    pub limit_s: Option<f64>,
}

/// A program's point, parsed with everything that it refers to.
#[derive(Clone, Debug)]
pub struct LiveProgram {
    /// Description sent to the ranks.
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
    /// Parses the text that the conductor forwarded.
    ///
    /// # Errors
    /// When a conductor of this version could not have written the text.
    pub fn of(text: &str) -> Result<Self, LiveError> {
        serde_json::from_str(text).map_err(|error| wrong("the run", error))
    }

    /// Builds the program and passes it to the visitor.
    ///
    /// # Errors
    /// When the experiment or the program is invalid.
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
    /// Parses a point. `disturbance` is JSON.
    ///
    /// # Errors
    /// When the experiment or the disturbance is invalid.
    pub fn new(about: About, disturbance: Option<&str>) -> Result<Self, LiveError> {
        let experiment = about.experiment()?;
        let disturbance = disturbance.map(|text| Disturbance::from_json(text.as_bytes(), "disturbance")).transpose();
        let disturbance = disturbance.map_err(|error| wrong("the disturbance", error))?;
        Ok(Self { about, experiment, disturbance })
    }

    /// Returns the settings that the conductor sends to every rank.
    ///
    /// # Errors
    /// When the program cannot be built.
    pub fn settings(&self, limits: &RankLimits) -> Result<RanksSettings, LiveError> {
        let experiment = &self.experiment;
        if experiment.network.network().fat_tree.is_some() {
            let permitted =
                "absent where ranks are processes, whose messages take this machine's network; --on sim has it";
            return Err(LiveError::Value {
                field: "network.fat_tree".into(),
                value: "given".into(),
                permitted: permitted.into(),
            });
        }
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
            spin_s: 0.0,
            start_s: limits.start_s,
            quiet_s: 1.0_f64.min(limits.silence_s / 2.0),
            silence_s: limits.silence_s,
            limit_s: limits.limit_s,
            about: serde_json::to_string(&self.about).map_err(|error| wrong("the run", error))?,
        })
    }

    /// Returns the run's entry in `runs.json`, without closed forms. `dedicated_s` is the time of the undisturbed
    /// run, s; `None` if this run was undisturbed.
    #[must_use]
    pub fn entry(&self, outcome: &Outcome, dedicated_s: Option<f64>) -> ProgramRun {
        let ranks = &outcome.ranks;
        let point = ProgramPoint {
            experiment: &self.experiment,
            disturbance: self.disturbance.as_ref(),
            goal: None,
            recording: None,
            threads: 1,
        };
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

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConductorOptions {
    /// Description from which every rank builds the program.
    pub about: About,
    pub disturbance: Option<String>,
    /// Time limits of the run.
    pub limits: RankLimits,
    /// Log file; `None`: standard error.
    pub log: Option<PathBuf>,
    /// File that is created when the ranks are about to start. It contains time 0 on the monotonic clock, ns.
    pub start_file: Option<PathBuf>,
    /// How long waiting ranks poll before they block, s.
    #[serde(default)]
    pub spin_s: f64,
    /// Whether time 0 waits for [`Stop::begin`].
    #[serde(default)]
    pub held: bool,
}

/// Result of a run of ranks.
pub type Ended = Result<Outcome, LiveError>;

/// A conductor that listens and has not started the program.
pub struct Opened {
    /// Runs the program to its end; call it on a separate thread.
    pub begin: Box<dyn FnOnce() + Send>,
    pub ended: Receiver<Ended>,
    pub stop: Stop,
    /// HOST:PORT at which it listens.
    pub address: String,
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

/// Writes the start file atomically: a program that waits for it sees all of it or nothing. If the file cannot be
/// created, that program reports the timeout itself.
fn write_start_file(file: &Path, zero_ns: u64) {
    let part = file.with_extension("part");
    let _ = std::fs::write(&part, zero_ns.to_string()).and_then(|()| std::fs::rename(&part, file));
}

impl ConductorOptions {
    /// Opens the conductor.
    ///
    /// # Errors
    /// When the program, a limit or the address is invalid.
    pub fn open(self, access: Access) -> Result<Opened, LiveError> {
        let program = LiveProgram::new(self.about, self.disturbance.as_deref())?;
        let mut run = program.settings(&self.limits)?;
        run.spin_s = self.spin_s;
        let ranks = run.ranks;
        let log = Log::at("conductor", self.log.as_ref())?;
        let conductor =
            Conductor::open(ConductorConfig { run, listen: LOOPBACK.into(), access, log, held: self.held })?;
        let (stop, address) = (conductor.stop(), conductor.address()?);
        let (tell, ended) = channel();
        let (about, start_file) = (program.about.clone(), self.start_file);
        let begin = Box::new(move || {
            let mut started = |zero_ns| start_file.iter().for_each(|file| write_start_file(file, zero_ns));
            let run = || about.with(Conducted(conductor, &mut started)).unwrap_or_else(Err);
            let panicked = |panic: Box<dyn Any + Send>| Err(LiveError::panicked("the conductor's thread", &*panic));
            // The receiver may be gone because the run was given up.
            let _ = tell.send(catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(panicked));
        });
        Ok(Opened { begin, ended, stop, address, ranks, program })
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankOptions {
    pub rank: u32,
    pub conductor: String,
    /// Time limit for reaching the conductor, s.
    pub patience_s: f64,
    /// Log file; `None`: standard error.
    pub log: Option<PathBuf>,
}

struct AsRank(Joined);

impl ProgramVisitor for AsRank {
    type Out = Result<(), LiveError>;

    fn visit<P: Program>(self, program: &P) -> Result<(), LiveError> {
        self.0.run(program)
    }
}

impl RankOptions {
    /// Runs a rank until the run ends. The end of standard input ends it.
    ///
    /// # Errors
    /// The reason, if the run ended abnormally.
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
