//! Draws the tasks of a run, for the simulator and for live runs alike. Task sizes and works are drawn nowhere else.
//!
//! The same workload and seed give the same bytes on every machine: the generator is counter-based, and logarithms
//! come from `libm` rather than from the system. Sizes, works, arrivals and classes come from streams of their own, so changing one
//! leaves the others unchanged.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::classes::Classes;
use super::workload::{Amount, Distribution, Source, Workload};
use crate::error::{DescriptionError, Problem};
use crate::tasks_file;
use crate::units::Quantity;

const SIZES: u64 = 0;
const WORKS: u64 = 1;
const ARRIVALS: u64 = 2;
/// Upper limit of draws, so that no sum of them overflows.
const LARGEST: f64 = 1e15;

/// One amount for each task.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// The same for all tasks.
    Same(f64),
    /// One value for each task.
    Each(Vec<f64>),
}

impl Column {
    /// Returns the amount of a task; tasks are numbered from 0.
    #[must_use]
    pub fn get(&self, task: u64) -> f64 {
        match self {
            Self::Same(amount) => *amount,
            Self::Each(amounts) => amounts.get(task as usize).copied().unwrap_or(f64::NAN),
        }
    }
}

/// When tasks arrive at the root, and by when they are wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arrivals {
    /// When each task arrives, s since the start; ascending.
    pub release_s: Vec<f64>,
    /// When each is to be done, s since the start; infinite for a task without a deadline. Empty if none has one.
    pub deadline_s: Vec<f64>,
}

impl Default for Column {
    fn default() -> Self {
        Self::Same(0.0)
    }
}

/// The users whose tasks a run has.
#[derive(Clone, Debug, PartialEq)]
pub struct Users {
    pub names: Vec<String>,
    /// User of each task: its place in `names`.
    pub of_task: Vec<u32>,
}

/// The tasks of a run, numbered from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tasks {
    pub count: u64,
    /// Input size of each task, MB.
    pub size_mb: Column,
    /// Work of each, work units.
    pub work: Column,
    /// `None`: all are at the root at the start, and none has a deadline.
    pub arrivals: Option<Arrivals>,
    /// `None`: every node runs every task at its compute rate.
    pub classes: Option<Classes>,
    /// `None`: the tasks are of one user.
    pub users: Option<Users>,
}

impl Tasks {
    /// Draws the tasks of a workload. `file` holds the bytes of its `tasks_file`, if it has one.
    ///
    /// Drawn sizes are whole bytes, at least one.
    ///
    /// # Errors
    /// When the workload is invalid, or the file of tasks, with its line.
    pub fn draw(workload: &Workload, seed: u64, file: Option<&[u8]>) -> Result<Self, DescriptionError> {
        let mut tasks = match workload.source()? {
            Source::File(path) => {
                let bytes = file.ok_or_else(|| Problem::Missing.at("workload.tasks_file".into()).in_file(path))?;
                let mut tasks = tasks_file::read(bytes, path)?;
                let named = tasks.classes.take();
                tasks.classes = match (named, workload.classes.is_empty()) {
                    (None, true) => None,
                    (Some(named), _) => Some(named.of_file(&workload.classes, path)?),
                    (None, false) => {
                        let problem =
                            "is given, and the tasks_file has no column class; name the class of each task there";
                        return Err(Problem::Value(problem.into()).at("workload.class".into()));
                    }
                };
                tasks
            }
            Source::Drawn { tasks, size, work } => Self {
                count: tasks,
                size_mb: column("task_size_mb", size, tasks, seed, SIZES, whole_bytes)?,
                work: column("task_work", work, tasks, seed, WORKS, |work| work)?,
                arrivals: None,
                classes: (!workload.classes.is_empty()).then(|| Classes::draw(&workload.classes, tasks, seed)),
                users: None,
            },
        };
        if let Some(gap) = &workload.arrival_gap_s {
            if tasks.arrivals.as_ref().is_some_and(|arrivals| !arrivals.release_s.is_empty()) {
                let problem = "is given, and the tasks_file has release_s; give one of the two";
                return Err(Problem::Value(problem.into()).at("workload.arrival_gap_s".into()));
            }
            let gaps = tasks.count.div_ceil(workload.arrival_tasks.get());
            let gaps = column("arrival_gap_s", gap, gaps, seed, ARRIVALS, |gap| gap)?;
            tasks.arrivals.get_or_insert_default().release_s =
                releases(&gaps, tasks.count, workload.arrival_tasks.get());
        }
        Ok(tasks)
    }

    /// Returns the work of a task at a node: what its processor would do in the time that it takes.
    #[inline]
    #[must_use]
    pub fn work_at(&self, task: u64, node: u32) -> f64 {
        let work = self.work.get(task);
        match &self.classes {
            None => work,
            Some(classes) => work / classes.factors[usize::from(classes.of_task[task as usize])][node as usize],
        }
    }

