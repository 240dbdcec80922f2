//! Bytes as `platform.toml`: an answer, never a panic; what is accepted is one tree, and is the same when written and read.
#![no_main]

use crosswind_schema::Platform;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match Platform::from_toml(bytes, "file") {
        Ok(platform) => {
            assert_eq!(platform.tree().expect("it was checked").order.len(), platform.nodes.len());
            let _ = platform.warnings();
            let written = platform.to_toml().expect("it can be written");
            assert_eq!(Platform::from_toml(written.as_bytes(), "again").as_ref(), Ok(&platform));
        }
        Err(error) => assert!(error.to_string().starts_with("file"), "{error} / {:?}", error.hint()),
    }
});
