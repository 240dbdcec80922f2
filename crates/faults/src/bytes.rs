//! Content of tasks and results: byte patterns that reveal a wrong or damaged payload.

use std::sync::Arc;

use crosswind_agent::action::TaskBytes;

use crate::schedule::TaskPlan;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes(pub Arc<Vec<u8>>);

impl Bytes {
    #[must_use]
    pub fn of(bytes: Vec<u8>) -> Self {
        Self(Arc::new(bytes))
    }
}

impl TaskBytes for Bytes {
    fn of_text(text: String) -> Self {
        Self::of(text.into_bytes())
    }

    fn blank(bytes: u64) -> Self {
        Self::of(vec![0; bytes as usize])
    }

    fn bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn in_memory(&self) -> u64 {
        self.bytes()
    }

    fn missing(&self) -> Option<String> {
        None
    }
}

fn pattern(seed: u64, bytes: u64) -> Vec<u8> {
    (0..bytes).map(|at| (seed.wrapping_mul(31).wrapping_add(at.wrapping_mul(7)) >> 1) as u8).collect()
}

/// The input of a task.
#[must_use]
pub fn input(plan: &TaskPlan) -> Bytes {
    Bytes::of(pattern(plan.task, plan.bytes.0))
}

/// The result of a task, which depends on its input.
#[must_use]
pub fn result(plan: &TaskPlan, input: &Bytes) -> Bytes {
    let digest = input.0.iter().fold(plan.task + 1, |sum, &byte| sum.wrapping_mul(0x100_0000_01b3) ^ u64::from(byte));
    Bytes::of(pattern(digest, plan.bytes.1))
}