    /// Returns when a task arrives at the root, s since the start.
    #[must_use]
    pub fn release_s(&self, task: u64) -> f64 {
        let arrivals = self.arrivals.as_ref();
        arrivals.and_then(|arrivals| arrivals.release_s.get(task as usize).copied()).unwrap_or(0.0)
    }

    /// Returns by when a task is to be done, s since the start; `None` if it has no deadline.
    #[must_use]
    pub fn deadline_s(&self, task: u64) -> Option<f64> {
        let deadline_s = *self.arrivals.as_ref()?.deadline_s.get(task as usize)?;
        deadline_s.is_finite().then_some(deadline_s)
    }

    /// Returns the user of a task, if tasks have users.
    #[must_use]
    pub fn user(&self, task: u64) -> Option<&str> {
        let users = self.users.as_ref()?;
        users.names.get(*users.of_task.get(task as usize)? as usize).map(String::as_str)
    }

    /// Returns the sum of all sizes, MB.
    #[must_use]
    pub fn total_mb(&self) -> f64 {
        self.total(&self.size_mb)
    }

    /// Returns the sum of all works, work units.
    #[must_use]
    pub fn total_work(&self) -> f64 {
        self.total(&self.work)
    }

    fn total(&self, column: &Column) -> f64 {
        match column {
            Column::Same(amount) => amount * self.count as f64,
            Column::Each(amounts) => amounts.iter().sum(),
        }
    }
}

/// Returns when each task arrives: `at_once` tasks at the start, as many after each gap.
fn releases(gaps: &Column, tasks: u64, at_once: u64) -> Vec<f64> {
    let mut at_s = 0.0;
    let mut releases = Vec::with_capacity(tasks as usize);
    for task in 0..tasks {
        if task > 0 && task % at_once == 0 {
            at_s = match gaps {
                Column::Same(gap) => gap * (task / at_once) as f64,
                Column::Each(_) => at_s + gaps.get(task / at_once - 1),
            };
        }
        releases.push(at_s);
    }
    releases
}

fn whole_bytes(size_mb: f64) -> f64 {
    (size_mb * 1e6).round().max(1.0) / 1e6
}

fn column<Q: Quantity>(
    field: &str,
    amount: &Amount<Q>,
    tasks: u64,
    seed: u64,
    stream: u64,
    fit: impl Fn(f64) -> f64,
) -> Result<Column, DescriptionError> {
    Ok(match amount {
        Amount::Fixed(value) => Column::Same(value.get()),
        Amount::Drawn(Distribution::Empirical { file: Some(path), values }) if values.is_empty() => {
            return Err(Problem::Missing.at(format!("workload.{field}.values")).in_file(path));
        }
        Amount::Drawn(distribution) => {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            random.set_stream(stream);
            let mut bits = || random.next_u64();
            Column::Each((0..tasks).map(|_| fit(one(distribution, &mut bits))).collect())
        }
    })
}

/// Converts 64 random bits to a number above 0 and at most 1.
pub(crate) fn unit(bits: u64) -> f64 {
    ((bits >> 11) + 1) as f64 / (1u64 << 53) as f64
}

/// Draws the length of the interval that contains an independent random time: long intervals are met more often, in
/// proportion to their length.
pub(crate) fn met<Q: Quantity>(distribution: &Distribution<Q>, bits: &mut impl FnMut() -> u64) -> f64 {
    match distribution {
        Distribution::Uniform { low, high } => {
            let (low, high) = (low.get(), high.get());
            libm::sqrt(low * low + (high * high - low * low) * unit(bits()))
        }
        Distribution::Exponential { .. } => one(distribution, bits) + one(distribution, bits),
        Distribution::Lognormal { sigma, .. } => {
            (one(distribution, bits) * libm::exp(sigma.get() * sigma.get())).min(LARGEST)
        }
        Distribution::Empirical { values, .. } => {
            let mut left = unit(bits()) * values.iter().map(|value| value.get()).sum::<f64>();
            let holds = |value: &&Q| {
                left -= value.get();
                left <= 0.0
            };
            values.iter().find(holds).or(values.last()).map_or(0.0, |value| value.get())
        }
    }
}

/// Draws one amount from a distribution.
pub(crate) fn one<Q: Quantity>(distribution: &Distribution<Q>, bits: &mut impl FnMut() -> u64) -> f64 {
    let mut unit = || unit(bits());
    let drawn = match distribution {
        Distribution::Uniform { low, high } => low.get() + (high.get() - low.get()) * unit(),
        Distribution::Exponential { mean } => -mean.get() * libm::log(unit()),
        Distribution::Lognormal { median, sigma } => {
            let radius = libm::sqrt(-2.0 * libm::log(unit()));
            let normal = radius * libm::cos(std::f64::consts::TAU * unit());
            median.get() * libm::exp(sigma.get() * normal)
        }
        Distribution::Empirical { values, .. } => {
            let at = (unit() * values.len() as f64).ceil() as usize; // 1 to their number
            values.get(at.saturating_sub(1)).map_or(0.0, |value| value.get())
        }
    };
    drawn.clamp(1e-12, LARGEST)
}
