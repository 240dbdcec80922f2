//! The end of a run: slow nodes get none of the last tasks, so the run does not wait for them.

use crate::farms::{PORTS, Spot, below, bound, mean, platform, root, run, same, way};
use crosswind_policy::farm::FarmOptions;
use crosswind_schema::Platform;
use crosswind_schema::experiment::{Order, Policy};
use crosswind_schema::plan::Ports;
use crosswind_sim::{Farm, Options, simulate};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;

/// Makespan with one port, s.
fn makespan(platform: &Platform, count: u64, level_end: bool) -> f64 {
    with_ports(platform, Ports::Single, count, level_end)
}

fn with_ports(platform: &Platform, ports: Ports, count: u64, level_end: bool) -> f64 {
    let tasks = same(count, 1.0, 1.0);
    let policy = Policy { ports: ports.into(), level_end, ..Policy::default() };
    let farm_options = FarmOptions::of(&policy, mean(&tasks)).with_tasks(count);
    let farm = Farm { platform, tasks: &tasks, farm_options, chunk_kib: 512, result_size_mb: 0.0 };
    simulate(&farm, Options::default(), &mut |_| true).unwrap().makespan_s
}

#[test]
fn a_slow_leaf_is_not_waited_for() {
    // 10 and 0.5 tasks/s: all at once done, 105 tasks take 10 s. A task takes the slow leaf 2 s.
    let platform = platform(&[root(0.0), below(0, 10.0, 1e4), below(0, 0.5, 1e4)]);
    let level = makespan(&platform, 105, true);
    assert!((10.0..10.5).contains(&level), "{level}");
    let greedy = makespan(&platform, 105, false);
    assert!(greedy > 11.0, "{greedy}");
}

#[test]
fn far_below_the_root_too() {
    // Two inner nodes of 1 task/s, each above a leaf of 10 and one of 0.5.
    let mut spots = vec![root(0.0)];
    for inner in [1, 4] {
        spots.extend([below(0, 1.0, 1e3), below(inner, 10.0, 1e3), below(inner, 0.5, 1e3)]);
    }
    let platform = platform(&spots);
    let ideal = 230.0 / 23.0;
    let (level, greedy) = (makespan(&platform, 230, true), makespan(&platform, 230, false));
    assert!(level < ideal + 1.0, "{level} of {ideal}");
    assert!(greedy > level + 1.0, "{greedy} and {level}");
}

#[test]
fn a_node_that_needs_longer_for_one_task_than_the_others_for_all_gets_none() {
    // All 50 tasks take the fast leaf 5 s, one takes the slow leaf 33 s and the slow inner node 100 s.
    let slow = || below(0, 0.03, 1e4);
    let platforms = [
        platform(&[root(0.0), slow(), below(0, 10.0, 1e4)]),
        platform(&[root(0.01), slow(), below(0, 10.0, 1e4)]),
        platform(&[root(0.0), below(0, 0.01, 1e4), below(1, 0.03, 1e4), below(1, 10.0, 1e4)]),
    ];
    for (platform, ports) in platforms.iter().flat_map(|platform| PORTS.map(|ports| (platform, ports))) {
        let level = with_ports(platform, ports, 50, true);
        assert!((5.0..5.5).contains(&level), "{ports:?}: {level}");
        let greedy = with_ports(platform, ports, 50, false);
        assert!(greedy > 30.0, "{ports:?}: {greedy}");
    }
    // Of many tasks it gets its part.
    let tasks = same(100_000, 1.0, 1.0);
    let outcome = run(&platforms[0], &tasks, way(Order::Interference, Ports::Multi, None));
    assert!((290..=300).contains(&outcome.nodes[1].tasks), "{}", outcome.nodes[1].tasks);
}

