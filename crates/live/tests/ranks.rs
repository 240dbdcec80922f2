//! Tests of parallel programs on loopback: every rank on its own thread, each connected to every other one.

use crate::scripted::{Script, message, run};
use crosswind_program::{Body, Kind, Op};
use serde_json::json;

fn window(packets: u32) -> serde_json::Value {
    json!({"policy": {"window_packets": packets}})
}

/// Makes every rank send messages of every kind and size to every rank including itself, with the expected results.
fn everything(ranks: u32, rounds: u64) -> Script {
    let sizes = [1u32, 16, 17, 400, 5_000];
    let mut script = Script { ops: vec![Vec::new(); ranks as usize], expected: None };
    let mut expected = vec![vec![0u64; 12]; ranks as usize];
    for from in 0..ranks {
        let ops = &mut script.ops[from as usize];
        for round in 0..rounds {
            for to in 0..ranks {
                for (place, kind) in Kind::ALL.into_iter().enumerate() {
                    let bytes = sizes[(round as usize + place) % sizes.len()];
                    let word = round * 1000 + u64::from(from * 10 + to);
                    let body = match round % 3 {
                        0 => Body::Pair([word, 1]),
                        1 => Body::Words(vec![word; 20].into()),
                        _ => Body::Empty,
                    };
                    expected[to as usize][place] += crate::scripted::sum(&body);
                    expected[to as usize][6 + place] += 1;
                    ops.push(message(to, kind, bytes, body));
                    let answer = match kind {
                        Kind::Get => u64::from(to) + 1,
                        Kind::Request => (0..100).map(|word| word + u64::from(from + to)).sum(),
                        _ => 0,
                    };
                    if kind.is_answered() {
                        expected[from as usize][5] += answer;
                        expected[from as usize][11] += 1;
                    }
                }
            }
            ops.push(Op::Compute { ns: 20_000 });
            if round % 4 == 3 {
                ops.extend([Op::Sync, Op::Barrier]);
            }
        }
        ops.extend([Op::Sync, Op::StoreSync]);
    }
    script.expected = Some(expected);
    script
}

#[test]
fn every_message_of_every_kind_is_handled_once_whatever_the_window() {
    for ranks in [2, 4] {
        for (window, rounds) in [
            (json!({}), 12),
            (window(1), 12),
            (json!({"policy": {"window_packets": 3, "credit": "extracted"}}), 12),
            // Four ranks that spin get two processors in turn, a scheduler's quantum at a time.
            (json!({"policy": {"window_packets": 2}, "spin_s": 0.001}), 4),
        ] {
            let (outcome, each) = run(&everything(ranks, rounds), window.clone());
            let outcome = outcome.unwrap_or_else(|error| panic!("{window}: {error}"));
            each.into_iter().for_each(|rank| rank.unwrap());
            assert_eq!(outcome.ranks.len(), ranks as usize);
            for (number, rank) in outcome.ranks.iter().enumerate() {
                assert_eq!(rank.rank, number as u32);
                // One of each of five kinds to every rank, and answers to three of them from every other rank.
                assert_eq!(rank.messages, rounds * (5 * u64::from(ranks) + 3 * u64::from(ranks - 1)));
                assert!(rank.packets > rank.messages);
                assert!(rank.done_s > 0.0 && rank.done_s <= outcome.makespan_s);
                assert_eq!(rank.stalled_s > 0.0, window != json!({}), "{window}: {rank:?}");
            }
        }
    }
}

#[test]
fn a_result_that_is_wrong_is_an_error() {
    let mut script = everything(2, 1);
    script.expected.as_mut().unwrap()[1][0] += 1;
    let error = run(&script, json!({})).0.unwrap_err();
    assert_eq!(error.code(), "wrong-result");
}

#[test]
fn one_rank_alone_needs_no_other() {
    let (outcome, _) = run(&everything(1, 3), window(1));
    assert_eq!((outcome.as_ref().unwrap().ranks[0].messages, outcome.unwrap().ranks[0].packets), (15, 0));
}

#[test]
fn sends_are_received_by_source_and_tag_in_their_order_and_stored_bytes_are_waited_for() {
    let pair = |word| Body::Pair([word, 0]);
    let first = vec![
        Op::Send { to: 1, tag: 7, bytes: 3_000_000 },
        Op::Send { to: 1, tag: 8, bytes: 1 },
        Op::Receive { from: 1, tag: 9 },
        Op::WaitStored { bytes: 300 },
        message(1, Kind::Post, 1, pair(1)),
        Op::WaitStored { bytes: 100 },
        Op::Wait,
        message(1, Kind::Post, 1, pair(1)),
    ];
    let second = vec![
        Op::Receive { from: 0, tag: 8 },
        Op::Receive { from: 0, tag: 7 },
        Op::Send { to: 0, tag: 9, bytes: 100 },
        message(0, Kind::Store, 200, pair(5)),
        message(0, Kind::Store, 200, pair(5)),
        Op::Wait,
        message(0, Kind::Post, 8, pair(2)),
        Op::Wait,
    ];
    let script = Script { ops: vec![first, second], expected: None };
    for window in [json!({}), json!({"policy": {"window_packets": 2}, "packet_bytes": 100_000})] {
        let (outcome, each) = run(&script, window);
        assert_eq!(outcome.unwrap().ranks[0].messages, 4);
        each.into_iter().for_each(|rank| rank.unwrap());
    }
}

