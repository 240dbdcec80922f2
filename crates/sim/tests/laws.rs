//! Laws that hold on any platform: the bound, the plan's rates, conservation, invariance, same seed same bytes.

use crate::farms::{PORTS, Spot, bound, comings_and_goings, platform, run, run_with, same, way};
use crosswind_schema::experiment::draw::{Column, Tasks};
use crosswind_schema::experiment::{ChangeKind, PlacedChange};
use crosswind_schema::experiment::{Order, Workload};
use crosswind_sim::{Activity, Options};
use proptest::prelude::*;

/// Trees of 1 to 12 nodes of any depth. No processor ever stops completely: interference rates leave it some capacity
/// even with full links in both directions (docs/decisions/0012).
pub fn trees(with_drop: bool) -> impl Strategy<Value = Vec<Spot>> {
    let node = (
        any::<prop::sample::Index>(),
        prop_oneof![1 => Just(0.0), 6 => 0.5..30.0f64],
        (-0.5..1.5f64).prop_map(|e| 10f64.powf(e)),
        0.0..1.0f64,
        0.0..1.0f64,
        prop_oneof![1 => Just(None), 3 => (2.0..40.0f64).prop_map(Some)],
        0.0..0.5f64,
    );
    prop::collection::vec(node, 1..12).prop_map(move |nodes| {
        let mut spots: Vec<Spot> = Vec::new();
        for (n, node) in nodes.iter().enumerate() {
            let parent = (n > 0).then(|| node.0.index(n));
            spots.push(Spot {
                parent,
                compute: if n == 0 { node.1.max(0.5) } else { node.1 },
                receive: node.2,
                ir_receive: 0.4 * node.3 / node.2,
                // The parent's highest total send rate, to all children together.
                ir_send: 0.5 * node.4,
                send: node.5,
                drop: if with_drop { node.6 } else { 0.0 },
                latency: 0.0,
                missed: 0.0,
            });
        }
        for n in 0..spots.len() {
            let together: f64 = spots.iter().filter(|s| s.parent == Some(n)).map(|s| s.receive).sum();
            let most = together.min(spots[n].send.unwrap_or(f64::INFINITY));
            let single = spots.iter().filter(|s| s.parent == Some(n)).map(|s| s.receive).fold(0.0, f64::max);
            for spot in spots.iter_mut().filter(|s| s.parent == Some(n)) {
                spot.ir_send /= most.max(single);
            }
            if spots[n].parent.is_some() && most > 0.0 {
                spots[n].drop = spots[n].drop.min(0.8 * spots[n].receive / most.max(single));
            }
        }
        spots
    })
}

