//! The result with names: the tree as a platform, its throughput, its upper bound, and the throughput of other trees.

use std::collections::HashMap;

use crosswind_schema::error::{Warning, nearest};
use crosswind_schema::plan::{Method, Ports};
use crosswind_schema::platform::Node;
use crosswind_schema::random::Random;
use crosswind_schema::units::Share;
use crosswind_schema::{Links, Platform, SCHEMA_VERSION};
use serde::Serialize;

use super::bound::bound;
use super::exact::{MOST_HOSTS, best_tree};
use super::graph::Graph;
use super::grow::{Rule, grow};
use super::hung::Hung;
use super::search::{flatten, improve};
use super::{Shape, better};
use crate::error::ModelError;
use crate::steady::{Task, plan};

/// How the tree was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// All trees were tried: this is the best.
    Exact,
    /// Heuristic search from several trees: the best one found.
    Search,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search<'a> {
    /// Name of the root. `None` means whichever is best.
    pub root: Option<&'a str>,
    /// Seed of all random draws.
    pub seed: u64,
    /// Maximum number of hosts for which the best tree is found exactly, at most [`super::MOST_EXACT_HOSTS`].
    pub exact_hosts: usize,
    /// Total number of changes that the search tries.
    pub steps: u64,
    /// Number of random trees to compare with, at least 1.
    pub random_trees: usize,
}

impl Default for Search<'_> {
    fn default() -> Self {
        Self { root: None, seed: 1, exact_hosts: MOST_HOSTS, steps: 3_000_000, random_trees: 100 }
    }
}

/// Steps of the search for a bound: for the tree's own root, and for each other root.
const BOUND_STEPS: u64 = 8_000;
const BOUND_STEPS_OF_OTHERS: u64 = 1_000;

/// Throughput of another tree over the same links.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// `star`, `chain`, `widest` (the fastest link first), `random-median`, `random-best`.
    pub tree: &'static str,
    /// Tasks per second of its exact plan, from its best root if the root is free.
    pub throughput_tasks_per_s: f64,
}

/// A tree, and the evidence for its quality.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Built {
    pub root: String,
    pub method: How,
    pub ports: Ports,
    /// Size of a task's input, MB.
    pub task_size_mb: f64,
    /// Work of a task, work units.
    pub task_work: f64,
    /// Tasks per second of the tree's exact plan.
    pub throughput_tasks_per_s: f64,
    pub bound_tasks_per_s: f64,
    /// Upper bound for any schedule over these links, including those that send outside the tree: the rate of the flows
    /// in `bound`. At least `bound_tasks_per_s`.
    pub network_bound_tasks_per_s: f64,
    gap_to_bound: f64,
    pub compared: Vec<Compared>,
    /// Hosts that no known link leads to, directly or indirectly, from the root.
    pub left_out: Vec<String>,
    pub platform: Platform,
    pub warnings: Vec<Warning>,
}

impl Built {
    /// Returns (bound - throughput) / bound, within 0 to 1. 0 proves that no tree is better.
    #[must_use]
    pub const fn gap_to_bound(&self) -> f64 {
        self.gap_to_bound
    }
}

