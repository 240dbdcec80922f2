//! What the settings of a run say of each node, computed once, and the part of them that each child gets.
//!
//! A child gets the nodes below and including its own, and its parent as the root of that part. The rest of the platform
//! reaches it as a few numbers ([`Part`]). So what all agents get together grows with the sum of the depths of the nodes.

use std::collections::BTreeMap;

use crosswind_policy::farm::estimate::Estimator;
use crosswind_policy::farm::{Basis, ChildSettings, Outside, Settings};
use crosswind_schema::units::Share;
use crosswind_schema::{Node, Platform, Tree};

use crate::SettingsError;
use crate::settings::{Part, RunSettings};

/// The tree of a run's platform, and the values that its nodes' settings follow from.
#[derive(Clone, Debug)]
pub struct Layout {
    tree: Tree,
    basis: Basis,
    places: BTreeMap<String, u32>,
    /// Indices of the changes of each node that changes, by its index in the platform.
    changes: BTreeMap<u32, Vec<usize>>,
}

impl Layout {
    /// Computes the layout of a run.
    ///
    /// # Errors
    /// If the platform is not a tree.
    pub fn of(run: &RunSettings) -> Result<Self, SettingsError> {
        let tree = run.tree()?;
        let basis = Basis::of(&run.platform, &tree, &run.farm_options());
        let places: BTreeMap<String, u32> =
            (0..).zip(&run.platform.nodes).map(|(at, n)| (n.name.clone(), at)).collect();
        let mut changes: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (at, change) in run.changes.iter().enumerate() {
            if let Some(&place) = places.get(&change.node) {
                changes.entry(place).or_default().push(at);
            }
        }
        Ok(Self { tree, basis, places, changes })
    }

    /// Returns a node's index in the platform. `None` if there is no such node.
    #[must_use]
    pub fn place(&self, name: &str) -> Option<u32> {
        self.places.get(name).copied()
    }

    /// Returns the indices of a node's children.
    #[must_use]
    pub fn children(&self, place: u32) -> &[u32] {
        self.tree.children(place)
    }

    /// Returns the settings of a node's policy.
    #[must_use]
    pub fn settings(&self, run: &RunSettings, place: u32) -> Settings {
        Settings::of_node(&run.platform, &self.tree, &run.farm_options(), &self.basis, place)
    }

    /// Returns the settings of a child for its parent's policy.
    #[must_use]
    pub fn child(&self, run: &RunSettings, place: u32) -> ChildSettings {
        Settings::child(&run.platform, &self.tree, &run.farm_options(), &self.basis, place)
    }

    /// Returns the initial estimator of a node.
    #[must_use]
    pub fn estimator(&self, run: &RunSettings, place: u32) -> Estimator {
        Estimator::of_node(&run.platform, &self.tree, &run.farm_options(), &self.basis, place)
    }

    /// Adds a child that joined to its parent's estimator.
    pub fn join(&self, run: &RunSettings, place: u32, estimator: &mut Estimator) {
        estimator.joined(&run.platform, &self.tree, &run.farm_options(), &self.basis, place);
    }

    /// Returns the maximum number of tasks that a node's children request together.
    #[must_use]
    pub fn wanted_below(&self, place: u32) -> u64 {
        self.tree.children(place).iter().map(|&child| self.basis.places(child)).sum()
    }

    /// Returns the settings that the agent of the node at `place` needs: the part of the platform below and including
    /// it, with all that concerns these nodes. `number` is the node's own.
    #[must_use]
    pub fn part(&self, run: &RunSettings, place: u32, number: u32) -> RunSettings {
        let parent = self.tree.parent[place as usize];
        let places = self.tree.below(place);
        let mut nodes = vec![as_root(&run.platform.nodes[parent as usize])];
        let mut numbers = vec![run.number(parent), number];
        nodes.extend(places.iter().map(|&n| run.platform.nodes[n as usize].clone()));
        numbers.extend(places[1..].iter().map(|&n| run.number(n)));
        let planned = run.planned_tasks_per_s.as_ref();
        let mut changes: Vec<usize> = places.iter().filter_map(|n| self.changes.get(n)).flatten().copied().collect();
        changes.sort_unstable();
        let Outside { places: ahead, uses_tasks_per_s, late_s } =
            self.basis.outside(&self.tree, &run.farm_options(), place);
        RunSettings {
            platform: Platform {
                schema_version: run.platform.schema_version,
                name: run.platform.name.clone(),
                warnings: Vec::new(),
                nodes,
            },
            policy: run.policy.clone(),
            planned_tasks_per_s: planned
                .map(|rates| [parent].iter().chain(&places).map(|&n| rates[n as usize]).collect()),
            changes: changes.into_iter().map(|at| run.changes[at].clone()).collect(),
            work: run.work.clone(),
            task_limits: run.task_limits.clone(),
            part: Some(Part { numbers, places: ahead, uses_tasks_per_s, late_s }),
            ..*run
        }
    }
}

