//! GOAL files checked against LogGOPSim's rules. A send or a message begins when processor and interface are free. The
//! processor is free again after o, the interface after g + (s - 1) G. A message arrives L after its send's o, and is
//! complete (s - 1) G + o later.
use crate::programs::disturbed;
use crosswind_policy::window::WindowSettings;
use crosswind_program::{Goal, Program};
use crosswind_schema::disturbance::Timelines;
use crosswind_sim::program::{Network, simulate};

/// LogGOPSim's default parameters, every message a packet.
const DEFAULTS: Network = Network {
    fat_tree: None,
    latency_ns: 2_500,
    overhead_ns: 1_500,
    gap_ns: 1_000,
    gap_per_byte_ns: 6.0,
    packet_bytes: u32::MAX,
    acknowledgement_ns: 1_500,
    control_ns: 10_000,
};

fn makespan(text: &str) -> u64 {
    let goal = Goal::parse(text.as_bytes()).unwrap();
    let timelines = Timelines::undisturbed(goal.ranks());
    let run = simulate(&goal, &DEFAULTS, WindowSettings::default(), &timelines, &mut |_| true).unwrap();
    goal.check(&run.results()).unwrap();
    run.makespan_ns
}

#[test]
fn makespans_are_those_of_loggopsim() {
    // A small message takes o + L + o = 5500.
    let cases = [
        // "22000ns for our example with default parameters" (LogGOPSim's README): four rounds.
        ("dissemination_16", include_str!("goal/dissemination_16.goal"), 22_000),
        // Along 0, 1, 3, 7, 15 each rank sends first to the next: four messages.
        ("binomial_broadcast_16", include_str!("goal/binomial_broadcast_16.goal"), 22_000),
        // Each way o + L + 1000 G + o.
        ("ping_pong", include_str!("goal/ping_pong.goal"), 23_000),
        // The seventh send begins after six gaps of g + 100 G = 1600, more than o.
        ("scatter_8", include_str!("goal/scatter_8.goal"), 6 * 1_600 + 5_500 + 600),
        // All have arrived at 4000. The processor handles them one after the other.
        ("gather_8", include_str!("goal/gather_8.goal"), 4_000 + 7 * 1_500),
        // LogGOPSim keeps the processor busy while bytes arrive: o + 1000 G each.
        ("gather_long_8", include_str!("goal/gather_long_8.goal"), 4_000 + 7 * 7_500),
        // The message waits until the processor has computed; then o, and a message back.
        ("overlap", include_str!("goal/overlap.goal"), 10_000 + 1_500 + 5_500),
        // The second send leaves when o and 20000 of computing are over.
        ("out_of_order", include_str!("goal/out_of_order.goal"), 1_500 + 20_000 + 5_500 + 1_000),
        // The result of LogGOPSim built from source: through the network, o + L + 7 G + o, and 100 of computing.
        (
            "to_oneself",
            "num_ranks 2\nrank 0 {\na: send 8b to 0 tag 1\nb: recv 8b from 0 tag 1\nc: calc 100\nc requires b\n}\n\
             rank 1 {\ncalc 5\n}\n",
            5_642,
        ),
        // Tags that agree in their low 32 bits are still distinct.
        (
            "long_tags",
            "num_ranks 2\nrank 0 {\nsend 1b to 1 tag 4294967297\nsend 1b to 1 tag 1\n}\n\
             rank 1 {\na: recv 1b from 0 tag 1\nrecv 1b from 0 tag 4294967297\nb: calc 100\nb requires a\n}\n",
            1_500 + 5_500 + 100,
        ),
    ];
    for (name, text, expected) in cases {
        assert_eq!(makespan(text), expected, "{name}");
    }
}

/// Ends of all ranks where messages have a packet for each byte, and only overhead and latency cost: 1 ns each.
fn ends_by_packets(text: &str) -> Vec<u64> {
    let goal = Goal::parse(text.as_bytes()).unwrap();
    let timelines = Timelines::undisturbed(goal.ranks());
    let network =
        Network { latency_ns: 1, overhead_ns: 1, gap_ns: 0, gap_per_byte_ns: 0.0, packet_bytes: 1, ..DEFAULTS };
    let run = simulate(&goal, &network, WindowSettings::default(), &timelines, &mut |_| true).unwrap();
    run.times.iter().map(|rank| rank.end_ns).collect()
}

#[test]
fn what_needs_only_the_beginning_of_a_send_is_free_with_its_first_packet() {
    // Rank 1 sends until 2, handles a packet until 3, sends the last one until 4, computes until 9, sends until 10.
    let text = "num_ranks 2\nrank 0 {\nrecv 0b from 1\nsend 0b to 1\nrecv 0b from 1 tag 1\n}\n\
                rank 1 {\na: send 3b to 0\nb: recv 0b from 0\nc: calc 5\nd: send 0b to 0 tag 1\n\
                c irequires a\nd requires b\n}\n";
    assert_eq!(ends_by_packets(text), [12, 10]);
}

#[test]
fn a_receive_without_a_send_is_a_deadlock_that_names_the_rank() {
    let goal = Goal::parse(b"num_ranks 2\nrank 0 {\nrecv 1b from 1 tag 3\n}\n").unwrap();
    let timelines = Timelines::undisturbed(2);
    let error =
        simulate(&goal, &DEFAULTS, WindowSettings::default(), &timelines, &mut |_| true).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("deadlock") && error.to_string().contains("rank 0"), "{error}");
}

#[test]
fn a_message_that_no_receive_asked_for_is_told() {
    let goal = Goal::parse(b"num_ranks 2\nrank 0 {\nsend 1b to 1 tag 3\n}\n").unwrap();
    let timelines = Timelines::undisturbed(2);
    let run = simulate(&goal, &DEFAULTS, WindowSettings::default(), &timelines, &mut |_| true).unwrap();
    assert_eq!(goal.check(&run.results()).unwrap_err(), "rank 1: 1 messages came that no recv asked for");
}

#[test]
fn noise_delays_a_schedule_and_the_same_seed_gives_the_same_run() {
    let goal = Goal::parse(include_bytes!("goal/dissemination_16.goal")).unwrap();
    let noise = disturbed("[[source]]\nkind = \"local\"\nquantum_s = 1e-5\njobs = 2\nphases = \"spread\"\n", 16, 5);
    let run = || simulate(&goal, &DEFAULTS, WindowSettings::default(), &noise, &mut |_| true).unwrap().makespan_ns;
    assert!(run() > 22_000);
    assert_eq!(run(), run());
}
