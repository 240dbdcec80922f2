//! Settings of a run that every agent needs, and the message that a parent sends to a child it registers.

use crosswind_policy::farm::{FarmOptions, MeanTask, Outside, Settings, planned_of_a_late_joiner};
use crosswind_schema::experiment::{Change, ChangeKind, PlacedChange, Policy, change};
use crosswind_schema::units::Quantity;
use crosswind_schema::{Node, Platform, Tree};
use serde::{Deserialize, Serialize};

use crate::SettingsError;
use crate::layout::Layout;

/// First number of agents that are not in the platform.
pub const LATE_JOINERS: u32 = 1 << 31;
pub const SPOOL_OVER_BYTES: u64 = 64 << 20;
pub const LARGEST_TASK_BYTES: u64 = 1 << 40;

/// How an agent computes a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Work {
    /// Emulated: a task takes the time given by the platform's rates and the interference law, and links are paced.
    Emulated {
        /// Platform seconds per second of the clock.
        time_scale: f64,
        /// Size of each result, bytes.
        result_bytes: u64,
    },
    /// No work; the result is empty.
    Noop,
    /// A kernel of the probe, repeated in proportion to the task's work.
    Kernel { name: String },
    /// A user's command with `{input}` or `{}`, and with `{output}`.
    Command { line: String },
    /// A callable sent with the run.
    Callable,
}

/// Limits of one attempt of a task, and number of retries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TaskLimits {
    /// Time after which an attempt is ended and has failed, s. `None`: no limit.
    pub timeout_s: Option<f64>,
    /// Memory of all processes of an attempt together, MB. `None`: no limit. Commands only.
    pub memory_mb: Option<f64>,
    /// Time between SIGTERM and SIGKILL for the remaining processes, s.
    pub grace_s: f64,
    /// Number of retries after a failure.
    pub retries: u32,
}

impl TaskLimits {
    /// Memory limit, bytes. `None`: no limit.
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

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSettings {
    pub platform: Platform,
    /// The order of service and its options.
    pub policy: Policy,
    /// Input of a mean task, MB.
    pub mean_size_mb: f64,
    /// Work of a mean task, work units.
    pub mean_work: f64,
    /// Number of tasks. `None` if not known before the run.
    #[serde(default)]
    pub tasks: Option<u64>,
    /// Planned rate of each node, tasks/s, in the platform's order. For the order `planned`.
    #[serde(default)]
    pub planned_tasks_per_s: Option<Vec<f64>>,
    /// Changes of the platform in mid-run. Emulated rates only.
    #[serde(default)]
    pub changes: Vec<Change>,
    pub work: Work,
    #[serde(default)]
    pub patience: Patience,
    #[serde(default)]
    pub task_limits: TaskLimits,
    #[serde(default)]
    pub recording: Recording,
    #[serde(default)]
    pub sizes: Sizes,
    /// What agents below the root get of the nodes that their platform leaves out. `None`: the platform is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) part: Option<Part>,
}

/// What an agent needs of the nodes that its part of the platform leaves out. The part has the agent's parent as its
/// root, then the agent and the nodes below it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Number of each node of the part in the whole platform.
    pub numbers: Vec<u32>,
    /// Maximum number of tasks that the agent requests ahead. It depends on the agent's siblings.
    pub places: u64,
    /// Tasks per second that the whole platform uses.
    pub uses_tasks_per_s: f64,
    /// How long before the end of the run a node could finish late, s.
    pub late_s: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Patience {
    /// Interval between heartbeats of a child.
    pub heartbeat_s: f64,
    /// Silence after which a connection is considered lost.
    pub silence_s: f64,
    /// Maximum wait for agents before time 0.
    pub start_s: f64,
}

impl Default for Patience {
    fn default() -> Self {
        Self { heartbeat_s: 0.5, silence_s: 5.0, start_s: 30.0 }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Recording {
    pub trace: bool,
    /// Events and commands of the policy, for replays.
    pub log: bool,
    /// What tasks print: commands on stderr, Python functions on either stream.
    pub printed: bool,
}

/// Limits on the size of inputs and results, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sizes {
    /// Larger inputs and results are stored in files.
    pub spool_over_bytes: u64,
    pub largest_task_bytes: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { spool_over_bytes: SPOOL_OVER_BYTES, largest_task_bytes: LARGEST_TASK_BYTES }
    }
}

/// Message from a parent to a child that it registers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Admission {
    /// Settings of the run, with the part of the platform that the child needs.
    pub run: RunSettings,
    /// The child's number: its index in the whole platform, or a number of at least [`LATE_JOINERS`].
    pub number: u32,
    pub parent: u32,
    /// Whether the parent has finished gathering, so that the child joins late.
    pub running: bool,
    pub code: bool,
}

