//! Sources of disturbance: what takes a rank's processor away, when and for how long.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use crate::experiment::Amount;
use crate::units::{PositiveSeconds, Ratio, Seconds, Share};

/// A source that takes the processor away.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Source {
    /// Gang scheduling: all ranks run and are away together.
    Coscheduled(Coscheduled),
    /// Each rank alternates between parallel jobs independently.
    Local(Local),
    /// A short activity that recurs.
    Daemon(Daemon),
    /// An interactive or serial job on some of the nodes.
    Job(Job),
    /// A recording by `crosswind record`.
    Recorded(Recorded),
}

// Defaults for the JSON Schema; those of `Table::source`.
fn coscheduled() -> String {
    Kind::Coscheduled.name().into()
}
fn local() -> String {
    Kind::Local.name().into()
}
fn daemon() -> String {
    Kind::Daemon.name().into()
}
fn job() -> String {
    Kind::Job.name().into()
}
const fn two() -> u32 {
    2
}

/// Gang scheduling: all ranks run and are away together. The program starts at the start of one of its quanta.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Coscheduled {
    /// Name of the cause; unique in the file.
    #[schemars(default = "coscheduled")]
    pub cause: String,
    /// Length of a quantum, s.
    pub quantum_s: PositiveSeconds,
    /// Jobs that share the machine: this one gets one quantum of each `jobs`.
    #[schemars(range(min = 1))]
    #[schemars(default = "two")]
    pub jobs: u32,
    /// The ranks' quanta begin and end late by a uniform time from 0 to this, s; less than `quantum_s`.
    #[schemars(default)]
    pub skew_s: Seconds,
    /// How often the skew is drawn.
    #[schemars(default)]
    pub skew_drawn: SkewDrawn,
}

/// How often the skew of a rank's quanta is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SkewDrawn {
    /// Once for each rank: its clock differs from the others' by a constant.
    #[default]
    PerRank,
    /// For each rank and quantum.
    PerQuantum,
}

/// Relative phases of the ranks' quanta at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phases {
    /// Uniform over the period, independently for each rank.
    #[default]
    Spread,
    /// All at the start of one of their own quanta, permanently.
    Aligned,
    /// All at the start of one of their own quanta; each rank's period is longer or shorter by a uniform fraction of
    /// at most `drift`.
    Drifting,
}

/// Each rank alternates between parallel jobs independently.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Local {
    /// Name of the cause; unique in the file.
    #[schemars(default = "local")]
    pub cause: String,
    /// Length of a quantum, s.
    pub quantum_s: PositiveSeconds,
    /// Jobs that share each node: this one gets one quantum of each `jobs`.
    #[schemars(range(min = 1))]
    #[schemars(default = "two")]
    pub jobs: u32,
    /// Relative phases of the ranks' quanta.
    #[schemars(default)]
    pub phases: Phases,
    /// With drifting phases: largest deviation of a rank's period, as a fraction of it, below 1.
    #[schemars(range(max = 1.0))]
    #[schemars(default)]
    pub drift: Ratio,
    /// Whether the other program takes messages off the network meanwhile; they are handled when this program is
    /// back.
    #[schemars(default)]
    pub polls: bool,
}

/// A short activity that recurs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Daemon {
    /// Name of the cause; unique in the file.
    #[schemars(default = "daemon")]
    pub cause: String,
    /// Time from start to start, s: a number, or a distribution to draw from.
    pub interval_s: Amount<PositiveSeconds>,
    /// Run time, s: a number, or a distribution to draw from.
    pub duration_s: Amount<PositiveSeconds>,
    /// The ranks that it affects; absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<Vec<u32>>,
    /// Whether it runs at the same times on all of its ranks.
    #[schemars(default)]
    pub aligned: bool,
    /// Whether it takes messages off the network meanwhile; they are handled when the program is back.
    #[schemars(default)]
    pub polls: bool,
}

/// An interactive or serial job on some of the nodes: its slices alternate with slices of the program.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Name of the cause; unique in the file.
    #[schemars(default = "job")]
    pub cause: String,
    /// The ranks on its nodes; absent only when it is `everywhere`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<Vec<u32>>,
    /// Share of the parallel program, above 0, at most 1: its slices are share / (1 - share) times as long as the
    /// job's.
    pub share: Share,
    /// Length of the job's slice, s.
    pub slice_s: PositiveSeconds,
    /// The job is coscheduled with others: all ranks are away at the same times.
    #[schemars(default)]
    pub everywhere: bool,
    /// Whether it takes messages off the network meanwhile; they are handled when the program is back.
    #[schemars(default)]
    pub polls: bool,
    /// Time after which the rank is moved off the busy node, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migrate_after_s: Option<Seconds>,
    /// Time that the move takes, s: the rank is away once.
    #[schemars(default)]
    pub migrate_cost_s: Seconds,
}

