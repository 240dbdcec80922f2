//! One farm, simulated once: by `simcore` or by Crosswind. Prints JSON: seconds, makespan, tasks per node, memory.
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

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let usage = "simcore-farm crosswind|simcore CASE [TASKS]";
    let (who, case) = (arguments.get(1).expect(usage), arguments.get(2).expect(usage));
    let case = cases::case(case, arguments.get(3).map(|tasks| tasks.parse().expect("a number of tasks")));
    if who == "platform" {
        print!("{}", case.platform.to_toml().expect("a checked platform"));
        return;
    }
    let start = Instant::now();
    let (makespan_s, tasks) = match who.as_str() {
        "simcore" => theirs::run(&case),
        "crosswind" => {
            let count = case.tasks.count as f64;
            let mean = MeanTask { size_mb: case.tasks.total_mb() / count, work: case.tasks.total_work() / count };
            let policy = Policy { order: case.order, ports: case.ports, buffer_tasks: Some(2), ..Policy::default() };
            let wishes = FarmOptions::of(&policy, mean);
            let farm =
                Farm { platform: &case.platform, tasks: &case.tasks, wishes, chunk_kib: 512, result_size_mb: 0.0 };
            let outcome = simulate(&farm, Options::default(), &mut |_| true).expect("a farm that ends");
            (outcome.makespan_s, outcome.nodes.iter().map(|node| node.tasks).collect())
        }
        other => panic!("{other}: {usage}"),
    };
    let time_s = start.elapsed().as_secs_f64();
    let shown: Vec<u64> = tasks.iter().copied().take(7).collect();
    println!(
        "{{\"time_s\": {time_s}, \"makespan_s\": {makespan_s:.9}, \"tasks\": {shown:?}, \"peak_mb\": {}}}",
        peak_mb()
    );
}
