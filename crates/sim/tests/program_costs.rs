//! Cost of each operation on an undisturbed network, to the nanosecond, by the model's definition.
use std::num::NonZeroU32;

use crate::programs::{Scripts, cm5, compute, message};
use crosswind_policy::window::{CreditReturn, WindowSettings};
use crosswind_program::{Kind, Op};
use crosswind_schema::disturbance::Timelines;
use crosswind_sim::program::Network;

const L: u64 = 6_000;
const O: u64 = 2_200;
const G: u64 = 4_000;
const CONTROL: u64 = 5_000;

fn window(packets: u32) -> WindowSettings {
    WindowSettings::of(NonZeroU32::new(packets).unwrap())
}

#[test]
fn a_store_takes_overhead_latency_and_overhead() {
    let store = message(1, Kind::Store, 16, 7);
    let run = Scripts::new(vec![vec![store], vec![Op::WaitStored { bytes: 16 }]]).dedicated();
    assert_eq!(run.makespan_ns, O + L + O);
    assert_eq!((run.times[0].end_ns, run.times[0].busy_ns, run.times[1].busy_ns), (O, O, O));
    assert_eq!((run.totals.messages, run.totals.packets, run.totals.handled), (1, 1, 1));
}

#[test]
fn packets_of_a_message_leave_one_gap_apart() {
    let store = message(1, Kind::Store, 100, 7);
    let run = Scripts::new(vec![vec![store], vec![Op::WaitStored { bytes: 100 }]]).dedicated();
    assert_eq!(run.totals.packets, 7);
    assert_eq!(run.times[0].end_ns, 6 * G + O);
    assert_eq!(run.makespan_ns, 6 * G + O + L + O);
}

#[test]
fn a_get_takes_a_round_trip_and_the_handlers_time() {
    let mut program = Scripts::new(vec![vec![message(1, Kind::Get, 8, 3), Op::Sync], vec![]]);
    program.handler_ns = 1_000;
    let run = program.dedicated();
    assert_eq!(run.makespan_ns, O + L + (O + 1_000) + O + L + O);
    assert_eq!(run.totals.messages, 2);
    assert_eq!(run.ranks[0].log.len(), 1);
}

#[test]
fn a_send_is_received_by_source_and_tag_whatever_the_order() {
    let send = |tag| Op::Send { to: 1, tag, bytes: 16 };
    let receive = |tag| Op::Receive { from: 0, tag };
    let run = Scripts::new(vec![vec![send(1), send(2), send(1)], vec![receive(2), receive(1), receive(1)]]).dedicated();
    // The second leaves one gap after the first, and has arrived when the first has been handled.
    assert_eq!(run.makespan_ns, 2 * G + O + L + O);
}

#[test]
fn nothing_is_handled_while_a_rank_computes() {
    let work = 1_000_000;
    let run =
        Scripts::new(vec![vec![message(1, Kind::Get, 8, 0), Op::Sync], vec![compute(work), compute(work)]]).dedicated();
    assert_eq!(run.times[0].end_ns, 2 * work + O + O + L + O);
    // The rank polls before each operation except computing: here before the request is sent.
    let polls = vec![compute(work), message(0, Kind::Post, 8, 0), compute(work)];
    let run = Scripts::new(vec![vec![message(1, Kind::Get, 8, 0), Op::Sync], polls]).dedicated();
    assert_eq!(run.times[0].end_ns, work + O + O + L + O + (G - O) + O, "the answer first, then the post after a gap");
}

#[test]
fn a_barrier_ends_a_control_latency_after_the_last_rank() {
    let ops: Vec<Vec<Op>> = (0..5).map(|rank| vec![compute(rank * 1_000), Op::Barrier, compute(10)]).collect();
    let run = Scripts::new(ops).dedicated();
    assert_eq!(run.makespan_ns, 4_000 + CONTROL + 10);
    assert!(run.times.iter().all(|times| times.end_ns >= 4_000 + CONTROL));
}