/// A recording by `crosswind record`: rank r replays CPU r modulo the number of CPUs, repeatedly.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// Length of the recording, s.
    pub length_s: PositiveSeconds,
    /// Names of the causes; unique in the file.
    #[schemars(length(min = 1))]
    pub causes: Vec<String>,
    /// Whether all ranks replay from the same time; otherwise each is shifted by a random offset.
    #[schemars(default)]
    pub aligned: bool,
    /// Problems of the recording, one sentence each: lost events, unknown causes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub warnings: Vec<String>,
    /// One entry for each recorded CPU.
    #[schemars(length(min = 1))]
    pub cpu: Vec<RecordedCpu>,
}

/// The recording of one CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedCpu {
    /// Number of the CPU on the recorded machine.
    pub cpu: u32,
    /// Start in s, duration in s, index into `causes`; sorted, not overlapping.
    pub intervals: Vec<RecordedInterval>,
}

// The expectation appears in error messages.
/// An interval, `[start s, duration s, index of the cause]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(expecting = "three numbers: start s, duration s, place of the cause")]
pub struct RecordedInterval(pub f64, pub f64, pub u16);

/// A source as written, before its kind and therefore its fields are known.
// One table for all kinds, since serde's tagged enums lose which field of the table was wrong.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    kind: Kind,
    cause: Option<String>,
    quantum_s: Option<PositiveSeconds>,
    jobs: Option<u32>,
    skew_s: Option<Seconds>,
    skew_drawn: Option<SkewDrawn>,
    phases: Option<Phases>,
    drift: Option<Ratio>,
    interval_s: Option<Amount<PositiveSeconds>>,
    duration_s: Option<Amount<PositiveSeconds>>,
    ranks: Option<Vec<u32>>,
    aligned: Option<bool>,
    polls: Option<bool>,
    share: Option<Share>,
    slice_s: Option<PositiveSeconds>,
    everywhere: Option<bool>,
    migrate_after_s: Option<Seconds>,
    migrate_cost_s: Option<Seconds>,
    length_s: Option<PositiveSeconds>,
    causes: Option<Vec<String>>,
    warnings: Option<Vec<String>>,
    cpu: Option<Vec<RecordedCpu>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Coscheduled,
    Local,
    Daemon,
    Job,
    Recorded,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Coscheduled => "coscheduled",
            Self::Local => "local",
            Self::Daemon => "daemon",
            Self::Job => "job",
            Self::Recorded => "recorded",
        }
    }

    /// Returns the fields other than `kind`.
    const fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Coscheduled => &["cause", "quantum_s", "jobs", "skew_s", "skew_drawn"],
            Self::Local => &["cause", "quantum_s", "jobs", "phases", "drift", "polls"],
            Self::Daemon => &["cause", "interval_s", "duration_s", "ranks", "aligned", "polls"],
            Self::Job => {
                &["cause", "ranks", "share", "slice_s", "everywhere", "polls", "migrate_after_s", "migrate_cost_s"]
            }
            Self::Recorded => &["length_s", "causes", "aligned", "warnings", "cpu"],
        }
    }
}

/// Returns the field, or serde's own error message for a missing one.
fn needed<T>(field: Option<T>, name: &str) -> Result<T, String> {
    field.ok_or_else(|| format!("missing field `{name}`"))
}

