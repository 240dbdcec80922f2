//! Timelines compared with a simple reference: all intervals of all sources in a list, added one by one.

use crosswind_schema::Disturbance;
use crosswind_schema::disturbance::{Interval, Timeline, Timelines};
use proptest::prelude::*;
use serde_json::{Value, json};

/// End of the reference, ns.
const HORIZON: u64 = 2_000_000_000;
const RANKS: u32 = 5;

fn seconds(low: f64, high: f64) -> impl Strategy<Value = f64> {
    (low.ln()..high.ln()).prop_map(f64::exp)
}

fn amount(low: f64, high: f64) -> impl Strategy<Value = Value> {
    prop_oneof![
        seconds(low, high).prop_map(|s| json!(s)),
        seconds(low, high).prop_map(|s| json!({ "distribution": "exponential", "mean": s })),
        seconds(low, high).prop_map(|s| json!({ "distribution": "uniform", "low": s / 2.0, "high": s * 2.0 })),
        seconds(low, high).prop_map(|s| json!({ "distribution": "lognormal", "median": s, "sigma": 0.7 })),
    ]
}

fn a_source() -> impl Strategy<Value = Value> {
    let gang = (seconds(1e-3, 0.3), 1u32..4, 0.0..0.9f64)
        .prop_map(|(q, jobs, skew)| json!({ "kind": "coscheduled", "quantum_s": q, "jobs": jobs, "skew_s": skew * q }));
    let local = (seconds(1e-3, 0.3), 1u32..4, 0usize..3, 0.0..0.5f64, any::<bool>()).prop_map(
        |(q, jobs, phases, drift, polls)| {
            let drift = if phases == 2 { drift } else { 0.0 };
            let phases = ["spread", "aligned", "drifting"][phases];
            json!({ "kind": "local", "quantum_s": q, "jobs": jobs, "phases": phases, "drift": drift, "polls": polls })
        },
    );
    let daemon = (amount(1e-3, 0.5), amount(1e-5, 1e-1), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(interval, duration, aligned, polls, some)| {
            let mut daemon = json!({ "kind": "daemon", "interval_s": interval, "duration_s": duration });
            daemon["aligned"] = aligned.into();
            daemon["polls"] = polls.into();
            if some {
                daemon["ranks"] = json!([4, 1]);
            }
            daemon
        },
    );
    let job = (0.1..1.0f64, seconds(1e-3, 0.3), any::<bool>(), prop::option::of(0.0..2.0f64)).prop_map(
        |(share, slice, everywhere, after)| {
            let mut job = json!({ "kind": "job", "ranks": [1, 2], "share": share, "slice_s": slice });
            job["everywhere"] = everywhere.into();
            if let Some(after) = after {
                job["migrate_after_s"] = after.into();
                job["migrate_cost_s"] = (after / 3.0).into();
            }
            job
        },
    );
    let recorded = (prop::collection::vec((1e-4..0.1f64, 1e-5..0.1f64, 0u16..2), 0..20), any::<bool>()).prop_map(
        |(gaps, aligned)| {
            let mut at = 0.0;
            let mut intervals = Vec::new();
            for (gap, duration, cause) in gaps {
                intervals.push(json!([at + gap, duration, cause]));
                at += gap + duration;
            }
            let cpu = json!([{ "cpu": 0, "intervals": intervals }, { "cpu": 3, "intervals": [] }]);
            json!({ "kind": "recorded", "length_s": at + 0.5, "aligned": aligned, "cpu": cpu })
        },
    );
    prop_oneof![1 => gang, 1 => local, 2 => daemon, 1 => job, 1 => recorded]
}

prop_compose! {
    fn a_disturbance()(
        sources in prop::collection::vec(a_source(), 1..5), costs in any::<bool>(),
    ) -> Value {
        let mut sources = sources;
        for (at, source) in sources.iter_mut().enumerate() {
            if source["kind"] == "recorded" {
                source["causes"] = json!([format!("a{at}"), format!("b{at}")]);
            } else {
                source["cause"] = json!(format!("c{at}"));
            }
        }
        let mut disturbance = json!({ "schema_version": 1, "name": "d", "source": sources });
        if costs {
            disturbance["switch_cost_s"] = json!(2e-6);
        }
        disturbance
    }
}

