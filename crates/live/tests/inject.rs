//! Injection into real processes, by a script of plain intervals.
#![allow(clippy::unwrap_used)]

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use crosswind_live::inject::outcome::{Ending, How, Outcome};
use crosswind_live::inject::script::{Away, Cause, Described, Intervals, Script};
use crosswind_live::inject::{InjectConfig, Injection};
use crosswind_schema::Disturbance;

const MS: u64 = 1_000_000;

/// The same intervals on every rank.
struct Plain {
    causes: Vec<Cause>,
    intervals: Vec<Away>,
}

impl Plain {
    fn of(intervals: &[(u64, u64)]) -> Arc<Self> {
        let away = |(start, end): &(u64, u64)| Away { start_ns: start * MS, end_ns: end * MS, cause: 0 };
        let causes = vec![Cause { name: "others".into(), is_daemon: false }];
        Arc::new(Self { causes, intervals: intervals.iter().map(away).collect() })
    }
}

impl Script for Plain {
    fn causes(&self) -> &[Cause] {
        &self.causes
    }

    fn intervals(&self, _: u32) -> Intervals {
        Box::new(self.intervals.clone().into_iter())
    }
}

fn config(command: &[&str]) -> InjectConfig {
    InjectConfig {
        command: command.iter().map(OsString::from).collect(),
        ranks: None,
        limit: Duration::from_secs(60),
        how: Some(How::Stop),
        pin: false,
        keep_running: false,
        stdout_to_stderr: false,
    }
}

fn injected(command: &[&str], script: Arc<dyn Script>) -> Outcome {
    Injection::start(config(command), script).unwrap().outcome().unwrap()
}

#[test]
fn intervals_are_injected_no_sooner_than_asked_and_reported_as_they_were() {
    let outcome = injected(&["sleep", "0.5"], Plain::of(&[(50, 100), (150, 200), (300, 350)]));
    assert_eq!((outcome.status, outcome.ending, outcome.told_by), (Some(0), Ending::Exited, None));
    let [rank] = &outcome.ranks[..] else { panic!("one rank") };
    assert_eq!(rank.done.len() as u64 + rank.missed.0, 3);
    assert!(rank.done.iter().all(|one| one.start_ns >= one.asked_ns && one.end_ns >= one.asked_ns + one.asked_for_ns));
    assert!(rank.done.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns));
}

#[test]
fn what_was_injected_is_a_disturbance_that_has_the_same_intervals() {
    let script = Plain::of(&[(20, 40), (60, 80)]);
    let outcome = injected(&["sleep", "0.2"], script.clone());
    let recorded = outcome.recorded("again", script.causes()).unwrap();
    let read = Disturbance::from_toml(recorded.to_toml().unwrap().as_bytes(), "again.toml").unwrap();
    let again = Described::new(&read, Some(1), 7).unwrap();
    let first: Vec<Away> = again.intervals(0).take(outcome.ranks[0].done.len()).collect();
    for (one, away) in outcome.ranks[0].done.iter().zip(&first) {
        assert!(one.start_ns.abs_diff(away.start_ns) <= 1 && one.end_ns.abs_diff(away.end_ns) <= 2);
    }
}

#[test]
fn intervals_that_touch_are_one_time_in_which_the_program_is_held() {
    let outcome = injected(&["sleep", "0.3"], Plain::of(&[(50, 80), (80, 110), (110, 140)]));
    let done = &outcome.ranks[0].done;
    assert!(done.windows(2).all(|pair| pair[1].start_ns - pair[0].end_ns < MS));
}

#[test]
fn intervals_too_short_for_signals_are_counted_and_left_out() {
    let causes = vec![Cause { name: "ticks".into(), is_daemon: false }];
    let ticks = (1..100).map(|at| Away { start_ns: at * MS, end_ns: at * MS + 5_000, cause: 0 }).collect();
    let outcome = injected(&["sleep", "0.2"], Arc::new(Plain { causes, intervals: ticks }));
    assert_eq!(outcome.ranks[0].done.len(), 0);
    assert_eq!(outcome.ranks[0].too_short.0 + outcome.ranks[0].missed.0, 99);
}

#[test]
fn an_injection_that_is_dropped_ends_its_command() {
    let injection = Injection::start(config(&["sleep", "1000"]), Plain::of(&[(0, 1_000_000)])).unwrap();
    drop(injection); // would wait for a thousand seconds otherwise
}
