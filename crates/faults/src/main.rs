//! Runs random fault schedules: `crosswind-faults [--schedules N] [--seed FIRST] [--trace] [--no-shrink]`.
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::print_stderr)] // a command-line tool prints and measures time

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crosswind_faults::schedule::Schedule;
use crosswind_faults::shrink::shrunk;
use crosswind_faults::world::{RootEnd, run};

const USAGE: &str = "usage: crosswind-faults [--schedules N] [--seed FIRST] [--trace] [--no-shrink]";

#[derive(Default)]
struct Counts {
    done: AtomicU64,
    all_lost: AtomicU64,
    failed: AtomicU64,
    stop: AtomicBool,
}

fn main() -> ExitCode {
    let (mut schedules, mut first, mut trace, mut shrinks) = (1_u64, 0_u64, false, true);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|number| number.parse().ok());
        let known = match argument.as_str() {
            "--schedules" => number().map(|number| schedules = number),
            "--seed" => number().map(|number| first = number),
            "--trace" => {
                trace = true;
                Some(())
            }
            "--no-shrink" => {
                shrinks = false;
                Some(())
            }
            _ => None,
        };
        if known.is_none() {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    let counts = Counts { failed: AtomicU64::new(u64::MAX), ..Counts::default() };
    let next = AtomicU64::new(first);
    let end = first.saturating_add(schedules);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| search(&next, end, &counts));
        }
        scope.spawn(|| progress(schedules, began, &counts));
    });
    let (done, all_lost) = (counts.done.load(Ordering::Relaxed), counts.all_lost.load(Ordering::Relaxed));
    let failed = counts.failed.load(Ordering::Relaxed);
    let seconds = began.elapsed().as_secs_f64();
    if failed == u64::MAX {
        println!("{done} schedules hold, from seed {first}, in {seconds:.1} s; {all_lost} of them lost all agents");
        if trace {
            run(&Schedule::drawn(first), true).trace.iter().for_each(|line| println!("{line}"));
        }
        return ExitCode::SUCCESS;
    }
    let mut schedule = Schedule::drawn(failed);
    println!("seed {failed} fails, after {} schedules:", failed - first + 1);
    run(&schedule, false).violations.iter().for_each(|line| println!("  {line}"));
    if shrinks {
        schedule = shrunk(schedule);
        let outcome = run(&schedule, trace);
        println!(
            "shrunk: {} faults, {} tasks, {} nodes",
            schedule.faults.len(),
            schedule.tasks.len(),
            schedule.nodes.len()
        );
        schedule.faults.iter().for_each(|fault| println!("  {fault:?}"));
        schedule.nodes.iter().enumerate().for_each(|(at, node)| println!("  n{at} {node:?}"));
        schedule.tasks.iter().for_each(|task| println!("  {task:?}"));
        println!(
            "  policy {}, beats {:?} ms, retries {}, timeout {} ns",
            schedule.policy, schedule.beats_ms, schedule.retries, schedule.timeout_ns
        );
        outcome.violations.iter().for_each(|line| println!("  {line}"));
        outcome.trace.iter().for_each(|line| println!("{line}"));
    }
    println!("again: cargo run --release -p crosswind-faults -- --seed {failed} --trace");
    ExitCode::FAILURE
}

/// Runs schedules until one fails. The lowest failing seed is recorded.
fn search(next: &AtomicU64, end: u64, counts: &Counts) {
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end || seed > counts.failed.load(Ordering::Relaxed) {
            counts.stop.store(true, Ordering::Relaxed);
            return;
        }
        let outcome = run(&Schedule::drawn(seed), false);
        counts.done.fetch_add(1, Ordering::Relaxed);
        if matches!(outcome.end, Some(RootEnd::AllLost(_))) {
            counts.all_lost.fetch_add(1, Ordering::Relaxed);
        }
        if !outcome.violations.is_empty() {
            counts.failed.fetch_min(seed, Ordering::Relaxed);
        }
    }
}

/// Prints the progress every five seconds.
fn progress(schedules: u64, began: Instant, counts: &Counts) {
    let mut reported = Instant::now();
    while !counts.stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
        if reported.elapsed() > Duration::from_secs(5) {
            reported = Instant::now();
            let done = counts.done.load(Ordering::Relaxed).max(1);
            let left_s = began.elapsed().as_secs_f64() / done as f64 * schedules.saturating_sub(done) as f64;
            eprintln!("{done} of {schedules} schedules, {left_s:.0} s left");
        }
    }
}
