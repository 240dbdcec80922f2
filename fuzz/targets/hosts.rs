//! Bytes as `hosts.toml`: an answer, never a panic; what is accepted is the same when written and read.
#![no_main]

use crosswind_schema::Hosts;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match Hosts::from_toml(bytes, "file") {
        Ok(hosts) => {
            let written = serde_json::to_vec(&hosts).expect("it can be written");
            assert_eq!(Hosts::from_json(&written, "again").as_ref(), Ok(&hosts));
        }
        Err(error) => assert!(error.to_string().starts_with("file"), "{error} / {:?}", error.hint()),
    }
});
