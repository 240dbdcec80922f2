//! Bytes as `links.toml`: an answer, never a panic; every link of what is accepted joins two hosts of it, and what is
//! accepted is the same when written and read.
#![no_main]

use crosswind_schema::Links;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match Links::from_toml(bytes, "file") {
        Ok(links) => {
            let ends = links.ends().expect("they were checked");
            assert!(ends.iter().all(|&(from, to)| from != to && from.max(to) < links.hosts.len()));
            let written = links.to_toml().expect("it can be written");
            assert_eq!(Links::from_toml(written.as_bytes(), "again").as_ref(), Ok(&links));
        }
        Err(error) => assert!(error.to_string().starts_with("file"), "{error} / {:?}", error.hint()),
    }
});
