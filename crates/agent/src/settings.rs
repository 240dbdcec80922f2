//! What a run is about, as every agent must know it: what a parent says when it lets a child in.

use crosswind_policy::farm::estimate::Estimator;
use crosswind_policy::farm::{ChildSettings, FarmOptions, MeanTask, Settings, planned_of_a_guest};
use crosswind_schema::experiment::{Change, ChangeKind, PlacedChange, Policy, change};
use crosswind_schema::units::Quantity;
use crosswind_schema::{Node, Platform, Tree};
use serde::{Deserialize, Serialize};

use crate::SettingsError;

/// Numbers from here on are those of agents that the platform does not know.
pub const GUESTS: u32 = 1 << 31;
/// Default of [`RunSettings::spool_over_bytes`].
pub const SPOOL_OVER_BYTES: u64 = 64 << 20;
/// Default of [`RunSettings::largest_task_bytes`].
pub const LARGEST_TASK_BYTES: u64 = 1 << 40;

/// What an agent does for the work of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Work {
    /// Sleeps for the time that the platform's rates and the interference law give; links are paced.
    Emulated {
        /// Seconds of the platform in one second of the clock.
        time_scale: f64,
        /// Bytes of each result.
        result_bytes: u64,
    },
    /// Nothing: the result is empty.
    Noop,
    /// A kernel of the probe, as much of it as the task's work says.
    Kernel { name: String },
    /// A user's command with `{input}` and `{output}`.
    Command { line: String },
    /// Code that came with the run.
    Callable,
}

/// What one try of a task may take, and how many tries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TaskLimits {
    /// Time after which it is ended and has failed, s; none: it takes as long as it takes.
    pub timeout_s: Option<f64>,
    /// Memory of all its processes together, MB; none: as much as there is. Commands only.
    pub memory_mb: Option<f64>,
    /// Time between SIGTERM and SIGKILL for what is left of its processes, s.
    pub grace_s: f64,
    /// How often a task that failed is tried again.
    pub retries: u32,
}

impl TaskLimits {
    /// The memory that a task may take, bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> Option<u64> {
        self.memory_mb.map(|memory_mb| (memory_mb * 1e6) as u64)
    }
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self { timeout_s: None, memory_mb: None, grace_s: 5.0, retries: 0 }
    }
}

/// What a run is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSettings {
    pub platform: Platform,
    /// The policy: the order of service and its options.
    pub policy: Policy,
    /// Input of a mean task, MB.
    pub mean_size_mb: f64,
    /// Work of a mean task.
    pub mean_work: f64,
    /// How many tasks there are, where that is known before the run.
    #[serde(default)]
    pub tasks: Option<u64>,
    /// What the plan gives each node, tasks/s; for the order `planned`.
    #[serde(default)]
    pub planned_tasks_per_s: Option<Vec<f64>>,
    /// What happens to the platform in mid-run: emulated rates only.
    #[serde(default)]
    pub changes: Vec<Change>,
    pub work: Work,
    /// How long agents wait for each other.
    #[serde(default)]
    pub patience: Patience,
    /// What a task may take, and how often it is tried.
    #[serde(default)]
    pub task_limits: TaskLimits,
    #[serde(default)]
    pub recording: Recording,
    /// How large inputs and results may be.
    #[serde(default)]
    pub sizes: Sizes,
}

/// How long agents wait for each other, s.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Patience {
    /// How often a child says that it lives.
    pub heartbeat_s: f64,
    /// Silence after which a connection is lost.
    pub silence_s: f64,
    /// How long agents are waited for before time 0.
    pub start_s: f64,
}

impl Default for Patience {
    fn default() -> Self {
        Self { heartbeat_s: 0.5, silence_s: 5.0, start_s: 30.0 }
    }
}

/// What of a run is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Recording {
    /// Rows of activities.
    pub trace: bool,
    /// Events and commands, for a replay.
    pub log: bool,
}

/// How large inputs and results may be, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sizes {
    /// Larger ones go to files.
    pub spool_over_bytes: u64,
    pub largest_task_bytes: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { spool_over_bytes: SPOOL_OVER_BYTES, largest_task_bytes: LARGEST_TASK_BYTES }
    }
}

/// What a parent says to a child that it lets in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Admission {
    /// What the run is about; its platform has the child in it.
    pub run: RunSettings,
    /// The child's number: its place in the platform, or one from [`GUESTS`] on.
    pub number: u32,
    /// The parent's number.
    pub parent: u32,
    /// Whether time 0 is over, so that the child joins a run.
    pub running: bool,
    pub code: bool,
}

