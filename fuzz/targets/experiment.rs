//! Bytes as `experiment.toml`: an answer, never a panic, and an error that says where.
#![no_main]

use crosswind_schema::Experiment;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = Experiment::from_toml(bytes, "file") {
        assert!(error.to_string().starts_with("file"), "{error} / {:?}", error.hint());
    }
});
