//! Drawn failures of nodes against closed forms: expected completion with restarts, availability.

use crosswind_schema::Platform;
use crosswind_schema::experiment::draw::Tasks;
use crosswind_schema::experiment::{ChangeKind, Failure, Order, PlacedFailure, failure};
use crosswind_schema::plan::Ports;
use crosswind_sim::{Options, Outcome, SimError};

use super::farms::{PORTS, Spot, below, platform, root, run_with, same, try_run_with, way};

fn failures(platform: &Platform, seed: u64, table: &str) -> Vec<PlacedFailure> {
    let tables: Vec<Failure> = serde_json::from_str(&format!("[{table}]")).unwrap();
    failure::placed(&tables, platform, seed).unwrap()
}

fn run(platform: &Platform, tasks: &Tasks, seed: u64, table: &str) -> Outcome {
    let failures = failures(platform, seed, table);
    let options = Options { failures: &failures, ..Options::default() };
    run_with(platform, tasks, way(Order::Bandwidth, Ports::Multi, None), 0.0, options)
}

/// A root that computes nothing, and a leaf that a task reaches in a nanosecond.
fn pair() -> Platform {
    platform(&[root(0.0), below(0, 1.0, 1e6)])
}

/// Returns the mean of many seeds and its standard error.
fn mean(of: impl Fn(u64) -> f64) -> (f64, f64) {
    const SEEDS: u64 = 4000;
    let found: Vec<f64> = (0..SEEDS).map(of).collect();
    let mean = found.iter().sum::<f64>() / SEEDS as f64;
    let square = found.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (SEEDS - 1) as f64;
    (mean, (square / SEEDS as f64).sqrt())
}

