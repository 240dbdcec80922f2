//! Platform: a tree of nodes, their compute rates, links and interference rates.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{DescriptionError, Problem, Warning, nearest};
use crate::read;
use crate::units::{MegabytesPerSecond, Quantity, Ratio, Seconds, SecondsPerMegabyte, Share, WorkPerSecond};

/// A tree of nodes; the root holds the input data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Platform {
    /// Version of this file's schema; this build reads 1.
    pub schema_version: u64,
    /// Name shown in results; may be any text.
    pub name: String,
    /// Known limits of the figures, such as what the underlying measurement could not determine. In TOML these come
    /// before the first node.
    #[serde(rename = "warning", default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// The nodes, each with the name of its parent; exactly one, the root, has none.
    #[serde(rename = "node")]
    #[schemars(length(min = 1))]
    pub nodes: Vec<Node>,
}

/// A computing resource of the platform.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Name of the node, unique in the platform.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
    /// Name of the node that sends it tasks; absent at the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Work units per second while it neither sends nor receives (C^n of the paper).
    pub compute_per_s: WorkPerSecond,
    /// Highest rate to all children together, MB/s (B_s Z of the paper); absent: no limit. Used with multi-port
    /// sends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_limit_mb_per_s: Option<MegabytesPerSecond>,
    /// Highest rate from the parent while it sends nothing, MB/s (MR^n of the paper). Required below the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_limit_mb_per_s: Option<MegabytesPerSecond>,
    /// Share of the receive limit that one sender reaches, above 0 and at most 1; absent: all of it. A node of a tree has
    /// one sender, its parent. The limit is what several senders reach together.
    #[serde(default = "all", skip_serializing_if = "is_all")]
    pub one_sender_share: Share,
    /// MB/s of receive limit lost per MB/s sent to children; 0: sending does not slow receiving.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub receive_limit_drop: Ratio,
    /// Time of a message to or from the parent beyond that of its bytes, s.
    #[serde(default, skip_serializing_if = "is_none")]
    pub latency_s: Seconds,
    /// Fraction of its compute rate lost per MB/s received (IR_r of the paper).
    #[serde(default)]
    pub ir_receive_s_per_mb: SecondsPerMegabyte,
    /// Fraction of the parent's compute rate lost per MB/s that the parent sends to this node (IR_s(i) of the paper).
    #[serde(default)]
    pub ir_send_s_per_mb: SecondsPerMegabyte,
    /// Losses at some receive rates, ascending, if they are not proportional to the rate; planners then use them in
    /// place of `ir_receive_s_per_mb`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receive_losses: Vec<Loss>,
    /// Losses of the parent at some rates sent to this node, ascending; planners then use them in place of
    /// `ir_send_s_per_mb`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub send_losses: Vec<Loss>,
}

/// Loss of compute rate at a transfer rate: the rate, then the fraction lost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Loss(pub MegabytesPerSecond, pub Ratio);

impl Loss {
    /// Returns the slope of the line from no traffic to the loss at a rate, s/MB. Between two measured rates the loss
    /// is interpolated linearly; below the first and beyond the last, the slope at that rate applies.
    ///
    /// # Panics
    /// If there is no measured rate.
    #[must_use]
    pub fn chord_s_per_mb(losses: &[Self], mb_per_s: f64) -> f64 {
        let above = losses.partition_point(|one| one.0.get() < mb_per_s);
        if above == 0 || above == losses.len() {
            let end = losses[above.min(losses.len() - 1)];
            return end.1.get() / end.0.get();
        }
        let (low, high) = (losses[above - 1], losses[above]);
        let part = (mb_per_s - low.0.get()) / (high.0.get() - low.0.get());
        (low.1.get() + part * (high.1.get() - low.1.get())) / mb_per_s
    }

    /// Returns the fraction lost at a rate; 0 without traffic.
    ///
    /// # Panics
    /// If there is no measured rate.
    #[must_use]
    pub fn at(losses: &[Self], mb_per_s: f64) -> f64 {
        if mb_per_s > 0.0 { Self::chord_s_per_mb(losses, mb_per_s) * mb_per_s } else { 0.0 }
    }
}

pub(crate) fn is_none(latency: &Seconds) -> bool {
    latency.get() == 0.0
}

fn is_zero(ratio: &Ratio) -> bool {
    ratio.get() == 0.0
}

fn all() -> Share {
    Share::ALL
}

fn is_all(share: &Share) -> bool {
    *share == Share::ALL
}

impl Node {
    /// Returns the highest rate from the parent, MB/s: the share of the receive limit that one sender reaches. `None` at
    /// the root.
    #[must_use]
    pub fn link_mb_per_s(&self) -> Option<f64> {
        self.receive_limit_mb_per_s.map(|limit| self.reached(limit.get()))
    }

