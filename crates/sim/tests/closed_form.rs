//! Cases computed by hand, to 1e-9 and a nanosecond.

use crate::farms::{PORTS, Spot, below, platform, root, run, run_with, same, way};
use crosswind_schema::experiment::draw::{Column, Tasks};
use crosswind_schema::experiment::{ChangeKind, Order, PlacedChange};
use crosswind_schema::plan::Ports;
use crosswind_sim::{Activity, Options};

fn close(left: f64, right: f64) {
    assert!((left - right).abs() <= 1e-9 * (1.0 + right), "{left} instead of {right}");
}

#[test]
fn one_node_needs_the_work_over_its_rate() {
    for (count, work, rate) in [(1, 1.0, 3.0), (1000, 5.0, 9.05), (12_345, 0.001, 7.77)] {
        let outcome = run(&platform(&[root(rate)]), &same(count, 1.0, work), way(Order::Arrival, Ports::Single, None));
        close(outcome.makespan_s, count as f64 * work / rate);
        close(outcome.nodes[0].busy_s, outcome.makespan_s);
        if count > 1 {
            close(outcome.steady_tasks_per_s, rate / work);
        }
    }
}

#[test]
fn a_root_that_does_not_compute_feeds_a_child_over_a_slow_link() {
    // The link is the bottleneck. The last task is computed after it.
    let platform = platform(&[root(0.0), below(0, 10.0, 3.0)]);
    for ports in PORTS {
        let outcome = run(&platform, &same(100, 2.0, 1.0), way(Order::Arrival, ports, Some(2)));
        close(outcome.makespan_s, 100.0 * 2.0 / 3.0 + 0.1);
        assert_eq!((outcome.nodes[1].tasks, outcome.nodes[1].received_mb), (100, 200.0));
    }
}

#[test]
fn a_slow_child_is_limited_by_its_own_computation() {
    let platform = platform(&[root(0.0), below(0, 1.0, 3.0)]);
    for ports in PORTS {
        let outcome = run(&platform, &same(100, 2.0, 1.0), way(Order::Interference, ports, Some(2)));
        close(outcome.makespan_s, 2.0 / 3.0 + 100.0);
    }
}

#[test]
fn the_law_slows_both_ends_for_as_long_as_bytes_move() {
    // Task 0 is computed at the root; task 1 needs 2 s on the link. Until then the root computes at 0.9 of its rate.
    let child = Spot { ir_send: 0.1, ir_receive: 0.2, ..below(0, 4.0, 1.0) };
    for ports in PORTS {
        let outcome =
            run(&platform(&[root(1.0), child.clone()]), &same(3, 2.0, 5.0), way(Order::Arrival, ports, Some(1)));
        // The child has task 1 at 2 s, is done with it at 2 + 5 / 3.2 s, has task 2 at 4 s and is done at 5.25 s. The root
        // has done 3.6 of 5 units at 4 s.
        close(outcome.makespan_s, 5.4);
    }
}

#[test]
fn sends_share_the_limit_max_min_fairly() {
    // 1, 4 and 9 MB/s share 9: 1, 4 and 4. The 8 MB of the second and third end at 2 s, when the first has 2 of its 8 MB.
    let spots = [Spot { send: Some(9.0), ..root(0.0) }, below(0, 1e6, 1.0), below(0, 1e6, 4.0), below(0, 1e6, 9.0)];
    let tasks = same(3, 8.0, 1.0);
    let options = Options { trace: true, ..Options::default() };
    let outcome = run_with(&platform(&spots), &tasks, way(Order::Arrival, Ports::Multi, Some(1)), 0.0, options);
    let trace = outcome.trace.unwrap();
    let mut ends: Vec<(Option<u32>, f64)> = (0..trace.len())
        .filter(|&row| trace.kind[row] == Activity::Send)
        .map(|row| (trace.child[row], trace.end_s[row]))
        .collect();
    ends.sort_by(|a, b| a.partial_cmp(b).unwrap());
    assert_eq!(ends, [(Some(1), 8.0), (Some(2), 2.0), (Some(3), 2.0)]);
}

#[test]
fn results_come_back_over_the_same_link() {
    let platform = platform(&[root(0.0), below(0, 10.0, 3.0)]);
    let options = Options { trace: true, ..Options::default() };
    let outcome = run_with(&platform, &same(100, 3.0, 1.0), way(Order::Arrival, Ports::Single, Some(2)), 1.5, options);
    close(outcome.makespan_s, 100.0 + 0.1 + 0.5);
    let results = outcome.trace.unwrap().kind.iter().filter(|&&kind| kind == Activity::Result).count();
    assert_eq!(results, 100);
}

