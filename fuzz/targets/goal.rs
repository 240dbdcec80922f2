//! GOAL files: whatever the bytes, an answer, and what is read can be run without time.
#![no_main]

use crosswind_program::{Goal, Op, Program, Rank};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    match Goal::parse(text) {
        Ok(goal) => {
            for rank in 0..goal.ranks().min(8) {
                let mut node = goal.rank(rank);
                let mut operations = 0;
                while !matches!(node.next(), Op::Wait | Op::Done) {
                    operations += 1;
                    assert!(operations <= text.len(), "more operations than bytes");
                }
            }
        }
        Err(error) => {
            assert!(error.line >= 1);
            assert!(!error.problem.is_empty());
        }
    }
});
