//! The network with finite capacity: empty, it costs the same as the unlimited one; full, it neither loses nor
//! duplicates packets nor deadlocks.
use std::num::NonZeroU32;

use crosswind_policy::window::{CreditReturn, WindowSettings};
use crosswind_program::{Body, Em3d, Kind, Op, Program, Sample};
use crosswind_schema::disturbance::Timelines;
use crosswind_schema::experiment::parameters::{Em3dParameters, SampleParameters, Whole};
use crosswind_schema::experiment::{
    FatTree as Description, KnownNetwork, Network as NetworkDescription, ProgramExperiment,
};
use crosswind_sim::SimError;
use crosswind_sim::program::{FatTree, Network, Outcome, simulate};
use proptest::prelude::*;

use crate::programs::{Event, Script, Scripts, cm5};

const UNLIMITED: u32 = 1_000_000;

fn tree(buffers: u32, received: u32, sent: u32, polls: u32) -> Network {
    let fat_tree = FatTree {
        buffer_packets: buffers,
        receive_packets: received,
        send_packets: sent,
        polls_per_send: polls,
        seed: 7,
    };
    Network { fat_tree: Some(fat_tree), ..cm5() }
}

fn run(scripts: &Scripts, network: &Network, window: Option<u32>) -> Outcome<Script> {
    let window =
        window.map_or_else(WindowSettings::default, |packets| WindowSettings::of(NonZeroU32::new(packets).unwrap()));
    scripts.run(network, window, &Timelines::undisturbed(scripts.ranks()))
}

fn post(to: u32, word: u64) -> Op {
    Op::Message { to, kind: Kind::Post, bytes: 8, body: Body::Pair([word, 0]) }
}

#[test]
fn over_the_whole_tree_a_message_takes_the_latency_and_the_overheads() {
    let mut ops = vec![vec![]; 64];
    ops[0] = vec![post(63, 1)];
    let scripts = Scripts::new(ops);
    let limited = run(&scripts, &tree(2, 16, 2, 1), None);
    assert_eq!(limited.makespan_ns, 2_200 + 6_000 + 2_200);
    assert_eq!(limited.makespan_ns, scripts.dedicated().makespan_ns);
}

#[test]
fn a_neighbour_is_nearer() {
    for (to, links) in [(1, 2), (5, 4), (40, 6)] {
        let mut ops = vec![vec![]; 64];
        ops[0] = vec![post(to, 1)];
        let outcome = run(&Scripts::new(ops), &tree(2, 16, 2, 1), None);
        assert_eq!(outcome.makespan_ns, 2 * 2_200 + links * 1_000, "to {to}");
    }
}

#[test]
fn a_blocking_read_takes_a_round_trip() {
    let get = Op::Message { to: 63, kind: Kind::Get, bytes: 8, body: Body::Empty };
    let mut ops = vec![vec![]; 64];
    ops[0] = vec![get, Op::Sync];
    let scripts = Scripts::new(ops);
    assert_eq!(run(&scripts, &tree(2, 16, 2, 1), Some(4)).makespan_ns, 2 * 6_000 + 4 * 2_200);
    assert_eq!(scripts.dedicated().makespan_ns, 2 * 6_000 + 4 * 2_200);
}

/// All ranks send over the root at once: the links there carry one packet of each every g.
#[test]
fn the_links_at_the_root_make_the_gap() {
    let packets = 2_000;
    let ops = |me: u32| (0..packets).map(|number| post((me + 32) % 64, number)).collect();
    let scripts = Scripts::new((0..64).map(ops).collect());
    let (gap, unlimited) = (4_000 * packets, run(&scripts, &tree(UNLIMITED, UNLIMITED, UNLIMITED, 0), None));
    let part = unlimited.makespan_ns as f64 / gap as f64;
    assert!((1.0..1.12).contains(&part), "{part}");
    // Buffers of two packets, of which only the first moves, lose some of it.
    let finite = run(&scripts, &tree(2, 16, 2, 0), None).makespan_ns as f64 / gap as f64;
    assert!((part..1.8).contains(&finite), "{finite}");
}

