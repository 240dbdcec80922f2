//! A processor whose rate falls with what its node sends and receives.
//!
//! Work is accounted for when a rate changes, not before. Where a node receives over a shared port, its rate changes
//! with every send of that port. The work lost is then derived from the bytes received (`C IR_r` per MB, whatever the
//! rate). The scheduled end is a lower bound, checked again when it is reached.

use crate::time::{Nanos, after, span};

pub(crate) const IDLE: u64 = u64::MAX;

#[derive(Clone, Debug)]
pub(crate) struct Processor {
    /// Work units per ns while nothing is sent or received.
    compute: f64,
    /// Fraction lost per MB/ns received.
    ir_receive: f64,
    /// Current rate, work units per ns. Over a shared port, the highest possible until the share leaves its band.
    rate: f64,
    /// Work left. Below 0: surplus done because times are rounded up to whole ns, credited to the next task.
    remaining: f64,
    last: Nanos,
    /// Fraction of the compute rate lost by sending.
    pub send_loss: f64,
    /// Fraction lost to results, received from below and sent upward.
    result_loss: f64,
    /// MB/ns from the parent. Over a shared port, the lowest possible until the share leaves its band.
    pub receive: f64,
    /// Over a shared port: MB that each child of the port had received at `last`.
    pub shared: Option<f64>,
    pub task: u64,
    fresh: bool,
    pub dirty: bool,
    began: Nanos,
    freed: Nanos,
    pub busy: Nanos,
    pub computed: u64,
}

impl Processor {
    pub fn new(compute_per_s: f64, ir_receive_s_per_mb: f64) -> Self {
        Self {
            compute: compute_per_s * 1e-9,
            ir_receive: ir_receive_s_per_mb * 1e9,
            rate: compute_per_s * 1e-9,
            remaining: 0.0,
            last: 0,
            send_loss: 0.0,
            result_loss: 0.0,
            receive: 0.0,
            shared: None,
            task: IDLE,
            fresh: false,
            dirty: false,
            began: 0,
            freed: Nanos::MAX,
            busy: 0,
            computed: 0,
        }
    }

    /// Sets the compute rate from now on. Requires settled work.
    pub fn compute_at(&mut self, compute_per_s: f64) {
        self.compute = compute_per_s * 1e-9;
    }

    /// Sets the loss per MB/s received from now on. Requires settled work.
    pub fn ir_receive_at(&mut self, s_per_mb: f64) {
        self.ir_receive = s_per_mb * 1e9;
    }

    pub fn ir_receive(&self) -> f64 {
        self.ir_receive
    }

    /// Adds the loss of a result transfer that starts (or, negative, stops) at this node. Returns the loss of all
    /// result transfers.
    pub fn add_result_loss(&mut self, loss: f64) -> f64 {
        self.result_loss += loss;
        if self.result_loss < 1e-12 {
            self.result_loss = 0.0; // what is left of sums and differences
        }
        self.result_loss
    }

    /// Whether the processor would stop at this receive rate. If so, the loss cannot be derived from the bytes
    /// received.
    pub fn stands_still_at(&self, receive: f64) -> bool {
        self.send_loss + self.result_loss + self.ir_receive * receive > 1.0
    }

    /// Accounts for the work since the last call, where the port above is not shared.
    #[inline]
    pub fn settle(&mut self, now: Nanos) {
        if self.last == now {
            return; // nothing is done in no time
        }
        self.remaining -= self.rate * span(self.last, now);
        self.last = now;
    }

    /// Like [`Self::settle`], over a shared port. `received`: MB that each child of the port has received by now.
    pub fn settle_shared(&mut self, now: Nanos, received: f64) {
        let Some(before) = self.shared.filter(|_| self.last != now) else { return };
        let time = span(self.last, now);
        self.last = now;
        let lost = self.send_loss + self.result_loss;
        self.remaining -= self.compute * (time * (1.0 - lost) - self.ir_receive * (received - before));
        self.shared = Some(received);
    }

    /// Starts a task. Requires settled work.
    #[inline]
    pub fn begin(&mut self, now: Nanos, task: u64, work: f64) {
        let ahead = if self.freed == now { self.remaining } else { 0.0 };
        self.remaining = work + ahead;
        (self.task, self.began, self.fresh) = (task, now, true);
    }

    /// Ends the current task if no work is left. Returns the task and its start. Requires settled work.
    #[inline]
    pub fn end(&mut self, now: Nanos) -> Option<(u64, Nanos)> {
        // Only an end scheduled as a lower bound can have more than a rounding error left.
        if self.shared.is_some() && self.remaining > 1e-3 * self.rate {
            self.fresh = true;
            return None;
        }
        self.busy += now - self.began;
        self.computed += 1;
        self.freed = now;
        Some((std::mem::replace(&mut self.task, IDLE), self.began))
    }

    /// Drops the current task because the node is gone. Returns the task, its start and the work left. Requires settled
    /// work.
    pub fn drop_task(&mut self, now: Nanos) -> Option<(u64, Nanos, f64)> {
        if self.task == IDLE {
            return None;
        }
        self.busy += now - self.began;
        Some((std::mem::replace(&mut self.task, IDLE), self.began, self.remaining))
    }

    /// Updates the rate from what the node sends and receives. Returns the task's end if that has changed.
    #[inline]
    pub fn refresh(&mut self, now: Nanos) -> Refreshed {
        self.dirty = false;
        let left = 1.0 - (self.send_loss + self.result_loss + self.ir_receive * self.receive);
        let rate = self.compute * if left > 0.0 { left } else { 0.0 };
        let same = rate == self.rate && !self.fresh;
        self.rate = rate;
        if same || self.task == IDLE {
            return Refreshed::Same;
        }
        self.fresh = false;
        if rate > 0.0 { Refreshed::Ends(after(now, self.remaining / rate)) } else { Refreshed::StandsStill }
    }
}

/// Effect of a new rate on the agenda.
pub(crate) enum Refreshed {
    Same,
    Ends(Nanos),
    /// The task does not end at this rate.
    StandsStill,
}