#[test]
fn first_come_is_first_served_to_the_end() {
    let platform = platform(&[root(0.0), below(0, 10.0, 1e4), below(0, 0.5, 1e4)]);
    let tasks = same(105, 1.0, 1.0);
    let of = |level_end: bool| {
        let policy = Policy { order: Order::Arrival, level_end, ..Policy::default() };
        let farm_options = FarmOptions::of(&policy, mean(&tasks)).with_tasks(tasks.count);
        let farm = Farm { platform: &platform, tasks: &tasks, farm_options, chunk_kib: 512, result_size_mb: 0.0 };
        simulate(&farm, Options::default(), &mut |_| true).unwrap().makespan_s
    };
    assert_eq!(of(true).to_bits(), of(false).to_bits());
}

/// Trees whose nodes differ by up to a factor of 40. Some nodes' send limits are below the sum of their links.
fn trees() -> impl Strategy<Value = Vec<Spot>> {
    let node = (any::<prop::sample::Index>(), 0.5..20.0f64, 5.0..200.0f64, prop::option::of(0.1..1.0f64));
    prop::collection::vec(node, 2..14).prop_map(|nodes| {
        let all = |n: usize| {
            let below = nodes.iter().enumerate().skip(1).filter(|(at, node)| node.0.index(*at) == n);
            below.map(|(_, node)| node.2).sum::<f64>()
        };
        let spot =
            |(n, (parent, compute, receive, card)): (usize, &(prop::sample::Index, f64, f64, Option<f64>))| Spot {
                parent: (n > 0).then(|| parent.index(n)),
                compute: *compute,
                receive: *receive,
                send: card.filter(|_| all(n) > 0.0).map(|part| part * all(n)),
                ..Spot::default()
            };
        nodes.iter().enumerate().map(spot).collect()
    })
}

#[test]
fn over_many_trees_less_is_lost_at_the_end() {
    // One tree may be a little unlucky; all together lose a good deal less, and none loses much.
    for ports in PORTS {
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let (mut lost_level, mut lost_greedy) = (0.0, 0.0);
        for _ in 0..200 {
            let platform = platform(&trees().new_tree(&mut runner).unwrap().current());
            let ideal = 300.0 / bound(&platform, &same(300, 1.0, 1.0), ports);
            let (level, greedy) = (with_ports(&platform, ports, 300, true), with_ports(&platform, ports, 300, false));
            lost_level += level / ideal - 1.0;
            lost_greedy += greedy / ideal - 1.0;
            assert!(level < 1.02 * greedy, "{ports:?}: {level} instead of {greedy} s, of {ideal}: {platform:?}");
        }
        assert!(lost_level < 0.5 * lost_greedy, "{ports:?}: {lost_level} instead of {lost_greedy}");
    }
}

#[test]
fn however_many_children_there_are() {
    let star = |children: usize| {
        let mut spots = vec![root(0.0)];
        spots.extend((0..children).map(|n| below(0, if n % 2 == 0 { 10.0 } else { 0.5 }, 1e6)));
        platform(&spots)
    };
    for ports in PORTS {
        let star = star(3_000);
        let (level, greedy) = (with_ports(&star, ports, 195_000, true), with_ports(&star, ports, 195_000, false));
        assert!(level < greedy, "{ports:?}: {level} instead of {greedy} s");
    }
}

#[test]
fn a_child_that_the_plan_gives_next_to_nothing_is_not_waited_for() {
    // The first child's link takes all of the card but 0.02 MB/s. At that, a task of 5 MB would take the other 250 s.
    let platform = platform(&[Spot { send: Some(11.12), ..root(1.0) }, below(0, 10.0, 11.1), below(0, 0.7, 11.1)]);
    let tasks = same(200, 5.0, 1.0);
    let ideal = 200.0 / bound(&platform, &tasks, Ports::Multi);
    let planned = run(&platform, &tasks, way(Order::Planned, Ports::Multi, None)).makespan_s;
    assert!(planned < 1.05 * ideal, "{planned} of {ideal}");
}