impl RunSettings {
    /// Creates the settings of a run on a whole platform, with defaults for all that is not given.
    #[must_use]
    pub fn new(platform: Platform, policy: Policy, work: Work, mean: MeanTask) -> Self {
        Self {
            platform,
            policy,
            mean_size_mb: mean.size_mb,
            mean_work: mean.work,
            tasks: None,
            planned_tasks_per_s: None,
            changes: Vec::new(),
            work,
            patience: Patience::default(),
            task_limits: TaskLimits::default(),
            recording: Recording::default(),
            sizes: Sizes::default(),
            part: None,
        }
    }

    /// Checks constraints that the types do not express.
    ///
    /// # Errors
    /// The first value out of range.
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
        let root_computes = self.part.is_none()
            && self.platform.nodes.iter().any(|node| node.parent.is_none() && node.compute_per_s.get() > 0.0);
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
        if self.part.as_ref().is_some_and(|part| part.numbers.len() != self.platform.nodes.len()) {
            return Err(SettingsError::Setup("the part of the platform has not a number for each node".into()));
        }
        Ok(())
    }

    /// Returns the changes in the order of their times.
    ///
    /// # Errors
    /// If a change is invalid.
    pub fn placed_changes(&self) -> Result<Vec<PlacedChange>, SettingsError> {
        change::placed(&self.changes, &self.platform).map_err(|error| SettingsError::Setup(error.to_string()))
    }

    /// Returns the tree of the platform.
    ///
    /// # Errors
    /// If the platform is not a tree.
    pub fn tree(&self) -> Result<Tree, SettingsError> {
        self.platform.tree().map_err(|error| SettingsError::Setup(error.to_string()))
    }

    /// Returns the options that the policies of all nodes share.
    #[must_use]
    pub fn farm_options(&self) -> FarmOptions<'_> {
        let task = MeanTask { size_mb: self.mean_size_mb, work: self.mean_work };
        let outside = self.part.as_ref().map(|part| Outside {
            places: part.places,
            uses_tasks_per_s: part.uses_tasks_per_s,
            late_s: part.late_s,
        });
        // How large results of real work are is not known before they come.
        let result_mb =
            if let Work::Emulated { result_bytes, .. } = self.work { result_bytes as f64 / 1e6 } else { 0.0 };
        let farm_options = FarmOptions {
            tasks: self.tasks,
            outside,
            result_mb,
            ..FarmOptions::of(&self.policy, task).with_recovery()
        };
        match &self.planned_tasks_per_s {
            Some(rates) => farm_options.with_plan(rates),
            None => farm_options,
        }
    }

    /// Returns the settings of a node's policy.
    ///
    /// # Errors
    /// If there is no such node, or the platform is not a tree.
    pub fn of_node(&self, name: &str) -> Result<Settings, SettingsError> {
        let layout = Layout::of(self)?;
        let place = layout.place(name).ok_or_else(|| no_node(name))?;
        Ok(layout.settings(self, place))
    }

    /// Returns the number of the node at `place`: its index in the whole platform, or what a late joiner was given.
    #[must_use]
    pub fn number(&self, place: u32) -> u32 {
        self.part.as_ref().map_or(place, |part| part.numbers[place as usize])
    }

    /// Returns the name of the node with a number. `None` if the platform does not have it.
    #[must_use]
    pub fn name(&self, number: u32) -> Option<&str> {
        let place = match &self.part {
            None => number as usize,
            Some(part) => part.numbers.iter().position(|&known| known == number)?,
        };
        self.platform.nodes.get(place).map(|node| node.name.as_str())
    }

    /// Returns the settings with a late joiner added, and their layout. A plan gives it the rate that its processor and its
    /// link allow.
    ///
    /// # Errors
    /// If the platform with the node is not a tree.
    pub fn with_late_joiner(&self, node: Node, number: u32) -> Result<(Self, Layout), SettingsError> {
        let mut more = self.clone();
        if let Some(rates) = &mut more.planned_tasks_per_s {
            rates.push(planned_of_a_late_joiner(&node, MeanTask { size_mb: self.mean_size_mb, work: self.mean_work }));
        }
        if let Some(part) = &mut more.part {
            part.numbers.push(number);
        }
        more.platform.nodes.push(node);
        let layout = Layout::of(&more)?;
        Ok((more, layout))
    }
}

/// Returns the error that the platform has no node of this name.
pub(crate) fn no_node(name: &str) -> SettingsError {
    SettingsError::Setup(format!("the platform has no node {name:?}"))
}