#[test]
fn a_send_of_another_tag_or_of_another_rank_is_not_what_is_received() {
    let send = |tag| vec![Op::Send { to: 0, tag, bytes: 1 }];
    let script = Script { ops: vec![vec![Op::Receive { from: 1, tag: 3 }], send(4), send(3)], expected: None };
    let error = run(&script, json!({})).0.unwrap_err();
    assert_eq!(error.code(), "deadlock");
    assert!(error.to_string().contains("rank 0 waits for a send of tag 3 from rank 1"), "{error}");
}

#[test]
fn a_program_that_is_stuck_is_found_with_what_each_rank_waits_for() {
    let wait = |from| vec![Op::Compute { ns: 1000 }, Op::Receive { from, tag: 3 }];
    let script = Script { ops: vec![wait(1), wait(0), vec![Op::Barrier], vec![]], expected: None };
    let (outcome, each) = run(&script, json!({}));
    let error = outcome.unwrap_err();
    assert_eq!(error.code(), "deadlock");
    let text = error.to_string();
    for said in [
        "rank 0 waits for a send of tag 3 from rank 1",
        "rank 1 waits for a send of tag 3 from rank 0",
        "rank 2 waits at a barrier",
        "rank 3 is done",
    ] {
        assert!(text.contains(said), "{text}");
    }
    each.into_iter().for_each(|rank| assert!(rank.unwrap_err().to_string().contains("stuck")));
    let script = Script { ops: vec![vec![Op::Barrier], vec![Op::StoreSync]], expected: None };
    assert_eq!(run(&script, json!({})).0.unwrap_err().code(), "deadlock");
}

#[test]
fn a_long_computation_is_no_deadlock() {
    for compute in ["burn", "emulated"] {
        let script = Script {
            ops: vec![vec![Op::Compute { ns: 2_000_000_000 }, Op::Barrier], vec![Op::Barrier]],
            expected: None,
        };
        // Probed every 50 ms for progress, and lost if silent for a second.
        let more = json!({"compute": compute, "quiet_s": 0.05, "silence_s": 1.0});
        let outcome = run(&script, more).0.unwrap();
        assert!(outcome.makespan_s >= 2.0);
        assert!(outcome.ranks[1].waited_s > 1.0);
        assert_eq!(outcome.ranks[0].cpu_s >= 2.0, compute == "burn", "{outcome:?}");
    }
}

#[test]
fn what_a_program_may_not_do_ends_the_run_for_all() {
    for (op, said) in [
        (message(5, Kind::Store, 1, Body::Empty), "rank 0 sends to rank 5"),
        (Op::Send { to: 0, tag: 1, bytes: 1 }, "rank 0 sends to rank 0"),
        (Op::Receive { from: 9, tag: 1 }, "rank 0 receives from rank 9"),
    ] {
        let script = Script { ops: vec![vec![op], vec![Op::Barrier]], expected: None };
        let (outcome, each) = run(&script, json!({}));
        assert!(outcome.unwrap_err().to_string().contains(said));
        assert!(each.into_iter().all(|rank| rank.is_err()));
    }
}

#[test]
fn emulated_ranks_keep_to_the_disturbance() {
    let disturbance = json!({
        "schema_version": 1, "name": "two jobs",
        "source": [{"kind": "coscheduled", "quantum_s": 0.02, "jobs": 2}],
    });
    let ops = vec![Op::Compute { ns: 30_000_000 }, Op::Barrier];
    let script = Script { ops: vec![ops.clone(), ops], expected: None };
    let outcome = run(&script, json!({"disturbance": disturbance, "seed": 3})).0.unwrap();
    // 20 ms running, 20 ms away, 10 ms running.
    assert!(outcome.makespan_s >= 0.05, "{outcome:?}");
    assert!(outcome.ranks.iter().all(|rank| rank.away_s >= 0.019), "{outcome:?}");
}

#[test]
fn the_window_follows_whether_the_receiver_runs() {
    // Rank 1 is away from 10 ms to the end of its slice. A rank that sends to it then has one credit.
    let disturbance = json!({
        "schema_version": 1, "name": "another job there",
        "source": [{"kind": "job", "ranks": [1], "share": 0.5, "slice_s": 0.05}],
    });
    let sends: Vec<Op> = (0..400).map(|word| message(1, Kind::Store, 16, Body::Pair([word, 0]))).collect();
    let script = Script { ops: vec![[sends, vec![Op::StoreSync]].concat(), vec![Op::StoreSync]], expected: None };
    let more =
        json!({"disturbance": disturbance, "policy": {"window_packets": 64, "window": "follow", "away_packets": 1}});
    let outcome = run(&script, more).0.unwrap();
    assert_eq!(outcome.ranks[0].packets, 400);
}
