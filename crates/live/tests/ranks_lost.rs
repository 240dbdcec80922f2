//! Tests of ranks that end, stay silent, or violate the protocol: the error is clear, and nothing hangs.

use crate::scripted::{Script, conductor, joining, rank, settings};
use crosswind_live::LiveError;
use crosswind_live::ranks::Joined;
use crosswind_program::{Op, Program};
use serde_json::json;

fn barriers(ranks: usize) -> Script {
    let ops = (0..10_000).flat_map(|_| [Op::Compute { ns: 1_000_000 }, Op::Barrier]).collect();
    Script { ops: vec![ops; ranks], expected: None }
}

fn said(result: Result<impl std::fmt::Debug, LiveError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_rank_that_never_comes_is_named() {
    let script = barriers(2);
    let conductor = conductor(settings(2, json!({"start_s": 0.3})));
    let only = rank(&conductor.address().unwrap(), 0, &script);
    assert_eq!(said(conductor.run(&script, &mut |_| {})), "rank 1 did not come within 0.3 s");
    assert!(only.join().unwrap().is_err());
}

#[test]
fn a_rank_that_leaves_before_the_start_ends_the_run() {
    let script = barriers(2);
    let conductor = conductor(settings(2, json!({})));
    let address = conductor.address().unwrap();
    let other = rank(&address, 0, &script);
    let leaver = std::thread::spawn(move || drop(Joined::join(joining(&address, 1)).unwrap()));
    let text = said(conductor.run(&script, &mut |_| {}));
    assert!(text.starts_with("rank 1 is gone"), "{text}");
    leaver.join().unwrap();
    assert!(other.join().unwrap().is_err());
}

#[test]
fn a_rank_with_another_program_or_another_token_is_no_rank() {
    let script = barriers(2);
    let one = conductor(settings(2, json!({})));
    let address = one.address().unwrap();
    let ranks = [rank(&address, 0, &script), rank(&address, 1, &barriers(3))];
    let text = said(one.run(&script, &mut |_| {}));
    assert!(text.contains("rank 1 gave up: the program has 3 ranks, the run 2"), "{text}");
    ranks.into_iter().for_each(|rank| assert!(rank.join().unwrap().is_err()));

    let other = conductor(settings(1, json!({"start_s": 0.5})));
    let mut config = joining(&other.address().unwrap(), 0);
    config.access = crosswind_access::Access::of(Some("another token, long enough"), None).unwrap();
    let stranger = std::thread::spawn(move || Joined::join(config).map(|_| ()));
    assert!(said(other.run(&barriers(1), &mut |_| {})).contains("rank 0 did not come"));
    assert!(said(stranger.join().unwrap()).contains("does not know the token"));
}

#[test]
fn a_run_can_be_ended_from_another_thread_and_has_a_limit() {
    let script = barriers(2);
    for interrupted in [true, false] {
        let conductor = conductor(settings(2, json!({"limit_s": if interrupted { 60.0 } else { 0.3 }})));
        let (address, stop) = (conductor.address().unwrap(), conductor.stop());
        let ranks = [rank(&address, 0, &script), rank(&address, 1, &script)];
        let error = conductor
            .run(&script, &mut |_| {
                if interrupted {
                    stop.interrupt()
                }
            })
            .unwrap_err();
        match interrupted {
            true => assert!(matches!(error, LiveError::Interrupted)),
            false => assert!(error.to_string().starts_with("the run is not over after 0.3 s"), "{error}"),
        }
        ranks.into_iter().for_each(|rank| assert!(rank.join().unwrap().is_err()));
    }
}

#[test]
fn a_process_that_is_known_to_have_ended_ends_the_run() {
    let script = barriers(2);
    assert_eq!(script.ranks(), 2);
    let conductor = conductor(settings(2, json!({})));
    conductor.stop().fail("rank 1 ended with status 1");
    assert_eq!(said(conductor.run(&script, &mut |_| {})), "rank 1 ended with status 1");
}
