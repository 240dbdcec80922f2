//! Workload: the tasks of a farm.

use std::fmt;
use std::marker::PhantomData;
use std::num::NonZero;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::classes::{self, TaskClass};
use crate::error::{DescriptionError, Problem};
use crate::units::{Megabytes, MegabytesOrNone, PositiveSeconds, Quantity, Sigma, WorkUnits};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// Independent tasks, at the root at the start or as they arrive there.
    Farm,
}

/// The workload: a farm of independent tasks, at the root at the start unless they arrive over time. Either `tasks`,
/// `task_size_mb` and `task_work`, or `tasks_file`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    pub kind: WorkloadKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub tasks: Option<u64>,
    /// Input of each task, MB: a number, or a distribution to draw from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_size_mb: Option<Amount<Megabytes>>,
    /// Work of each task, work units: a number, or a distribution to draw from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_work: Option<Amount<WorkUnits>>,
    /// Path of a CSV file with the columns `size_mb` and `work`, and optionally `release_s`, `deadline_s`, `class` and `user`,
    /// one line per task, relative to this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub tasks_file: Option<String>,
    /// Result of each task, MB, which is sent back to the root.
    #[serde(default)]
    pub result_size_mb: MegabytesOrNone,
    /// Time between two arrivals of tasks at the root, s: a number, or a distribution to draw from (exponential: a
    /// Poisson process). The first arrive at the start. Absent: all tasks are there at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival_gap_s: Option<Amount<PositiveSeconds>>,
    /// Tasks that arrive at a time.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub arrival_tasks: NonZero<u64>,
    /// Length of the windows of the fairness over time, s. Absent: a twentieth of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness_window_s: Option<PositiveSeconds>,
    /// Classes of tasks: for each, how fast which nodes are. Absent: every node runs every task at its compute rate.
    #[serde(rename = "class", default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<TaskClass>,
}

const fn one() -> NonZero<u64> {
    NonZero::<u64>::MIN
}

fn is_one(tasks: &NonZero<u64>) -> bool {
    *tasks == one()
}

/// Most tasks: more do not fit into the memory of any machine that runs them.
const MOST_TASKS: u64 = 1_000_000_000;

/// Source of a workload's tasks, after its check.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Source<'a> {
    /// Tasks drawn at random from distributions.
    Drawn {
        tasks: u64,
        /// Input size of each task, MB.
        size: &'a Amount<Megabytes>,
        /// Work of each task, work units.
        work: &'a Amount<WorkUnits>,
    },
    /// Path of a user's file of tasks.
    File(&'a str),
}

/// An amount that is the same for every task or message, or drawn for each.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Amount<Q> {
    /// The same amount for all.
    Fixed(Q),
    /// An amount drawn for each.
    Drawn(Distribution<Q>),
}

/// A distribution of positive amounts.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "distribution", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Distribution<Q> {
    /// Uniformly distributed between two limits.
    Uniform {
        low: Q,
        /// Upper limit; not less than `low`.
        high: Q,
    },
    /// Many small ones, few large ones.
    Exponential { mean: Q },
    /// Spread by random factors around a median.
    Lognormal {
        /// Median: half of the draws are below.
        median: Q,
        /// Standard deviation of the logarithm.
        sigma: Sigma,
    },
    /// Measured amounts, each as likely as the others. Either `file` or `values`.
    Empirical {
        /// Path of a file with one amount per line, relative to this file. Of farms only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
        /// The amounts.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        values: Vec<Q>,
    },
}

impl<Q: Quantity> Amount<Q> {
    /// Returns the mean of the distribution.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(value) => value.get(),
            Self::Drawn(Distribution::Uniform { low, high }) => 0.5 * low.get() + 0.5 * high.get(),
            Self::Drawn(Distribution::Exponential { mean }) => mean.get(),
            Self::Drawn(Distribution::Lognormal { median, sigma }) => {
                median.get() * libm::exp(0.5 * sigma.get() * sigma.get())
            }
            Self::Drawn(Distribution::Empirical { values, .. }) => {
                values.iter().map(|value| value.get()).sum::<f64>() / values.len() as f64
            }
        }
    }
}

// Implemented by hand, since serde's untagged and tagged enums lose which field of the table was wrong.
impl<'de, Q: Quantity + Deserialize<'de>> Deserialize<'de> for Amount<Q> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrTable<Q>(PhantomData<Q>);
        impl<'de, Q: Quantity + Deserialize<'de>> Visitor<'de> for NumberOrTable<Q> {
            type Value = Amount<Q>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a table with a distribution")
            }
            fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Self::Value, E> {
                Q::deserialize(serde::de::value::F64Deserializer::new(value)).map(Amount::Fixed)
            }
            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Self::Value, E> {
                self.visit_f64(value as f64)
            }
            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Self::Value, E> {
                self.visit_f64(value as f64)
            }
            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Self::Value, A::Error> {
                let table = Table::deserialize(MapAccessDeserializer::new(table))?;
                table.distribution().map(Amount::Drawn).map_err(A::Error::custom)
            }
        }
        deserializer.deserialize_any(NumberOrTable(PhantomData))
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Family {
    Uniform,
    Exponential,
    Lognormal,
    Empirical,
}