impl Table {
    fn given(&self) -> [(&'static str, bool); 21] {
        [
            ("cause", self.cause.is_some()),
            ("quantum_s", self.quantum_s.is_some()),
            ("jobs", self.jobs.is_some()),
            ("skew_s", self.skew_s.is_some()),
            ("skew_drawn", self.skew_drawn.is_some()),
            ("phases", self.phases.is_some()),
            ("drift", self.drift.is_some()),
            ("interval_s", self.interval_s.is_some()),
            ("duration_s", self.duration_s.is_some()),
            ("ranks", self.ranks.is_some()),
            ("aligned", self.aligned.is_some()),
            ("polls", self.polls.is_some()),
            ("share", self.share.is_some()),
            ("slice_s", self.slice_s.is_some()),
            ("everywhere", self.everywhere.is_some()),
            ("migrate_after_s", self.migrate_after_s.is_some()),
            ("migrate_cost_s", self.migrate_cost_s.is_some()),
            ("length_s", self.length_s.is_some()),
            ("causes", self.causes.is_some()),
            ("warnings", self.warnings.is_some()),
            ("cpu", self.cpu.is_some()),
        ]
    }

    fn source(self) -> Result<Source, String> {
        let (kind, known) = (self.kind, self.kind.fields());
        if let Some((field, _)) = self.given().iter().find(|(field, given)| *given && !known.contains(field)) {
            let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
            return Err(format!("unknown field `{field}`, expected one of `kind`, {}", known.join(", ")));
        }
        let cause = self.cause.unwrap_or_else(|| kind.name().into());
        Ok(match kind {
            Kind::Coscheduled => Source::Coscheduled(Coscheduled {
                cause,
                quantum_s: needed(self.quantum_s, "quantum_s")?,
                jobs: self.jobs.unwrap_or_else(two),
                skew_s: self.skew_s.unwrap_or_default(),
                skew_drawn: self.skew_drawn.unwrap_or_default(),
            }),
            Kind::Local => Source::Local(Local {
                cause,
                quantum_s: needed(self.quantum_s, "quantum_s")?,
                jobs: self.jobs.unwrap_or_else(two),
                phases: self.phases.unwrap_or_default(),
                drift: self.drift.unwrap_or_default(),
                polls: self.polls.unwrap_or_default(),
            }),
            Kind::Daemon => Source::Daemon(Daemon {
                cause,
                interval_s: needed(self.interval_s, "interval_s")?,
                duration_s: needed(self.duration_s, "duration_s")?,
                ranks: self.ranks,
                aligned: self.aligned.unwrap_or_default(),
                polls: self.polls.unwrap_or_default(),
            }),
            Kind::Job => Source::Job(Job {
                cause,
                ranks: self.ranks,
                share: needed(self.share, "share")?,
                slice_s: needed(self.slice_s, "slice_s")?,
                everywhere: self.everywhere.unwrap_or_default(),
                polls: self.polls.unwrap_or_default(),
                migrate_after_s: self.migrate_after_s,
                migrate_cost_s: self.migrate_cost_s.unwrap_or_default(),
            }),
            Kind::Recorded => Source::Recorded(Recorded {
                length_s: needed(self.length_s, "length_s")?,
                causes: needed(self.causes, "causes")?,
                aligned: self.aligned.unwrap_or_default(),
                warnings: self.warnings.unwrap_or_default(),
                cpu: needed(self.cpu, "cpu")?,
            }),
        })
    }
}

impl<'de> Deserialize<'de> for Source {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Table::deserialize(deserializer)?.source().map_err(D::Error::custom)
    }
}

impl Source {
    /// Returns the names of its causes.
    #[must_use]
    pub fn causes(&self) -> &[String] {
        match self {
            Self::Coscheduled(source) => std::slice::from_ref(&source.cause),
            Self::Local(source) => std::slice::from_ref(&source.cause),
            Self::Daemon(source) => std::slice::from_ref(&source.cause),
            Self::Job(source) => std::slice::from_ref(&source.cause),
            Self::Recorded(source) => &source.causes,
        }
    }

    /// Returns the number of parallel jobs that take turns on the processors; 1 for other sources.
    #[must_use]
    pub fn jobs(&self) -> u32 {
        match self {
            Self::Coscheduled(source) => source.jobs,
            Self::Local(source) => source.jobs,
            Self::Daemon(_) | Self::Job(_) | Self::Recorded(_) => 1,
        }
    }

    /// Whether the program that runs meanwhile takes messages off the network.
    #[must_use]
    pub const fn polls(&self) -> bool {
        match self {
            Self::Daemon(source) => source.polls,
            Self::Job(source) => source.polls,
            Self::Local(source) => source.polls,
            Self::Coscheduled(_) | Self::Recorded(_) => false,
        }
    }

    /// Gives it the same times on all of its ranks, and coschedules a job with others.
    pub(super) fn align(&mut self) {
        match self {
            Self::Coscheduled(source) => source.skew_s = Seconds::default(),
            Self::Local(source) => {
                source.phases = Phases::Aligned;
                source.drift = Ratio::default();
            }
            Self::Daemon(source) => source.aligned = true,
            Self::Job(source) => source.everywhere = true,
            Self::Recorded(source) => source.aligned = true,
        }
    }

    /// Returns the ranks that it affects; `None`: all.
    #[must_use]
    pub fn ranks(&self) -> Option<&[u32]> {
        match self {
            Self::Daemon(source) => source.ranks.as_deref(),
            Self::Job(source) if !source.everywhere => source.ranks.as_deref(),
            _ => None,
        }
    }
}
