//! Tests of whole farms on loopback: a root and agents, each on its own thread, over real connections.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::tree::{Tree, platform, settings};
use crosswind_agent::settings::Work;
use crosswind_live::farm::function::{Function, Shared};
use crosswind_live::farm::payload::Payload;
use crosswind_live::farm::replay::replay;
use crosswind_schema::experiment::PortMode;
use crosswind_schema::units::MegabytesPerSecond;

fn emulated(time_scale: f64) -> Work {
    Work::Emulated { time_scale, result_bytes: 0 }
}

#[test]
fn every_task_comes_back_once_from_a_tree_of_three_levels() {
    let platform = platform(&[("r", "", 10.0), ("a", "r", 20.0), ("b", "r", 20.0), ("c", "a", 30.0), ("d", "a", 30.0)]);
    let mut run = settings(platform, emulated(50.0));
    run.recording.trace = true;
    let done = Tree::new(run).run((0..200).map(|_| (Payload::Blank(100_000), 1.0)).collect());
    let tasks: BTreeMap<u64, usize> = done.results.iter().fold(BTreeMap::new(), |mut count, result| {
        *count.entry(result.task).or_default() += 1;
        count
    });
    assert_eq!(tasks, (0..200).map(|task| (task, 1)).collect());
    assert_eq!(done.summary.nodes.iter().map(|node| node.tasks).sum::<u64>(), 200);
    assert!(done.summary.nodes.iter().all(|node| node.tasks > 0), "{:?}", done.summary.nodes);
    assert!(done.summary.events.is_empty(), "{:?}", done.summary.events);
    let computed = done.summary.rows.iter().filter(|row| row.work > 0.0).count();
    assert_eq!(computed, 200);
}

#[test]
fn a_live_log_replayed_through_a_fresh_policy_gives_the_recorded_commands() {
    for (order, ports) in
        [("interference", "single"), ("bandwidth", "multi"), ("arrival", "multi"), ("planned", "single")]
    {
        let platform =
            platform(&[("r", "", 10.0), ("a", "r", 20.0), ("b", "r", 20.0), ("c", "a", 30.0), ("d", "a", 30.0)]);
        let mut run = settings(platform, emulated(50.0));
        run.policy =
            serde_json::from_value(serde_json::json!({"order": order, "ports": ports, "chunk_kib": 16})).unwrap();
        run.planned_tasks_per_s = Some(vec![10.0, 20.0, 20.0, 30.0, 30.0]);
        run.recording.log = true;
        let done = Tree::new(run.clone()).run((0..100).map(|_| (Payload::Blank(100_000), 1.0)).collect());
        assert_eq!(done.summary.nodes.len(), 5);
        for node in &done.summary.nodes {
            let events = replay(&run, &node.name, &node.log).unwrap();
            assert!(events > 10, "{} has {events} events with {order}", node.name);
        }
        // Proof that the replay can fail: another order gives other commands.
        let mut other = run.clone();
        other.policy.order = crosswind_schema::experiment::Order::RootOnly;
        let root = &done.summary.nodes[0];
        assert!(replay(&other, &root.name, &root.log).is_err());
    }
}

