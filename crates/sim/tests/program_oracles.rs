//! Costs of disturbances checked against closed forms (scheduling-and-communication; the forms that its figures obey).
use std::num::NonZeroU32;

use crate::programs::{Scripts, compute, disturbed, message};
use crosswind_policy::window::WindowSettings;
use crosswind_program::{Kind, Op};
use crosswind_schema::disturbance::Timelines;
use crosswind_sim::program::Network;

/// A network with negligible costs, for forms without a network.
const FREE: Network = Network {
    fat_tree: None,
    latency_ns: 1_000,
    overhead_ns: 0,
    gap_ns: 0,
    gap_per_byte_ns: 0.0,
    packet_bytes: 1024,
    acknowledgement_ns: 0,
    control_ns: 1_000,
};

const MS: u64 = 1_000_000;

/// Repeated work and a barrier.
fn barriers(ranks: u32, work_ns: u64, times: usize) -> Scripts {
    let ops: Vec<Op> = std::iter::repeat_n([compute(work_ns), Op::Barrier], times).flatten().collect();
    Scripts::alike(ranks, &ops)
}

/// Returns the slowdown relative to an undisturbed run.
fn slowdown(program: &Scripts, timelines: &Timelines) -> f64 {
    let settings = WindowSettings::default();
    let alone = program.run(&FREE, settings, &Timelines::undisturbed(timelines.ranks())).makespan_ns as f64;
    program.run(&FREE, settings, timelines).makespan_ns as f64 / alone
}

#[test]
fn barriers_under_local_scheduling_cost_half_a_quantum_each() {
    // (Q + w) / (2 w) of the coscheduled time, which is twice the dedicated one.
    for (quantum_s, quantum_ms, times) in [(0.1, 100.0, 500), (0.5, 500.0, 500)] {
        let work_ms = 7.1;
        let program = barriers(256, 7_100_000, times);
        let source = format!("[[source]]\nkind = \"local\"\nquantum_s = {quantum_s}\njobs = 2\nphases = \"spread\"\n");
        let measured = slowdown(&program, &disturbed(&source, 256, 1)) / 2.0;
        let form = (quantum_ms + work_ms) / (2.0 * work_ms);
        assert!((measured / form - 1.0).abs() < 0.03, "quantum {quantum_ms} ms: {measured}, form {form}");
    }
}

#[test]
fn barriers_under_a_daemon_cost_between_the_union_and_the_sum() {
    barriers_cost_between_the_union_and_the_sum(&[(5.0, 0.05)]);
}

#[test]
#[ignore = "long: make test-long"]
fn barriers_under_the_papers_other_daemons_cost_between_the_union_and_the_sum() {
    barriers_cost_between_the_union_and_the_sum(&[(10.0, 0.005), (5.0, 0.01)]);
}

/// `daemons`: interval and duration, s. Intervals vary, so that no single draw of phases decides.
fn barriers_cost_between_the_union_and_the_sum(daemons: &[(f64, f64)]) {
    let ranks = 64;
    for &(interval, duration) in daemons {
        let (low, high) = (interval * 0.5, interval * 1.5);
        let source = format!(
            "[[source]]\nkind = \"daemon\"\nduration_s = {duration}\n\
             interval_s = {{ distribution = \"uniform\", low = {low}, high = {high} }}\n"
        );
        let program = barriers(ranks, 2 * MS, 50_000);
        let measured = slowdown(&program, &disturbed(&source, ranks, 1));
        let (union, sum) = bounds(f64::from(ranks), interval, duration);
        // A tolerance of one in 12 covers random variation, and daemons that overlap only between the same two
        // barriers.
        let tolerance = 0.08 * (union - 1.0);
        assert!((union - tolerance..=sum + tolerance).contains(&measured), "{union} <= {measured} <= {sum}");
    }
}

/// Slowdown if overlapping absences count once, and if none overlap.
fn bounds(ranks: f64, interval: f64, duration: f64) -> (f64, f64) {
    let share = duration / interval;
    (1.0 / (1.0 - share).powf(ranks), 1.0 / (1.0 - ranks * share))
}

#[test]
fn one_shared_node_makes_barriers_as_slow_as_it_is() {
    for share in [0.2, 0.5, 0.8] {
        let source = format!("[[source]]\nkind = \"job\"\nranks = [17]\nshare = {share}\nslice_s = 0.1\n");
        let measured = slowdown(&barriers(64, 7 * MS, 10_000), &disturbed(&source, 64, 1));
        assert!((measured * share - 1.0).abs() < 0.05, "share {share}: {measured}");
    }
}

#[test]
fn a_node_that_had_nothing_to_do_anyway_may_be_shared() {
    // Rank 17 has half of the others' work: at half the speed it is in time.
    let mut program = barriers(64, 8 * MS, 5_000);
    program.ops[17].iter_mut().for_each(|op| {
        if let Op::Compute { ns } = op {
            *ns /= 4;
        }
    });
    let source = "[[source]]\nkind = \"job\"\nranks = [17]\nshare = 0.5\nslice_s = 0.0001\n";
    let measured = slowdown(&program, &disturbed(source, 64, 1));
    assert!(measured < 1.05, "{measured}");
}

/// A quantum loses `s - w / 2` if the work between two barriers is shorter than the skew, and `s^2 / (2 w)` if it is
/// longer. This is a mean over lengths, since the work left at the end of a quantum depends on divisibility.
#[test]
fn skewed_barriers_lose_what_the_work_under_way_does_not_hide() {
    skewed_barriers_lose_what_is_not_hidden(&[8.0]);
}

