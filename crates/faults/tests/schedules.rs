//! Farms under random faults, and regression seeds.

#![allow(clippy::disallowed_methods)] // tests run on all cores

use crosswind_faults::schedule::Schedule;
use crosswind_faults::world::run;

fn holds(seed: u64) {
    let outcome = run(&Schedule::drawn(seed), false);
    assert!(
        outcome.violations.is_empty(),
        "{:#?}\nagain: cargo run --release -p crosswind-faults -- --seed {seed} --trace",
        outcome.violations
    );
}

#[test]
fn two_thousand_drawn_schedules_hold() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    std::thread::scope(|scope| {
        for first in 0..threads {
            scope.spawn(move || (first..2000).step_by(threads as usize).for_each(holds));
        }
    });
}

/// Seeds that once failed. In 35158 and 43822 the root waited for ever for an inner node: one without children that
/// kept requesting tasks and leaving, and one whose only child computes nothing. In 12179 and 10694 a late joiner was
/// below a node that was never served; in 10694 the plan serves none of them.
#[test]
fn seeds_that_failed_once_hold() {
    [12179, 10694, 35158, 43822].into_iter().for_each(holds);
}

#[test]
fn a_seed_gives_the_same_run_each_time() {
    for seed in 0..20 {
        let schedule = Schedule::drawn(seed);
        assert_eq!(run(&schedule, true), run(&schedule, true), "seed {seed}");
    }
}

/// Each kind of fault occurs many times.
#[test]
fn schedules_have_faults_of_every_kind() {
    let mut counts = std::collections::BTreeMap::new();
    for seed in 0..500 {
        for fault in Schedule::drawn(seed).faults {
            let words = format!("{:?}", fault.trouble);
            let kind = words.split([' ', '{']).next().unwrap_or_default().to_owned();
            *counts.entry(kind).or_insert(0) += 1;
        }
    }
    assert_eq!(counts.len(), 9, "{counts:?}");
    assert!(counts.values().all(|count| *count > 50), "{counts:?}");
}
