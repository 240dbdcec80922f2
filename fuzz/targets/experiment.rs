//! Bytes as `experiment.toml`: an answer, never a panic, and an error that says where; so for the points of its sweep.
#![no_main]

use crosswind_schema::AnyExperiment;
use crosswind_schema::experiment::streams::MessageDraws;
use libfuzzer_sys::fuzz_target;

const MOST_POINTS: u64 = 20;

fuzz_target!(|bytes: &[u8]| {
    match AnyExperiment::from_toml(bytes, "file") {
        Ok(experiment) => {
            for number in 0..experiment.runs().unwrap_or(0).min(MOST_POINTS) {
                let _ = experiment.point(number).map_err(|error| (error.to_string(), error.hint()));
            }
            match experiment {
                AnyExperiment::Farm(farm) => drop(farm.workload.source().map_err(|error| error.to_string())),
                AnyExperiment::Program(program) => drop(program.workload.parameters()),
                AnyExperiment::Streams(streams) => {
                    for (place, stream) in streams.workload.streams.iter().enumerate().take(100) {
                        let mut draws = MessageDraws::new(stream, place, streams.seed);
                        assert!(draws.bytes() >= 1 && draws.answer_bytes() != Some(0) && draws.gap_ns() < u64::MAX);
                    }
                }
            }
        }
        Err(error) => assert!(error.to_string().starts_with("file"), "{error} / {:?}", error.hint()),
    }
});
