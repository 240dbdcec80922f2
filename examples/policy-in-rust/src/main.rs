//! Runs an experiment with the policy of this crate: `cargo run --release -- EXPERIMENT.toml`.

use std::path::PathBuf;
use std::process::ExitCode;

use policy_in_rust::{Mine, simulate};

fn main() -> ExitCode {
    let Some(file) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: policy-in-rust EXPERIMENT.toml");
        return ExitCode::from(2);
    };
    match simulate(&file, |_| Mine) {
        Ok(outcome) => {
            println!("{} s, {} tasks/s", outcome.makespan_s, outcome.throughput_tasks_per_s);
            for (number, node) in outcome.nodes.iter().enumerate() {
                println!("node {number}: {} tasks, busy {} s", node.tasks, node.busy_s);
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
