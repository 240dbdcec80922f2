//! Injection into real processes, by a script of plain intervals.
#![allow(clippy::unwrap_used)]

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use crosswind_disturb::inject::outcome::{Ending, How, Outcome};
use crosswind_disturb::inject::script::{Away, Cause, Described, Intervals, Script};
use crosswind_disturb::inject::{InjectConfig, Injection};
use crosswind_schema::Disturbance;
use crosswind_schema::disturbance::Source;
use crosswind_schema::units::Quantity;

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
        busy: false,
        keep_running: false,
        start_file: None,
        stdout_to_stderr: false,
    }
}

fn injected(command: &[&str], script: Arc<dyn Script>) -> Outcome {
    Injection::start(config(command), script).unwrap().outcome().unwrap()
}

#[test]
fn intervals_are_injected_no_sooner_than_asked_and_reported_as_they_were() {
    let outcome = injected(&["sleep", "0.5"], Plain::of(&[(50, 100), (150, 200), (300, 350)]));
    assert_eq!((outcome.status, outcome.ending, outcome.identified_by), (Some(0), Ending::Exited, None));
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
fn the_processor_is_busy_while_the_program_is_held_where_that_is_asked() {
    let computes = ["sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"];
    let script = Plain::of(&[(20, 60), (80, 120), (140, 180)]);
    let outcome = Injection::start(InjectConfig { busy: true, ..config(&computes) }, script.clone()).unwrap();
    let busy = { outcome }.outcome().unwrap();
    assert!(!busy.ranks[0].busy.is_empty());
    assert!(injected(&computes, script).ranks[0].busy.is_empty());
}

#[test]
fn time_0_is_when_the_command_says_that_it_begins() {
    let directory = std::env::temp_dir().join(format!("crosswind-begin-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("go");
    let line = format!("sleep 0.3; touch {}; sleep 0.3", file.display());
    let config = InjectConfig { start_file: Some(file), ..config(&["sh", "-c", &line]) };
    let script = Plain::of(&[(0, 50), (100, 150)]);
    let outcome = Injection::start(config.clone(), script.clone()).unwrap().outcome().unwrap();
    let start_s = outcome.start_s.unwrap();
    // Half of the command's time lies before it; how soon it is noticed depends on the machine.
    assert!(start_s >= 0.3 && start_s < 0.9 * outcome.elapsed_s, "{start_s} {}", outcome.elapsed_s);
    let [rank] = &outcome.ranks[..] else { panic!("one rank") };
    assert_eq!(rank.done.len() as u64 + rank.missed.0, 2);
    let recorded = outcome.recorded("again", script.causes()).unwrap();
    let [Source::Recorded(recorded)] = &recorded.sources[..] else { panic!("one source") };
    let last_s = rank.done.last().map_or(0.0, |one| one.end_ns as f64 * 1e-9);
    let length_s = last_s.max(outcome.elapsed_s - start_s); // excludes the time before time 0
    assert!((recorded.length_s.get() - length_s).abs() < 1e-6);
    assert!(Injection::start(config, script).is_err(), "the file is there already");
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_command_that_never_begins_is_left_alone() {
    let file = std::env::temp_dir().join(format!("crosswind-never-{}", std::process::id()));
    let config = InjectConfig { start_file: Some(file), ..config(&["sleep", "0.2"]) };
    let outcome = Injection::start(config, Plain::of(&[(0, 1000)])).unwrap().outcome().unwrap();
    assert_eq!((outcome.status, outcome.start_s, outcome.ranks.len()), (Some(0), None, 0));
}

#[test]
fn an_injection_that_is_dropped_ends_its_command() {
    let injection = Injection::start(config(&["sleep", "1000"]), Plain::of(&[(0, 1_000_000)])).unwrap();
    drop(injection); // otherwise it would wait for a thousand seconds
}