/// Finds the tree over these links whose exact plan is fastest.
///
/// # Errors
/// The root is not a host, there is no random tree to compare with, or a rate in tasks/s is outside the range in which
/// arithmetic is safe.
///
/// # Examples
/// A fast host behind a slow link of the root's is fed through a neighbour with fast ones.
/// ```
/// use crosswind_model::{Task, overlay};
/// use crosswind_schema::Links;
/// use crosswind_schema::plan::Ports;
/// let host = |name, rate| format!("[[host]]\nname = \"{name}\"\ncompute_per_s = {rate}\n");
/// let link = |from, to, rate| {
///     format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nreceive_limit_mb_per_s = {rate}\n")
/// };
/// let text = [
///     "schema_version = 1\nname = \"three\"\n".into(),
///     host("root", 1), host("near", 1), host("far", 100),
///     link("root", "near", 50), link("root", "far", 2), link("near", "far", 30),
/// ].concat();
/// let links = Links::from_toml(text.as_bytes(), "links.toml").expect("right links");
/// let search = overlay::Search { root: Some("root"), ..overlay::Search::default() };
/// let built = overlay::build_tree(&links, Task::new(1.0, 1.0)?, Ports::Single, &search)?;
/// assert_eq!(built.platform.nodes[2].parent.as_deref(), Some("near"));
/// assert!((built.throughput_tasks_per_s - 32.0).abs() < 1e-12);
/// # Ok::<(), crosswind_model::ModelError>(())
/// ```
pub fn build_tree(links: &Links, task: Task, ports: Ports, search: &Search<'_>) -> Result<Built, ModelError> {
    if task.result_mb() > 0.0 {
        let sentence = format!("is {} MB; it must be 0: trees are built for tasks without results", task.result_mb());
        return Err(ModelError::argument("result_size_mb", sentence));
    }
    let graph = Graph::new(links, task, ports)?;
    if search.random_trees == 0 {
        return Err(ModelError::argument("random_trees", "is 0; it must be at least 1"));
    }
    let roots = match search.root {
        None => (0..graph.count).collect(),
        Some(name) => vec![host_named(links, name)?],
    };
    let exact = graph.count <= search.exact_hosts.min(MOST_HOSTS);
    let mut random = Random::seeded(search.seed);
    let (shape, compared) = best_and_others(&graph, &roots, exact, search, &mut random);
    let reached = graph.reached(shape.root);
    let platform = platform_of(links, &shape)?;
    let plan = plan(&platform, task, ports, Method::Exact)?;
    let throughput = plan.throughput_tasks_per_s;
    let network = bound_of_any(&graph, &roots, shape.root, throughput);
    let most = if exact { throughput } else { network };
    let left_out: Vec<String> =
        links.hosts.iter().zip(&reached).filter(|(_, is_in)| !**is_in).map(|(host, _)| host.name.clone()).collect();
    let mut warnings = plan.warnings;
    if !left_out.is_empty() {
        warnings.push(Warning::new(
            "left-out",
            format!("no known link leads from {:?} to {}", links.hosts[shape.root].name, shown(&left_out)),
            "measure more pairs",
        ));
    }
    Ok(Built {
        root: links.hosts[shape.root].name.clone(),
        method: if exact { How::Exact } else { How::Search },
        ports,
        task_size_mb: task.size_mb(),
        task_work: task.work_units(),
        throughput_tasks_per_s: throughput,
        bound_tasks_per_s: most,
        network_bound_tasks_per_s: network,
        gap_to_bound: if better(most, throughput) { (most - throughput) / most } else { 0.0 },
        compared,
        left_out,
        platform,
        warnings,
    })
}

fn shown(names: &[String]) -> String {
    const SHOWN: usize = 10;
    let more = if names.len() > SHOWN { format!(" and {} more", names.len() - SHOWN) } else { String::new() };
    format!("{}{more}", names[..names.len().min(SHOWN)].join(", "))
}

fn host_named(links: &Links, name: &str) -> Result<usize, ModelError> {
    links.hosts.iter().position(|host| host.name == name).ok_or_else(|| {
        let near = nearest(name, links.hosts.iter().map(|host| host.name.as_str()));
        let near = near.map(|n| format!("; the nearest is {n:?}")).unwrap_or_default();
        ModelError::argument("root", format!("is {name:?}, which is no host of {:?}{near}", links.name))
    })
}

