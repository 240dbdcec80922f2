//! Farms whose platform changes during the run, or differs from its file: what adaptation gains, and what it estimates.

use crate::farms::{PORTS, Spot, Way, adapting, below, bound, platform, root, run_with, same, way};
use crosswind_schema::Platform;
use crosswind_schema::experiment::draw::Tasks;
use crosswind_schema::experiment::{ChangeKind, Order, PlacedChange};
use crosswind_schema::plan::Ports;
use crosswind_sim::{Activity, Options, Outcome};

fn rates(at_s: f64, node: u32, compute_per_s: Option<f64>, receive_limit_mb_per_s: Option<f64>) -> PlacedChange {
    PlacedChange { at_s, node, kind: ChangeKind::Rates { compute_per_s, receive_limit_mb_per_s } }
}

fn run(platform: &Platform, tasks: &Tasks, way: Way, changes: &[PlacedChange]) -> Outcome {
    run_with(platform, tasks, way, 0.0, Options { changes, trace: true, ..Options::default() })
}

/// Tasks per second computed between two times.
fn throughput(outcome: &Outcome, from_s: f64, to_s: f64) -> f64 {
    let trace = outcome.trace.as_ref().unwrap();
    let computed = (0..trace.len()).filter(|&row| trace.kind[row] == Activity::Compute);
    computed.filter(|&row| (from_s..to_s).contains(&trace.end_s[row])).count() as f64 / (to_s - from_s)
}

/// A root and two children that use the same amount. The first is served first until its link slows down.
fn fork() -> Vec<Spot> {
    let spot = |limit, ir| Spot { ir_receive: 0.005, ir_send: ir, ..below(0, 4.0, limit) };
    vec![Spot { send: Some(14.0), ..root(1.0) }, spot(10.0, 0.010), spot(9.0, 0.012)]
}

/// Three levels. The changes are at an inner node, whose parent learns of them from its reports.
fn tree() -> Vec<Spot> {
    let spot = |parent, compute, limit| Spot { ir_receive: 0.004, ir_send: 0.006, ..below(parent, compute, limit) };
    vec![
        Spot { send: Some(30.0), ..root(1.0) },
        Spot { send: Some(20.0), ..spot(0, 1.0, 20.0) },
        spot(0, 6.0, 16.0),
        spot(1, 4.0, 14.0),
        spot(1, 4.0, 10.0),
    ]
}

/// Returns after how many tasks of the slowest node the throughput has recovered, `None` if not within 60, and the
/// throughput relative to the bound after 40.
fn back_within(tree: &[Spot], changed: &[Spot], way: Way, change: PlacedChange) -> (Option<f64>, f64) {
    let tasks = same(6_000, 2.0, 1.0);
    let outcome = run(&platform(tree), &tasks, way, &[change]);
    let bound = bound(&platform(changed), &tasks, way.ports);
    let slowest = changed.iter().map(|spot| spot.compute).fold(f64::INFINITY, f64::min);
    let window = 20.0 / slowest;
    let at = |back: f64| {
        let from = change.at_s + back / slowest;
        throughput(&outcome, from, from + window) / bound
    };
    let back = (0..=60).map(f64::from).find(|&back| at(back) >= 0.9 && at(back + 20.0) >= 0.9);
    (back, at(40.0))
}

#[test]
fn a_link_that_falls_to_a_third_costs_20_tasks_of_the_slowest_node_at_most() {
    for ports in PORTS {
        for (tree, node) in [(fork(), 1usize), (tree(), 3), (tree(), 1)] {
            let mut changed = tree.clone();
            changed[node].receive /= 3.0;
            let change = rates(60.0, node as u32, None, Some(changed[node].receive));
            let (back, then) = back_within(&tree, &changed, adapting(Order::Interference, ports), change);
            assert!(back.is_some_and(|back| back <= 20.0), "{ports:?}, node {node}: {back:?}, then {then}");
        }
    }
}

#[test]
fn without_adapting_a_link_that_falls_to_a_third_is_preferred_for_ever() {
    let mut changed = fork();
    changed[1].receive /= 3.0;
    let change = rates(60.0, 1, None, Some(changed[1].receive));
    let (back, then) = back_within(&fork(), &changed, way(Order::Interference, Ports::Single, None), change);
    assert_eq!(back, None, "then {then}");
}

#[test]
fn a_processor_that_halves_costs_20_tasks_at_most() {
    for ports in PORTS {
        for (tree, node) in [(fork(), 1usize), (tree(), 3), (tree(), 2)] {
            let mut changed = tree.clone();
            changed[node].compute /= 2.0;
            let change = rates(60.0, node as u32, Some(changed[node].compute), None);
            let (back, then) = back_within(&tree, &changed, adapting(Order::Interference, ports), change);
            assert!(back.is_some_and(|back| back <= 20.0), "{ports:?}, node {node}: {back:?}, then {then}");
        }
    }
}

