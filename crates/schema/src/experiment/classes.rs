//! Classes of tasks: nodes are faster for some than for others, and cannot run some at all.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::draw::unit;
use crate::error::{DescriptionError, Problem, nearest};
use crate::platform::Platform;
use crate::units::{Quantity, Ratio};

/// A class of tasks, and how fast each node is for it: its compute rate times a factor. Simulated only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskClass {
    /// Name of the class, unique in the workload; `tasks_file` names it in the column `class`.
    #[schemars(length(min = 1))]
    pub name: String,
    /// How often drawn tasks are of this class, compared with the other classes.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub weight: Ratio,
    /// Factor of every node that `nodes` does not name; 0: it cannot run the class.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub factor: Ratio,
    /// Name of a node -> its factor; 0: it cannot run the class.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nodes: BTreeMap<String, Ratio>,
}

const fn one() -> Ratio {
    Ratio::fixed(1.0)
}

fn is_one(ratio: &Ratio) -> bool {
    *ratio == one()
}

/// The classes of a run's tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Classes {
    pub names: Vec<String>,
    /// Class of each task: its place in `names`.
    pub of_task: Arc<[u16]>,
    /// For each class, the factor of each node of the platform. Empty until [`Classes::place`].
    pub factors: Vec<Vec<f64>>,
}

/// More classes than this are surely a mistake.
const MOST: usize = 1000;
/// Random stream of the classes; sizes, works and arrivals have those before it.
const STREAM: u64 = 3;

fn wrong(at: usize, field: &str, sentence: impl Into<String>) -> DescriptionError {
    Problem::Value(sentence.into()).at(format!("workload.class[{at}].{field}"))
}

/// Checks the classes of a workload by themselves.
pub(super) fn check(classes: &[TaskClass]) -> Result<(), DescriptionError> {
    if classes.len() > MOST {
        let problem = format!("has {} classes; it must have at most {MOST}", classes.len());
        return Err(Problem::Value(problem).at("workload.class".into()));
    }
    for (at, class) in classes.iter().enumerate() {
        if class.name.is_empty() {
            return Err(Problem::Empty.at(format!("workload.class[{at}].name")));
        }
        if let Some(first) = classes[..at].iter().position(|other| other.name == class.name) {
            return Err(wrong(at, "name", format!("is {:?}, as that of workload.class[{first}]", class.name)));
        }
    }
    if !classes.is_empty() && classes.iter().all(|class| class.weight.get() == 0.0) {
        return Err(wrong(0, "weight", "is 0, as that of all classes; give one of them a weight above 0"));
    }
    Ok(())
}

impl Classes {
    /// Draws the class of each task of a workload.
    pub(super) fn draw(classes: &[TaskClass], tasks: u64, seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(STREAM);
        let all: f64 = classes.iter().map(|class| class.weight.get()).sum();
        let mut one = || {
            let mut left = unit(random.next_u64()) * all;
            let holds = |class: &TaskClass| {
                left -= class.weight.get();
                left <= 0.0 && class.weight.get() > 0.0
            };
            let rounded = || classes.iter().rposition(|class| class.weight.get() > 0.0);
            classes.iter().position(holds).or_else(rounded).unwrap_or(0) as u16
        };
        let names = classes.iter().map(|class| class.name.clone()).collect();
        Self { names, of_task: (0..tasks).map(|_| one()).collect(), factors: Vec::new() }
    }

    /// Returns the classes that a file names, numbered as in the workload.
    ///
    /// # Errors
    /// When the workload does not have one of them.
    pub(super) fn of_file(self, classes: &[TaskClass], file: &str) -> Result<Self, DescriptionError> {
        let known = || classes.iter().map(|class| class.name.as_str());
        let mut places = Vec::with_capacity(self.names.len());
        for name in &self.names {
            let Some(place) = known().position(|class| class == name) else {
                let near = nearest(name, known()).map(|near| format!("; the nearest is {near:?}")).unwrap_or_default();
                let problem = format!("has the class {name:?}, which is no workload.class{near}");
                return Err(Problem::Value(problem).at("workload.tasks_file".into()).in_file(file));
            };
            places.push(place as u16);
        }
        let of_task = self.of_task.iter().map(|&class| places[usize::from(class)]).collect();
        Ok(Self { names: known().map(str::to_owned).collect(), of_task, factors: Vec::new() })
    }

    /// Looks up the factors of a platform's nodes.
    ///
    /// # Errors
    /// When the platform has no such node, or none that can run the tasks of a class.
    pub fn place(&mut self, classes: &[TaskClass], platform: &Platform) -> Result<(), DescriptionError> {
        let places: HashMap<&str, usize> =
            platform.nodes.iter().zip(0..).map(|(node, at)| (node.name.as_str(), at)).collect();
        let mut used = vec![false; classes.len()];
        self.of_task.iter().for_each(|&class| used[usize::from(class)] = true);
        self.factors.clear();
        for (at, class) in classes.iter().enumerate() {
            let mut factors = vec![class.factor.get(); platform.nodes.len()];
            for (name, factor) in &class.nodes {
                let Some(&place) = places.get(name.as_str()) else {
                    let near = nearest(name, platform.nodes.iter().map(|node| node.name.as_str()));
                    let near = near.map(|near| format!("; the nearest is {near:?}")).unwrap_or_default();
                    return Err(wrong(at, "nodes", format!("names {name:?}, which is no node of this platform{near}")));
                };
                factors[place] = factor.get();
            }
            let runs = |(node, factor): (&crate::Node, &f64)| node.compute_per_s.get() * factor > 0.0;
            if used[at] && !platform.nodes.iter().zip(&factors).any(runs) {
                let sentence = format!("is 0 for every node that computes, so that none can run {:?}", class.name);
                return Err(wrong(at, "factor", sentence));
            }
            self.factors.push(factors);
        }
        Ok(())
    }

    /// Returns the platform with each compute rate as it is on average over the work of the classes that the node runs.
    #[must_use]
    pub fn mean_platform(&self, platform: &Platform, work_of: impl Fn(u64) -> f64) -> Platform {
        let mut works = vec![0.0; self.names.len()];
        for (task, &class) in self.of_task.iter().enumerate() {
            works[usize::from(class)] += work_of(task as u64);
        }
        let mut mean = platform.clone();
        for (at, node) in mean.nodes.iter_mut().enumerate() {
            let runs = || works.iter().zip(&self.factors).filter(move |(_, factors)| factors[at] > 0.0);
            let (work, time) =
                runs().fold((0.0, 0.0), |(work, time), (more, factors)| (work + more, time + more / factors[at]));
            let factor = if time > 0.0 { work / time } else { 0.0 };
            node.compute_per_s = node.compute_per_s.times(factor);
        }
        mean
    }
}
