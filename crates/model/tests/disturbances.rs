//! Closed forms of disturbances, checked against barrier programs stepped through on the timelines themselves.

use crosswind_model::disturbance::slowdown::{
    Daemon, additive, effective_share, exposed, imbalanced_node, local, local_of_ranks, shared_node, skew,
    skew_of_barriers, union,
};
use crosswind_model::disturbance::{Relation, bounds, tolerance};
use crosswind_schema::Disturbance;
use crosswind_schema::disturbance::{Timeline, Timelines};
use proptest::prelude::*;

fn read(sources: &str) -> Disturbance {
    let text = format!("schema_version = 1\nname = \"d\"\n{sources}");
    Disturbance::from_toml(text.as_bytes(), "d.toml").expect("valid")
}

/// Returns the seconds of `steps` supersteps: every rank computes `work_s`, then all wait for the last. A barrier costs
/// nothing.
fn makespan_s(disturbance: &Disturbance, ranks: u32, work_s: f64, steps: u32, seed: u64) -> f64 {
    let timelines = Timelines::new(disturbance, ranks, seed).expect("valid");
    let mut open: Vec<Timeline> = (0..ranks).map(|rank| timelines.rank(rank)).collect();
    let work = (work_s * 1e9).round() as u64;
    let mut now = 0;
    for _ in 0..steps {
        now = open.iter_mut().map(|rank| rank.work(now, work)).max().expect("ranks");
    }
    now as f64 / 1e9
}

/// Returns the mean slowdown relative to coscheduled time, over seeds.
fn slowdown(disturbance: &Disturbance, ranks: u32, work_s: f64, steps: u32) -> f64 {
    let seeds = 5;
    let coscheduled = f64::from(steps) * work_s * disturbance.jobs() as f64;
    (0..seeds).map(|seed| makespan_s(disturbance, ranks, work_s, steps, seed) / coscheduled).sum::<f64>() / seeds as f64
}

fn near(seen: f64, expected: f64, part: f64) {
    assert!((seen / expected - 1.0).abs() < part, "{seen} is not within {part} of {expected}");
}

#[test]
fn local_scheduling_of_barrier_programs_is_within_3_percent_of_the_closed_form() {
    for (quantum, jobs, work) in [(0.1, 2, 0.0071), (0.5, 2, 0.0071), (0.1, 3, 0.02), (0.1, 2, 0.09)] {
        let disturbance = read(&format!("[[source]]\nkind = \"local\"\nquantum_s = {quantum}\njobs = {jobs}\n"));
        let seen = slowdown(&disturbance, 256, work, 2_000);
        near(seen, local(quantum, jobs, work, 0.0).expect("in range"), 0.03);
    }
}

#[test]
fn work_of_many_quanta_is_slowed_by_local_scheduling_as_its_worst_rank_is() {
    let disturbance = read("[[source]]\nkind = \"local\"\nquantum_s = 0.01\n");
    for work in [0.025, 0.095] {
        near(slowdown(&disturbance, 256, work, 500), local(0.01, 2, work, 0.0).expect("in range"), 0.05);
    }
}

#[test]
fn the_form_for_few_ranks_is_within_2_percent_and_comes_to_that_for_many() {
    for ranks in [1, 2, 8, 64, 100_000] {
        let few = local_of_ranks(0.1, 2, 0.03, ranks).expect("in range");
        assert!(few <= local(0.1, 2, 0.03, 0.0).expect("in range"));
    }
    near(local_of_ranks(0.1, 2, 0.03, 1_000_000).expect("in range"), local(0.1, 2, 0.03, 0.0).expect("in range"), 1e-5);
    let disturbance = read("[[source]]\nkind = \"local\"\nquantum_s = 0.1\n");
    for (ranks, work) in [(16, 0.0071), (64, 0.0071), (64, 0.03), (16, 0.03), (8, 0.05)] {
        let steps = 500;
        let mean = (0..40).map(|seed| makespan_s(&disturbance, ranks, work, steps, seed)).sum::<f64>() / 40.0;
        let seen = mean / (2.0 * work * f64::from(steps));
        near(seen, local_of_ranks(0.1, 2, work, ranks).expect("in range"), 0.02);
    }
}

#[test]
fn aligned_quanta_cost_nothing_beyond_the_jobs() {
    for source in ["kind = \"coscheduled\"\nquantum_s = 0.1", "kind = \"local\"\nphases = \"aligned\"\nquantum_s = 0.1"]
    {
        near(slowdown(&read(&format!("[[source]]\n{source}\n")), 64, 0.0071, 2_000), 1.0, 0.01);
    }
}

#[test]
fn skew_slows_barrier_programs_nearly_as_much_as_it_can_and_never_more() {
    for (quantum, late) in [(0.1, 0.01), (0.1, 0.05), (1.0, 0.01)] {
        let text = format!("[[source]]\nkind = \"coscheduled\"\nquantum_s = {quantum}\nskew_s = {late}\n");
        let seen = slowdown(&read(&text), 64, 0.0005, 40_000);
        let most = skew(quantum, late, 0.0).expect("in range");
        assert!(seen < most, "{seen} {most}");
        near(seen, most, 0.04);
    }
}

