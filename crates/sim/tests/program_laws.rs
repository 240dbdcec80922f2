//! Laws of the engine on random programs, windows and disturbances.
use std::collections::BTreeMap;
use std::num::NonZeroU32;

use crate::programs::{Event, Script, Scripts, cm5, compute, disturbed, message, name};
use crosswind_policy::window::{Away, CreditReturn, WindowSettings};
use crosswind_program::{Kind, Op};
use crosswind_schema::disturbance::Timelines;
use crosswind_sim::SimError;
use crosswind_sim::program::{Network, simulate, simulate_on_threads};
use proptest::prelude::*;

/// Actions of a rank between two barriers.
#[derive(Clone, Debug)]
enum Step {
    Compute(u64),
    Message { to: u32, kind: Kind, bytes: u32 },
    Sync,
}

fn steps(ranks: u32) -> impl Strategy<Value = Vec<Vec<Step>>> {
    let step = prop_oneof![
        (0u64..200_000).prop_map(Step::Compute),
        (0..ranks, 0usize..5, 1u32..60).prop_map(|(to, kind, bytes)| Step::Message {
            to,
            kind: Kind::ALL[kind],
            bytes
        }),
        Just(Step::Sync),
    ];
    prop::collection::vec(prop::collection::vec(step, 0..12), ranks as usize)
}

fn windows() -> impl Strategy<Value = WindowSettings> {
    (0u32..4, 0u32..6, any::<bool>(), any::<bool>()).prop_map(|(packets, away, early, discard)| WindowSettings {
        packets: NonZeroU32::new(packets),
        away_packets: NonZeroU32::new(away),
        credit: if early { CreditReturn::Extracted } else { CreditReturn::Handled },
        away: if discard { Away::Discard { resend_ns: 250_000 } } else { Away::Buffer },
    })
}

fn sources() -> impl Strategy<Value = String> {
    let daemon = (50u64..2_000, 1u64..40, any::<bool>()).prop_map(|(interval, percent, polls)| {
        let duration = interval * percent / 100 + 1;
        format!(
            "[[source]]\nkind = \"daemon\"\ninterval_s = {interval}e-6\nduration_s = {duration}e-6\npolls = {polls}\n"
        )
    });
    let local = (20u64..1_000, any::<bool>()).prop_map(|(q, polls)| {
        format!("[[source]]\nkind = \"local\"\nquantum_s = {q}e-6\njobs = 2\nphases = \"spread\"\npolls = {polls}\n")
    });
    prop_oneof![Just(String::new()), daemon, local]
}

/// Numbers each message. At the end, a sync and a store-sync ensure that all have been handled.
fn script(steps: &[Vec<Step>]) -> Scripts {
    let ops = steps.iter().enumerate().map(|(rank, steps)| {
        let ops = steps.iter().enumerate().map(|(at, step)| match *step {
            Step::Compute(ns) => compute(ns),
            Step::Message { to, kind, bytes } => message(to, kind, bytes, (rank * 1000 + at) as u64),
            Step::Sync => Op::Sync,
        });
        ops.chain([Op::Sync, Op::StoreSync]).collect()
    });
    Scripts { ops: ops.collect(), handler_ns: 700, reply_bytes: 40 }
}

/// Messages that each rank must have handled, and sources from which it must have answers, in any order of sources.
fn expected(program: &Scripts) -> Vec<BTreeMap<Event, u32>> {
    let mut all = vec![BTreeMap::new(); program.ops.len()];
    for (rank, ops) in program.ops.iter().enumerate() {
        for (at, op) in ops.iter().enumerate() {
            if let Op::Message { to, kind, .. } = *op {
                let word = (rank * 1000 + at) as u64;
                *all[to as usize].entry(Event::Handled { from: rank as u32, kind: name(kind), word }).or_default() += 1;
                if kind.is_answered() {
                    *all[rank].entry(Event::Answered { from: to, word }).or_default() += 1;
                }
            }
        }
    }
    all
}

