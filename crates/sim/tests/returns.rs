//! Results travel back: the bound that counts them holds for every order, and the plan that counts them reaches it.

use crate::farms::{PORTS, Spot, bound_returning, planned_returning, platform, root, run_with, same, way};
use crate::laws::trees;
use crosswind_schema::experiment::Order;
use crosswind_schema::plan::Ports;
use crosswind_sim::Options;
use proptest::prelude::*;

/// Trees of [`trees`] whose interference leaves each processor some capacity while all links are full in both
/// directions: the law of the bound is linear, and a processor cannot lose more than all.
fn returning(with_drop: bool) -> impl Strategy<Value = Vec<Spot>> {
    trees(with_drop).prop_map(|mut spots| {
        for n in 0..spots.len() {
            spots[n].ir_receive *= 0.5;
            let links = || spots.iter().filter(|spot| spot.parent == Some(n)).map(|spot| spot.receive);
            let together: f64 = links().sum();
            let sent = together.min(spots[n].send.unwrap_or(f64::INFINITY)).max(links().fold(0.0, f64::max));
            for spot in spots.iter_mut().filter(|spot| spot.parent == Some(n)) {
                spot.ir_send *= sent / (sent + together);
            }
        }
        spots
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_run_with_results_beats_their_bound(
        tree in returning(true), size in 0.2..5.0f64, share in 0.01..4.0f64, count in 1u64..400,
        buffer in prop::option::of(1u64..6)
    ) {
        let (platform, tasks, result) = (platform(&tree), same(count, size, 1.0), share * size);
        for ports in PORTS {
            let plan = planned_returning(&platform, &tasks, ports, result);
            prop_assert!(plan.warnings.iter().all(|warning| warning.code != "bound-of-linear-losses"));
            for order in Order::ALL {
                let outcome = run_with(&platform, &tasks, way(order, ports, buffer), result, Options::default());
                let most = plan.bound_tasks_per_s * outcome.makespan_s;
                prop_assert!(
                    count as f64 <= most * (1.0 + 1e-9), "{order:?} {ports:?}: {count} tasks where {most} are possible"
                );
            }
        }
    }

    #[test]
    fn only_a_bound_with_a_warning_is_passed(
        tree in trees(true), dearer in 1.0..3.0f64, size in 0.2..5.0f64,
        share in prop_oneof![Just(0.0), 0.01..4.0f64], count in 1u64..400
    ) {
        let mut tree = tree;
        for spot in &mut tree {
            spot.ir_receive *= dearer;
            spot.ir_send *= dearer;
        }
        let (platform, tasks, result) = (platform(&tree), same(count, size, 1.0), share * size);
        for ports in PORTS {
            let plan = planned_returning(&platform, &tasks, ports, result);
            if plan.warnings.iter().any(|warning| warning.code == "bound-of-linear-losses") {
                continue;
            }
            for order in Order::ALL {
                let outcome = run_with(&platform, &tasks, way(order, ports, None), result, Options::default());
                prop_assert!(count as f64 <= plan.bound_tasks_per_s * outcome.makespan_s * (1.0 + 1e-9), "{order:?} {ports:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn planned_rates_reach_97_per_cent_of_the_bound_of_small_results(
        tree in returning(false), size in 0.2..5.0f64, share in 0.001..0.2f64
    ) {
        let (platform, tasks, result) = (platform(&tree), same(20_000, size, 1.0), share * size);
        for ports in PORTS {
            let bound = bound_returning(&platform, &tasks, ports, result);
            let outcome = run_with(&platform, &tasks, way(Order::Planned, ports, None), result, Options::default());
            let part = outcome.steady_tasks_per_s / bound;
            prop_assert!(part >= 0.97, "{ports:?}: {part}");
        }
    }
}

/// Three levels. Results are four times as large as inputs, so the middle link, 4 MB/s, returns 2 tasks/s of the 8 that
/// it could deliver. No policy holds tasks back for that: results wait there, and a run stays below the bound.
#[test]
fn a_relay_that_returns_large_results_is_at_most_as_fast_as_its_link_returns_them() {
    let link = |parent, compute, receive| Spot { parent: Some(parent), compute, receive, ..Spot::default() };
    let platform = platform(&[root(1.0), link(0, 0.0, 4.0), link(1, 5.0, 40.0), link(1, 5.0, 40.0)]);
    let tasks = same(30_000, 0.5, 1.0);
    for (result, expected) in [(0.0, 9.0), (0.25, 9.0), (2.0, 3.0)] {
        for ports in PORTS {
            let bound = bound_returning(&platform, &tasks, ports, result);
            assert!((bound - expected).abs() < 1e-9, "{ports:?}, {result} MB: {bound}");
            let outcome = run_with(&platform, &tasks, way(Order::Planned, ports, None), result, Options::default());
            let part = outcome.steady_tasks_per_s / bound;
            assert!(part >= if result < 0.5 { 0.99 } else { 0.75 }, "{ports:?}, {result} MB: {part}");
            assert!(outcome.throughput_tasks_per_s <= bound * (1.0 + 1e-9), "{ports:?}, {result} MB");
        }
    }
}

/// A child whose tasks alone are worth sending is not served any more once their results cost more than they bring.
#[test]
fn a_child_whose_results_cost_more_than_they_bring_gets_nothing() {
    let child = Spot { parent: Some(0), compute: 10.0, receive: 8.0, ir_send: 0.06, ..Spot::default() };
    let platform = platform(&[root(10.0), child]); // a MB costs the root 0.6 tasks
    let tasks = same(200, 1.0, 1.0);
    for ports in [Ports::Single, Ports::Multi] {
        let of = |result: f64| {
            let way = way(Order::Interference, ports, None);
            run_with(&platform, &tasks, way, result, Options::default()).nodes[1].tasks
        };
        assert!(of(0.0) > 0 && of(0.5) > 0);
        assert_eq!(of(0.8), 0);
    }
}

/// The root computes 10 tasks/s and has a child behind 8 MB/s, whose inputs and results together take `together` of it.
#[test]
fn a_plan_warns_where_full_links_would_take_more_than_a_processor() {
    for (together, warns) in [(0.96, false), (1.04, true)] {
        let child = Spot { parent: Some(0), compute: 10.0, receive: 8.0, ir_send: together / 16.0, ..Spot::default() };
        let platform = platform(&[root(10.0), child]);
        for ports in PORTS {
            let warned = |result: f64| {
                let plan = planned_returning(&platform, &same(1, 1.0, 1.0), ports, result);
                plan.warnings.iter().any(|one| one.code == "bound-of-linear-losses")
            };
            assert_eq!((warned(0.0), warned(0.1)), (false, warns), "{ports:?}, {together}");
        }
    }
}

/// The root has two children behind 8 MB/s each; both links together take `together` of it, one alone half of that.
#[test]
fn several_ports_can_take_more_than_a_processor_where_one_cannot() {
    for (together, warns) in [(0.96, false), (1.04, true)] {
        let child = Spot { parent: Some(0), compute: 10.0, receive: 8.0, ir_send: together / 16.0, ..Spot::default() };
        let platform = platform(&[root(10.0), child.clone(), child]);
        let passed = |ports| {
            let plan = planned_returning(&platform, &same(1, 1.0, 1.0), ports, 0.0);
            plan.warnings.iter().any(|one| one.code == "bound-of-linear-losses")
        };
        assert_eq!((passed(Ports::Single), passed(Ports::Multi)), (false, warns), "{together}");
    }
}