#[test]
fn quanta_that_move_by_their_skew_cost_what_the_closed_form_says() {
    let late = 0.01;
    for work in [0.0005, 0.002, 0.008, 0.0137, 0.03] {
        // The work left when a quantum ends is uniform only over many lengths of the work.
        let works = (0..8).map(|step| work * (0.8 + f64::from(step) / 20.0));
        let (mut seen, mut expected) = (0.0, 0.0);
        for work in works {
            let gang = format!("kind = \"coscheduled\"\nquantum_s = 0.1\nskew_s = {late}\n");
            seen += slowdown(&read(&format!("[[source]]\n{gang}")), 128, work, (40.0 / work) as u32);
            expected += skew_of_barriers(0.1, late, work).expect("in range");
        }
        // If only a few pieces of work fit the quantum, the work left at its end repeats periodically.
        near(seen, expected, 0.015);
    }
}

#[test]
fn a_skew_drawn_for_each_quantum_costs_more_than_one_that_stays() {
    let slowed = |drawn: &str| {
        let text =
            format!("[[source]]\nkind = \"coscheduled\"\nquantum_s = 0.1\nskew_s = 0.01\nskew_drawn = \"{drawn}\"\n");
        slowdown(&read(&text), 64, 0.008, 10_000)
    };
    let (stays, moves) = (slowed("per-rank"), slowed("per-quantum"));
    assert!(1.0 < stays && stays < moves && moves < skew(0.1, 0.01, 0.0).expect("in range") * 1.001, "{stays} {moves}");
}

#[test]
fn one_job_alone_whose_clocks_differ_is_never_away() {
    let gang = read("[[source]]\nkind = \"coscheduled\"\nquantum_s = 0.1\njobs = 1\nskew_s = 0.01\n");
    near(slowdown(&gang, 8, 0.001, 1_000), 1.0, 1e-9);
}

#[test]
fn daemons_slow_barrier_programs_by_more_than_is_exposed_and_less_than_their_union() {
    for (duration_s, interval_s) in [(0.005, 10.0), (0.01, 5.0), (0.05, 5.0)] {
        let text = format!("[[source]]\nkind = \"daemon\"\ninterval_s = {interval_s}\nduration_s = {duration_s}\n");
        let disturbance = read(&text);
        let (load, daemons) = ([(duration_s / interval_s, 64)], [Daemon { interval_s, duration_s, ranks: 64 }]);
        let (most, sum) = (union(&load).expect("in range"), additive(&load).expect("in range").expect("below 1"));
        for work in [0.001, 0.0071, 0.05] {
            let seen = slowdown(&disturbance, 64, work, (100.0 / work) as u32);
            let least = exposed(&daemons, work).expect("in range");
            assert!(least * 0.99 < seen && seen < most * 1.01 && most <= sum, "{work}: {least} {seen} {most} {sum}");
        }
        near(slowdown(&disturbance, 64, 0.0002, 200_000), most, 0.03);
    }
}

#[test]
fn the_published_values_of_the_daemon_bounds_come_out() {
    // 64 ranks, each with a daemon that runs for `duration` s every `interval` s.
    let both = |duration: f64, interval: f64| {
        let load = [(duration / interval, 64)];
        (union(&load).expect("in range"), additive(&load).expect("in range").expect("below 1"))
    };
    let close = |seen: f64, expected: f64| assert!((seen - expected).abs() < 0.0051, "{seen} {expected}");
    close(both(0.005, 10.0).0, 1.033);
    close(both(0.01, 5.0).0, 1.137);
    close(both(0.01, 5.0).1, 1.147);
    close(both(0.05, 5.0).0, 1.90);
    close(both(0.05, 5.0).1, 2.78);
    assert_eq!(additive(&[(0.1, 10)]), Ok(None));
}

#[test]
fn a_shared_node_slows_balanced_programs_by_its_share() {
    for share in [0.2, 0.5, 0.8] {
        let text = format!("[[source]]\nkind = \"job\"\nranks = [3]\nshare = {share}\nslice_s = 0.1\n");
        near(slowdown(&read(&text), 8, 0.0071, 20_000), shared_node(share).expect("in range"), 0.02);
    }
    assert_eq!(imbalanced_node(0.5, 0.9), Ok(1.8));
}

#[test]
fn return_costs_are_counted() {
    let text = "switch_cost_s = 0.001\ncache_cost_s = 0.002\n[[source]]\n";
    let gang = read(&format!("{text}kind = \"coscheduled\"\nquantum_s = 0.1\n"));
    near(slowdown(&gang, 8, 0.0071, 5_000), skew(0.1, 0.0, 0.003).expect("in range"), 0.01);
    let job = read(&format!("{text}kind = \"job\"\nranks = [0]\nshare = 0.5\nslice_s = 0.1\n"));
    near(slowdown(&job, 2, 0.0071, 20_000), 1.0 / effective_share(0.5, 0.1, 0.003), 0.01);
    let local_jobs = read(&format!("{text}kind = \"local\"\nquantum_s = 0.1\n"));
    near(slowdown(&local_jobs, 256, 0.0071, 2_000), local(0.1, 2, 0.0071, 0.003).expect("in range"), 0.03);
}