/// Returns a node as the root of a part: its name, and its rates that the settings of its child depend on.
fn as_root(node: &Node) -> Node {
    Node {
        name: node.name.clone(),
        parent: None,
        receive_limit_mb_per_s: None,
        one_sender_share: Share::ALL,
        receive_losses: Vec::new(),
        send_losses: Vec::new(),
        ..*node
    }
}

#[cfg(test)]
mod tests {
    use crosswind_schema::experiment::Order;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::settings::LATE_JOINERS;

    /// Draws the settings of a run on a tree of up to `most` nodes, in any order of the file, and a late joiner's rates.
    fn runs(most: usize) -> impl Strategy<Value = (RunSettings, Node)> {
        let node = (
            any::<prop::sample::Index>(),
            0.0..100.0f64,
            0.1..50.0f64,
            0.0..0.3f64,
            prop::bool::weighted(0.2),
            any::<u64>(),
        );
        let options = (
            prop::sample::select(&Order::ALL[..]),
            any::<bool>(),
            any::<[bool; 3]>(),
            prop::option::of(1..2000u64),
            prop::option::of(1..9u64),
        );
        (prop::collection::vec(node, 2..most), options).prop_map(|(drawn, (order, multi, flags, tasks, buffer))| {
            let about = |at: usize| {
                let &(ref parent, compute, limit, slope, idle, _) = &drawn[at];
                let mut about = json!({"name": format!("n{at}"), "compute_per_s": if idle { 0.0 } else { compute }});
                about["send_limit_mb_per_s"] = json!(limit * 1.5);
                if at > 0 {
                    about["parent"] = format!("n{}", parent.index(at)).into();
                    for (field, value) in [
                        ("receive_limit_mb_per_s", limit),
                        ("latency_s", slope * 0.1),
                        ("ir_receive_s_per_mb", slope / limit),
                        ("ir_send_s_per_mb", (0.3 - slope) / limit),
                        ("one_sender_share", 1.0 - slope),
                        ("receive_limit_drop", slope),
                    ] {
                        about[field] = json!(value);
                    }
                    if slope > 0.2 {
                        about["receive_losses"] = json!([[limit * 0.5, slope * 0.1], [limit, slope]]);
                        about["send_losses"] = json!([[limit * 0.5, slope * 0.4], [limit, slope * 0.5]]);
                    }
                }
                about
            };
            let mut places: Vec<usize> = (0..drawn.len() - 1).collect();
            places.sort_by_key(|&at| drawn[at].5);
            let nodes: Vec<Value> = places.iter().map(|&at| about(at)).collect();
            let changes: Vec<Value> = places
                .iter()
                .filter(|&&at| at > 0 && drawn[at].2 < 25.0)
                .map(
                    |&at| json!({"at_s": drawn[at].1, "node": format!("n{at}"), "receive_limit_mb_per_s": drawn[at].2}),
                )
                .collect();
            let rates: Vec<f64> = places.iter().map(|&at| drawn[at].1 * 0.7).collect();
            let [adapt, level_end, has_plan] = flags;
            let mut policy = json!({"order": order, "level_end": level_end});
            policy["ports"] = if multi { "multi" } else { "single" }.into();
            policy["adapt"] = (adapt && order != Order::Planned).into();
            policy["buffer_tasks"] = json!(buffer);
            let run = json!({
                "platform": {"schema_version": 1, "name": "drawn", "node": nodes}, "policy": policy,
                "mean_size_mb": 1.5, "mean_work": 2.0, "tasks": tasks, "changes": changes,
                "planned_tasks_per_s": (has_plan || order == Order::Planned).then_some(rates),
                "work": {"kind": "emulated", "time_scale": 1.0, "result_bytes": 10},
            });
            let late_joiner = Node { parent: None, ..serde_json::from_value(about(drawn.len() - 1)).unwrap() };
            (serde_json::from_value(run).unwrap(), late_joiner)
        })
    }

