//! Policy: which node gets the next task, and how many tasks are sent ahead.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{DescriptionError, Problem};
use crate::plan::Ports;

/// Which child is served next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The derived optimum for the port mode.
    #[default]
    Interference,
    /// The rule of the paper's experiments: lowest `ir_send` first.
    InterferenceRate,
    /// The child with the highest receive limit comes first.
    Bandwidth,
    /// The child with the highest compute rate comes first.
    Compute,
    /// Requests are served in order of arrival.
    Arrival,
    /// Nothing is sent; the root computes every task.
    RootOnly,
    /// The exact rates of the plan, followed by deficit counters.
    Planned,
}

impl Order {
    /// Every order, in the order of the documentation.
    pub const ALL: [Self; 7] = [
        Self::Interference,
        Self::InterferenceRate,
        Self::Bandwidth,
        Self::Compute,
        Self::Arrival,
        Self::RootOnly,
        Self::Planned,
    ];

    /// Returns its name in files, and its meaning, for people.
    #[must_use]
    pub const fn described(self) -> (&'static str, &'static str) {
        match self {
            Self::Interference => ("interference", "the derived optimum"),
            Self::InterferenceRate => ("interference-rate", "lowest IR first, as in the paper's experiments"),
            Self::Bandwidth => ("bandwidth", "fastest link first"),
            Self::Compute => ("compute", "fastest processor first"),
            Self::Arrival => ("arrival", "first come, first served"),
            Self::RootOnly => ("root-only", "no child"),
            Self::Planned => ("planned", "the plan's exact rates"),
        }
    }
}

/// Concurrent sends of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PortMode {
    /// As networks do: several, within the limits of the card and of the links.
    #[default]
    Auto,
    /// One, at the full rate of its link: the model of several papers, and for hosts where one is measured to be
    /// better.
    Single,
    /// Sends to several children at once.
    Multi,
}

impl PortMode {
    /// Returns the ports of a run.
    #[must_use]
    pub const fn ports(self) -> Ports {
        match self {
            Self::Single => Ports::Single,
            Self::Auto | Self::Multi => Ports::Multi,
        }
    }
}

impl From<Ports> for PortMode {
    fn from(ports: Ports) -> Self {
        match ports {
            Ports::Single => Self::Single,
            Ports::Multi => Self::Multi,
        }
    }
}

fn is_true(value: &bool) -> bool {
    *value
}

fn is_false(value: &bool) -> bool {
    !value
}

/// The policy: the order of service and its options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Which child is served next.
    pub order: Order,
    /// Whether a node sends to several children at once.
    pub ports: PortMode,
    /// Bytes after which a send may be interrupted, KiB.
    #[schemars(range(min = 1))]
    pub chunk_kib: u64,
    /// Tasks that a node requests ahead of the one that it computes; absent: chosen from latency and rates.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub buffer_tasks: Option<u64>,
    /// Whether priorities, paces and buffers follow the rates that nodes observe while they run.
    #[serde(skip_serializing_if = "is_false")]
    pub adapt: bool,
    /// Whether the last tasks go only to nodes that finish them as early as the others, so that the run does not wait
    /// for a slow node. No effect with the orders `arrival` and `root-only`.
    #[serde(skip_serializing_if = "is_true")]
    pub level_end: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            order: Order::Interference,
            ports: PortMode::Auto,
            chunk_kib: 512,
            buffer_tasks: None,
            adapt: false,
            level_end: true,
        }
    }
}

/// 1 TiB: far above every useful chunk, and no overflow in bytes.
const LARGEST_CHUNK_KIB: u64 = 1 << 30;
/// Most tasks ahead: more than any node could hold.
const MOST_BUFFER_TASKS: u64 = 1 << 30;

impl Policy {
    pub(super) fn check(&self) -> Result<(), DescriptionError> {
        let within = |field: &str, value: u64, most: u64| {
            if (1..=most).contains(&value) {
                return Ok(());
            }
            Err(Problem::Value(format!("is {value}; it must be 1 to {most}")).at(field.into()))
        };
        within("policy.chunk_kib", self.chunk_kib, LARGEST_CHUNK_KIB)?;
        if self.adapt && self.order == Order::Planned {
            let problem = "is true with order \"planned\", which keeps to the rates of a plan made before; take order \"interference\"";
            return Err(Problem::Value(problem.into()).at("policy.adapt".into()));
        }
        self.buffer_tasks.map_or(Ok(()), |tasks| within("policy.buffer_tasks", tasks, MOST_BUFFER_TASKS))
    }
}
