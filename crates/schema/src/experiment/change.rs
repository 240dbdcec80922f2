//! Changes of a farm's platform during a run.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::listed::{OfNode, Places};
use crate::error::{DescriptionError, Problem};
use crate::platform::{Platform, Tree};
use crate::units::{MegabytesPerSecond, PositiveWorkPerSecond, Quantity, Seconds};

/// A change of a node during the run: its rates change, or it leaves with all nodes below it, or joins again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Time of the change, s since the start.
    pub at_s: Seconds,
    /// Name of the node that changes.
    pub node: String,
    /// Its new compute rate, work units/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_per_s: Option<PositiveWorkPerSecond>,
    /// Its new receive limit, MB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_limit_mb_per_s: Option<MegabytesPerSecond>,
    /// Whether it leaves, with all nodes below it. Simulated only.
    #[serde(default, skip_serializing_if = "is_false")]
    pub leaves: bool,
    /// Whether it joins again, with all nodes below it, without any tasks. Simulated only.
    #[serde(default, skip_serializing_if = "is_false")]
    pub joins: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ChangeKind {
    /// The node leaves the tree.
    Leaves,
    /// The node joins the tree again.
    Joins,
    /// The node gets other rates; `None`: unchanged.
    Rates {
        /// Compute rate in work units/s.
        compute_per_s: Option<f64>,
        /// Receive limit of the link, MB/s.
        receive_limit_mb_per_s: Option<f64>,
    },
}

impl fmt::Display for ChangeKind {
    /// Formats the effect, such as "computes 3 work units/s from now on".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leaves => write!(f, "leaves"),
            Self::Joins => write!(f, "joins"),
            Self::Rates { compute_per_s, receive_limit_mb_per_s } => {
                let computes = compute_per_s.map(|rate| format!("computes {rate} work units/s"));
                let receives = receive_limit_mb_per_s.map(|rate| format!("receives {rate} MB/s"));
                let both: Vec<String> = [computes, receives].into_iter().flatten().collect();
                write!(f, "{} from now on", both.join(" and "))
            }
        }
    }
}

/// A change of a node of a platform.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlacedChange {
    /// Time of the change, s since the start.
    pub at_s: f64,
    /// Index of the node in the platform.
    pub node: u32,
    pub kind: ChangeKind,
}

impl OfNode for Change {
    const LIST: &'static str = "change";
    const FIELD: &'static str = "at_s";
    fn node(&self) -> Option<&str> {
        Some(&self.node)
    }
}

impl Change {
    fn kind(&self, at: usize) -> Result<ChangeKind, DescriptionError> {
        let rates = self.compute_per_s.is_some() || self.receive_limit_mb_per_s.is_some();
        match (rates, self.leaves, self.joins) {
            (true, false, false) => Ok(ChangeKind::Rates {
                compute_per_s: self.compute_per_s.map(Quantity::get),
                receive_limit_mb_per_s: self.receive_limit_mb_per_s.map(Quantity::get),
            }),
            (false, true, false) => Ok(ChangeKind::Leaves),
            (false, false, true) => Ok(ChangeKind::Joins),
            _ => {
                let sentence = "must say one thing: `leaves = true`, `joins = true`, or new rates";
                Err(Problem::Value(sentence.into()).at(format!("change[{at}]")))
            }
        }
    }
}

/// Checks changes by themselves, without the platform.
pub(super) fn check(changes: &[Change]) -> Result<(), DescriptionError> {
    changes.iter().enumerate().try_for_each(|(at, change)| change.kind(at).map(drop))
}

/// Returns the changes of a platform's nodes ordered by time, and at equal times in the order of the file.
///
/// # Errors
/// When the platform does not have the node, the node cannot have the rate, or leaving or joining is impossible.
pub fn placed(changes: &[Change], platform: &Platform) -> Result<Vec<PlacedChange>, DescriptionError> {
    if changes.is_empty() {
        return Ok(Vec::new());
    }
    let (places, wrong) = (Places::of(platform), Change::wrong);
    let mut found = Vec::with_capacity(changes.len());
    for (at, change) in changes.iter().enumerate() {
        let place = places.find::<Change>(at, &change.node)?;
        let node = &platform.nodes[place];
        if change.receive_limit_mb_per_s.is_some() && node.parent.is_none() {
            let sentence = format!("is given for {:?}, the root, which has no parent to receive from", node.name);
            return Err(wrong(at, "receive_limit_mb_per_s", sentence));
        }
        if change.compute_per_s.is_some() && node.compute_per_s.get() == 0.0 {
            let sentence = format!("is given for {:?}, which computes nothing from the start", node.name);
            return Err(wrong(at, "compute_per_s", sentence));
        }
        found.push((at, PlacedChange { at_s: change.at_s.get(), node: place as u32, kind: change.kind(at)? }));
    }
    found.sort_by(|a, b| a.1.at_s.total_cmp(&b.1.at_s));
    let places: Vec<usize> = found.iter().map(|(at, _)| *at).collect();
    let found: Vec<PlacedChange> = found.into_iter().map(|(_, change)| change).collect();
    possible(&found, &platform.tree()?).map_err(|(at, field, why)| wrong(places[at], field, why.into()))?;
    Ok(found)
}

/// Checks that the changes can happen one after the other.
///
/// # Errors
/// The first one that cannot: its index, its field, and the reason.
pub fn possible(changes: &[PlacedChange], tree: &Tree) -> Result<(), (usize, &'static str, &'static str)> {
    let mut gone = vec![false; tree.parent.len()];
    let mut before = 0.0;
    for (at, change) in changes.iter().enumerate() {
        let wrong = |field, why| Err((at, field, why));
        if !(change.at_s >= before && change.at_s.is_finite()) {
            return wrong("at_s", "must be at least 0 and not before that of the change before it");
        }
        before = change.at_s;
        if change.node as usize >= gone.len() {
            return wrong("node", "is no node of the platform");
        }
        let leaves = match change.kind {
            ChangeKind::Rates { .. } => continue,
            kind => kind == ChangeKind::Leaves,
        };
        if change.node == tree.root {
            return wrong("node", "is the root; it holds the tasks and cannot leave");
        }
        let mut up = tree.parent[change.node as usize];
        while up != tree.root && !gone[up as usize] {
            up = tree.parent[up as usize];
        }
        if gone[up as usize] {
            return wrong("node", "is below a node that is gone at that time");
        }
        match (leaves, gone[change.node as usize]) {
            (true, true) => return wrong("leaves", "is true for a node that has left before"),
            (false, false) => {
                return wrong("joins", "is true for a node that is there; only a node that left can join");
            }
            _ => {}
        }
        gone[change.node as usize] = leaves;
        if !leaves {
            for n in tree.below(change.node) {
                gone[n as usize] = false;
            }
        }
    }
    Ok(())
}