#[test]
fn a_request_and_a_task_take_the_latency_each() {
    let platform = platform(&[root(0.0), Spot { latency: 0.25, ..below(0, 10.0, 3.0) }]);
    // One buffer place: request sent at 0, received at 0.25; task sent until 1.25, arrives at 1.5. Computing frees the
    // place at once, so the next request leaves then.
    let outcome = run(&platform, &same(2, 3.0, 1.0), way(Order::Arrival, Ports::Single, Some(1)));
    close(outcome.makespan_s, 1.5 + 1.5 + 0.1);
}

#[test]
fn sending_takes_from_what_a_node_receives() {
    // The inner node receives 4 MB/s, and 1 less for each MB/s that it sends: 2 while it sends 2.
    let spots = [root(0.0), Spot { drop: 1.0, ..below(0, 0.0, 4.0) }, below(1, 1e9, 2.0)];
    let outcome = run(&platform(&spots), &same(3, 2.0, 1.0), way(Order::Arrival, Ports::Single, Some(2)));
    // 0 to 0.5: the first arrives. 0.5 to 1.5: it is forwarded while the second arrives, both at 2 MB/s. Likewise 1.5
    // to 2.5, and the last is forwarded until 3.5.
    close(outcome.makespan_s, 3.5 + 1e-9);
}

#[test]
fn one_sender_fills_its_share_of_a_link_and_several_sends_fill_the_card() {
    // Links of 10 MB/s, of which one sender reaches 6; the root's card sends 10. One send at a time: 6 MB/s. Two: 10.
    let leaf = Spot { missed: 0.4, ..below(0, 1e9, 10.0) };
    let fork = platform(&[Spot { send: Some(10.0), ..root(0.0) }, leaf.clone(), leaf]);
    for (ports, rate) in [(Ports::Single, 6.0), (Ports::Multi, 10.0)] {
        let outcome = run(&fork, &same(60, 3.0, 1.0), way(Order::Arrival, ports, Some(1)));
        close(outcome.makespan_s, 60.0 * 3.0 / rate + 1e-9);
    }
}

#[test]
fn a_change_of_the_receive_limit_leaves_one_sender_its_share() {
    // 6 of 10 MB/s for 1 s, then 3 of 5: the 9 MB are there after 2 s, and their result goes up as fast.
    let fork = platform(&[root(0.0), Spot { missed: 0.4, ..below(0, 1e9, 10.0) }]);
    let slower = ChangeKind::Rates { compute_per_s: None, receive_limit_mb_per_s: Some(5.0) };
    let changes = [PlacedChange { at_s: 1.0, node: 1, kind: slower }];
    for ports in PORTS {
        let options = Options { changes: &changes, ..Options::default() };
        let outcome = run_with(&fork, &same(1, 9.0, 1.0), way(Order::Arrival, ports, Some(1)), 1.5, options);
        close(outcome.makespan_s, 2.0 + 1e-9 + 0.5);
    }
}

#[test]
fn sending_takes_from_what_one_sender_reaches_in_the_same_proportion() {
    // As above, with limits of 8 MB/s of which one sender reaches half: 4, and 1 less for each MB/s sent at a drop of 2.
    let inner = Spot { drop: 2.0, missed: 0.5, ..below(0, 0.0, 8.0) };
    let spots = [root(0.0), inner, Spot { missed: 0.5, ..below(1, 1e9, 4.0) }];
    let outcome = run(&platform(&spots), &same(3, 2.0, 1.0), way(Order::Arrival, Ports::Single, Some(2)));
    close(outcome.makespan_s, 3.5 + 1e-9);
}

#[test]
fn a_preferred_child_holds_another_at_the_end_of_its_chunk() {
    let chunk = 512.0 * 1024.0 / 1e6;
    let spots = [
        Spot { send: Some(1.0), ..root(0.0) },
        Spot { ir_send: 0.01, ..below(0, 2.0, 1.0) },
        Spot { ir_send: 0.02, ..below(0, 2.0, 1.0) },
    ];
    let tasks = Tasks {
        count: 4,
        size_mb: Column::Same(0.8),
        work: Column::Each(vec![2.0, 1.0, 1.0, 1.0]),
        ..Tasks::default()
    };
    let options = Options { trace: true, ..Options::default() };
    let outcome = run_with(&platform(&spots), &tasks, way(Order::Interference, Ports::Multi, Some(1)), 0.0, options);
    let trace = outcome.trace.unwrap();
    let sends: Vec<(u32, u64, f64)> = (0..trace.len())
        .filter(|&row| trace.kind[row] == Activity::Send)
        .map(|row| (trace.child[row].unwrap(), trace.task[row], trace.mb[row]))
        .collect();
    // The better one gets tasks 0 and 2 until 1.6, the other task 1 from then on. At 1.8 the better one computes task 2 and
    // asks again, when the other has 0.2 MB. They share the port until its chunk ends.
    let held: Vec<&(u32, u64, f64)> = sends.iter().filter(|send| send.1 == 1).collect();
    assert_eq!((sends[0].0, held.len(), held[0].0), (1, 2, 2), "{sends:?}");
    close(held[0].2, chunk);
    close(held[0].2 + held[1].2, 0.8);
}

