//! Sources of disturbance: what takes a rank's processor away, when, for how long.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use crate::experiment::Amount;
use crate::units::{PositiveSeconds, Ratio, Seconds, Share};

/// What takes the processor away.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Source {
    /// Gang scheduling: all ranks run and are away together.
    Coscheduled(Coscheduled),
    /// Each rank alternates between parallel jobs by itself.
    Local(Local),
    /// Something short, again and again.
    Daemon(Daemon),
    /// An interactive or serial job on some of the nodes.
    Job(Job),
    /// What `crosswind record` saw.
    Recorded(Recorded),
}

// Defaults as the JSON Schema shows them; those of `Table::source`.
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

/// Gang scheduling: all ranks run and are away together. The program starts at the start of a quantum of its own.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Coscheduled {
    /// Name of the cause; unique in the file.
    #[schemars(default = "coscheduled")]
    pub cause: String,
    /// Length of a quantum, s.
    pub quantum_s: PositiveSeconds,
    /// Jobs that share the machine: this one has one quantum of each `jobs`.
    #[schemars(range(min = 1))]
    #[schemars(default = "two")]
    pub jobs: u32,
    /// The ranks' quanta begin and end late by uniform 0 to this, s; less than `quantum_s`.
    #[schemars(default)]
    pub skew_s: Seconds,
    /// How often that is drawn.
    #[schemars(default)]
    pub skew_drawn: SkewDrawn,
}

/// How often it is drawn by how much a rank's quanta are late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SkewDrawn {
    /// Once for each rank: its clock differs from the others', and stays so.
    #[default]
    PerRank,
    /// For each rank and quantum.
    PerQuantum,
}

/// How the ranks' quanta lie to each other at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phases {
    /// Uniform over the period, each rank by itself.
    #[default]
    Spread,
    /// All at the start of an own quantum, and so for ever.
    Aligned,
    /// All at the start of an own quantum; then each rank's period is longer or shorter, uniform up to `drift` of itself.
    Drifting,
}

/// Each rank alternates between parallel jobs by itself.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Local {
    /// Name of the cause; unique in the file.
    #[schemars(default = "local")]
    pub cause: String,
    /// Length of a quantum, s.
    pub quantum_s: PositiveSeconds,
    /// Jobs that share each node: this one has one quantum of each `jobs`.
    #[schemars(range(min = 1))]
    #[schemars(default = "two")]
    pub jobs: u32,
    /// How the ranks' quanta lie to each other.
    #[schemars(default)]
    pub phases: Phases,
    /// With drifting phases: most by which a rank's period differs, as part of it, below 1.
    #[schemars(range(max = 1.0))]
    #[schemars(default)]
    pub drift: Ratio,
    /// Whether what runs meanwhile takes messages off the network; they are handled when the program is back.
    #[schemars(default)]
    pub polls: bool,
}

/// Something short, again and again.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Daemon {
    /// Name of the cause; unique in the file.
    #[schemars(default = "daemon")]
    pub cause: String,
    /// From start to start, s: a number, or a distribution to draw from.
    pub interval_s: Amount<PositiveSeconds>,
    /// How long it runs, s: a number, or a distribution to draw from.
    pub duration_s: Amount<PositiveSeconds>,
    /// The ranks that it is on; absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<Vec<u32>>,
    /// Whether it runs at the same times on all its ranks.
    #[schemars(default)]
    pub aligned: bool,
    /// Whether it takes messages off the network meanwhile; they are handled when the program is back.
    #[schemars(default)]
    pub polls: bool,
}

/// An interactive or serial job on some of the nodes: slices of it alternate with slices of the program.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Name of the cause; unique in the file.
    #[schemars(default = "job")]
    pub cause: String,
    /// The ranks on its nodes; absent only when it is `everywhere`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<Vec<u32>>,
    /// Share of the parallel program, above 0, at most 1: its slices are share / (1 - share) times the job's.
    pub share: Share,
    /// Slice of the job, s.
    pub slice_s: PositiveSeconds,
    /// The job is coscheduled with others: all ranks are away at the same times.
    #[schemars(default)]
    pub everywhere: bool,
    /// Whether it takes messages off the network meanwhile; they are handled when the program is back.
    #[schemars(default)]
    pub polls: bool,
    /// The rank is moved off the busy node after this, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migrate_after_s: Option<Seconds>,
    /// What moving takes, s: away once.
    #[schemars(default)]
    pub migrate_cost_s: Seconds,
}

/// What `crosswind record` saw: rank r replays CPU r modulo the number of CPUs, again and again.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// How long was recorded, s.
    pub length_s: PositiveSeconds,
    /// Names of the causes; unique in the file.
    #[schemars(length(min = 1))]
    pub causes: Vec<String>,
    /// Whether all ranks replay from the same moment; otherwise each is shifted by an offset drawn for it.
    #[schemars(default)]
    pub aligned: bool,
    /// What was wrong with the recording, one sentence each: events that were lost, causes that are not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub warnings: Vec<String>,
    /// One entry per CPU.
    #[schemars(length(min = 1))]
    pub cpu: Vec<RecordedCpu>,
}

/// What was seen on one CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedCpu {
    /// Its number on the machine where it was recorded.
    pub cpu: u32,
    /// Start in s, duration in s, index into `causes`; sorted, not overlapping.
    pub intervals: Vec<RecordedInterval>,
}

// The expectation stands in refusals.
/// An interval, `[start s, duration s, index of the cause]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(expecting = "three numbers: start s, duration s, place of the cause")]
pub struct RecordedInterval(pub f64, pub f64, pub u16);

/// A source as it is written, before it is known which fields belong to its kind.
// One table for all kinds, since serde's tagged enums forget which field of the table was wrong.
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

    /// The fields beside `kind`.
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

/// The field, or serde's own sentence for one that is not there.
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
    /// The names of what it does, as they are blamed.
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

    /// Parallel jobs that share the processors by turns; 1 where it is no such source.
    #[must_use]
    pub fn jobs(&self) -> u32 {
        match self {
            Self::Coscheduled(source) => source.jobs,
            Self::Local(source) => source.jobs,
            Self::Daemon(_) | Self::Job(_) | Self::Recorded(_) => 1,
        }
    }

    /// Whether what runs meanwhile takes messages off the network.
    #[must_use]
    pub const fn polls(&self) -> bool {
        match self {
            Self::Daemon(source) => source.polls,
            Self::Job(source) => source.polls,
            Self::Local(source) => source.polls,
            Self::Coscheduled(_) | Self::Recorded(_) => false,
        }
    }

    /// Has it at the same times on all the ranks that it is on, and jobs coscheduled with others.
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

    /// The ranks that it is on, where it is not on all.
    #[must_use]
    pub fn ranks(&self) -> Option<&[u32]> {
        match self {
            Self::Daemon(source) => source.ranks.as_deref(),
            Self::Job(source) if !source.everywhere => source.ranks.as_deref(),
            _ => None,
        }
    }
}
