//! Stream: messages of one class from one host to another, or to several.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::{DescriptionError, Problem};
use crate::experiment::parameters::Whole;
use crate::experiment::workload::{Amount, Distribution};
use crate::units::{Bytes, Quantity, Seconds};

/// Class of a message. As a number, the index into every pair with one element per class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Class {
    /// Messages of a parallel program: small and urgent.
    Parallel = 0,
    /// Messages of local users: large and patient.
    Local = 1,
}

impl Class {
    /// Both classes, in order of declaration.
    pub const BOTH: [Self; 2] = [Self::Parallel, Self::Local];

    /// Returns its name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parallel => "parallel",
            Self::Local => "local",
        }
    }

    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Parallel => Self::Local,
            Self::Local => Self::Parallel,
        }
    }
}

/// When a stream's next operation begins. An operation is one message to each receiver, and with `answer_bytes` one
/// answer from each. It is done when the last message, or answer, has arrived completely. The first operation begins
/// at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// `gap_s` after an earlier one is done, with `outstanding` of them in parallel.
    #[default]
    Closed,
    /// `gap_s` after the previous one began, whatever has arrived.
    Open,
    /// As soon as an earlier one is done, with `outstanding` of them in parallel.
    Backlogged,
}

/// One receiving host, or several of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Receivers {
    One(u32),
    /// Several hosts; each gets a message of every operation.
    Several(Vec<u32>),
}

impl Receivers {
    /// Returns the hosts, in the order of the file.
    #[must_use]
    pub fn hosts(&self) -> &[u32] {
        match self {
            Self::One(host) => std::slice::from_ref(host),
            Self::Several(hosts) => hosts,
        }
    }
}

// Implemented by hand, since serde's untagged enums lose what was wrong.
impl<'de> Deserialize<'de> for Receivers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct HostOrHosts;
        impl<'de> Visitor<'de> for HostOrHosts {
            type Value = Receivers;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the number of a host, at least 0, or an array of such numbers")
            }
            fn visit_u64<E: serde::de::Error>(self, host: u64) -> Result<Self::Value, E> {
                host.try_into().map(Receivers::One).map_err(|_| E::custom(format!("is {host}, which is no host")))
            }
            fn visit_i64<E: serde::de::Error>(self, host: i64) -> Result<Self::Value, E> {
                host.try_into().map(Receivers::One).map_err(|_| E::custom(format!("is {host}, which is no host")))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut hosts = Vec::new();
                while let Some(host) = list.next_element::<u32>()? {
                    hosts.push(host);
                }
                if hosts.is_empty() {
                    return Err(A::Error::custom("is empty; it must name at least one host"));
                }
                Ok(Receivers::Several(hosts))
            }
        }
        deserializer.deserialize_any(HostOrHosts)
    }
}

/// Messages of one class from one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Name shown in results; may be any text.
    #[schemars(length(min = 1))]
    pub name: String,
    pub class: Class,
    /// The host that sends them.
    pub from: u32,
    /// The host that receives them, or an array of hosts: an operation is one message to each.
    pub to: Receivers,
    /// Length of each message, bytes: a number, or a distribution to draw from. Drawn lengths are whole bytes, at least one.
    pub message_bytes: Amount<Bytes>,
    /// When the next operation begins.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// With `arrivals = "closed"` or `"open"`: the gap, s: a number, or a distribution to draw from; default 0 with
    /// `"closed"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_s: Option<Amount<Seconds>>,
    /// With `arrivals = "closed"` or `"backlogged"`: concurrent operations; absent: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outstanding: Option<Whole<1, 1_000_000>>,
    /// Length of every receiver's answer, bytes; absent: no answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_bytes: Option<Amount<Bytes>>,
    /// Number of timed operations, the first ones. The stream continues until the last stream has completed its own.
    #[serde(default = "hundred")]
    pub messages: Whole<1, 100_000_000>,
}

/// As in the paper (section 6.2).
const fn hundred() -> Whole<1, 100_000_000> {
    Whole::fixed(100)
}