fn counted(rank: &Script) -> BTreeMap<Event, u32> {
    let mut events = BTreeMap::new();
    for event in &rank.log {
        *events.entry(event.clone()).or_default() += 1;
    }
    events
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_message_is_lost_or_handled_twice_and_those_of_a_pair_keep_their_order(
        steps in steps(5), window in windows(), source in sources(), seed in 0u64..1000
    ) {
        let program = script(&steps);
        let timelines = disturbed(&source, 5, seed);
        // Every program ends within a million visits to ranks, far more than these programs need.
        let run = simulate(&program, &cm5(), window, &timelines, &mut |_| false);
        // Two ranks that run alternately discard each other's packets for ever.
        if window.away != Away::Buffer && matches!(run, Err(SimError::Starved { .. })) {
            return Ok(());
        }
        let run = run.map_err(|error| TestCaseError::fail(error.to_string()))?;
        let wanted = expected(&program);
        for (rank, wanted) in run.ranks.iter().zip(&wanted) {
            prop_assert_eq!(&counted(rank), wanted);
            // Numbers of one source only increase; answers, too, arrive in the order of the requests.
            for source in 0..5u32 {
                let handled: Vec<u64> = rank.log.iter().filter_map(|event| match event {
                    Event::Handled { from, word, .. } if *from == source => Some(*word),
                    _ => None,
                }).collect();
                let answered: Vec<u64> = rank.log.iter().filter_map(|event| match event {
                    Event::Answered { from, word } if *from == source => Some(*word),
                    _ => None,
                }).collect();
                prop_assert!(handled.is_sorted() && answered.is_sorted());
            }
        }
        // Same input, same run, whatever the number of threads.
        for threads in [2, 3] {
            let again = simulate_on_threads(&program, &cm5(), window, &timelines, threads, &mut |_| true).unwrap();
            let log = |ranks: &[Script]| ranks.iter().map(|rank| rank.log.clone()).collect::<Vec<_>>();
            prop_assert_eq!(log(&again.ranks), log(&run.ranks));
            prop_assert_eq!((again.makespan_ns, again.totals, again.times), (run.makespan_ns, run.totals, run.times.clone()));
        }
    }

    #[test]
    fn a_disturbance_does_not_change_how_much_there_is_to_do(steps in steps(4), source in sources(), seed in 0u64..1000) {
        let program = script(&steps);
        let settings = WindowSettings::default();
        let alone = program.run(&cm5(), settings, &Timelines::undisturbed(4));
        let run = program.run(&cm5(), settings, &disturbed(&source, 4, seed));
        prop_assert_eq!(run.totals, alone.totals);
        let busy = |times: &[crosswind_sim::program::RankTimes]| times.iter().map(|t| t.busy_ns).collect::<Vec<_>>();
        prop_assert_eq!(busy(&run.times), busy(&alone.times));
        for (rank, times) in run.times.iter().enumerate() {
            prop_assert!(times.end_ns >= times.busy_ns, "rank {rank}");
        }
    }
}

#[test]
fn deadlocks_are_told_with_ranks_and_what_they_wait_for() {
    let cases = [
        (vec![vec![Op::Receive { from: 1, tag: 4 }], vec![]], "rank 0: receive from 1 with tag 4"),
        (vec![vec![Op::Barrier], vec![]], "rank 0: barrier"),
        (vec![vec![Op::Barrier], vec![Op::StoreSync]], "rank 1: store-sync"),
        (
            vec![vec![Op::WaitStored { bytes: 8 }], vec![message(0, Kind::Store, 4, 0)]],
            "wait for 8 stored bytes (4 are here)",
        ),
        (vec![vec![Op::Wait], vec![]], "rank 0: any message"),
    ];
    for (ops, what) in cases {
        let error = Scripts::new(ops).fails();
        let text = error.to_string();
        assert!(matches!(error, SimError::Deadlock { .. }) && text.contains(what), "{text}");
    }
}

#[test]
fn ranks_that_take_turns_and_throw_packets_away_are_told_that_they_never_meet() {
    let source = "[[source]]\nkind = \"recorded\"\nlength_s = 0.002\naligned = true\ncauses = [\"turns\"]\n\
                  [[source.cpu]]\ncpu = 0\nintervals = [[0.001, 0.000999, 0]]\n\
                  [[source.cpu]]\ncpu = 1\nintervals = [[0.0, 0.00102, 0]]\n";
    let program = Scripts::new(vec![vec![message(1, Kind::Store, 8, 0)], vec![Op::WaitStored { bytes: 8 }]]);
    let timelines = disturbed(source, 2, 1);
    let away = Away::Discard { resend_ns: 2_000_000 };
    let window = WindowSettings { away, ..WindowSettings::default() };
    let run = simulate(&program, &cm5(), window, &timelines, &mut |_| true).map(|_| ()).unwrap_err();
    assert!(matches!(run, SimError::Starved { from: 0, to: 1, .. }), "{run}");
    assert!(program.run(&cm5(), WindowSettings::default(), &timelines).makespan_ns > 1_000_000, "buffered, it comes");
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    let refused = |network: Network, window: WindowSettings| {
        let program = Scripts::alike(2, &[]);
        let run = simulate(&program, &network, window, &Timelines::undisturbed(2), &mut |_| true);
        run.map(|_| ()).unwrap_err().to_string()
    };
    let free = WindowSettings::default();
    assert!(refused(Network { packet_bytes: 0, ..cm5() }, free).starts_with("network.packet_bytes is 0"));
    assert!(refused(Network { latency_ns: 0, ..cm5() }, free).starts_with("network.latency_ns is 0"));
    assert!(refused(Network { gap_per_byte_ns: f64::NAN, ..cm5() }, free).starts_with("network.gap_per_byte_ns"));
    let discard = WindowSettings { away: Away::Discard { resend_ns: 10 }, ..free };
    assert!(refused(cm5(), discard).contains("at least a round trip"));
    let stranger = Scripts::new(vec![vec![message(7, Kind::Store, 1, 0)]]).fails().to_string();
    assert_eq!(stranger, "rank 0 names rank 7; it must be 0 to 0");
}

#[test]
fn the_callback_can_end_a_run() {
    let program = Scripts::alike(2, &vec![Op::Barrier; 2_000_000]);
    let run = simulate(&program, &cm5(), WindowSettings::default(), &Timelines::undisturbed(2), &mut |_| false);
    assert!(matches!(run.map(|_| ()).unwrap_err(), SimError::Interrupted));
}
