//! All tests of what is public, as one program: each compiled and linked by itself would take minutes.

#![allow(clippy::unwrap_used)] // a test that cannot go on must stop

extern crate self as libfuzzer_sys;

mod examples;
mod fuzz_seeds;

/// What libFuzzer makes a program is a function here.
#[macro_export]
macro_rules! fuzz_target {
    (|$bytes:ident: &[u8]| $body:block) => {
        pub fn target($bytes: &[u8]) {
            $body
        }
    };
}