/// Longest message, bytes; more is surely a mistake.
pub const MOST_BYTES: f64 = 1e9;
/// Longest gap, s; more than a day is surely a mistake.
const LONGEST_GAP_S: f64 = 86_400.0;

impl Stream {
    /// Returns the number of concurrent operations; `None`: no limit.
    #[must_use]
    pub fn at_once(&self) -> Option<u64> {
        match self.arrivals {
            Arrivals::Open => None,
            Arrivals::Closed | Arrivals::Backlogged => Some(self.outstanding.map_or(1, Whole::get)),
        }
    }

    /// Returns the mean of its gaps, s.
    #[must_use]
    pub fn mean_gap_s(&self) -> f64 {
        self.gap_s.as_ref().map_or(0.0, Amount::mean)
    }

    /// Checks the stream; errors name a field of it.
    pub(super) fn check(&self, hosts: u32) -> Result<(), DescriptionError> {
        let refused = |field: &str, sentence: String| Err(Problem::Value(sentence).at(field.into()));
        if self.name.is_empty() {
            return Err(Problem::Empty.at("name".into()));
        }
        a_host("from", self.from, hosts)?;
        distinct_hosts("to", self.to.hosts(), hosts)?;
        if self.to.hosts().contains(&self.from) {
            return refused("to", format!("names host {}, which sends; it must be another", self.from));
        }
        within("message_bytes", &self.message_bytes, MOST_BYTES)?;
        self.answer_bytes.as_ref().map_or(Ok(()), |bytes| within("answer_bytes", bytes, MOST_BYTES))?;
        self.gap_s.as_ref().map_or(Ok(()), |gap| within("gap_s", gap, LONGEST_GAP_S))?;
        match (self.arrivals, self.gap_s.as_ref().map(Amount::mean), self.outstanding) {
            (Arrivals::Backlogged, Some(gap), _) => {
                refused("gap_s", format!("is {gap} s, but arrivals = \"backlogged\" waits for nothing; leave it out"))
            }
            (Arrivals::Open, None, _) => {
                refused("gap_s", "is missing; with arrivals = \"open\" it says how often messages are made".into())
            }
            (Arrivals::Open, Some(gap), _) if gap < SHORTEST_OPEN_GAP_S => refused(
                "gap_s",
                format!(
                    "is {gap} s; with arrivals = \"open\" it must be at least {SHORTEST_OPEN_GAP_S:e} s in the mean"
                ),
            ),
            (Arrivals::Open, _, Some(outstanding)) => refused(
                "outstanding",
                format!("is {}, but arrivals = \"open\" makes messages whatever is under way", outstanding.get()),
            ),
            _ => Ok(()),
        }
    }
}

/// The resolution of time, s: with shorter gaps, all messages would be sent at once.
const SHORTEST_OPEN_GAP_S: f64 = 1e-9;

fn within<Q: Quantity>(field: &str, amount: &Amount<Q>, most: f64) -> Result<(), DescriptionError> {
    if let Amount::Drawn(Distribution::Empirical { file: Some(_), .. }) = amount {
        let sentence = "is of farms only; write its values here";
        return Err(Problem::Value(sentence.into()).at(format!("{field}.file")));
    }
    let mean = amount.mean();
    if mean <= most {
        return Ok(());
    }
    Err(Problem::Value(format!("is {mean} {unit}; it must be at most {most} {unit}", unit = Q::UNIT)).at(field.into()))
}

pub(super) fn a_host(field: &str, host: u32, hosts: u32) -> Result<(), DescriptionError> {
    if host < hosts {
        return Ok(());
    }
    Err(Problem::Value(format!("is {host}; the hosts are 0 to {}", hosts - 1)).at(field.into()))
}

/// Checks that the hosts exist and that none is repeated.
pub(super) fn distinct_hosts(field: &str, named: &[u32], hosts: u32) -> Result<(), DescriptionError> {
    let mut seen = std::collections::HashSet::new();
    for &host in named {
        a_host(field, host, hosts)?;
        if !seen.insert(host) {
            return Err(Problem::Value(format!("names host {host} twice")).at(field.into()));
        }
    }
    Ok(())
}