/// Returns the best tree, and the throughput of others.
fn best_and_others(
    graph: &Graph,
    roots: &[usize],
    exact: bool,
    search: &Search<'_>,
    random: &mut Random,
) -> (Shape, Vec<Compared>) {
    let worth = |shape: &Shape| Hung::new(graph, shape.clone()).throughput();
    let mut starts = Vec::new();
    let mut compared = Vec::new();
    for (tree, rule) in
        [("star", (|| Rule::Star) as fn() -> Rule<'static>), ("chain", || Rule::Chain), ("widest", || Rule::Widest)]
    {
        let grown = roots.iter().map(|&root| grow(graph, root, rule()));
        let (rate, shape) = best_of(grown.map(|shape| (worth(&shape), shape)));
        compared.push(Compared { tree, throughput_tasks_per_s: rate });
        starts.push(shape);
    }
    let mut rates = Vec::with_capacity(search.random_trees);
    let (_, best_random) = best_of((0..search.random_trees).map(|_| {
        let root = roots[random.below(roots.len() as u64) as usize];
        let shape = grow(graph, root, Rule::Random(random));
        rates.push(worth(&shape));
        (rates[rates.len() - 1], shape)
    }));
    rates.sort_by(f64::total_cmp);
    let median = 0.5 * (rates[(rates.len() - 1) / 2] + rates[rates.len() / 2]);
    compared.push(Compared { tree: "random-median", throughput_tasks_per_s: median });
    compared.push(Compared { tree: "random-best", throughput_tasks_per_s: rates[rates.len() - 1] });
    starts.push(best_random);
    let found = if exact {
        best_tree(graph, roots)
    } else {
        let steps = search.steps / starts.len() as u64;
        let improved = starts.into_iter().map(|shape| {
            let found = improve(&mut Hung::new(graph, shape), roots.len() > 1, steps, random);
            (worth(&found), found)
        });
        best_of(improved).1
    };
    let mut hung = Hung::new(graph, found);
    flatten(&mut hung);
    (hung.shape().clone(), compared)
}

/// Returns the best shape, the first one on ties.
fn best_of(shapes: impl Iterator<Item = (f64, Shape)>) -> (f64, Shape) {
    let mut best: Option<(f64, Shape)> = None;
    for (rate, shape) in shapes {
        if best.as_ref().is_none_or(|(most, _)| better(rate, *most)) {
            best = Some((rate, shape));
        }
    }
    best.unwrap_or_else(|| (0.0, Shape { root: 0, parent: vec![0] }))
}

/// Returns an upper bound for any of the roots. The worst root determines it, so the other searches can stop there.
fn bound_of_any(graph: &Graph, roots: &[usize], own: usize, reached: f64) -> f64 {
    let own = bound(graph, own, reached, reached, BOUND_STEPS, None);
    let others =
        |most: f64, &root: &usize| bound(graph, root, reached, most, BOUND_STEPS_OF_OTHERS, Some(&own)).rate.max(most);
    roots.iter().fold(own.rate, others) // includes the own root again, which ends at once
}

fn platform_of(links: &Links, shape: &Shape) -> Result<Platform, ModelError> {
    let ends = links.ends().map_err(|e| ModelError::Platform(Box::new(e)))?;
    let link_of: HashMap<(usize, usize), usize> = ends.into_iter().zip(0..).collect();
    let mut nodes = Vec::with_capacity(links.hosts.len());
    let mut order = vec![shape.root];
    let mut at = 0;
    while at < order.len() {
        let host = order[at];
        let known = &links.hosts[host];
        let parent = shape.parent[host];
        let link = link_of.get(&(parent, host)).map(|&link| &links.links[link]);
        nodes.push(Node {
            name: known.name.clone(),
            parent: link.map(|_| links.hosts[parent].name.clone()),
            compute_per_s: known.compute_per_s,
            send_limit_mb_per_s: known.send_limit_mb_per_s,
            receive_limit_mb_per_s: link.map(|link| link.receive_limit_mb_per_s),
            one_sender_share: Share::ALL, // a link is measured with one sender
            receive_limit_drop: Default::default(),
            latency_s: link.map(|link| link.latency_s).unwrap_or_default(),
            ir_receive_s_per_mb: link.map(|link| link.ir_receive_s_per_mb).unwrap_or_default(),
            ir_send_s_per_mb: link.map(|link| link.ir_send_s_per_mb).unwrap_or_default(),
            receive_losses: Vec::new(),
            send_losses: Vec::new(),
        });
        order.extend((0..shape.parent.len()).filter(|&child| child != shape.root && shape.parent[child] == host));
        at += 1;
    }
    Ok(Platform { schema_version: SCHEMA_VERSION, name: links.name.clone(), warnings: Vec::new(), nodes })
}