#[test]
fn on_a_platform_as_its_file_says_adapting_costs_nothing() {
    for ports in PORTS {
        for tree in [fork(), tree()] {
            let (platform, tasks) = (platform(&tree), same(4_000, 2.0, 1.0));
            for order in [Order::Interference, Order::Bandwidth, Order::Compute, Order::Arrival] {
                let plain = run(&platform, &tasks, way(order, ports, None), &[]).makespan_s;
                let adapted = run(&platform, &tasks, adapting(order, ports), &[]).makespan_s;
                assert!(adapted <= 1.01 * plain, "{order:?} {ports:?}: {adapted} s, {plain} s without");
            }
        }
    }
}

#[test]
fn what_a_file_has_wrong_is_seen_with_its_uncertainty() {
    // The run starts from the file's values and changes at once, as if the file had been wrong.
    let (tree, tasks) = (fork(), same(3_000, 2.0, 1.0));
    let changes = [rates(0.0, 2, Some(7.0), None), rates(0.0, 1, None, Some(6.0))];
    for ports in PORTS {
        let outcome = run(&platform(&tree), &tasks, adapting(Order::Interference, ports), &changes);
        let compute = outcome.seen[2].compute_per_s;
        assert!((compute.value / 7.0 - 1.0).abs() < 0.05 && compute.observations > 20, "{compute:?}");
        let link = outcome.seen[1].receive_limit_mb_per_s.unwrap();
        // With several ports the policy then sends at the link's own rate, which reveals no more than that.
        assert!((link.value / 6.0 - 1.0).abs() < 0.03 && link.observations >= 2, "{link:?}");
        let unchanged = outcome.seen[0].compute_per_s;
        assert!((unchanged.value / 1.0 - 1.0).abs() < 0.05, "{unchanged:?}");
        assert_eq!(outcome.seen[0].receive_limit_mb_per_s, None);
    }
}

#[test]
fn a_thousand_joins_and_leaves_an_hour_lose_no_task() {
    // 40 nodes on three levels; a node leaves or joins every 3.6 s for an hour; four at most are gone.
    let mut tree = vec![Spot { send: Some(60.0), ..root(1.0) }];
    for n in 1..40 {
        let parent = if n <= 6 { 0 } else { 1 + (n - 7) % 6 };
        tree.push(Spot { ir_receive: 0.002, ir_send: 0.001, ..below(parent, 0.5 + (n % 5) as f64 * 0.2, 12.0) });
    }
    let (platform, tasks) = (platform(&tree), same(150_000, 1.0, 1.0));
    let mut gone: Vec<u32> = Vec::new();
    let changes: Vec<PlacedChange> = (0..1_000u32)
        .map(|n| {
            // Leaves of the tree, so that no node is below one that is gone.
            let kind = if gone.len() == 4 { ChangeKind::Joins } else { ChangeKind::Leaves };
            let node = if kind == ChangeKind::Joins { gone.remove(0) } else { 7 + (n * 17) % 33 };
            let (kind, node) = match gone.iter().position(|&left| left == node) {
                Some(at) => (ChangeKind::Joins, gone.remove(at)),
                None => (kind, node),
            };
            if kind == ChangeKind::Leaves {
                gone.push(node);
            }
            PlacedChange { at_s: f64::from(n) * 3.6, node, kind }
        })
        .collect();
    for ports in PORTS {
        for way in [way(Order::Interference, ports, None), adapting(Order::Interference, ports)] {
            let outcome = run(&platform, &tasks, way, &changes);
            assert!(outcome.makespan_s > 3_600.0, "{} s", outcome.makespan_s);
            assert_eq!(outcome.events.len(), 1_000);
            assert_eq!(outcome.tasks, 150_000);
            let trace = outcome.trace.unwrap();
            let computed = (0..trace.len()).filter(|&row| trace.kind[row] == Activity::Compute);
            let mut times = vec![0u32; 150_000];
            computed.for_each(|row| times[trace.task[row] as usize] += 1);
            assert!(times.iter().all(|&times| times > 0));
            let again: u64 = outcome.events.iter().map(|event| event.tasks).sum();
            let twice: u64 = times.iter().map(|&times| u64::from(times - 1)).sum();
            assert!(twice <= again && again > 500, "{twice} computed twice, {again} lent again");
        }
    }
}

#[test]
fn results_on_their_way_up_are_not_taken_for_a_slower_processor() {
    for order in [Order::Interference, Order::Bandwidth, Order::Arrival] {
        for ports in PORTS {
            let tasks = same(1_000, 2.0, 1.0);
            let way = adapting(order, ports);
            let options = Options { changes: &[], trace: false, ..Options::default() };
            let outcome = run_with(&platform(&tree()), &tasks, way, 1.5, options);
            for (spot, seen) in tree().iter().zip(&outcome.seen) {
                let off = seen.compute_per_s.value / spot.compute - 1.0;
                assert!(off.abs() < 0.1, "{order:?}, {ports:?}: {:?} of {}", seen.compute_per_s, spot.compute);
            }
        }
    }
}
