//! A policy of your own in Rust: replace [`Mine`], run `cargo test`, then `cargo run --release -- EXPERIMENT.toml`.

use std::error::Error;
use std::path::Path;

use crosswind_policy::farm::own::{Choice, OwnNode, OwnPolicy, OwnState};
use crosswind_policy::farm::{FarmOptions, MeanTask};
use crosswind_schema::experiment::{PlatformSource, Tasks, change, failure};
use crosswind_schema::units::Quantity;
use crosswind_schema::{Experiment, Platform};
use crosswind_sim::{Farm, Options, Outcome, simulate_with};

/// Bandwidth-centric: of the children that ask, the one with the fastest link.
pub struct Mine;

impl OwnPolicy for Mine {
    fn choose(&mut self, node: &OwnState) -> Choice {
        let fastest =
            node.open().max_by(|(_, a), (_, b)| a.receive_limit_mb_per_s.total_cmp(&b.receive_limit_mb_per_s));
        fastest.map_or(Choice::Wait, |(child, _)| Choice::Send { child, task: None })
    }
}

/// Simulates an experiment without a sweep, once; `policy` creates the policy of each node.
///
/// # Errors
/// When a file cannot be read, or the experiment, its platform or a choice is wrong.
pub fn simulate<P: OwnPolicy>(file: &Path, policy: impl Fn(&OwnState) -> P) -> Result<Outcome, Box<dyn Error>> {
    let directory = file.parent().unwrap_or(Path::new(""));
    let experiment = Experiment::from_toml(&std::fs::read(file)?, &file.display().to_string())?;
    let platform = match &experiment.platform {
        PlatformSource::Inline(platform) => platform.clone(),
        PlatformSource::Path(path) => Platform::from_toml(&std::fs::read(directory.join(path))?, path)?,
    };
    let listed = experiment.workload.tasks_file.as_ref().map(|path| std::fs::read(directory.join(path))).transpose()?;
    let tasks = Tasks::draw(&experiment.workload, experiment.seed, listed.as_deref())?;
    let count = tasks.count as f64;
    let mean = MeanTask { size_mb: tasks.total_mb() / count, work: tasks.total_work() / count };
    let farm = Farm {
        platform: &platform,
        tasks: &tasks,
        farm_options: FarmOptions::of(&experiment.policy, mean).with_tasks(tasks.count),
        chunk_kib: experiment.policy.chunk_kib,
        result_size_mb: experiment.workload.result_size_mb.get(),
    };
    let tree = platform.tree()?;
    let changes = change::placed(&experiment.changes, &platform)?;
    let failures = failure::placed(&experiment.failures, &platform, experiment.seed)?;
    let mut make = |node, settings| OwnNode::new(&platform, &tree, node, &settings, |state| policy(state));
    let options = Options { changes: &changes, failures: &failures, trace: false };
    Ok(simulate_with(&farm, options, &mut make, &mut |_| true)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root that computes nothing and two children: by hand, with one send at a time.
    const EXPERIMENT: &str = r#"
schema_version = 1
name = "two children"

[platform]
schema_version = 1
name = "fork"
node = [
    { name = "root", compute_per_s = 0 },
    { name = "slow", parent = "root", compute_per_s = 1, receive_limit_mb_per_s = 1 },
    { name = "fast", parent = "root", compute_per_s = 1, receive_limit_mb_per_s = 4 },
]

[workload]
kind = "farm"
tasks = 2
task_size_mb = 1.0
task_work = 1.0

[policy]
ports = "single"
buffer_tasks = 2
"#;

    #[test]
    fn the_fast_link_is_served_first() {
        let file = std::env::temp_dir().join(format!("policy-in-rust-{}.toml", std::process::id()));
        std::fs::write(&file, EXPERIMENT).expect("a temporary file");
        let outcome = simulate(&file, |_| Mine);
        std::fs::remove_file(&file).expect("a temporary file");
        let outcome = outcome.expect("a simulation");
        // `fast` asks for two tasks at once, has them after 0.25 and 0.5 s, and computes each in 1 s.
        assert_eq!(outcome.nodes.iter().map(|node| node.tasks).collect::<Vec<_>>(), [0, 0, 2]);
        assert!((outcome.makespan_s - 2.25).abs() < 1e-9, "{}", outcome.makespan_s);
    }
}
