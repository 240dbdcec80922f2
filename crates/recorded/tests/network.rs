//! A recorded program on a simulated network, against what LogGP says by hand.

use crosswind_policy::window::WindowSettings;
use crosswind_recorded::read::traces;
use crosswind_recorded::{Reader, Recording};
use crosswind_schema::disturbance::Timelines;
use crosswind_sim::program::{Network, simulate};

const NETWORK: Network = Network {
    latency_ns: 10_000,
    overhead_ns: 1_000,
    gap_ns: 0,
    gap_per_byte_ns: 1.0,
    packet_bytes: 1_000_000,
    acknowledgement_ns: 1_000,
    control_ns: 10_000,
    fat_tree: None,
};
/// From the beginning of a send until a message of one byte has been handled, ns.
const ONE_WAY: u64 = 12_000;

/// Reads the calls of each rank: `op t0 t1 more`, times in ms.
fn recorded(ranks: &[&[(&str, f64, f64, &str)]]) -> Result<Recording, String> {
    let mut found = Vec::new();
    for (rank, calls) in ranks.iter().enumerate() {
        let mut text = format!("{{\"rank\": {rank}, \"world\": {}, \"t0\": 0}}\n", ranks.len());
        for (op, from, to, more) in *calls {
            let (from, to) = (from * 1e-3, to * 1e-3);
            text += &format!("{{\"op\": \"{op}\", \"t0\": {from:.6}, \"t1\": {to:.6}{more}}}\n");
        }
        let mut reader = Reader::new(&format!("rank {rank}"));
        reader.feed(text.as_bytes()).unwrap();
        found.append(&mut reader.finish().unwrap());
    }
    Recording::new(traces(found).unwrap())
}

/// Runs it; returns the ends of all ranks and the number of messages.
fn run(recording: &Recording) -> (Vec<u64>, u64) {
    let alone = Timelines::undisturbed(recording.ranks());
    let goal = recording.on_network().unwrap();
    let outcome = simulate(goal, &NETWORK, WindowSettings::default(), &alone, &mut |_| true).unwrap();
    (outcome.times.iter().map(|times| times.end_ns).collect(), outcome.totals.messages)
}

#[test]
fn a_message_takes_its_time_on_the_network_and_not_as_recorded() {
    let barrier = ("barrier", 0.0, 0.01, "");
    let sender: &[_] = &[barrier, ("send", 1.0, 1.001, ", \"peer\": 1, \"tag\": 7, \"bytes\": 1000")];
    let receiver: &[_] =
        &[barrier, ("recv", 0.5, 1.1, ", \"peer\": 0, \"tag\": 7, \"bytes\": 1000"), ("step", 1.3, 1.3, "")];
    let recording = recorded(&[sender, receiver]).unwrap();
    assert_eq!((recording.recorded_ns(), recording.replayed_ns()), (1_300_000, 1_300_000));
    assert_eq!(recording.messages(), 1);
    let (ends, messages) = run(&recording);
    // The barrier; 0.99 ms of computing, o + L + 999 G + o; then the 0.2 ms that rank 1 computes. The barrier is two messages.
    assert_eq!((ends[1], messages), (ONE_WAY + 990_000 + ONE_WAY + 999 + 200_000, 3));
}

#[test]
fn an_allreduce_is_messages_after_the_last_rank() {
    let rank = |ms: f64| [("allreduce", ms, 2.1, ", \"bytes\": 8")];
    let (first, second, third) = (rank(1.0), rank(1.0), rank(2.0));
    let recording = recorded(&[&first, &second, &third]).unwrap();
    assert_eq!(recording.meetings_of_all(), 1);
    let (ends, messages) = run(&recording);
    // Rank 0 gives its value to rank 1, ranks 1 and 2 exchange theirs, rank 0 gets the sum. Rank 2 takes what has come
    // meanwhile before it sends.
    assert_eq!(messages, 4);
    assert_eq!(ends[0], 2_000_000 + NETWORK.overhead_ns + 2 * (ONE_WAY + 7));
}

#[test]
fn ranks_of_a_scan_wait_for_those_below_them_on_the_network_too() {
    let rank = |from: f64, to: f64| [("barrier", 0.0, 0.01, ""), ("scan", from, to, ", \"bytes\": 8")];
    let (first, second, third) = (rank(1.0, 1.05), rank(2.0, 2.1), rank(1.0, 2.1));
    let recording = recorded(&[&first, &second, &third]).unwrap();
    assert_eq!((recording.replayed_ns(), recording.meetings_of_all()), (2_100_000, 1));
    let (ends, messages) = run(&recording);
    // Six of the barrier; rank 0 to rank 1, rank 1 to rank 2, then rank 0 to rank 2.
    assert_eq!(messages, 6 + 3);
    assert!(ends[0] < 1_100_000 && ends[1] >= 2_000_000 && ends[2] >= 2_000_000 + ONE_WAY);
}

#[test]
fn a_scan_of_a_communicator_whose_order_is_not_known_is_refused() {
    let rank = [("exscan", 1.0, 2.1, ", \"bytes\": 8, \"comm\": \"row\"")];
    assert!(recorded(&[&rank, &rank]).err().unwrap().starts_with("scans of communicators other than the world"));
}

#[test]
fn a_send_that_waited_for_its_receiver_waits_for_it_here() {
    let barrier = ("barrier", 0.0, 0.01, "");
    let sender: &[_] =
        &[barrier, ("send", 1.0, 5.05, ", \"peer\": 1, \"tag\": 7, \"bytes\": 100000"), ("step", 6.05, 6.05, "")];
    let receiver: &[_] = &[barrier, ("recv", 5.0, 5.1, ", \"peer\": 0, \"tag\": 7, \"bytes\": 100000")];
    let (ends, messages) = run(&recorded(&[sender, receiver]).unwrap());
    // Two of the barrier; then the receiver says that it is there, and the data follow.
    assert_eq!(messages, 4);
    let barrier = ONE_WAY;
    let there = barrier + 4_990_000 + ONE_WAY;
    assert!(ends[0] >= there + 1_000_000, "{}", ends[0]);
    assert_eq!(ends[1], there + ONE_WAY + 99_999);
}

#[test]
fn what_cannot_be_run_again_is_refused() {
    let alone: &[_] = &[("send", 1.0, 1.1, ", \"peer\": 1, \"tag\": 7, \"bytes\": 8")];
    let refusal = |ranks: &[&[(&str, f64, f64, &str)]]| recorded(ranks).err().unwrap();
    let late: &[_] =
        &[("recv", 0.5, 1.2, ", \"peer\": 0, \"tag\": 7"), ("recv", 1.3, 1.4, ", \"peer\": 0, \"tag\": 7")];
    assert!(refusal(&[alone, late]).starts_with("events are missing"), "{}", refusal(&[alone, late]));
    let mut reader = Reader::new("rank 1");
    reader.feed(b"{\"rank\": 1, \"world\": 3, \"t0\": 0}\n{\"op\": \"step\", \"t0\": 1, \"t1\": 1}\n").unwrap();
    let missing = Recording::new(traces(reader.finish().unwrap()).unwrap()).err().unwrap();
    assert_eq!(missing, "the trace of rank 0 and 1 more is missing, and other ranks wait for it");
    assert!(Recording::new(Vec::new()).is_err());
    let quiet: &[_] = &[("allreduce", 1.0, 2.1, "")];
    let sizes = recorded(&[quiet, quiet]).unwrap();
    assert!(sizes.on_network().unwrap_err().contains("the bytes of its messages are not recorded"));
}