/// Each kind of source, for a program that computes 7.1 ms between barriers on 64 ranks.
const ALL: &str = "[[source]]\nkind = \"coscheduled\"\nquantum_s = 0.1\nskew_s = 0.01\n[[source]]\nkind = \"local\"\nquantum_s = \
    0.1\n[[source]]\nkind = \"daemon\"\ninterval_s = 10\nduration_s = 0.005\n[[source]]\nkind = \"job\"\nranks = [3]\nshare = \
    0.5\nslice_s = 0.1\n";

#[test]
fn at_each_limit_the_slowdown_is_the_one_that_was_stated() {
    let disturbance = read(ALL);
    let (stated, work) = (1.05, 0.0071);
    let found = tolerance(&disturbance, 64, work, stated).expect("in range");
    let fields: Vec<&str> = found.limits.iter().map(|limit| limit.field.as_str()).collect();
    let expected = [
        "source[0].skew_s",
        "source[0].quantum_s",
        "source[1].quantum_s",
        "work_per_barrier_s",
        "source[2].duration_s",
        "source[2].interval_s",
        "ranks",
        "source[3].share",
    ];
    assert_eq!(fields, expected);
    for limit in &found.limits {
        let mut alone = serde_json::to_value(disturbance.only(&limit.cause)).expect("writes");
        let (mut ranks, mut work) = (64, work);
        match limit.field.as_str() {
            "ranks" => ranks = limit.limit as u32,
            "work_per_barrier_s" => work = limit.limit,
            field => {
                let name = field.rsplit('.').next().expect("a field");
                alone["source"][0][name] = limit.limit.into();
            }
        }
        let at_limit = Disturbance::from_json(alone.to_string().as_bytes(), "d").expect("valid");
        let bounds = bounds(&at_limit, ranks, Some(work)).expect("in range");
        let bound = bounds.skew.or(bounds.local).or(bounds.daemons_union).or(bounds.shared_nodes).expect("one");
        // The number of ranks is an integer.
        let tolerance = if limit.field == "ranks" { 1e-3 } else { 1e-9 };
        assert!((bound - stated).abs() < tolerance, "{}: {bound}", limit.field);
    }
}

proptest! {
    #[test]
    fn every_shorter_quantum_and_every_longer_work_keeps_a_local_schedulers_slowdown(
        quantum in 1e-4..0.5f64,
        jobs in 2u32..5,
        work in 1e-4..0.5f64,
        stated in 1.02..4.0f64,
        within in 0.01..1.0f64,
    ) {
        let text = format!("[[source]]\nkind = \"local\"\nquantum_s = {quantum}\njobs = {jobs}\n");
        let found = tolerance(&read(&text), 64, work, stated).expect("in range").limits;
        let slowed = |quantum: f64, work: f64| local(quantum, jobs, work, 0.0).expect("in range");
        let (of_quantum, of_work) = (found[0].limit, found[1].limit);
        prop_assert!(slowed(of_quantum * within, work) <= stated * (1.0 + 1e-9));
        prop_assert!(slowed(quantum, of_work / within) <= stated * (1.0 + 1e-9));
        prop_assert!(slowed(of_quantum * 1.000_001, work) > stated);
        prop_assert!(slowed(quantum, of_work / 1.000_001) > stated);
    }
}

#[test]
fn what_is_kept_is_told_from_what_is_not() {
    let limits = tolerance(&read(ALL), 64, 0.0071, 1.2).expect("in range").limits;
    let kept: Vec<(&str, bool)> = limits.iter().map(|limit| (limit.field.as_str(), limit.kept)).collect();
    assert_eq!(kept[0], ("source[0].skew_s", true));
    assert_eq!(kept[2], ("source[1].quantum_s", false));
    assert_eq!(limits[2].relation, Relation::AtMost);
    assert!(kept.contains(&("ranks", true)) && kept.contains(&("source[3].share", false)));
}

#[test]
fn arguments_out_of_range_are_refused_with_field_value_and_range() {
    let disturbance = read(ALL);
    let told = |ranks: u32, work: f64, slowdown: f64| {
        tolerance(&disturbance, ranks, work, slowdown).expect_err("out of range").to_string()
    };
    assert_eq!(told(0, 1.0, 1.05), "ranks is 0; it must be at least 1");
    assert_eq!(told(64, 0.0, 1.05), "work_per_barrier_s is 0 s; it must be finite and greater than 0 s");
    assert_eq!(told(64, 1.0, 1.0), "slowdown is 1; it must be finite and greater than 1");
    assert!(told(3, 1.0, 1.05).starts_with("source[3].ranks[0] is 3"));
    assert!(local(0.1, 0, 1.0, 0.0).is_err() && local(0.1, 2, 1.0, 0.1).is_err() && skew(0.1, 0.1, 0.0).is_err());
    assert!(union(&[(1.0, 1)]).is_err() && shared_node(0.0).is_err() && imbalanced_node(0.5, 1.1).is_err());
}
