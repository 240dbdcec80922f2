//! Policies of the user's own: the built-in orders, written anew as such, give the same runs to the last bit.

use std::collections::VecDeque;

use crosswind_policy::farm::own::{Choice, OwnChild, OwnNode, OwnPolicy, OwnState};
use crosswind_policy::farm::{Child, FarmOptions, TaskId};
use crosswind_schema::experiment::draw::Tasks;
use crosswind_schema::experiment::{ChangeKind, Order, PlacedChange, Policy};
use crosswind_schema::plan::Ports;
use crosswind_sim::{Farm, Options, Outcome, SimError, simulate, simulate_with};
use proptest::prelude::*;

use crate::farms::{PORTS, Spot, below, comings_and_goings, mean, platform, root, same};
use crate::laws::{trees, unequal};

type Key = fn(&OwnChild) -> f64;

/// The child with the lowest key, ties in the order of the file.
struct Lowest(Key);

impl OwnPolicy for Lowest {
    fn choose(&mut self, node: &OwnState) -> Choice {
        let first = node.open().min_by(|(_, a), (_, b)| (self.0)(a).total_cmp(&(self.0)(b)));
        first.map_or(Choice::Wait, |(child, _)| Choice::Send { child, task: None })
    }
}

/// First come, first served.
#[derive(Default)]
struct Fcfs {
    came: u64,
    requests: Vec<VecDeque<u64>>,
}

impl OwnPolicy for Fcfs {
    fn choose(&mut self, node: &OwnState) -> Choice {
        let first = node.open().min_by_key(|&(child, _)| self.requests[child as usize].front().copied());
        first.map_or(Choice::Wait, |(child, _)| {
            self.requests[child as usize].pop_front();
            Choice::Send { child, task: None }
        })
    }

    fn on_ask(&mut self, node: &OwnState, child: Child) -> Choice {
        self.requests.resize(node.children.len(), VecDeque::new());
        let known = &mut self.requests[child as usize];
        while (known.len() as u64) < node.children[child as usize].requested {
            known.push_back(self.came);
            self.came += 1;
        }
        self.choose(node)
    }
}

fn options(order: Order, ports: Ports, tasks: &Tasks) -> FarmOptions<'static> {
    let policy = Policy { order, ports: ports.into(), buffer_tasks: Some(2), level_end: false, ..Policy::default() };
    FarmOptions::of(&policy, mean(tasks))
}

fn own<P: OwnPolicy>(
    spots: &[Spot],
    tasks: &Tasks,
    ports: Ports,
    options_of_run: Options<'_>,
    policy: impl Fn() -> P,
) -> Result<Outcome, SimError> {
    let platform = platform(spots);
    let tree = platform.tree().unwrap();
    // Any built-in order: it is not used.
    let farm_options = options(Order::Bandwidth, ports, tasks);
    let farm = Farm { platform: &platform, tasks, farm_options, chunk_kib: 512, result_size_mb: 0.0 };
    let mut make = |n, settings| OwnNode::new(&platform, &tree, n, &settings, |_| policy());
    simulate_with(&farm, options_of_run, &mut make, &mut |_| true)
}

fn built_in(spots: &[Spot], tasks: &Tasks, order: Order, ports: Ports) -> Outcome {
    let platform = platform(spots);
    let farm_options = options(order, ports, tasks);
    let farm = Farm { platform: &platform, tasks, farm_options, chunk_kib: 512, result_size_mb: 0.0 };
    simulate(&farm, Options::default(), &mut |_| true).unwrap()
}

/// Every node computes, since a built-in node that does not hands tasks back; no send limit, by which built-in orders
/// interrupt sends.
fn simple(mut spots: Vec<Spot>) -> Vec<Spot> {
    for spot in &mut spots {
        (spot.compute, spot.send) = (spot.compute.max(0.5), None);
    }
    spots
}