impl RunSettings {
    /// Checks what types alone can't tell.
    ///
    /// # Errors
    /// The first value out of its range.
    pub fn check(&self) -> Result<(), SettingsError> {
        let positive = |field: &str, value: f64| {
            if value.is_finite() && value > 0.0 {
                return Ok(());
            }
            let permitted = "finite and greater than 0".into();
            Err(SettingsError::Value { field: field.into(), value: value.to_string(), permitted })
        };
        positive("mean_size_mb", self.mean_size_mb)?;
        positive("mean_work", self.mean_work)?;
        positive("heartbeat_s", self.patience.heartbeat_s)?;
        positive("silence_s", self.patience.silence_s)?;
        positive("start_s", self.patience.start_s)?;
        if let Work::Emulated { time_scale, .. } = self.work {
            positive("time_scale", time_scale)?;
        }
        let limits = &self.task_limits;
        let root_computes =
            self.platform.nodes.iter().any(|node| node.parent.is_none() && node.compute_per_s.get() > 0.0);
        if limits.timeout_s.is_some() && root_computes && !matches!(self.work, Work::Command { .. }) {
            return Err(SettingsError::Setup(
                "a task timeout is given, and the root computes tasks in this process, where nothing can end them; \
                 set the root's compute_per_s to 0, or leave the timeout out"
                    .into(),
            ));
        }
        limits.timeout_s.map_or(Ok(()), |timeout_s| positive("task_timeout_s", timeout_s))?;
        limits.memory_mb.map_or(Ok(()), |memory_mb| positive("task_memory_mb", memory_mb))?;
        if !limits.grace_s.is_finite() || limits.grace_s < 0.0 {
            let permitted = "finite and at least 0".into();
            return Err(SettingsError::Value { field: "grace_s".into(), value: limits.grace_s.to_string(), permitted });
        }
        if self.patience.silence_s < 2.0 * self.patience.heartbeat_s {
            return Err(SettingsError::Value {
                field: "silence_s".into(),
                value: self.patience.silence_s.to_string(),
                permitted: format!("at least two heartbeats, {} s", 2.0 * self.patience.heartbeat_s),
            });
        }
        let only_rates = |change: &PlacedChange| matches!(change.kind, ChangeKind::Rates { .. });
        if !self.placed_changes()?.iter().all(only_rates)
            || !(self.changes.is_empty() || matches!(self.work, Work::Emulated { .. }))
        {
            return Err(SettingsError::Setup(
                "the experiment has a change that real nodes do not follow: only rates change, where agents are emulated; \
                 run it with --on sim, or leave the change out"
                    .into(),
            ));
        }
        if self.planned_tasks_per_s.as_ref().is_some_and(|rates| rates.len() != self.platform.nodes.len()) {
            return Err(SettingsError::Setup("the plan has not a rate for each node".into()));
        }
        Ok(())
    }

    /// The changes in the order of their times.
    ///
    /// # Errors
    /// Changes that cannot be.
    pub fn placed_changes(&self) -> Result<Vec<PlacedChange>, SettingsError> {
        change::placed(&self.changes, &self.platform).map_err(|error| SettingsError::Setup(error.to_string()))
    }

    /// The tree's shape.
    ///
    /// # Errors
    /// When the platform is no tree.
    pub fn tree(&self) -> Result<Tree, SettingsError> {
        self.platform.tree().map_err(|error| SettingsError::Setup(error.to_string()))
    }

    /// What the policy of every node goes by.
    #[must_use]
    pub fn wishes(&self) -> FarmOptions<'_> {
        let task = MeanTask { size_mb: self.mean_size_mb, work: self.mean_work };
        let wishes = FarmOptions { tasks: self.tasks, ..FarmOptions::of(&self.policy, task).with_recovery() };
        match &self.planned_tasks_per_s {
            Some(rates) => wishes.with_plan(rates),
            None => wishes,
        }
    }

    /// What the policy of a node knows, and its children's places in the platform.
    ///
    /// # Errors
    /// When there is no such node.
    pub fn of_node(&self, name: &str) -> Result<(u32, Settings, Vec<u32>), SettingsError> {
        let tree = self.tree()?;
        let place =
            self.place(name).ok_or_else(|| SettingsError::Setup(format!("the platform has no node {name:?}")))?;
        let settings = Settings::of(&self.platform, &tree, &self.wishes()).swap_remove(place as usize);
        Ok((place, settings, tree.children(place).to_vec()))
    }

    /// What a node finds out, before it has found out anything.
    ///
    /// # Errors
    /// When the platform is no tree.
    pub fn estimator(&self, place: u32) -> Result<Estimator, SettingsError> {
        Ok(Estimator::of(&self.platform, &self.tree()?, &self.wishes()).swap_remove(place as usize))
    }

    /// The most tasks that some nodes ask for, all together.
    ///
    /// # Errors
    /// When the platform is no tree.
    pub fn wanted_by(&self, places: &[u32]) -> Result<u64, SettingsError> {
        let settings = Settings::of(&self.platform, &self.tree()?, &self.wishes());
        Ok(places.iter().map(|&place| settings[place as usize].places).sum())
    }

    /// A node's place in the platform.
    #[must_use]
    pub fn place(&self, name: &str) -> Option<u32> {
        self.platform.nodes.iter().position(|node| node.name == name).map(|place| place as u32)
    }

    /// What the policy of its parent knows of a child.
    ///
    /// # Errors
    /// When the platform is no tree.
    pub fn of_child(&self, place: u32) -> Result<ChildSettings, SettingsError> {
        Ok(Settings::child(&self.platform, &self.tree()?, &self.wishes(), place))
    }

    /// The same with a node more, which the plan gives what it and its link can do.
    ///
    /// # Errors
    /// When the platform is no tree then.
    pub fn with_guest(&self, node: Node) -> Result<Self, SettingsError> {
        let mut more = self.clone();
        if let Some(rates) = &mut more.planned_tasks_per_s {
            rates.push(planned_of_a_guest(&node, MeanTask { size_mb: self.mean_size_mb, work: self.mean_work }));
        }
        more.platform.nodes.push(node);
        more.tree()?;
        Ok(more)
    }
}
