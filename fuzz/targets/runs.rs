//! Bytes as `runs.json`: an answer, never a panic; what is accepted is the same when written and read.
#![no_main]

use crosswind_schema::Runs;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match Runs::from_json(bytes, "file") {
        Ok(read) => {
            let written = serde_json::to_vec(&read).expect("it can be written");
            assert_eq!(Runs::from_json(&written, "again").as_ref(), Ok(&read));
        }
        Err(error) => assert!(error.to_string().starts_with("file"), "{error} / {:?}", error.hint()),
    }
});