#[test]
fn a_store_sync_waits_for_the_last_store() {
    let mut ops = vec![vec![Op::StoreSync]; 3];
    ops[0].insert(0, message(2, Kind::Store, 64, 0));
    let run = Scripts::new(ops).dedicated();
    assert_eq!(run.makespan_ns, 3 * G + O + L + O + CONTROL);
}

#[test]
fn a_rank_that_all_send_to_takes_packets_one_gap_apart() {
    let ranks = 65;
    let mut ops = vec![vec![message(0, Kind::Store, 16, 0)]; ranks];
    ops[0] = vec![Op::WaitStored { bytes: 16 * (ranks as u64 - 1) }];
    assert_eq!(Scripts::new(ops).dedicated().makespan_ns, O + L + (ranks as u64 - 2) * G + O);
}

#[test]
fn without_a_gap_the_overhead_is_the_bottleneck() {
    let network = Network { gap_ns: 0, ..cm5() };
    let ops = vec![message(1, Kind::Store, 160, 0)];
    let program = Scripts::new(vec![ops, vec![Op::WaitStored { bytes: 160 }]]);
    let run = program.run(&network, WindowSettings::default(), &Timelines::undisturbed(2));
    assert_eq!(run.makespan_ns, 10 * O + L + O);
}

#[test]
fn bytes_of_one_packet_take_their_time_once() {
    let network = Network { gap_per_byte_ns: 2.5, packet_bytes: u32::MAX, ..cm5() };
    let ops = vec![message(1, Kind::Store, 1001, 0), message(1, Kind::Store, 1, 0)];
    let program = Scripts::new(vec![ops, vec![Op::WaitStored { bytes: 1002 }]]);
    let run = program.run(&network, WindowSettings::default(), &Timelines::undisturbed(2));
    // The second leaves when the first's bytes are out, one gap later, and follows it through.
    assert_eq!(run.times[0].end_ns, G + 2_500 + O);
    assert_eq!(run.makespan_ns, G + 2_500 + O + L + O);
}

#[test]
fn a_window_of_one_makes_each_packet_wait_for_the_acknowledgement_of_the_last() {
    let store = message(1, Kind::Store, 48, 0);
    let program = Scripts::new(vec![vec![store], vec![Op::WaitStored { bytes: 48 }]]);
    let run = program.run(&cm5(), window(1), &Timelines::undisturbed(2));
    // Packet out, handled, acknowledged, acknowledgement handled.
    let round = O + L + O + O + L + O;
    assert_eq!(run.makespan_ns, 2 * round + O + L + O + O);
    assert_eq!(run.times[0].stalled_ns, 2 * (round - G), "from when the interface would take the packet");
    assert_eq!(run.totals.acknowledgements, 3);
}

#[test]
fn a_window_that_holds_all_packets_costs_only_acknowledgements() {
    let ops = |n: u32| vec![message(1, Kind::Get, 8, 0); n as usize].into_iter().chain([Op::Sync]).collect::<Vec<_>>();
    for credit in [CreditReturn::Handled, CreditReturn::Extracted] {
        let program = Scripts::new(vec![ops(5), vec![]]);
        let free = program.dedicated();
        let settings = WindowSettings { credit, ..window(5) };
        let run = program.run(&cm5(), settings, &Timelines::undisturbed(2));
        // The answers return the credits.
        assert_eq!((run.makespan_ns, run.totals.acknowledgements), (free.makespan_ns, 0));
        assert_eq!(run.stalled_ns(), 0);
    }
}

#[test]
fn messages_to_oneself_cost_their_handler() {
    let mut program = Scripts::new(vec![vec![message(0, Kind::Get, 8, 5), Op::Sync, message(0, Kind::Store, 800, 6)]]);
    program.handler_ns = 300;
    let run = program.dedicated();
    assert_eq!(run.makespan_ns, 600);
    assert_eq!(run.ranks[0].log.len(), 3);
}