/// A receiver that is away fills the switches in front of it, and then blocks ranks that never send to it.
#[test]
fn a_hot_spot_spreads() {
    let ops = |me: u32| -> Vec<Op> {
        match me {
            0 => vec![Op::Compute { ns: 5_000_000 }],
            1..=8 => (0..200).map(|number| post(0, number)).collect(),
            _ => (0..200).map(|number| post(if me == 63 { 9 } else { me + 1 }, number)).collect(),
        }
    };
    let scripts = Scripts::new((0..64).map(ops).collect());
    let bystanders = |outcome: &Outcome<Script>| outcome.times[9..].iter().map(|times| times.stalled_ns).max().unwrap();
    let finite = run(&scripts, &tree(2, 16, 2, 1), None);
    let unlimited = run(&scripts, &tree(UNLIMITED, UNLIMITED, UNLIMITED, 1), None);
    assert!(bystanders(&finite) > 1_000_000, "{}", bystanders(&finite));
    assert_eq!(bystanders(&unlimited), 0);
}

/// Messages of any kind from each rank to any other, then a barrier.
fn scripts() -> impl Strategy<Value = Vec<Vec<(u32, usize, u32)>>> {
    (2u32..40).prop_flat_map(|ranks| {
        let message = (0..ranks, 0usize..Kind::ALL.len(), 1u32..70);
        proptest::collection::vec(proptest::collection::vec(message, 0..25), ranks as usize)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn packets_are_neither_lost_nor_doubled_and_nothing_locks(
        messages in scripts(),
        buffers in 1u32..4,
        received in 1u32..6,
        sent in 1u32..4,
        polls in prop_oneof![Just(0u32), Just(1), Just(3), Just(UNLIMITED)],
        window in prop_oneof![Just(None), (1u32..9).prop_map(Some)],
        handler_ns in 0u64..20_000,
    ) {
        let mut word = 0;
        let ops: Vec<Vec<Op>> = messages.iter().map(|own| {
            let mut ops: Vec<Op> = own.iter().map(|&(to, kind, bytes)| {
                word += 1;
                Op::Message { to, kind: Kind::ALL[kind], bytes: bytes.into(), body: Body::Pair([word, 0]) }
            }).collect();
            ops.extend([Op::Sync, Op::StoreSync, Op::Barrier]);
            ops
        }).collect();
        let scripts = Scripts { handler_ns, reply_bytes: 40, ..Scripts::new(ops) };
        let outcome = run(&scripts, &tree(buffers, received, sent, polls), window);
        // Between each pair of ranks, every message is handled, and answered, once and in order.
        for (rank, one) in outcome.ranks.iter().enumerate() {
            for from in 0..messages.len() as u32 {
                let words = |event: &Event| match *event {
                    Event::Handled { from: sender, word, .. } if sender == from => Some(word),
                    _ => None,
                };
                let handled: Vec<u64> = one.log.iter().filter_map(words).collect();
                let expected: Vec<u64> = scripts.ops[from as usize].iter().filter_map(|op| match op {
                    Op::Message { to, body: Body::Pair([word, _]), .. } if *to == rank as u32 => Some(*word),
                    _ => None,
                }).collect();
                prop_assert_eq!(handled, expected, "from {} to {}", from, rank);
                let answers = one.log.iter().filter_map(|event| match *event {
                    Event::Answered { from: sender, word } if sender == from => Some(word),
                    _ => None,
                });
                let asked = scripts.ops[rank].iter().filter_map(|op| match op {
                    Op::Message { to, kind, body: Body::Pair([word, _]), .. } if *to == from && kind.is_answered() => Some(*word),
                    _ => None,
                });
                prop_assert!(answers.eq(asked), "answers of {} to {}", from, rank);
            }
        }
    }
}

/// Ranks released from a barrier while they have no room for what they owe wait until there is room, and the run
/// continues.
#[test]
fn a_rank_that_is_released_while_its_acknowledgements_have_no_room_is_not_asked_again_and_again() {
    let network = tree(1, 8, 1, 1);
    // All send to all, and reach the barrier while acknowledgements are still owed.
    let round = |me: u32| (0..16).filter(move |&to| to != me).map(|to| post(to, 1)).chain([Op::Barrier]);
    let ops = (0..16).map(|me| (0..40).flat_map(|_| round(me)).collect()).collect();
    let scripts = Scripts::new(ops);
    let mut calls = 0;
    let outcome = simulate(
        &scripts,
        &network,
        WindowSettings::of(NonZeroU32::new(4).unwrap()),
        &Timelines::undisturbed(16),
        &mut |_| {
            calls += 1;
            calls < 20
        },
    );
    assert_eq!(outcome.unwrap().totals.handled, 40 * 16 * 15);
}

#[test]
fn programs_come_to_the_same_results_and_runs_to_the_same_bytes() {
    let sample = SampleParameters { keys_per_rank: Whole::fixed(512), ..Default::default() };
    let em3d = Em3dParameters { steps: Whole::fixed(5), ..Default::default() };
    same(&Sample::new(&sample, 64, 1));
    same(&Em3d::new(&em3d, 64, 1));
}

fn same<P: Program>(program: &P) {
    let once = |packets| {
        let window = WindowSettings::of(NonZeroU32::new(packets).unwrap());
        let undisturbed = Timelines::undisturbed(program.ranks());
        let outcome = simulate(program, &tree(2, 16, 2, 1), window, &undisturbed, &mut |_| true).unwrap();
        program.check(&outcome.results()).unwrap();
        (outcome.makespan_ns, outcome.times)
    };
    for window in [1, 4, 512] {
        assert_eq!(once(window), once(window));
    }
}

#[test]
fn what_it_cannot_do_is_refused() {
    let scripts = Scripts::alike(4, &[Op::Barrier]);
    let two = WindowSettings::of(NonZeroU32::new(2).unwrap());
    let refused = |network: &Network, window| {
        simulate(&scripts, network, window, &Timelines::undisturbed(4), &mut |_| true)
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    let extracted = WindowSettings { credit: CreditReturn::Extracted, ..two };
    assert!(refused(&tree(2, 16, 2, 1), extracted).starts_with("policy.credit = \"extracted\" cannot be simulated"));
    assert_eq!(refused(&tree(0, 16, 2, 1), two), "network.fat_tree.buffer_packets is 0; it must be at least 1");
    let many = Scripts::alike(1025, &[]);
    let error = simulate(&many, &tree(2, 16, 2, 1), two, &Timelines::undisturbed(1025), &mut |_| true).map(|_| ());
    assert!(matches!(error, Err(SimError::FatTree { value: 1025, .. })));
}

#[test]
fn a_description_that_cannot_be_simulated_is_refused_with_its_field() {
    let described = |more: &str| {
        let network = "latency_s = 6e-6\noverhead_s = 2e-6\ngap_s = 4e-6\npacket_bytes = 16\n[network.fat_tree]\n";
        let workload = "[workload]\nkind = \"program\"\nprogram = \"em3d\"\n";
        let text = format!("schema_version = 1\nname = \"e\"\n[network]\n{network}{workload}{more}");
        ProgramExperiment::from_toml(text.as_bytes(), "e.toml").map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(described("ranks = 64\n"), Ok(()));
    for (more, field) in [
        ("ranks = 1025\n", "workload.ranks is 1025; with network.fat_tree it must be 1 to 1024"),
        ("ranks = 64\n[policy]\nwindow_packets = 2\ncredit = \"extracted\"\n", "policy.credit is \"extracted\""),
        ("ranks = 64\n[policy]\naway = \"discard\"\n", "policy.away is \"discard\""),
        ("ranks = 64\n[policy]\nwindow = \"follow\"\nwindow_packets = 2\n", "policy.window is \"follow\""),
        (
            "ranks = 64\n[disturbance]\nschema_version = 1\nname = \"d\"\n[[disturbance.source]]\nkind = \"daemon\"\ninterval_s = 1.0\n\
             duration_s = 0.1\npolls = true\n",
            "disturbance has a source that polls",
        ),
    ] {
        let error = described(more).unwrap_err();
        assert!(error.contains(field), "{error}");
    }
}

#[test]
fn a_description_has_the_depths_of_the_look_at_the_papers_machine() {
    let description: Description = serde_json::from_str("{}").unwrap();
    let network = NetworkDescription { fat_tree: Some(description), ..KnownNetwork::Cm5.network() };
    assert_eq!(Network::of(&network).seeded(7), tree(2, 16, 2, 1));
}
