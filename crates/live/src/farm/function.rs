//! Functions that tasks call, by number. A function travels over a link once, in front of the first task that calls it,
//! and again only after the receiver was asked to forget it. Every task holds its function, so a function that is
//! forgotten stays until the last task that calls it is done, and can be sent with it to another node at any time.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crosswind_agent::frame::Frame;

use crate::farm::payload::Payload;
use crate::farm::transfer::Transfer;

/// Maximum number of functions that a child keeps for tasks to come.
const MOST: usize = 64;
/// Maximum bytes of those functions. A larger one is kept alone.
const MOST_BYTES: u64 = 256 << 20;
/// Maximum bytes of a function.
pub(crate) const LARGEST: u64 = 1 << 30;

/// Bytes that have another owner.
#[derive(Clone)]
pub struct Shared(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl Shared {
    pub fn new(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self(Arc::new(bytes))
    }

    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shared").field(&self.as_slice().len()).finish()
    }
}

pub struct Function {
    pub number: u64,
    pub bytes: Shared,
    /// The function itself, once the executor has made it of the bytes. It goes with them.
    pub loaded: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Function {
    #[must_use]
    pub fn new(number: u64, bytes: Shared) -> Arc<Self> {
        Arc::new(Self { number, bytes, loaded: OnceLock::new() })
    }

    #[must_use]
    pub fn len(&self) -> u64 {
        self.bytes.as_slice().len() as u64
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("number", &self.number).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// The functions that the child at the other end of a link keeps, the last used one at the end.
#[derive(Debug, Default)]
pub(crate) struct Lent {
    functions: Vec<(u64, u64)>,
    bytes: u64,
}

impl Lent {
    /// Returns whether the child keeps a function.
    pub fn has(&self, number: u64) -> bool {
        self.functions.iter().any(|(known, _)| *known == number)
    }

    /// Announces the function of a transfer that has not begun, once, and has the transfer bring it if the child does not
    /// keep it.
    pub fn announce(&mut self, transfer: &mut Transfer, out: &mut Vec<u8>) {
        if transfer.announce() {
            return;
        }
        if let Some(function) = transfer.payload.function() {
            if self.lend(transfer.task, function.number, function.len(), out) {
                transfer.bring_function();
            }
        }
    }

    /// Announces the function of the task that follows. Returns whether the function must be sent in front of it.
    fn lend(&mut self, task: u64, number: u64, size: u64, out: &mut Vec<u8>) -> bool {
        let known = self.functions.iter().rposition(|(known, _)| *known == number);
        let entry = known.map_or((number, size), |at| self.functions.remove(at));
        self.functions.push(entry);
        if known.is_none() {
            self.bytes += entry.1;
            while self.functions.len() > 1 && (self.functions.len() > MOST || self.bytes > MOST_BYTES) {
                let (number, bytes) = self.functions.remove(0);
                self.bytes -= bytes;
                Frame::Forget { number }.encode(0, out);
            }
        }
        let bytes = if known.is_some() { 0 } else { entry.1 };
        Frame::Function { task, number, bytes }.encode(0, out);
        known.is_none()
    }
}

/// The function of a task that arrives.
#[derive(Debug)]
pub(crate) enum Coming {
    Kept(Arc<Function>),
    /// It arrives in front of the task.
    Arriving {
        number: u64,
        bytes: u64,
        got: Vec<u8>,
    },
}

impl Coming {
    /// Returns the number of the function's bytes that have not arrived.
    pub fn left(&self) -> usize {
        match self {
            Self::Kept(_) => 0,
            Self::Arriving { bytes, got, .. } => *bytes as usize - got.len(),
        }
    }
}

/// The functions that the parent at the other end of a link has sent and not asked to forget.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    functions: HashMap<u64, Arc<Function>>,
    /// The task that follows, and its function.
    announced: Option<(u64, Coming)>,
}

impl Kept {
    /// Notes the function of the task that follows.
    ///
    /// # Errors
    /// When there is no such function.
    pub fn announce(&mut self, task: u64, number: u64, bytes: u64) -> Result<(), String> {
        if bytes > LARGEST {
            return Err(format!("a function of {bytes} bytes; {LARGEST} are permitted"));
        }
        let coming = if bytes > 0 {
            Coming::Arriving { number, bytes, got: Vec::new() }
        } else {
            let kept = self.functions.get(&number).map(Arc::clone);
            Coming::Kept(kept.ok_or_else(|| format!("function {number}, which was not sent"))?)
        };
        match self.announced.replace((task, coming)) {
            Some((before, _)) => Err(format!("the function of task {before}, which did not follow")),
            None => Ok(()),
        }
    }

    /// Returns the function of a task that begins; `None` if it has none.
    ///
    /// # Errors
    /// When the function of another task was announced, or the task is shorter than its function.
    pub fn coming(&mut self, task: u64, total: u64) -> Result<Option<Coming>, String> {
        match self.announced.take() {
            None => Ok(None),
            Some((of, coming)) if of == task && coming.left() as u64 <= total => Ok(Some(coming)),
            Some((of, _)) => Err(format!("task {task}, after the function of task {of}")),
        }
    }

    /// Returns a task that has arrived with its function, and keeps the function for tasks that follow.
    pub fn arrived(&mut self, coming: Coming, input: Payload) -> Payload {
        match coming {
            Coming::Kept(function) => input.calling(function),
            Coming::Arriving { number, got, .. } => {
                let function = Function::new(number, Shared::new(got));
                self.functions.insert(number, Arc::clone(&function));
                input.bringing(function)
            }
        }
    }

    /// Forgets a function. Tasks that call it still hold it.
    pub fn forget(&mut self, number: u64) {
        self.functions.remove(&number);
    }
}

#[cfg(test)]
mod tests {
    use crosswind_agent::frame::{LARGEST_FRAME, decode};
    use proptest::prelude::*;

    use super::*;

    /// Hands a child what its parent has announced.
    fn pass(wire: &mut Vec<u8>, kept: &mut Kept) {
        let mut from = 0;
        while let Some(decoded) = decode(&wire[from..], LARGEST_FRAME).expect("frames") {
            from += decoded.used;
            match decoded.frame {
                Frame::Function { task, number, bytes } => kept.announce(task, number, bytes).expect("a function"),
                Frame::Forget { number } => kept.forget(number),
                other => panic!("{other:?}"),
            }
        }
        wire.clear();
    }

    proptest! {
        #[test]
        fn a_child_has_the_function_of_every_task_and_keeps_no_more_than_the_bound(
            calls in proptest::collection::vec((0..100u64, 1..100u64), 0..400),
        ) {
            let (mut lent, mut kept, mut wire) = (Lent::default(), Kept::default(), Vec::new());
            let mut held = Vec::new();
            for (task, (number, mb)) in (0..).zip(calls) {
                // As large as drawn, without the memory.
                let function = Function::new(number, Shared::new(number.to_be_bytes()));
                let brings = lent.lend(task, number, (number % 7 + mb % 2) << 23 | 8, &mut wire);
                pass(&mut wire, &mut kept);
                let mut coming = kept.coming(task, u64::MAX).expect("announced").expect("a function");
                if let Coming::Arriving { got, .. } = &mut coming {
                    prop_assert!(brings);
                    got.extend_from_slice(function.bytes.as_slice());
                }
                let payload = kept.arrived(coming, Payload::bytes(vec![1]));
                let found = payload.function().expect("a function");
                prop_assert_eq!((found.number, found.bytes.as_slice()), (number, function.bytes.as_slice()));
                held.push(payload);
                prop_assert!(kept.functions.len() <= MOST && kept.functions.len() == lent.functions.len());
                prop_assert!(lent.bytes <= MOST_BYTES || lent.functions.len() == 1);
                prop_assert!(lent.functions.iter().all(|(number, _)| kept.functions.contains_key(number)));
            }
        }
    }

    #[test]
    fn a_function_that_was_not_sent_or_that_is_not_followed_by_its_task_is_refused() {
        let mut kept = Kept::default();
        assert!(kept.announce(0, 5, 0).is_err());
        assert!(kept.announce(0, 5, LARGEST + 1).is_err());
        kept.announce(0, 5, 100).expect("new");
        assert!(kept.coming(1, 1000).is_err(), "another task");
        kept.announce(0, 5, 100).expect("new");
        assert!(kept.coming(0, 99).is_err(), "a task shorter than its function");
        kept.announce(0, 5, 100).expect("new");
        assert!(kept.announce(1, 6, 100).is_err(), "its task did not follow");
    }
}
