//! All integration tests in one program: compiling and linking each separately would take minutes.

#![allow(clippy::unwrap_used)] // a test that cannot continue must stop

extern crate self as libfuzzer_sys;

mod examples;
mod fuzz_seeds;

/// Replaces libFuzzer's macro: a fuzz target becomes a function.
#[macro_export]
macro_rules! fuzz_target {
    (|$bytes:ident: &[u8]| $body:block) => {
        pub fn target($bytes: &[u8]) {
            $body
        }
    };
}
