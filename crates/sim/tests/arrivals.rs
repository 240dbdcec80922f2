//! Tasks that arrive over time, against closed forms of queueing theory and against all tasks at the start.

use crosswind_schema::experiment::draw::{Arrivals, Tasks};
use crosswind_schema::experiment::{Order, Workload};
use crosswind_schema::plan::Ports;
use crosswind_sim::Options;

use super::farms::{PORTS, below, platform, root, run_with, same, way};

fn drawn(workload: &str) -> Tasks {
    let workload: Workload = serde_json::from_str(workload).unwrap();
    Tasks::draw(&workload, 7, None).unwrap()
}

/// Mean flow time of a farm whose root computes one work unit a second, s.
fn mean_flow_s(tasks: &Tasks) -> f64 {
    let outcome =
        run_with(&platform(&[root(1.0)]), tasks, way(Order::Bandwidth, Ports::Multi, None), 0.0, Options::default());
    let released = &tasks.arrivals.as_ref().unwrap().release_s;
    outcome.done_s.iter().zip(released).map(|(done, released)| done - released).sum::<f64>() / tasks.count as f64
}

/// Half of the time it is busy: M/M/1 has a mean flow time of 1 / (1 - 0.5) = 2 s, M/D/1 of 1 + 0.5 / (2 x 0.5) = 1.5 s.
/// Means of 400,000 flow times, standard deviations below 0.02 s; D/D/1 never waits.
#[test]
fn one_node_is_the_queue_of_the_textbook() {
    let of = |work: &str, gap: &str| {
        let workload = format!(
            r#"{{"kind": "farm", "tasks": 400000, "task_size_mb": 1.0, "task_work": {work}, "arrival_gap_s": {gap}}}"#
        );
        mean_flow_s(&drawn(&workload))
    };
    let poisson = r#"{"distribution": "exponential", "mean": 2.0}"#;
    let exponential = r#"{"distribution": "exponential", "mean": 1.0}"#;
    assert!((of(exponential, poisson) - 2.0).abs() < 0.08);
    assert!((of("1.0", poisson) - 1.5).abs() < 0.04);
    assert!((of("1.0", "2.0") - 1.0).abs() < 1e-6);
}

/// Two at a time every 3 s at a root of 1 task/s: the second of each pair waits for the first.
#[test]
fn tasks_that_arrive_together_wait_for_each_other() {
    let tasks = drawn(
        r#"{"kind": "farm", "tasks": 5, "task_size_mb": 1.0, "task_work": 1.0, "arrival_gap_s": 3.0, "arrival_tasks": 2}"#,
    );
    assert_eq!(tasks.arrivals.as_ref().unwrap().release_s, [0.0, 0.0, 3.0, 3.0, 6.0]);
    let one = platform(&[root(1.0)]);
    let outcome = run_with(&one, &tasks, way(Order::Bandwidth, Ports::Multi, None), 0.0, Options::default());
    assert_eq!(outcome.done_s, [1.0, 2.0, 4.0, 5.0, 7.0]);
}

/// A root that computes nothing and a leaf 2 s away: a task needs 1 s over the link, 2 s of latency and 1 s of work; the
/// leaf asked for it beforehand.
#[test]
fn a_task_that_arrives_late_is_sent_at_once_to_a_node_that_asked_before() {
    let pair = platform(&[root(0.0), super::farms::Spot { latency: 2.0, ..below(0, 1.0, 1.0) }]);
    let mut tasks = same(2, 1.0, 1.0);
    tasks.arrivals = Some(Arrivals { release_s: vec![10.0, 20.0], deadline_s: Vec::new() });
    for ports in PORTS {
        let outcome = run_with(&pair, &tasks, way(Order::Bandwidth, ports, None), 0.0, Options::default());
        assert_eq!(outcome.nodes[1].tasks, 2);
        let flows: Vec<f64> = outcome.done_s.iter().zip([10.0, 20.0]).map(|(done, at)| done - at).collect();
        assert!(
            flows.iter().all(|flow| (flow - 4.0).abs() < 1e-6 || (flow - 6.0).abs() < 1e-6),
            "{ports:?}: {flows:?}"
        );
    }
}

/// Release times of 0 change nothing but that ends are recorded.
#[test]
fn tasks_that_all_arrive_at_the_start_run_as_ever() {
    let tree = platform(&[root(2.0), below(0, 5.0, 9.0), below(0, 1.0, 3.0), below(1, 4.0, 5.0)]);
    let at_once = same(300, 1.0, 1.0);
    let mut arriving = at_once.clone();
    arriving.arrivals = Some(Arrivals { release_s: vec![0.0; 300], deadline_s: Vec::new() });
    for ports in PORTS {
        for order in [Order::Interference, Order::Bandwidth, Order::Arrival] {
            let [plain, mut timed] = [&at_once, &arriving]
                .map(|tasks| run_with(&tree, tasks, way(order, ports, None), 0.1, Options::default()));
            assert_eq!(timed.done_s.iter().copied().fold(0.0, f64::max), plain.makespan_s);
            timed.done_s.clear();
            assert_eq!(timed, plain);
        }
    }
}
