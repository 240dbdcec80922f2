//! Policy: which node gets the next task, and how many tasks are sent ahead.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use schemars::JsonSchema;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use crate::error::{DescriptionError, Problem};
use crate::plan::Ports;

/// Which child is served next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// A policy of the user's own, in simulations only: `python:FILE:CLASS`.
    Own(PolicyName),
}

/// Name of a policy of the user's own: `python:FILE:CLASS`. Each distinct name is kept for the life of the process, so
/// that an [`Order`] can be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyName(&'static str);

/// How a policy of the user's own is written.
const OWN_FORM: &str = "python:FILE:CLASS";
const LONGEST_OWN: usize = 1000;

impl PolicyName {
    /// Parses `python:FILE:CLASS`. `None`: it is something else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        let (file, class) = text.strip_prefix("python:")?.rsplit_once(':')?;
        let is_name = class.chars().all(|c| c.is_alphanumeric() || c == '_') && !class.starts_with(char::is_numeric);
        if file.is_empty() || class.is_empty() || !is_name || text.len() > LONGEST_OWN {
            return None;
        }
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = known.get(text) {
            return Some(Self(name));
        }
        let name: &'static str = Box::leak(text.into());
        known.insert(name);
        Some(Self(name))
    }

    /// Returns `python:FILE:CLASS`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0
    }
}

impl Order {
    /// Every order that is built in, in the order of the documentation.
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
            Self::Own(own) => (own.name(), "a policy of the user's own"),
        }
    }
}

impl Serialize for Order {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.described().0)
    }
}

impl<'de> Deserialize<'de> for Order {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = Order;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of an order")
            }
            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Order, E> {
                const NAMES: [&str; 8] = {
                    let mut names = [OWN_FORM; 8];
                    let mut at = 0;
                    while at < Order::ALL.len() {
                        names[at] = Order::ALL[at].described().0;
                        at += 1;
                    }
                    names
                };
                let known = Order::ALL.into_iter().find(|order| order.described().0 == name);
                known
                    .or_else(|| PolicyName::parse(name).map(Order::Own))
                    .ok_or_else(|| E::unknown_variant(name, &NAMES))
            }
        }
        deserializer.deserialize_str(Name)
    }
}

impl JsonSchema for Order {
    fn schema_name() -> Cow<'static, str> {
        "Order".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut forms: Vec<Value> = Self::ALL
            .into_iter()
            .map(|order| {
                let (name, meaning) = order.described();
                json!({ "type": "string", "const": name, "description": meaning })
            })
            .collect();
        forms.push(json!({
            "type": "string",
            "pattern": "^python:.+:[^:]+$",
            "description": "a policy of the user's own, a class in a file of Python",
        }));
        schemars::json_schema!({ "description": "Which child is served next.", "oneOf": forms })
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
        if self.adapt && matches!(self.order, Order::Own(_)) {
            let problem = "is true with a policy of your own, which gets no estimates; leave it out";
            return Err(Problem::Value(problem.into()).at("policy.adapt".into()));
        }
        if self.adapt && self.order == Order::Planned {
            let problem = "is true with order \"planned\", which keeps to the rates of a plan made before; take order \"interference\"";
            return Err(Problem::Value(problem.into()).at("policy.adapt".into()));
        }
        self.buffer_tasks.map_or(Ok(()), |tasks| within("policy.buffer_tasks", tasks, MOST_BUFFER_TASKS))
    }
}