fn assert_same(one: &Outcome, other: &Outcome) {
    assert_eq!(one.makespan_s.to_bits(), other.makespan_s.to_bits());
    assert_eq!(one.nodes, other.nodes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn built_in_orders_written_as_own_policies_give_the_same_runs(spots in trees(false), count in 1..60u64) {
        let (spots, tasks) = (simple(spots), unequal(count, 2.0, 5.0));
        let keys: [(Order, Key); 3] = [
            (Order::Bandwidth, |child| -child.receive_limit_mb_per_s),
            (Order::Compute, |child| -child.compute_per_s),
            (Order::InterferenceRate, |child| child.ir_send_s_per_mb),
        ];
        for ports in PORTS {
            for (order, key) in keys {
                let found = own(&spots, &tasks, ports, Options::default(), || Lowest(key)).unwrap();
                assert_same(&found, &built_in(&spots, &tasks, order, ports));
            }
            let found = own(&spots, &tasks, ports, Options::default(), Fcfs::default).unwrap();
            assert_same(&found, &built_in(&spots, &tasks, Order::Arrival, ports));
        }
    }

    #[test]
    fn every_task_is_done_once_whoever_comes_and_goes(
        spots in trees(false),
        picks in prop::collection::vec((any::<prop::sample::Index>(), 0.0..1.0f64), 0..6),
    ) {
        let (spots, tasks) = (simple(spots), unequal(40, 2.0, 5.0));
        let changes = if spots.len() > 1 { comings_and_goings(&spots, &picks, 30.0) } else { Vec::new() };
        let options = Options { changes: &changes, trace: true, ..Options::default() };
        for ports in PORTS {
            let found = own(&spots, &tasks, ports, options, || Lowest(|child| -child.receive_limit_mb_per_s)).unwrap();
            assert_eq!(found.tasks, 40);
            assert!(found.nodes.iter().map(|node| node.tasks).sum::<u64>() >= 40);
        }
    }
}

/// Makes one choice, once tasks have arrived.
struct Always(Choice);

impl OwnPolicy for Always {
    fn choose(&mut self, node: &OwnState) -> Choice {
        if node.waiting.is_empty() { Choice::Wait } else { self.0 }
    }
}

#[test]
fn choices_that_are_not_permitted_are_refused_by_name() {
    let spots = [root(1.0), below(0, 1.0, 10.0), below(0, 1.0, 10.0)];
    let send = |child, task| Choice::Send { child, task };
    for (ports, choice, words) in [
        (Ports::Single, send(7, None), "on_arrival chose child 7, but the node has 2 children"),
        (Ports::Single, send(1, Some(99)), "on_arrival chose task 99, which does not wait here"),
        (Ports::Single, Choice::Compute(None), "on_arrival chose to compute here, but the processor computes task 0"),
        (Ports::Multi, send(0, None), "choose chose child \"n1\", to which a task is under way"),
    ] {
        let error = own(&spots, &same(20, 1.0, 1.0), ports, Options::default(), || Always(choice)).unwrap_err();
        let found = error.to_string();
        assert!(found.contains("the policy of node \"n0\", at 0 s: ") && found.contains(words), "{found}");
    }
}

#[test]
fn a_policy_that_lets_everything_wait_is_named() {
    struct Waits;
    impl OwnPolicy for Waits {
        fn own_first(&self) -> bool {
            false
        }
        fn choose(&mut self, _: &OwnState) -> Choice {
            Choice::Wait
        }
    }
    let error = own(&[root(1.0)], &same(20, 1.0, 1.0), Ports::Single, Options::default(), || Waits).unwrap_err();
    assert!(error.to_string().contains("it lets 20 tasks wait"), "{error}");
}

#[test]
fn a_policy_may_choose_the_task_and_leave_its_processor_idle() {
    /// Computes nothing at the root; sends the last task first.
    struct LastFirst;
    impl OwnPolicy for LastFirst {
        fn own_first(&self) -> bool {
            false
        }
        fn choose(&mut self, node: &OwnState) -> Choice {
            if !node.is_root {
                return if node.is_idle() { Choice::Compute(None) } else { Choice::Wait };
            }
            let task: Option<TaskId> = node.waiting.back().copied();
            node.open().next().map_or(Choice::Wait, |(child, _)| Choice::Send { child, task })
        }
    }
    let options = Options { changes: &[], trace: true, ..Options::default() };
    let spots = [root(5.0), below(0, 1.0, 10.0)];
    let found = own(&spots, &same(5, 1.0, 1.0), Ports::Single, options, || LastFirst).unwrap();
    assert_eq!((found.nodes[0].tasks, found.nodes[1].tasks), (0, 5));
    // One transfer of 0.1 s, then five tasks of a second.
    assert!((found.makespan_s - 5.1).abs() < 1e-9, "{}", found.makespan_s);
}

#[test]
fn what_a_node_that_left_had_runs_again_and_a_node_that_joined_works() {
    let spots = [root(1.0), below(0, 4.0, 10.0)];
    let change = |at_s, kind| PlacedChange { at_s, node: 1, kind };
    let changes = [change(1.0, ChangeKind::Leaves), change(3.0, ChangeKind::Joins)];
    let options = Options { changes: &changes, trace: false, ..Options::default() };
    let found = own(&spots, &same(40, 1.0, 1.0), Ports::Single, options, || Lowest(|_| 0.0)).unwrap();
    assert_eq!(found.tasks, 40);
    assert!(found.nodes[1].tasks > 20, "{found:?}");
    assert!(found.makespan_s < 12.0, "{}", found.makespan_s);
}