#[test]
fn bytes_arrive_as_they_were_sent_small_and_large_through_an_inner_node() {
    let platform = platform(&[("r", "", 0.0), ("a", "r", 0.0), ("b", "a", 1.0)]);
    let mut run = settings(platform, Work::Command { line: "cat {input} > {output}".into() });
    run.sizes.spool_over_bytes = 1 << 20;
    let sizes = [0usize, 1, 1_000, 40_000, 600_000, 5_000_000];
    let content = |size: usize| (0..size).map(|i| (i * 31 + size) as u8).collect::<Vec<u8>>();
    let file = std::env::temp_dir().join(format!("crosswind-farm-{}", std::process::id()));
    std::fs::write(&file, content(3_000_000)).unwrap();
    let mut inputs: Vec<(Payload, f64)> = sizes.iter().map(|&size| (Payload::bytes(content(size)), 0.0)).collect();
    inputs.push((Payload::file(&file).unwrap(), 0.0));
    let done = Tree::new(run).run(inputs);
    let all: Vec<usize> = sizes.iter().copied().chain([3_000_000]).collect();
    assert_eq!(done.results.len(), all.len());
    for result in &done.results {
        assert!(result.ok);
        assert_eq!(result.payload.read().unwrap().as_slice(), content(all[result.task as usize]), "{}", result.task);
    }
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn a_function_travels_once_over_each_link_and_inputs_of_all_sizes_stay_what_they_are() {
    let platform = platform(&[("r", "", 0.0), ("a", "r", 0.0), ("b", "a", 1.0)]);
    let mut run = settings(platform, Work::Command { line: "cat {input} > {output}".into() });
    run.sizes.spool_over_bytes = 1 << 20;
    let content = |size: usize| (0..size).map(|i| (i * 31 + size) as u8).collect::<Vec<u8>>();
    let file = std::env::temp_dir().join(format!("crosswind-called-{}", std::process::id()));
    std::fs::write(&file, content(3_000_000)).unwrap();
    let functions = [20_000, 9_000_000].map(|size| Function::new(size as u64, Shared::new(content(size))));
    let sizes = [0usize, 1_000, 40_000, 3_000_000, 5_000_000];
    let inputs = (0..20).map(|task| {
        let size = sizes[task % sizes.len()];
        let input = if size == 3_000_000 { Payload::file(&file).unwrap() } else { Payload::bytes(content(size)) };
        (input.calling(Arc::clone(&functions[task / 5 % 2])), 0.0)
    });
    let done = Tree::new(run).run(inputs.collect());
    assert_eq!(done.results.len(), 20);
    for result in &done.results {
        assert!(result.ok);
        let size = sizes[result.task as usize % sizes.len()];
        assert_eq!(result.payload.read().unwrap().as_slice(), content(size), "{}", result.task);
    }
    let all = 9_020_000 + 4 * sizes.iter().sum::<usize>() as u64;
    assert!(done.summary.nodes.iter().skip(1).all(|node| node.received_bytes == all), "{:?}", done.summary.nodes);
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn a_task_that_fails_is_an_answer_and_the_others_go_on() {
    let platform = platform(&[("r", "", 1.0), ("a", "r", 1.0)]);
    let run = settings(platform, Work::Command { line: "test $(cat {input}) != 3".into() });
    let inputs = (0..8).map(|i: u32| (Payload::bytes(i.to_string().into_bytes()), 0.0)).collect();
    let done = Tree::new(run).run(inputs);
    let failed: Vec<u64> = done.results.iter().filter(|result| !result.ok).map(|result| result.task).collect();
    assert_eq!((failed.as_slice(), done.results.len()), ([3].as_slice(), 8));
}

#[test]
fn a_task_that_failed_is_tried_again_as_often_as_was_asked() {
    let platform = platform(&[("r", "", 0.0), ("a", "r", 1.0)]);
    let mark = std::env::temp_dir().join(format!("crosswind-again-{}", std::process::id()));
    let line = format!("echo x >> {0}; test $(wc -l < {0}) -ge 3 || exit 1; cat {{input}}", mark.display());
    let mut run = settings(platform, Work::Command { line });
    run.task_limits.retries = 2;
    let done = Tree::new(run).run(vec![(Payload::bytes(b"word".to_vec()), 0.0)]);
    assert!(done.results[0].ok);
    assert_eq!(done.summary.events[0].1.code, "task-tried-again");
    std::fs::remove_file(&mark).unwrap();
}

#[test]
fn the_root_alone_computes_everything() {
    let run = settings(platform(&[("r", "", 10.0)]), Work::Noop);
    let done = Tree::new(run).run((0..50).map(|_| (Payload::bytes(vec![1; 100]), 0.0)).collect());
    assert_eq!(done.results.len(), 50);
}

#[test]
fn a_link_and_a_processor_that_change_are_followed_and_told_and_the_log_still_replays() {
    // "a" is served first until its link drops to a third, then "b" is. The throughput is that of the plan.
    let mut platform = platform(&[("r", "", 1.0), ("a", "r", 4.0), ("b", "r", 4.0)]);
    for (node, limit) in [(1, 10.0), (2, 9.0)] {
        platform.nodes[node].receive_limit_mb_per_s = Some(MegabytesPerSecond::new(limit).unwrap());
    }
    let mut run = settings(platform, emulated(20.0));
    (run.mean_size_mb, run.recording.trace, run.recording.log) = (2.0, true, true);
    (run.policy.adapt, run.policy.ports) = (true, PortMode::Single);
    run.changes = serde_json::from_value(serde_json::json!([
        {"at_s": 20.0, "node": "a", "receive_limit_mb_per_s": 10.0 / 3.0},
    ]))
    .unwrap();
    let done = Tree::new(run.clone()).run((0..240).map(|_| (Payload::Blank(2_000_000), 1.0)).collect());
    assert_eq!(done.results.len(), 240);
    // Bound after the change: b's 4 tasks/s use 0.89 of the port, a gets 0.185 tasks/s from the rest, the root computes 1.
    let computed = done.summary.rows.iter().filter(|row| row.work > 0.0).map(|row| row.end_ns as f64 * 1e-9);
    let after = computed.filter(|end| (25.0..40.0).contains(end)).count() as f64 / 15.0;
    assert!(after >= 0.9 * 5.185, "{after} tasks/s");
    let link = done.summary.nodes[1].seen.receive_limit_mb_per_s.unwrap();
    assert!((link.seen / (10.0 / 3.0) - 1.0).abs() < 0.1 && link.planned == Some(10.0), "{link:?}");
    let compute = done.summary.nodes[2].seen.compute_per_s.unwrap();
    assert!((compute.seen / 4.0 - 1.0).abs() < 0.1 && compute.observations > 20, "{compute:?}");
    assert_eq!(done.summary.events.iter().map(|(_, event)| event.code.as_str()).collect::<Vec<_>>(), ["rates-changed"]);
    assert!(done.summary.nodes[0].log.contains(" known 0 "), "the order was revised");
    for node in &done.summary.nodes {
        replay(&run, &node.name, &node.log).unwrap();
    }
    run.work = Work::Noop;
    assert!(run.check().unwrap_err().to_string().contains("change"));
}