/// A task that starts from the beginning after each failure takes (1 / l + r) (exp(l w) - 1) s on average: w its work, l
/// the rate of failures, r the mean time to repair (Duda, 1983).
#[test]
fn a_task_that_starts_again_takes_exponentially_long() {
    for (work, mtbf, mttr) in [(1.0, 2.0, 0.5), (3.0, 2.0, 1.0), (4.0, 2.0, 0.01), (0.5, 10.0, 5.0)] {
        let table = format!(r#"{{"mtbf_s": {mtbf}, "mttr_s": {mttr}}}"#);
        let (mean, error) = mean(|seed| run(&pair(), &same(1, 1e-6, work), seed, &table).makespan_s);
        let expected = (mtbf + mttr) * ((work / mtbf).exp() - 1.0);
        assert!((mean - expected).abs() < 4.0 * error, "{work} {mtbf} {mttr}: {mean} +- {error}, {expected}");
    }
}

/// A node that stands still and then continues computes for MTBF / (MTBF + MTTR) of the time, whatever the task and the
/// shape. 2,000 periods: standard deviations below 0.01.
#[test]
fn a_node_that_continues_computes_while_it_is_available() {
    for (shape, tasks, work) in [(1.0, 1, 60_000.0), (0.7, 6000, 10.0), (3.0, 20, 3000.0)] {
        let table = format!(r#"{{"mtbf_s": 30, "mttr_s": 10, "shape": {shape}, "compute_factor": 0}}"#);
        let outcome = run(&pair(), &same(tasks, 1e-6, work), 5, &table);
        let available = 60_000.0 / outcome.makespan_s;
        assert!((available - 0.75).abs() < 0.03, "{shape}: {available}");
        let node = outcome.failures[1];
        assert!((60_000.0 + node.failed_s - outcome.makespan_s).abs() < 1e-3, "{node:?}");
        assert_eq!(node.redone, 0);
    }
}

/// With tasks that are short beside MTBF nearly no work is lost, and the throughput is the availability: each failure
/// loses half of a task of 0.01 s on average.
#[test]
fn with_short_tasks_throughput_is_the_availability() {
    let outcome = run(&pair(), &same(200_000, 1e-6, 0.01), 9, r#"{"mtbf_s": 3, "mttr_s": 1}"#);
    let available = 2000.0 / outcome.makespan_s;
    assert!((available - 0.75).abs() < 0.03, "{available}");
    assert!(outcome.failures[1].redone >= outcome.failures[1].count - 1);
}

/// A link of a tenth during failures: a processor that waits for it gets tasks at the mean rate.
#[test]
fn a_slow_link_carries_less_while_it_has_failed() {
    let thin = platform(&[root(0.0), below(0, 1000.0, 10.0)]);
    let outcome = run(&thin, &same(20_000, 1.0, 1.0), 2, r#"{"mtbf_s": 5, "mttr_s": 5, "link_factor": 0.1}"#);
    let rate = 20_000.0 / outcome.makespan_s;
    assert!((rate - 5.5).abs() < 0.5, "{rate}");
}

/// Whatever fails, every task is done once, in trees where nodes above each other fail.
#[test]
fn every_task_is_done_whatever_fails() {
    let tree = platform(&[
        root(1.0),
        below(0, 2.0, 5.0),
        Spot { latency: 0.2, ..below(0, 3.0, 2.0) },
        below(1, 2.0, 4.0),
        below(3, 2.0, 4.0),
        below(2, 0.0, 9.0),
        below(5, 4.0, 9.0),
    ]);
    let both = r#"{"mtbf_s": 6, "mttr_s": 3}, {"node": "n3", "mtbf_s": 5, "mttr_s": 5, "compute_factor": 0.2, "link_factor": 0.5}"#;
    for ports in PORTS {
        for order in [Order::Interference, Order::Arrival, Order::Planned, Order::Compute] {
            for (seed, result_size_mb) in (0..20).flat_map(|seed| [(seed, 0.0), (seed, 0.5)]) {
                let failures = failures(&tree, seed, both);
                let options = Options { failures: &failures, trace: true, ..Options::default() };
                let outcome = run_with(&tree, &same(200, 1.0, 1.0), way(order, ports, None), result_size_mb, options);
                let trace = outcome.trace.unwrap();
                let computed = (0..trace.len()).filter(|&n| trace.work[n] > 0.0 && !trace.cut[n]);
                let mut tasks: Vec<u64> = computed.map(|n| trace.task[n]).collect();
                tasks.sort_unstable();
                tasks.dedup();
                assert_eq!(tasks.len(), 200, "{order:?} {ports:?} {seed}");
                assert_eq!(outcome.events, []);
            }
        }
    }
}

/// Until the first failure a run is that without failures.
#[test]
fn a_failure_that_comes_late_changes_nothing_before() {
    let tree = platform(&[root(1.0), below(0, 2.0, 5.0), below(0, 3.0, 2.0)]);
    let tasks = same(500, 1.0, 1.0);
    let way = way(Order::Interference, Ports::Multi, None);
    let plain = run_with(&tree, &tasks, way, 0.5, Options::default());
    let failures = failures(&tree, 1, r#"{"mtbf_s": 1e9, "mttr_s": 1}"#);
    let outcome = run_with(&tree, &tasks, way, 0.5, Options { failures: &failures, ..Options::default() });
    assert_eq!(outcome.makespan_s, plain.makespan_s);
    assert_eq!(outcome.failures.iter().map(|one| one.count).sum::<u64>(), 0);
}

#[test]
fn tasks_that_can_never_be_done_end_the_run() {
    let way = way(Order::Bandwidth, Ports::Multi, None);
    let of = |platform: &Platform, table: &str, way| {
        let failures = failures(platform, 1, table);
        let options = Options { failures: &failures, ..Options::default() };
        try_run_with(platform, &same(2, 1e-6, 100.0), way, 0.0, options)
    };
    let error = of(&pair(), r#"{"mtbf_s": 1, "mttr_s": 1}"#, way).unwrap_err();
    assert!(matches!(error, SimError::Failing { done: 0, tasks: 2, .. }), "{error}");
    assert!(error.to_string().contains("make failure.mtbf_s longer"), "{error}");
    let unserved = super::farms::Way { order: Order::RootOnly, ..way };
    let error = of(&pair(), r#"{"mtbf_s": 1, "mttr_s": 1}"#, unserved).unwrap_err();
    assert!(matches!(error, SimError::Stuck { done: 0, .. }), "{error}");
}

/// Changes of the file and drawn failures of the same nodes: each reason counts by itself.
#[test]
fn changes_and_failures_are_one_story() {
    use crosswind_schema::experiment::PlacedChange;
    let tree = platform(&[root(1.0), below(0, 2.0, 5.0), below(1, 3.0, 2.0)]);
    let change = |at_s, node, kind| PlacedChange { at_s, node, kind };
    let changes = [
        change(5.0, 1, ChangeKind::Leaves),
        change(15.0, 1, ChangeKind::Joins),
        change(20.0, 2, ChangeKind::Rates { compute_per_s: Some(9.0), receive_limit_mb_per_s: None }),
    ];
    for seed in 0..50 {
        let failures = failures(&tree, seed, r#"{"mtbf_s": 4, "mttr_s": 4}"#);
        let options = Options { changes: &changes, failures: &failures, ..Options::default() };
        let outcome = run_with(&tree, &same(200, 1.0, 1.0), way(Order::Bandwidth, Ports::Multi, None), 0.1, options);
        assert!(outcome.makespan_s > 20.0 && outcome.events.len() <= 3, "{:?}", outcome.events);
    }
}
