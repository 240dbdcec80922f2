//! Bytes as `experiment.toml`: an answer, never a panic, and an error that says where; so for the points of its sweep.
#![no_main]

use crosswind_schema::Experiment;
use crosswind_schema::experiment::Grid;
use libfuzzer_sys::fuzz_target;

const MOST_POINTS: usize = 20;

fuzz_target!(|bytes: &[u8]| {
    match Experiment::from_toml(bytes, "file") {
        Ok(experiment) => {
            let _ = experiment.runs();
            for point in experiment.points().take(MOST_POINTS) {
                let _ = point.map_err(|error| (error.to_string(), error.hint()));
            }
            let _ = experiment.workload.source().map_err(|error| error.to_string());
        }
        Err(error) => assert!(error.to_string().starts_with("file"), "{error} / {:?}", error.hint()),
    }
});