/// A distribution as written, before its kind and therefore its fields are known.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table<Q> {
    distribution: Family,
    low: Option<Q>,
    high: Option<Q>,
    mean: Option<Q>,
    median: Option<Q>,
    sigma: Option<Sigma>,
    file: Option<String>,
    #[serde(default = "Vec::new")]
    values: Vec<Q>,
}

impl<Q: Quantity> Table<Q> {
    fn distribution(self) -> Result<Distribution<Q>, String> {
        let given = [
            ("low", self.low.is_some()),
            ("high", self.high.is_some()),
            ("mean", self.mean.is_some()),
            ("median", self.median.is_some()),
            ("sigma", self.sigma.is_some()),
            ("file", self.file.is_some()),
            ("values", !self.values.is_empty()),
        ];
        let (name, wanted): (_, &[&str]) = match self.distribution {
            Family::Uniform => ("uniform", &["low", "high"]),
            Family::Exponential => ("exponential", &["mean"]),
            Family::Lognormal => ("lognormal", &["median", "sigma"]),
            Family::Empirical => ("empirical", &["file", "values"]),
        };
        let is_empirical = name == "empirical";
        let takes = wanted.join(if is_empirical { " or " } else { " and " });
        let takes = format!("; a distribution {name:?} takes {takes}");
        if let Some((field, _)) = given.iter().find(|(field, given)| *given && !wanted.contains(field)) {
            return Err(format!("is a distribution {name:?} with {field}{takes}"));
        }
        if is_empirical {
            let (file, values) = (self.file, self.values);
            return match (&file, values.is_empty()) {
                (Some(path), true) if path.is_empty() => {
                    Err(format!("is a distribution {name:?} with an empty file name"))
                }
                (Some(_), true) | (None, false) => Ok(Distribution::Empirical { file, values }),
                (Some(_), false) => Err(format!("is a distribution {name:?} with both file and values{takes}")),
                (None, true) => Err(format!("is a distribution {name:?} without any amounts{takes}")),
            };
        }
        let distribution = match (self.low, self.high, self.mean, self.median, self.sigma) {
            (Some(low), Some(high), ..) => Some(Distribution::Uniform { low, high }),
            (_, _, Some(mean), ..) => Some(Distribution::Exponential { mean }),
            (.., Some(median), Some(sigma)) => Some(Distribution::Lognormal { median, sigma }),
            _ => None,
        };
        match distribution {
            Some(Distribution::Uniform { low, high }) if high.get() < low.get() => {
                Err(format!("is uniform from {} to {} {}; low must not be above high", low.get(), high.get(), Q::UNIT))
            }
            Some(distribution) => Ok(distribution),
            None => {
                let missing = given.iter().find(|(field, given)| !given && wanted.contains(field));
                Err(format!("is a distribution {name:?} without {}{takes}", missing.map_or("", |(field, _)| *field)))
            }
        }
    }
}

impl Workload {
    /// Returns the source of the tasks.
    ///
    /// # Errors
    /// When both a file and drawn tasks are described, or neither completely.
    pub fn source(&self) -> Result<Source<'_>, DescriptionError> {
        let written = [
            ("tasks", self.tasks.is_some()),
            ("task_size_mb", self.task_size_mb.is_some()),
            ("task_work", self.task_work.is_some()),
        ];
        if self.arrival_gap_s.is_none() && !is_one(&self.arrival_tasks) {
            let problem = "stands without workload.arrival_gap_s: when do they arrive?";
            return Err(Problem::Value(problem.into()).at("workload.arrival_tasks".into()));
        }
        classes::check(&self.classes)?;
        if let Some(file) = &self.tasks_file {
            if let Some((field, _)) = written.iter().find(|(_, given)| *given) {
                let problem = "stands beside workload.tasks_file; the tasks are either in a file or described here";
                return Err(Problem::Value(problem.into()).at(format!("workload.{field}")));
            }
            if file.is_empty() {
                return Err(Problem::Empty.at("workload.tasks_file".into()));
            }
            return Ok(Source::File(file));
        }
        match (self.tasks, &self.task_size_mb, &self.task_work) {
            (Some(tasks), ..) if !(1..=MOST_TASKS).contains(&tasks) => {
                let range = if tasks == 0 { "at least 1".to_owned() } else { format!("at most {MOST_TASKS}") };
                Err(Problem::Value(format!("is {tasks}; it must be {range}")).at("workload.tasks".into()))
            }
            (Some(tasks), Some(size), Some(work)) => Ok(Source::Drawn { tasks, size, work }),
            _ => {
                let missing = written.iter().find(|(_, given)| !given).map_or("", |(field, _)| field);
                Err(Problem::Missing.at(format!("workload.{missing}")))
            }
        }
    }
}