#[test]
fn without_results_a_run_ends_with_its_last_task_whatever_the_order() {
    // The task leaves at 10 s, when the child's request arrives, is received 10.1 s later and takes 2 s.
    let tree = [root(0.0), Spot { latency: 10.0, ..below(0, 1.0, 10.0) }];
    let (platform, tasks) = (platform(&tree), same(1, 1.0, 2.0));
    for ports in PORTS {
        for order in Order::ALL.into_iter().filter(|order| *order != Order::RootOnly) {
            let outcome = run(&platform, &tasks, way(order, ports, Some(1)));
            assert_eq!((outcome.makespan_s, outcome.steady_tasks_per_s), (22.1, 1.0 / 22.1), "{order:?} {ports:?}");
            let with = run_with(&platform, &tasks, way(order, ports, Some(1)), 1.0, Options::default());
            assert_eq!(with.makespan_s, 32.2, "{order:?} {ports:?}");
        }
    }
}

#[test]
fn a_relay_whose_last_child_leaves_hands_its_tasks_up_and_takes_some_when_the_child_is_back() {
    let tree = [root(1.0), below(0, 0.0, 3.0), below(1, 0.5, 10.0)];
    let platform = platform(&tree);
    let leaves = PlacedChange { at_s: 2.5, node: 2, kind: ChangeKind::Leaves };
    let joins = PlacedChange { at_s: 6.0, node: 2, kind: ChangeKind::Joins };
    for ports in PORTS {
        for order in Order::ALL {
            let of = |count, changes: &[PlacedChange]| {
                let options = Options { changes, ..Options::default() };
                run_with(&platform, &same(count, 0.5, 2.0), way(order, ports, Some(2)), 0.0, options)
            };
            // The root alone, 2 s a task; where all tasks are under way at 2 s it waits until they come back.
            let alone_s = of(5, &[leaves]).makespan_s;
            assert!(alone_s == 10.0 || alone_s == 10.5, "{order:?} {ports:?}: {alone_s}");
            // With the child from 6 s on: 4 s a task.
            let back = of(20, &[leaves, joins]);
            assert_eq!(back.nodes[2].tasks > 4, order != Order::RootOnly, "{order:?} {ports:?}");
        }
    }
}

#[test]
fn arrival_serves_the_request_that_came_first_with_several_ports_and_buffers_too() {
    // A relay with two children on different links, and 20 tasks drawn once. The expected end comes from an independent
    // simulator in Python.
    let (sizes, works): (Vec<f64>, Vec<f64>) = [
        (1.650349, 5.091036),
        (1.005558, 3.019749),
        (1.335507, 2.712033),
        (2.810286, 0.436881),
        (0.857872, 1.858976),
        (2.087585, 0.356397),
        (0.652374, 2.347374),
        (0.789618, 26.522664),
        (2.343095, 4.611294),
        (0.982159, 11.308064),
        (2.530142, 1.744072),
        (1.642387, 8.104429),
        (1.639531, 2.173861),
        (1.355303, 4.943722),
        (1.593672, 12.895626),
        (2.735201, 3.30155),
        (1.524599, 14.22206),
        (1.422129, 1.826408),
        (1.02215, 1.770041),
        (0.804352, 12.217288),
    ]
    .into_iter()
    .unzip();
    let tasks = Tasks { count: 20, size_mb: Column::Each(sizes), work: Column::Each(works), ..Tasks::default() };
    let tree = [
        root(10.177654),
        Spot { send: Some(27.387963), ..below(0, 14.180596, 25.220278) },
        Spot { send: Some(21.727996), ..below(1, 5.305004, 32.457036) },
        below(1, 17.283769, 6.007953),
    ];
    let outcome = run(&platform(&tree), &tasks, way(Order::Arrival, Ports::Multi, Some(2)));
    assert!((outcome.makespan_s - 5.561).abs() < 5e-4, "{}", outcome.makespan_s);
}
