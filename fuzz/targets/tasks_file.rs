//! Bytes as a CSV file of tasks: an answer, never a panic, and an error that says where.
#![no_main]

use crosswind_schema::tasks_file::read;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match read(bytes, "file") {
        Ok(tasks) => assert!(tasks.total_mb() > 0.0 && tasks.total_work() >= 0.0),
        Err(error) => assert!(error.to_string().starts_with("file"), "{error} / {:?}", error.hint()),
    }
});
