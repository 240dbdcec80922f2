//! One farm, simulated once: by `simcore` or by Crosswind. Prints JSON: events (of Crosswind), seconds, seconds of the processor, makespan, tasks
//! per node, memory.
//!
//!     simcore-farm crosswind|simcore CASE [TASKS]

mod cases;
mod theirs;

use std::time::Instant;

use crosswind_policy::farm::{FarmOptions, MeanTask};
use crosswind_schema::experiment::Policy;
use crosswind_sim::{Farm, Options, simulate};

/// Most memory that the process held, MB.
fn peak_mb() -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage fills the struct it is given.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    usage.ru_maxrss as f64 * 1024.0 / 1e6
}

/// Seconds that the processor spent on this thread: unlike those that passed, without what other processes took.
fn processor_s() -> f64 {
    let mut time = std::mem::MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: clock_gettime fills the struct it is given.
    let time = unsafe {
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let usage = "simcore-farm crosswind|simcore CASE [TASKS]";
    let (who, case) = (arguments.get(1).expect(usage), arguments.get(2).expect(usage));
    let case = cases::case(case, arguments.get(3).map(|tasks| tasks.parse().expect("a number of tasks")));
    if who == "platform" {
        print!("{}", case.platform.to_toml().expect("a checked platform"));
        return;
    }
    let (start, processor_start_s) = (Instant::now(), processor_s());
    let (makespan_s, tasks, events) = match who.as_str() {
        "simcore" => {
            let (makespan_s, tasks) = theirs::run(&case);
            (makespan_s, tasks, None)
        }
        "crosswind" => {
            let count = case.tasks.count as f64;
            let mean = MeanTask { size_mb: case.tasks.total_mb() / count, work: case.tasks.total_work() / count };
            let policy = Policy {
                order: case.order,
                ports: case.ports.into(),
                buffer_tasks: Some(2),
                level_end: case.levelled,
                ..Policy::default()
            };
            let farm_options = FarmOptions::of(&policy, mean).with_tasks(case.tasks.count);
            let farm = Farm {
                platform: &case.platform,
                tasks: &case.tasks,
                farm_options,
                chunk_kib: 512,
                result_size_mb: 0.0,
            };
            let outcome = simulate(&farm, Options::default(), &mut |_| true).expect("a farm that ends");
            (outcome.makespan_s, outcome.nodes.iter().map(|node| node.tasks).collect(), Some(outcome.steps))
        }
        other => panic!("{other}: {usage}"),
    };
    let (time_s, processor_s) = (start.elapsed().as_secs_f64(), processor_s() - processor_start_s);
    let shown: Vec<u64> = tasks.iter().copied().take(7).collect();
    let events = events.map_or("null".to_owned(), |events| events.to_string());
    println!(
        "{{\"events\": {events}, \"time_s\": {time_s}, \"processor_s\": {processor_s}, \"makespan_s\": {makespan_s:.9}, \"tasks\": {shown:?}, \"peak_mb\": {}}}",
        peak_mb()
    );
}
