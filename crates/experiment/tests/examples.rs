//! Every experiment of `examples/`, in virtual time and without Python, compared with the output of `crosswind run
//! --json`.
//!
//! `tests/golden/test_examples.py` writes the files and compares the command line with them.

use std::collections::HashMap;
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

use crosswind_experiment::farm::FarmPoint;
use crosswind_experiment::program::ProgramPoint;
use crosswind_experiment::streams;
use crosswind_schema::experiment::{DisturbanceSource, Params, Paths, PlatformSource};
use crosswind_schema::{
    AnyExperiment, Disturbance, Experiment, Platform, ProgramExperiment, ProgramRun, ProgramRuns, Run, Runs,
    StreamsExperiment, StreamsRun, StreamsRuns,
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn farm(directory: &Path, experiment: Experiment, params: Params) -> Run {
    let platform = match &experiment.platform {
        PlatformSource::Path(file) => Platform::from_toml(&read(&directory.join(file)), file).expect("a platform"),
        PlatformSource::Inline(platform) => platform.clone(),
    };
    let tasks = experiment.workload.tasks_file.as_ref().map(|file| read(&directory.join(file)));
    let point = FarmPoint::new(&platform, experiment, tasks.as_deref()).expect("tasks");
    let (run, _) = point.simulate(false, &mut |_| true).expect("a run");
    Run { params, ..run }
}

#[derive(Default)]
struct Programs {
    /// Times of undisturbed programs, s, by description.
    undisturbed: HashMap<String, f64>,
}

impl Programs {
    fn run(&mut self, directory: &Path, experiment: &ProgramExperiment, params: Params) -> ProgramRun {
        let disturbance = experiment.disturbance.as_ref().map(|source| match source {
            DisturbanceSource::Path(file) => {
                Disturbance::from_toml(&read(&directory.join(file)), file).expect("a disturbance")
            }
            DisturbanceSource::Inline(disturbance) => disturbance.clone(),
        });
        let seed = experiment.workload.data_seed(experiment.seed);
        let program = (&experiment.workload, &experiment.network, &experiment.policy, seed);
        let program = serde_json::to_string(&program).expect("JSON");
        let point =
            ProgramPoint { experiment, disturbance: disturbance.as_ref(), goal: None, recording: None, threads: 2 };
        let run = point.simulate(self.undisturbed.get(&program).copied(), &mut |_| true).expect("a run");
        self.undisturbed.insert(program, run.dedicated_s);
        ProgramRun { params, ..run }
    }
}

fn stream(experiment: &StreamsExperiment, params: Params) -> StreamsRun {
    StreamsRun { params, ..streams::simulate(experiment, &mut |_| true).expect("a run") }
}

/// Compares every `step`-th run of an experiment.
fn check(name: &str, step: usize) {
    let directory = root().join("examples");
    let file = format!("{name}.toml");
    let experiment = AnyExperiment::from_toml(&read(&directory.join(&file)), &file).expect("an experiment");
    let golden = read(&root().join(format!("tests/golden/examples/{name}.json")));
    let (mut farms, mut streams, mut programs) = (Vec::new(), Vec::new(), Vec::new());
    let mut simulated = Programs::default();
    for number in (0..experiment.runs().expect("a number of runs")).step_by(step) {
        let (pairs, point) = experiment.point(number).expect("a point");
        let params = Paths(pairs);
        match point {
            AnyExperiment::Farm(point) => farms.push(farm(&directory, point, params)),
            AnyExperiment::Program(point) => programs.push(simulated.run(&directory, &point, params)),
            AnyExperiment::Streams(point) => streams.push(stream(&point, params)),
        }
    }
    match experiment {
        AnyExperiment::Farm(_) => same(&farms, &Runs::from_json(&golden, name).expect("runs").runs, step),
        AnyExperiment::Program(_) => same(&programs, &ProgramRuns::from_json(&golden, name).expect("runs").runs, step),
        AnyExperiment::Streams(_) => same(&streams, &StreamsRuns::from_json(&golden, name).expect("runs").runs, step),
    }
}

/// Compares run by run, so that a failure shows only the first run that differs.
fn same<R: PartialEq + Debug>(found: &[R], golden: &[R], step: usize) {
    assert_eq!(found.len(), golden.len().div_ceil(step));
    for (found, golden) in found.iter().zip(golden.iter().step_by(step)) {
        assert_eq!(found, golden);
    }
}

/// One test per file, so that they run in parallel and a failure names its file.
macro_rules! examples {
    ($($name:ident: $step:literal),* $(,)?) => {
        const CHECKED: &[&str] = &[$(stringify!($name)),*];
        $(#[test] fn $name() { check(stringify!($name), $step); })*
    };
}

examples!(
    barriers_of_two: 1,
    barriers_under_daemons: 1,
    em3d_here: 1,
    em3d_of_two: 1,
    em3d_under_daemons: 7,
    fork_graph: 1,
    fork_graph_emulated: 1,
    local_scheduling: 1,
    streams_one_to_all: 1,
    streams_receiving_side: 1,
    streams_sending_side: 1,
);

#[test]
#[ignore = "long: make test-long"]
fn em3d_under_daemons_in_full() {
    check("em3d_under_daemons", 1);
}

#[test]
fn no_experiment_is_left_out() {
    let entries = fs::read_dir(root().join("examples")).expect("examples");
    let files = entries.map(|entry| entry.expect("an entry").path());
    let mut found: Vec<String> = files
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .filter(|path| AnyExperiment::from_toml(&read(path), "example").is_ok())
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    found.sort();
    assert_eq!(found, CHECKED);
}