    /// Returns what one sender reaches of a receive limit, MB/s.
    #[must_use]
    pub fn reached(&self, receive_limit_mb_per_s: f64) -> f64 {
        receive_limit_mb_per_s * self.one_sender_share.get()
    }

    /// Returns the MB/s that the rate from the parent loses per MB/s sent to children.
    #[must_use]
    pub fn link_drop(&self) -> f64 {
        self.reached(self.receive_limit_drop.get())
    }
}

/// The shape of a platform by index, for planners and simulators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    pub root: u32,
    /// Parent of each node; the root's is itself.
    pub parent: Vec<u32>,
    /// Every node after its parent, breadth first; siblings in the order of the file.
    pub order: Vec<u32>,
    /// `children[first_child[n]..first_child[n + 1]]` are the children of node n.
    first_child: Vec<u32>,
    children: Vec<u32>,
}

impl Tree {
    /// Returns the children of `node`, in the order of the file.
    #[must_use]
    pub fn children(&self, node: u32) -> &[u32] {
        let n = node as usize;
        &self.children[self.first_child[n] as usize..self.first_child[n + 1] as usize]
    }

    /// Builds the shape from the names of each node and its parent, in a file's array of tables `list`.
    ///
    /// # Errors
    /// When there are two roots, no root, a cycle, an unknown parent or a duplicate name.
    pub(crate) fn of<'a>(
        list: &str,
        nodes: impl ExactSizeIterator<Item = (&'a str, Option<&'a str>)> + Clone,
    ) -> Result<Self, DescriptionError> {
        let mut index: HashMap<&str, u32> = HashMap::with_capacity(nodes.len());
        for (at, (name, _)) in nodes.clone().enumerate() {
            if let Some(first) = index.insert(name, at as u32) {
                let problem = Problem::DuplicateName { name: name.into(), first: format!("{list}[{first}]") };
                return Err(problem.at(format!("{list}[{at}].name")));
            }
        }
        let mut parents: Vec<Option<u32>> = Vec::with_capacity(nodes.len());
        let mut last: Option<&str> = None;
        for (at, (_, parent)) in nodes.clone().enumerate() {
            // Siblings are adjacent in most files, so their parent need not be looked up again.
            let found = match parent {
                None => None,
                Some(_) if parent == last => parents[at - 1],
                Some(parent) => Some(*index.get(parent).ok_or_else(|| {
                    let nearest = nearest(parent, nodes.clone().map(|(name, _)| name));
                    Problem::UnknownParent { parent: parent.into(), nearest }.at(format!("{list}[{at}].parent"))
                })?),
            };
            parents.push(found);
            last = parent;
        }
        let name = |n: u32| nodes.clone().nth(n as usize).map_or_else(String::new, |(name, _)| name.into());
        Self::new(&parents).map_err(|shape| match shape {
            Shape::NoRoot => Problem::NoRoot.at(list.into()),
            Shape::TwoRoots(a, b) => Problem::TwoRoots { first: name(a), second: name(b) }.at(format!("{list}[{b}]")),
            Shape::Cycle(ring) => {
                let at = ring[0];
                Problem::Cycle { names: ring.into_iter().map(name).collect() }.at(format!("{list}[{at}].parent"))
            }
        })
    }

    /// Returns a node and all nodes below it, each after its parent.
    #[must_use]
    pub fn below(&self, node: u32) -> Vec<u32> {
        let mut all = vec![node];
        let mut at = 0;
        while at < all.len() {
            all.extend_from_slice(self.children(all[at]));
            at += 1;
        }
        all
    }

    /// Builds the shape from each node's parent (`None` at the root).
    ///
    /// # Errors
    /// The index of an offending node, when the parents are not one tree.
    pub fn new(parents: &[Option<u32>]) -> Result<Self, Shape> {
        let count = parents.len();
        let mut roots = (0..count as u32).filter(|&n| parents[n as usize].is_none());
        let root = roots.next().ok_or(Shape::NoRoot)?;
        if let Some(second) = roots.next() {
            return Err(Shape::TwoRoots(root, second));
        }
        // Counts, then sums that give the end of each node's children; filling from the back turns these into starts.
        let mut first_child = vec![0u32; count + 1];
        for p in parents.iter().flatten() {
            first_child[*p as usize] += 1;
        }
        let mut end = 0;
        for place in &mut first_child {
            end += *place;
            *place = end;
        }
        let mut children = vec![0u32; count - 1];
        for (n, p) in parents.iter().enumerate().rev() {
            if let Some(p) = p {
                let place = &mut first_child[*p as usize];
                *place -= 1;
                children[*place as usize] = n as u32;
            }
        }
        let parent = parents.iter().map(|p| p.unwrap_or(root)).collect();
        let mut order = Vec::with_capacity(count);
        order.push(root);
        let mut at = 0;
        while at < order.len() {
            let node: u32 = order[at];
            for place in first_child[node as usize]..first_child[node as usize + 1] {
                order.push(children[place as usize]);
            }
            at += 1;
        }
        let tree = Self { root, parent, order, first_child, children };
        if tree.order.len() < count {
            return Err(Shape::Cycle(cycle(parents, &tree.order)));
        }
        Ok(tree)
    }
}