#[test]
#[ignore = "long: make test-long"]
fn skewed_barriers_lose_what_the_work_under_way_does_not_hide_whatever_the_work() {
    skewed_barriers_lose_what_is_not_hidden(&[0.5, 2.0, 13.7, 30.0]);
}

/// `works`: mean times between barriers, ms.
fn skewed_barriers_lose_what_is_not_hidden(works: &[f64]) {
    let source = "[[source]]\nkind = \"coscheduled\"\nquantum_s = 0.1\njobs = 2\nskew_s = 0.01\n";
    let timelines = disturbed(source, 128, 1);
    let (skew_ms, quantum_ms) = (10.0, 100.0);
    for &middle_ms in works {
        let (mut measured, mut form) = (0.0, 0.0);
        for work_ms in (0..8).map(|step| middle_ms * (0.8 + f64::from(step) / 20.0)) {
            let times = (5_000.0 / work_ms) as usize;
            measured += slowdown(&barriers(128, (work_ms * 1e6) as u64, times), &timelines) / 2.0;
            let lost = if work_ms < skew_ms { skew_ms - work_ms / 2.0 } else { skew_ms * skew_ms / (2.0 * work_ms) };
            form += 1.0 / (1.0 - lost / quantum_ms);
        }
        assert!((measured / form - 1.0).abs() < 0.015, "about {middle_ms} ms: {measured}, form {form}");
    }
}

#[test]
fn skew_costs_at_most_its_part_of_the_quantum() {
    for skew in [0.001, 0.01] {
        let source = format!("[[source]]\nkind = \"coscheduled\"\nquantum_s = 0.1\njobs = 2\nskew_s = {skew}\n");
        let timelines = disturbed(&source, 16, 1);
        let fine = slowdown(&barriers(16, 100_000, 100_000), &timelines) / 2.0;
        let bound = 1.0 / (1.0 - skew / 0.1);
        assert!((1.0..=bound * 1.002).contains(&fine), "fine: {fine}, bound {bound}");
        let coarse = slowdown(&barriers(16, 10 * MS, 1_000), &timelines) / 2.0;
        assert!(coarse <= fine * 1.001, "coarse {coarse}, fine {fine}");
    }
}

#[test]
fn coscheduled_jobs_take_the_sum_of_their_dedicated_times() {
    let source = "[[source]]\nkind = \"coscheduled\"\nquantum_s = 0.1\njobs = 2\n";
    let measured = slowdown(&barriers(64, 7 * MS, 5_000), &disturbed(source, 64, 1)) / 2.0;
    assert!((measured - 1.0).abs() < 0.01, "{measured}");
}

/// A ring of stores while all compute, then one store-sync. `rest_ns`: computing before the store-sync.
fn stores(ranks: u32, rest_ns: u64) -> Scripts {
    let ops = (0..ranks).map(|rank| {
        let sends = (0..100).flat_map(|_| [compute(MS), message((rank + 1) % ranks, Kind::Store, 16, 0)]);
        sends.chain([compute(rest_ns), Op::StoreSync]).collect()
    });
    Scripts::new(ops.collect())
}

#[test]
fn stores_with_buffers_and_enough_to_do_feel_only_the_processor_lost() {
    // Every rank is away for 50 ms of the first 300, at different times. None waits for another before the store-sync.
    let ranks = 16;
    let source = |rank: u32| {
        let start = 0.005 + f64::from(rank) * 0.005;
        format!("[[source.cpu]]\ncpu = {rank}\nintervals = [[{start}, 0.05, 0]]\n")
    };
    let mut text = "[[source]]\nkind = \"recorded\"\nlength_s = 1000.0\naligned = true\ncauses = [\"c\"]\n".to_owned();
    for rank in 0..ranks {
        text.push_str(&source(rank));
    }
    let program = stores(ranks, 200 * MS);
    let timelines = disturbed(&text, ranks, 1);
    let settings = WindowSettings::default();
    let alone = program.run(&FREE, settings, &Timelines::undisturbed(ranks)).makespan_ns;
    let run = program.run(&FREE, settings, &timelines).makespan_ns;
    assert_eq!(run, alone + 50 * MS, "no rank waited for another");
    // With a window of one packet they stop for each other.
    let one = WindowSettings::of(NonZeroU32::MIN);
    let blocked = program.run(&FREE, one, &timelines);
    assert!(blocked.makespan_ns > run + 20 * MS, "{} against {run}", blocked.makespan_ns);
    assert!(blocked.stalled_ns() > 0);
}

#[test]
fn gets_with_enough_computing_before_the_sync_do_not_feel_the_other_rank_away() {
    let source = "[[source]]\nkind = \"recorded\"\nlength_s = 1000.0\naligned = true\ncauses = [\"c\"]\n\
                  [[source.cpu]]\ncpu = 0\nintervals = []\n[[source.cpu]]\ncpu = 1\nintervals = [[0.001, 0.05, 0]]\n";
    let timelines = disturbed(source, 2, 1);
    let program = |between: u64| {
        let gets = vec![compute(2 * MS), message(1, Kind::Get, 8, 0), compute(between), Op::Sync, compute(MS)];
        Scripts::new(vec![gets, vec![]])
    };
    let times = |between: u64| {
        let settings = WindowSettings::default();
        let alone = program(between).run(&FREE, settings, &Timelines::undisturbed(2)).times[0].end_ns;
        (program(between).run(&FREE, settings, &timelines).times[0].end_ns, alone)
    };
    let (enough, alone) = times(60 * MS);
    assert_eq!(enough, alone);
    let (blocked, alone) = times(10 * MS);
    assert!(blocked >= alone + 35 * MS, "{blocked} against {alone}");
}