    /// What an agent's decisions follow from: the settings of its policy, its estimator, its changes by name, and the
    /// numbers of its children.
    fn basis_of(run: &RunSettings, name: &str) -> String {
        let layout = Layout::of(run).unwrap();
        let place = layout.place(name).unwrap();
        let children: Vec<u32> = layout.children(place).iter().map(|&child| run.number(child)).collect();
        let concerned: Vec<&str> = layout
            .children(place)
            .iter()
            .map(|&child| run.platform.nodes[child as usize].name.as_str())
            .chain([name])
            .collect();
        let changes: Vec<_> = run.placed_changes().unwrap();
        let named =
            changes.iter().map(|change| (&run.platform.nodes[change.node as usize].name, change.at_s, change.kind));
        let changes: Vec<_> = named.filter(|change| concerned.contains(&change.0.as_str())).collect();
        let own = &run.platform.nodes[place as usize];
        format!("{own:?} {children:?} {changes:?} {:?} {:?}", layout.settings(run, place), layout.estimator(run, place))
    }

    fn over_the_wire(run: &RunSettings) -> RunSettings {
        serde_json::from_slice(&serde_json::to_vec(run).unwrap()).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        /// A part, handed down from agent to agent as JSON, gives each node exactly what the whole platform gives it.
        #[test]
        fn each_part_gives_its_nodes_the_settings_that_they_have_in_the_whole((whole, _) in runs(20)) {
            whole.check().unwrap();
            let top = whole.tree().unwrap().root;
            let mut waiting = vec![(whole.clone(), top, top)];
            let mut seen = 0;
            while let Some((run, place, number)) = waiting.pop() {
                run.check().unwrap();
                let name = run.platform.nodes[place as usize].name.clone();
                prop_assert_eq!(&whole.platform.nodes[number as usize].name, &name);
                prop_assert_eq!(run.name(number), Some(name.as_str()));
                prop_assert_eq!(basis_of(&run, &name), basis_of(&whole, &name));
                let layout = Layout::of(&run).unwrap();
                for &child in layout.children(place) {
                    let number = run.number(child);
                    let part = over_the_wire(&layout.part(&run, child, number));
                    prop_assert_eq!(&part, &layout.part(&run, child, number));
                    let own = Layout::of(&part).unwrap().place(&run.platform.nodes[child as usize].name).unwrap();
                    waiting.push((part, own, number));
                }
                seen += 1;
            }
            prop_assert_eq!(seen, whole.platform.nodes.len());
        }

        /// A late joiner gets the settings that it has in the platform with it.
        #[test]
        fn a_late_joiner_gets_the_settings_that_it_has_in_the_whole((whole, mut late_joiner) in runs(20)) {
            let tree = whole.tree().unwrap();
            let root = &whole.platform.nodes[tree.root as usize].name;
            (late_joiner.name, late_joiner.parent) = ("late".into(), Some(root.clone()));
            let (with, layout) = whole.with_late_joiner(late_joiner, LATE_JOINERS | 7).unwrap();
            let place = layout.place("late").unwrap();
            let part = over_the_wire(&layout.part(&with, place, LATE_JOINERS | 7));
            prop_assert_eq!(part.name(LATE_JOINERS | 7), Some("late"));
            prop_assert_eq!(basis_of(&part, "late"), basis_of(&with, "late"));
        }

        /// What the children of a node get together has as many nodes as there are below it, and one more for each.
        #[test]
        fn the_parts_of_all_children_are_as_large_as_what_is_below((whole, _) in runs(40)) {
            let tree = whole.tree().unwrap();
            let layout = Layout::of(&whole).unwrap();
            let part = |node: u32| layout.part(&whole, node, node);
            // All that does not grow with the nodes, names and curves of a node, a number, a rate and a change.
            let fixed = serde_json::to_vec(&RunSettings {
                platform: Platform { nodes: Vec::new(), ..whole.platform.clone() }, changes: Vec::new(),
                planned_tasks_per_s: None, ..whole.clone()
            }).unwrap().len() + 200;
            let each = 900;
            for node in (0..whole.platform.nodes.len() as u32).filter(|&node| node != tree.root) {
                let part = part(node);
                let below = tree.below(node);
                prop_assert_eq!(part.platform.nodes.len(), 1 + below.len());
                prop_assert_eq!(part.changes.len(), whole.changes.iter().filter(|change| {
                    below.iter().any(|&n| whole.platform.nodes[n as usize].name == change.node)
                }).count());
                let bytes = serde_json::to_vec(&part).unwrap().len();
                prop_assert!(bytes <= fixed + each * part.platform.nodes.len(), "{bytes} bytes");
            }
        }
    }
}