/// Parses the disturbance, if the random one is permitted (daemons may take too much of the processor).
fn read(description: &Value) -> Option<Disturbance> {
    Disturbance::from_json(description.to_string().as_bytes(), "d").ok()
}

fn intervals(timeline: &mut Timeline, until: u64) -> Vec<Interval> {
    std::iter::from_fn(|| timeline.interval()).take_while(|interval| interval.start < until).collect()
}

/// Whether a cause's intervals wait for others that queue.
fn queues(description: &Value, cause: &str) -> bool {
    let place: usize = cause[1..].parse().expect("a number");
    ["daemon", "recorded"].contains(&description["source"][place]["kind"].as_str().expect("a kind"))
}

/// Returns the times when the rank is away, from each cause alone, sorted and merged.
fn reference(disturbance: &Disturbance, description: &Value, rank: u32, seed: u64) -> Vec<(u64, u64)> {
    let mut slices: Vec<(u64, u64)> = Vec::new();
    let mut queue = slices.clone();
    for cause in disturbance.causes() {
        let alone = Timelines::new(&disturbance.only(cause), RANKS, seed).expect("valid");
        let of_cause = intervals(&mut alone.rank(rank), HORIZON);
        let list = if queues(description, cause) { &mut queue } else { &mut slices };
        list.extend(of_cause.into_iter().map(|interval| (interval.start, interval.end)));
    }
    queue.sort_unstable();
    let mut free = 0;
    for (start, end) in queue {
        let begun = start.max(free);
        free = begun + (end - start);
        slices.push((begun, free));
    }
    slices.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (start, end) in slices {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}

/// Returns when work is done: every interval that begins before its end is added to its end, one by one.
fn done(away: &[(u64, u64)], from: u64, ns: u64) -> u64 {
    let mut end = from + ns;
    for (start, stop) in away {
        if *stop > from && *start < end {
            end += stop - (*start).max(from);
        }
    }
    end
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn work_takes_as_long_as_when_intervals_are_added_one_by_one(
        description in a_disturbance(), seed in any::<u64>(),
        steps in prop::collection::vec((0u64..30_000_000, 0u64..60_000_000), 1..40),
    ) {
        let Some(disturbance) = read(&description) else { return Ok(()) };
        let timelines = Timelines::new(&disturbance, RANKS, seed).expect("valid");
        for rank in 0..RANKS {
            let away = reference(&disturbance, &description, rank, seed);
            let mut timeline = timelines.rank(rank);
            let mut at = 0;
            for (gap, ns) in &steps {
                let (from, expected) = (at + gap, done(&away, at + gap, *ns));
                if expected >= HORIZON {
                    break;
                }
                at = timeline.work(from, *ns);
                prop_assert_eq!(at, expected, "rank {}, from {}, {} ns", rank, from, ns);
            }
        }
    }

    #[test]
    fn the_processor_is_there_when_it_is_said_to_be_and_not_before(
        description in a_disturbance(), seed in any::<u64>(), gaps in prop::collection::vec(0u64..60_000_000, 1..40),
    ) {
        let Some(disturbance) = read(&description) else { return Ok(()) };
        let timelines = Timelines::new(&disturbance, RANKS, seed).expect("valid");
        let away = reference(&disturbance, &description, 1, seed);
        let (mut timeline, mut at) = (timelines.rank(1), 0);
        for gap in gaps {
            at += gap;
            let inside = away.iter().find(|(start, end)| *start <= at && at < *end);
            let expected = inside.map_or(at, |(_, end)| *end);
            if expected >= HORIZON {
                break;
            }
            at = timeline.next_on(at);
            prop_assert_eq!(at, expected);
        }
    }

    #[test]
    fn intervals_are_sorted_and_apart_and_cover_exactly_the_time_away(description in a_disturbance(), seed in any::<u64>()) {
        let Some(disturbance) = read(&description) else { return Ok(()) };
        let timelines = Timelines::new(&disturbance, RANKS, seed).expect("valid");
        for rank in 0..RANKS {
            let seen = intervals(&mut timelines.rank(rank), HORIZON);
            prop_assert!(seen.iter().all(|interval| interval.start < interval.end));
            prop_assert!(seen.windows(2).all(|pair| pair[0].end <= pair[1].start));
            prop_assert!(seen.iter().all(|interval| usize::from(interval.cause) < timelines.causes().len()));
            let mut joined: Vec<(u64, u64)> = Vec::new();
            for interval in &seen {
                match joined.last_mut() {
                    Some(last) if last.1 == interval.start => last.1 = interval.end,
                    _ => joined.push((interval.start, interval.end)),
                }
            }
            // At the horizon the lists may end at different positions.
            let within = |list: &[(u64, u64)]| list.iter().copied().filter(|i| i.1 < HORIZON / 2).collect::<Vec<_>>();
            prop_assert_eq!(within(&joined), within(&reference(&disturbance, &description, rank, seed)));
            let away: u64 = timelines.away(rank, HORIZON).iter().sum();
            prop_assert_eq!(away, seen.iter().map(|i| i.end.min(HORIZON) - i.start).sum::<u64>());
        }
    }

    #[test]
    fn any_order_of_ranks_and_any_company_gives_a_cause_the_same_times(
        description in a_disturbance(), seed in any::<u64>(), order in Just(vec![0u32, 1, 2, 3, 4]).prop_shuffle(),
    ) {
        let Some(disturbance) = read(&description) else { return Ok(()) };
        let timelines = Timelines::new(&disturbance, RANKS, seed).expect("valid");
        let straight: Vec<_> = (0..RANKS).map(|rank| intervals(&mut timelines.rank(rank), HORIZON / 10)).collect();
        let again = Timelines::new(&disturbance, RANKS, seed).expect("valid");
        let mut open: Vec<Timeline> = (0..RANKS).map(|rank| again.rank(rank)).collect();
        let mut seen = vec![Vec::new(); RANKS as usize];
        // One interval of each rank at a time, in the order drawn.
        for number in 0..straight.iter().map(Vec::len).max().unwrap_or_default() {
            for rank in order.iter().map(|rank| *rank as usize).filter(|rank| number < straight[*rank].len()) {
                seen[rank].extend(open[rank].interval());
            }
        }
        prop_assert_eq!(&seen, &straight);

        let first = disturbance.causes()[0].to_owned();
        for cause in disturbance.causes().into_iter().skip(1) {
            let alone = |disturbance: &Disturbance| {
                let timelines = Timelines::new(&disturbance.only(cause), RANKS, seed).expect("valid");
                let times = intervals(&mut timelines.rank(2), HORIZON / 10);
                times.into_iter().map(|interval| (interval.start, interval.end)).collect::<Vec<_>>()
            };
            prop_assert_eq!(alone(&disturbance), alone(&disturbance.without(&first)));
        }
    }

    #[test]
    fn work_in_two_parts_is_work_in_one_and_more_work_is_never_done_sooner(
        description in a_disturbance(), seed in any::<u64>(), from in 0u64..100_000_000, parts in (1u64..300_000_000, 1u64..300_000_000),
    ) {
        let Some(disturbance) = read(&description) else { return Ok(()) };
        let timelines = Timelines::new(&disturbance, RANKS, seed).expect("valid");
        let mut one = timelines.rank(1);
        let whole = one.work(from, parts.0 + parts.1);
        let mut two = one.clone();
        prop_assert!(two.work(whole, 1) > whole);
        let mut two = timelines.rank(1);
        let half = two.work(from, parts.0);
        prop_assert!(half >= from + parts.0 && half <= whole);
        prop_assert_eq!(two.work(half, parts.1), whole);
    }

    #[test]
    fn what_is_aligned_is_alike_on_all_ranks(description in a_disturbance(), seed in any::<u64>()) {
        let Some(disturbance) = read(&description) else { return Ok(()) };
        let mut aligned = disturbance.aligned();
        // A recording differs by CPU, and a source on some ranks is not on others.
        aligned.sources.retain(|source| source.ranks().is_none() && source.causes().len() == 1);
        let timelines = Timelines::new(&aligned, RANKS, seed).expect("valid");
        let first = intervals(&mut timelines.rank(0), HORIZON);
        for rank in 1..RANKS {
            prop_assert_eq!(&intervals(&mut timelines.rank(rank), HORIZON), &first);
        }
    }

    #[test]
    fn a_watched_processor_is_seen_away_for_as_long_as_it_is(
        description in a_disturbance(), seed in any::<u64>(), gaps in prop::collection::vec(0u64..20_000_000, 1..80),
    ) {
        let Some(disturbance) = read(&description) else { return Ok(()) };
        let timelines = Timelines::new(&disturbance, RANKS, seed).expect("valid");
        let seen = intervals(&mut timelines.rank(4), HORIZON);
        let (mut timeline, mut at) = (timelines.rank(4), 0);
        for gap in gaps {
            at += gap;
            if at < HORIZON / 2 {
                let away = seen.iter().any(|interval| interval.start <= at && at < interval.end);
                prop_assert_eq!(timeline.is_on(at), !away);
            }
        }
    }

    #[test]
    fn only_sources_that_poll_take_messages_and_only_while_they_run(
        description in a_disturbance(), seed in any::<u64>(), gaps in prop::collection::vec(0u64..60_000_000, 1..40),
    ) {
        let Some(disturbance) = read(&description) else { return Ok(()) };
        let timelines = Timelines::new(&disturbance, RANKS, seed).expect("valid");
        let seen = intervals(&mut timelines.rank(4), HORIZON);
        let polls = |interval: &Interval| {
            let place: usize = timelines.causes()[usize::from(interval.cause)][1..].parse().expect("a number");
            description["source"][place]["polls"] == true
        };
        let (mut timeline, mut at) = (timelines.rank(4), 0);
        for gap in gaps {
            at += gap;
            let running = seen.iter().find(|interval| interval.start <= at && at < interval.end);
            if at < HORIZON / 2 {
                let expected = running.filter(|interval| polls(interval)).map(|interval| interval.end);
                prop_assert_eq!(timeline.is_polled(at), expected);
            }
        }
    }
}

/// Time 0 is like any other time: as many daemons start in the first part of an interval as in any later part.
#[test]
fn daemons_start_as_often_at_first_as_later() {
    const MANY: u32 = 20_000;
    for interval in [
        json!(0.1),
        json!({ "distribution": "exponential", "mean": 0.1 }),
        json!({ "distribution": "uniform", "low": 0.01, "high": 0.19 }),
        json!({ "distribution": "lognormal", "median": 0.1 * (-0.5f64).exp(), "sigma": 1.0 }),
    ] {
        let source = json!({ "kind": "daemon", "cause": "c", "interval_s": interval, "duration_s": 1e-6 });
        let description = json!({ "schema_version": 1, "name": "d", "source": [source] });
        let disturbance = read(&description).expect("a right description");
        let timelines = Timelines::new(&disturbance, MANY, 7).expect("valid");
        let mut starts = [0.0f64; 10];
        for rank in 0..MANY {
            for interval in intervals(&mut timelines.rank(rank), 200_000_000) {
                starts[(interval.start / 20_000_000) as usize] += 1.0;
            }
        }
        // Each fifth of the mean interval: a fifth of the ranks, give or take 5 standard deviations of what is drawn.
        let expected = f64::from(MANY) / 5.0;
        for (part, &count) in starts.iter().enumerate() {
            assert!((count - expected).abs() < 5.0 * 1.3 * expected.sqrt(), "{interval}: part {part}: {starts:?}");
        }
    }
}
