//! What senders and interfaces know of a rank that is away, for the whole absence and not only for the first packet.
use std::num::NonZeroU32;

use crate::programs::{Script, Scripts, cm5, compute, disturbed, message};
use crosswind_policy::window::{Away, WindowSettings};
use crosswind_program::{Kind, Op};
use crosswind_schema::disturbance::Timelines;
use crosswind_sim::program::Outcome;

const PACKETS: u64 = 20;
const AWAY: &str = "[[source]]\nkind = \"recorded\"\nlength_s = 1.0\ncauses = [\"other\"]\naligned = true\n\
    [[source.cpu]]\ncpu = 0\nintervals = []\n[[source.cpu]]\ncpu = 1\nintervals = [[0.001, 0.01, 0]]\n";

/// From a given time on, rank 0 sends packets to rank 1, which is away from 1 to 11 ms.
fn sent_from(ns: u64, window: WindowSettings, timelines: &Timelines) -> Outcome<Script> {
    let mut sends = vec![compute(ns)];
    sends.extend((0..PACKETS).map(|word| message(1, Kind::Store, 8, word)));
    Scripts::new(vec![sends, vec![Op::WaitStored { bytes: 8 * PACKETS }]]).run(&cm5(), window, timelines)
}

#[test]
fn what_is_sent_again_within_the_same_absence_is_thrown_away_again() {
    let discard = WindowSettings { away: Away::Discard { resend_ns: 1_000_000 }, ..WindowSettings::default() };
    let run = sent_from(2_000_000, discard, &disturbed(AWAY, 2, 1));
    // From 2 to 11 ms, every 1 to 2 ms.
    assert!(run.totals.discarded >= 4 * PACKETS, "{}", run.totals.discarded);
    assert_eq!(run.totals.handled, PACKETS);
    assert!(run.makespan_ns >= 11_000_000);
}

#[test]
fn a_rank_that_waits_for_a_credit_goes_on_when_the_window_grows_because_its_destination_goes_away() {
    let one = WindowSettings::of(NonZeroU32::MIN);
    let follow = WindowSettings { away_packets: NonZeroU32::new(512), ..one };
    let away = disturbed(AWAY, 2, 1);
    // The first packet arrives just after rank 1 has gone away.
    assert!(sent_from(995_000, one, &away).times[0].end_ns > 11_000_000);
    let run = sent_from(995_000, follow, &away);
    assert!(run.times[0].stalled_ns > 0, "it waited");
    assert!(run.times[0].end_ns < 2_000_000, "{} ns", run.times[0].end_ns);
}