/// Differing tasks with a given mean size and work.
pub fn unequal(count: u64, size: f64, work: f64) -> Tasks {
    let factor = |n: u64, by: u64| 0.5 + (n * by % 97) as f64 / 96.0;
    let column = |mean: f64, by| Column::Each((0..count).map(|n| mean * factor(n, by)).collect());
    Tasks { count, size_mb: column(size, 31), work: column(work, 57), ..Tasks::default() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn simulated_throughput_never_beats_the_exact_bound(
        tree in trees(true), size in 0.2..5.0f64, count in 1u64..400, buffer in prop::option::of(1u64..6)
    ) {
        let (platform, tasks) = (platform(&tree), same(count, size, 1.0));
        for ports in PORTS {
            let bound = bound(&platform, &tasks, ports);
            for order in Order::ALL {
                let outcome = run(&platform, &tasks, way(order, ports, buffer));
                let most = bound * outcome.makespan_s;
                prop_assert!(
                    count as f64 <= most * (1.0 + 1e-9), "{order:?} {ports:?}: {count} tasks where {most} are possible"
                );
            }
        }
    }

    #[test]
    fn every_task_is_computed_once_whatever_the_order(tree in trees(true), count in 1u64..300, buffer in 1u64..4) {
        let (platform, tasks) = (platform(&tree), unequal(count, 1.0, 1.0));
        for ports in PORTS {
            for order in Order::ALL {
                let options = Options { trace: true, ..Options::default() };
                let outcome = run_with(&platform, &tasks, way(order, ports, Some(buffer)), 0.0, options);
                let trace = outcome.trace.unwrap();
                let mut computed: Vec<u64> = (0..trace.len())
                    .filter(|&row| trace.kind[row] == Activity::Compute).map(|row| trace.task[row]).collect();
                computed.sort_unstable();
                prop_assert!(computed.iter().copied().eq(0..count));
                prop_assert_eq!(outcome.nodes.iter().map(|node| node.tasks).sum::<u64>(), count);
                let mut work = vec![0.0; tree.len()];
                let mut mb = vec![0.0; tree.len()];
                for row in 0..trace.len() {
                    work[trace.node[row] as usize] += trace.work[row];
                    if let Some(child) = trace.child[row] {
                        mb[child as usize] += trace.mb[row];
                        prop_assert!(trace.end_s[row] >= trace.start_s[row]);
                    }
                }
                for (node, outcome) in outcome.nodes.iter().enumerate() {
                    prop_assert!((mb[node] - outcome.received_mb).abs() <= 1e-9 * (1.0 + mb[node]), "{order:?} {ports:?}");
                }
            }
        }
    }

    #[test]
    fn no_task_is_lost_and_none_delivered_twice_when_nodes_leave_and_join(
        tree in trees(true), count in 1u64..200, result in prop_oneof![Just(0.0), Just(0.5)],
        picks in prop::collection::vec((any::<prop::sample::Index>(), 0.0..1.0f64), 1..6), latency in prop_oneof![Just(0.0), Just(0.01)]
    ) {
        let tree: Vec<Spot> = tree.into_iter().map(|spot| Spot { latency, ..spot }).collect();
        let (platform, tasks) = (platform(&tree), unequal(count, 1.0, 1.0));
        if tree.len() == 1 {
            return Ok(());
        }
        for ports in PORTS {
            for order in [Order::Arrival, Order::Interference, Order::Planned] {
                let way = way(order, ports, Some(2));
                let span = run(&platform, &tasks, way).makespan_s;
                let changes = comings_and_goings(&tree, &picks, span);
                let options = Options { changes: &changes, trace: true, ..Options::default() };
                let outcome = run_with(&platform, &tasks, way, result, options);
                let trace = outcome.trace.unwrap();
                let mut computed: Vec<u64> = (0..trace.len())
                    .filter(|&row| trace.kind[row] == Activity::Compute).map(|row| trace.task[row]).collect();
                computed.sort_unstable();
                computed.dedup();
                prop_assert!(computed.iter().copied().eq(0..count), "{order:?} {ports:?}");
                prop_assert!(outcome.nodes.iter().map(|node| node.tasks).sum::<u64>() >= count);
                // The trace and its summary agree, including what was cut short.
                let (mut busy, mut mb, mut whole) = (vec![0.0; tree.len()], vec![0.0; tree.len()], vec![0; tree.len()]);
                let mut last = 0.0f64;
                for row in 0..trace.len() {
                    let (node, span) = (trace.node[row] as usize, trace.end_s[row] - trace.start_s[row]);
                    match trace.kind[row] {
                        Activity::Compute => {
                            busy[node] += span;
                            whole[node] += u64::from(!trace.cut[row]);
                            last = last.max(trace.end_s[row]);
                            let most = span * tree[node].compute * (1.0 + 1e-9) + 1e-6;
                            prop_assert!((0.0..=most).contains(&trace.work[row]), "{} in {span} s", trace.work[row]);
                        }
                        Activity::Send => mb[trace.child[row].unwrap() as usize] += trace.mb[row],
                        Activity::Result => prop_assert!(trace.mb[row] <= result * (1.0 + 1e-9)),
                    }
                }
                for (node, outcome) in outcome.nodes.iter().enumerate() {
                    let near = |a: f64, b: f64| (a - b).abs() <= 1e-7 * (1.0 + a);
                    prop_assert!(near(busy[node], outcome.busy_s), "{order:?} {ports:?}: {} {}", busy[node], outcome.busy_s);
                    prop_assert!(near(mb[node], outcome.received_mb), "{order:?} {ports:?}: {} {}", mb[node], outcome.received_mb);
                    prop_assert_eq!(whole[node], outcome.tasks);
                }
                if result == 0.0 {
                    prop_assert_eq!(outcome.makespan_s, last);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn planned_rates_reach_99_per_cent_of_the_bound(tree in trees(false), size in 0.2..5.0f64) {
        let (platform, tasks) = (platform(&tree), same(60_000, size, 1.0));
        for ports in PORTS {
            let bound = bound(&platform, &tasks, ports);
            let outcome = run(&platform, &tasks, way(Order::Planned, ports, None));
            let part = outcome.steady_tasks_per_s / bound;
            prop_assert!(part >= 0.99, "{ports:?}: {part}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let tree: Vec<Spot> = (0..40)
        .map(|n: usize| Spot {
            parent: n.checked_sub(1).map(|n| n / 3),
            compute: 1.0 + (n % 7) as f64,
            receive: 2.0 + (n % 5) as f64,
            ir_receive: 0.02,
            ir_send: 0.01,
            send: Some(9.0),
            ..Spot::default()
        })
        .collect();
    let workload: Workload = serde_json::from_str(
        r#"{"kind": "farm", "tasks": 3000, "task_size_mb": {"distribution": "lognormal", "median": 1.0, "sigma": 0.7},
            "task_work": {"distribution": "exponential", "mean": 2.0}}"#,
    )
    .unwrap();
    let platform = platform(&tree);
    for ports in PORTS {
        for order in Order::ALL {
            let of_seed = |seed| {
                let tasks = Tasks::draw(&workload, seed, None).unwrap();
                let options = Options { trace: true, ..Options::default() };
                format!("{:?}", run_with(&platform, &tasks, way(order, ports, Some(3)), 0.1, options))
            };
            assert!(of_seed(1) == of_seed(1));
            assert!(of_seed(1) != of_seed(2));
        }
    }
}

/// Messages in transit to a node when it leaves do not reach the one that joins in its place a moment later. Before the
/// inner node leaves, its leaf has joined alone and so has a number there that the joining node gives to no child.
#[test]
fn messages_to_a_node_that_left_do_not_reach_the_one_that_joins_in_its_place() {
    let spot = |parent| Spot {
        parent,
        compute: 5.0,
        receive: 10.0,
        ir_receive: 0.0,
        ir_send: 0.0,
        send: None,
        drop: 0.0,
        latency: 0.01,
        missed: 0.0,
    };
    let (platform, count) = (platform(&[spot(None), spot(Some(0)), spot(Some(1))]), 30);
    let tasks = same(count, 1.0, 1.0);
    let change = |at_s, node, kind| PlacedChange { at_s, node, kind };
    for ports in PORTS {
        let way = way(Order::Arrival, ports, Some(2));
        for step in 0..400 {
            let at_s = 0.3 + 0.003 * f64::from(step);
            let changes = [
                change(0.1, 2, ChangeKind::Leaves),
                change(0.2, 2, ChangeKind::Joins),
                change(at_s, 1, ChangeKind::Leaves),
                change(at_s + 0.001, 1, ChangeKind::Joins),
            ];
            let outcome =
                run_with(&platform, &tasks, way, 0.0, Options { changes: &changes, trace: true, ..Options::default() });
            let trace = outcome.trace.unwrap();
            let arrived = |row: &usize| trace.kind[*row] == Activity::Compute && trace.node[*row] > 0;
            let mut sent: Vec<_> = (0..trace.len())
                .filter(|&row| trace.child[row].is_some())
                .map(|row| (trace.child[row].unwrap(), trace.task[row], trace.end_s[row]))
                .collect();
            sent.sort_by(|a, b| a.2.total_cmp(&b.2));
            for row in (0..trace.len()).filter(arrived) {
                let (node, task, start_s) = (trace.node[row], trace.task[row], trace.start_s[row]);
                let last = sent.iter().rev().find(|&&(to, of, end_s)| (to, of) == (node, task) && end_s <= start_s);
                let &(_, _, end_s) = last.unwrap();
                assert!(
                    !(end_s <= at_s && start_s > at_s + 0.001 && node == 1),
                    "{ports:?} {at_s}: {task} was on its way to {node} when that left, and was computed after it"
                );
            }
            let mut computed: Vec<u64> = (0..trace.len())
                .filter(|&row| trace.kind[row] == Activity::Compute)
                .map(|row| trace.task[row])
                .collect();
            computed.sort_unstable();
            computed.dedup();
            assert!(computed.iter().copied().eq(0..count), "{ports:?} {at_s}");
        }
    }
}
