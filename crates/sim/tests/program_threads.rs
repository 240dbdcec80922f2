//! One simulation on several threads: the same outcome and the same errors as on one.
use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::programs::{Scripts, cm5, compute, disturbed, message};
use crosswind_policy::window::WindowSettings;
use crosswind_program::{Body, Bsp, Kind, Op, Program, Rank, Reply};
use crosswind_schema::disturbance::Timelines;
use crosswind_sim::SimError;
use crosswind_sim::program::{simulate, simulate_on_threads};

const NOISE: &str = "[[source]]\nkind = \"daemon\"\ninterval_s = { distribution = \"exponential\", mean = 0.001 }\n\
                     duration_s = { distribution = \"exponential\", mean = 25e-6 }\n";

#[test]
fn large_programs_end_alike_on_any_number_of_threads() {
    let free = WindowSettings::default();
    let limited = WindowSettings { packets: NonZeroU32::new(4), ..free };
    for (ranks, barrier, window) in [(1500, false, free), (1500, true, free), (601, false, limited)] {
        let bsp = Bsp { ranks, barrier, dimensions: 3, iterations: 6, halo_bytes: 100, ..Bsp::default() };
        let timelines = disturbed(NOISE, ranks, 1);
        let one = simulate(&bsp, &cm5(), window, &timelines, &mut |_| true).unwrap();
        for threads in [2, 3, 7] {
            let several = simulate_on_threads(&bsp, &cm5(), window, &timelines, threads, &mut |_| true).unwrap();
            assert_eq!((several.makespan_ns, several.totals), (one.makespan_ns, one.totals), "{threads} threads");
            assert_eq!(several.times, one.times);
            assert_eq!(several.results(), one.results());
        }
    }
}

#[test]
fn ranks_far_apart_in_time_wait_for_each_other() {
    // Rank 0 computes for a second, which is thousands of windows, while nothing happens at the others.
    let mut ops = vec![vec![compute(1_000_000_000), message(5, Kind::Store, 8, 1), Op::Barrier]];
    ops.extend((1..5).map(|_| vec![Op::Barrier]));
    ops.push(vec![Op::WaitStored { bytes: 8 }, Op::Barrier, compute(7)]);
    let program = Scripts::new(ops);
    let one = program.dedicated();
    let timelines = Timelines::undisturbed(6);
    for threads in 2..=6 {
        let run = simulate_on_threads(&program, &cm5(), WindowSettings::default(), &timelines, threads, &mut |_| true);
        let run = run.unwrap();
        assert_eq!((run.makespan_ns, run.totals, run.times), (one.makespan_ns, one.totals, one.times.clone()));
    }
}

fn fails(program: &Scripts, threads: usize) -> SimError {
    let timelines = Timelines::undisturbed(program.ranks());
    let run = simulate_on_threads(program, &cm5(), WindowSettings::default(), &timelines, threads, &mut |_| true);
    run.map(|_| ()).unwrap_err()
}

#[test]
fn errors_are_those_of_one_thread() {
    // Two ranks name ranks that do not exist, in the same window and in different groups.
    let missing = |to| vec![compute(10), Op::Send { to, tag: 0, bytes: 1 }];
    let unknown = Scripts::new(vec![vec![Op::Barrier], missing(90), vec![Op::Barrier], missing(80)]);
    let stuck = Scripts::alike(4, &[Op::Receive { from: 0, tag: 1 }]);
    for program in [unknown, stuck] {
        for threads in 2..=4 {
            assert_eq!(fails(&program, threads).to_string(), program.fails().to_string());
        }
    }
}

#[test]
fn a_callback_ends_all_threads() {
    let bsp = Bsp { ranks: 512, iterations: 100_000, halo_bytes: 8, ..Bsp::default() };
    let timelines = Timelines::undisturbed(512);
    let mut operations = Vec::new();
    let mut watch = |done| {
        operations.push(done);
        operations.len() < 3
    };
    let run = simulate_on_threads(&bsp, &cm5(), WindowSettings::default(), &timelines, 2, &mut watch);
    assert!(matches!(run.map(|_| ()), Err(SimError::Interrupted)));
    assert!(operations.is_sorted() && operations[0] > 0, "{operations:?}");
}

/// A rank that panics after some operations.
struct Falls(u32);

impl Rank for Falls {
    fn next(&mut self) -> Op {
        self.0 += 1;
        assert!(self.0 < 100, "a rank falls");
        Op::Compute { ns: 1_000_000 }
    }

    fn handle(&mut self, _: u32, _: Kind, _: Body) -> Reply {
        Reply::default()
    }
}

struct Falling {
    at: u32,
}

impl Program for Falling {
    type Rank = Falls;

    fn ranks(&self) -> u32 {
        4
    }

    fn rank(&self, rank: u32) -> Falls {
        Falls(if rank == self.at { 50 } else { 0 })
    }
}

#[test]
fn a_panic_in_one_thread_reaches_the_first() {
    for at in [0, 3] {
        let run = || {
            let timelines = Timelines::undisturbed(4);
            simulate_on_threads(&Falling { at }, &cm5(), WindowSettings::default(), &timelines, 4, &mut |_| true)
        };
        let panic = catch_unwind(AssertUnwindSafe(run)).map(|_| ()).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"a rank falls"));
    }
}
