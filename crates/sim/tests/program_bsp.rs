//! Halo exchange and allreduce in the simulator: correct at every size, under every disturbance.
use std::num::NonZeroU32;

use crate::programs::{cm5, disturbed};
use crosswind_policy::window::{Away, CreditReturn, WindowSettings};
use crosswind_program::bsp::Algorithm;
use crosswind_program::{Bsp, Program};
use crosswind_schema::disturbance::Timelines;
use crosswind_sim::program::simulate;

const NOISE: &str = "[[source]]\nkind = \"daemon\"\ninterval_s = { distribution = \"exponential\", mean = 0.001 }\n\
                     duration_s = { distribution = \"exponential\", mean = 25e-6 }\n";

fn is_right(bsp: &Bsp, window: WindowSettings, timelines: &Timelines) -> (u64, u64) {
    let run = simulate(bsp, &cm5(), window, timelines, &mut |_| true).unwrap();
    bsp.check(&run.results()).unwrap_or_else(|wrong| panic!("{wrong}: {bsp:?}, {window:?}"));
    (run.makespan_ns, run.totals.messages)
}

#[test]
fn results_are_right_at_every_small_size_and_some_large_ones() {
    let sizes = (1..=70).chain([100, 127, 128, 129, 1000, 1024, 4096]);
    for ranks in sizes {
        for algorithm in [Algorithm::RecursiveDoubling, Algorithm::Ring] {
            if algorithm == Algorithm::Ring && ranks > 200 {
                continue;
            }
            for (dimensions, allreduce_bytes) in [(1, 8), (2, 0), (3, 100)] {
                let bsp = Bsp {
                    ranks,
                    dimensions,
                    iterations: 3,
                    work_ns: 50_000,
                    halo_bytes: 20,
                    allreduce_bytes,
                    algorithm,
                    barrier: dimensions == 2,
                };
                let (_, messages) = is_right(&bsp, WindowSettings::default(), &disturbed(NOISE, ranks, 1));
                let local = 3 * u64::from(ranks) * u64::from(2 * dimensions);
                let sent = 3 * bsp.messages_per_iteration();
                assert!((sent..=sent + local).contains(&messages), "{messages} of {sent}");
            }
        }
    }
}

#[test]
fn results_are_right_under_every_window_and_disturbance() {
    let bsp =
        Bsp { ranks: 30, iterations: 4, work_ns: 200_000, halo_bytes: 100, allreduce_bytes: 200, ..Bsp::default() };
    // Phases drift, so no two ranks miss each other for ever: that would starve a discarded packet.
    let local = "[[source]]\nkind = \"local\"\nquantum_s = 0.001\njobs = 2\nphases = \"drifting\"\ndrift = 0.2\n";
    let polling = "[[source]]\nkind = \"daemon\"\ninterval_s = 0.002\nduration_s = 0.0005\npolls = true\n";
    for source in [local, polling] {
        let timelines = disturbed(source, 30, 3);
        for packets in [1, 2, 1000] {
            for credit in [CreditReturn::Handled, CreditReturn::Extracted] {
                for away in [Away::Buffer, Away::Discard { resend_ns: 300_000 }] {
                    for follow in [None, Some(NonZeroU32::MIN)] {
                        let packets = NonZeroU32::new(packets);
                        let window = WindowSettings { packets, away_packets: follow, credit, away };
                        let first = is_right(&bsp, window, &timelines);
                        assert_eq!(first, is_right(&bsp, window, &timelines), "same seed, same run");
                    }
                }
            }
        }
    }
}