/// Reason why a list of parents is not one tree. Numbers are node indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Every node has a parent.
    NoRoot,
    /// Two nodes have no parent.
    TwoRoots(u32, u32),
    /// These nodes are each other's ancestors.
    Cycle(Vec<u32>),
}

/// Returns one cycle among the nodes that the root does not reach.
fn cycle(parents: &[Option<u32>], reached: &[u32]) -> Vec<u32> {
    let mut seen = vec![false; parents.len()];
    for &n in reached {
        seen[n as usize] = true;
    }
    let start = seen.iter().position(|s| !s).unwrap_or(0) as u32;
    let mut at = start;
    while !seen[at as usize] {
        seen[at as usize] = true;
        at = parents[at as usize].unwrap_or(at);
    }
    let mut ring = vec![at];
    let mut next = parents[at as usize].unwrap_or(at);
    while next != at {
        ring.push(next);
        next = parents[next as usize].unwrap_or(next);
    }
    ring
}

impl Platform {
    /// Parses and checks a `platform.toml`.
    ///
    /// # Errors
    /// The first thing that is wrong, with file, line, column, field, value, unit and range.
    pub fn from_toml(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        let platform = read::platform(text, file)?;
        platform.check().map_err(|error| read::placed(error, text, file))?;
        Ok(platform)
    }

    /// Parses and checks the same description as JSON.
    ///
    /// # Errors
    /// As [`Platform::from_toml`].
    pub fn from_json(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        read::json_checked(text, file, Self::check)
    }

    /// Converts the platform to TOML, with the fields in the order of the documentation.
    ///
    /// # Errors
    /// Never for a platform that passed its checks.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }

    /// Checks the constraints between several fields.
    pub(crate) fn check(&self) -> Result<(), DescriptionError> {
        read::version(self.schema_version)?;
        self.tree()?;
        for (at, node) in self.nodes.iter().enumerate() {
            let field = |name: &str| format!("node[{at}].{name}");
            if node.name.is_empty() || node.name.chars().count() > 255 {
                return Err(Problem::Length { permitted: "1 to 255 characters" }.at(field("name")));
            }
            match (&node.parent, node.receive_limit_mb_per_s) {
                (Some(_), None) => {
                    return Err(Problem::MissingLimit { node: node.name.clone() }.at(format!("node[{at}]")));
                }
                (None, Some(_)) => {
                    return Err(Problem::RootReceives { node: node.name.clone() }.at(field("receive_limit_mb_per_s")));
                }
                (None, None) if !is_all(&node.one_sender_share) => {
                    return Err(Problem::RootReceives { node: node.name.clone() }.at(field("one_sender_share")));
                }
                _ => {}
            }
            for (name, losses) in [("receive_losses", &node.receive_losses), ("send_losses", &node.send_losses)] {
                let descends = |pair: &[Loss]| pair[1].0.get() <= pair[0].0.get();
                if let Some(wrong) = losses.windows(2).position(descends) {
                    return Err(Problem::NotAscending.at(field(&format!("{name}[{}]", wrong + 1))));
                }
            }
        }
        Ok(())
    }

    /// Returns the platform's shape.
    ///
    /// # Errors
    /// When there are two roots, no root, a cycle, an unknown parent or a duplicate name.
    pub fn tree(&self) -> Result<Tree, DescriptionError> {
        Tree::of("node", self.nodes.iter().map(|node| (node.name.as_str(), node.parent.as_deref())))
    }

    /// Returns the warnings in the file, then suspicious values that are allowed: an interference rate times its
    /// link's rate above 1.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = self.warnings.clone();
        for node in &self.nodes {
            let Some(link) = node.link_mb_per_s() else { continue };
            for (what, owner, rate, losses) in [
                ("ir_receive_s_per_mb", "its own", node.ir_receive_s_per_mb, &node.receive_losses),
                ("ir_send_s_per_mb", "its parent's", node.ir_send_s_per_mb, &node.send_losses),
            ] {
                if !losses.is_empty() {
                    continue; // the rate is not used
                }
                let product = rate.get() * link;
                if product > 1.0 {
                    warnings.push(Warning::new(
                        "interference-exceeds-compute",
                        format!(
                            "node {:?}: {what} {:.3e} s/MB times the link's {:.2} MB/s is {product:.3}: at full rate it would take \
                             more than all of {owner} computation",
                            node.name, rate.get(), link
                        ),
                        "the plan never lets local compute fall below 0; check the rate, or measure it nearer to the link's limit",
                    ));
                }
            }
        }
        warnings
    }
}
