//! A processor whose rate falls with what its node sends and receives.
//!
//! Work is settled whenever a rate changes, not before. Where the node receives over a port that many share, its rate
//! changes with every one of them; then the work lost is taken from the bytes received (`C IR_r` per MB, whatever the
//! rate), and the end that is scheduled is a lower bound, looked at again when it comes.

use crate::time::{Nanos, after, span};

pub(crate) const IDLE: u64 = u64::MAX;

#[derive(Clone, Debug)]
pub(crate) struct Processor {
    /// Work units per ns while nothing is sent or received.
    compute: f64,
    /// Fraction lost per MB/ns received.
    ir_receive: f64,
    /// Work units per ns now; over a shared port, the most that it may be until the share leaves its band.
    rate: f64,
    /// Below 0: what was done too much since time is a whole number; the next task begins with it.
    remaining: f64,
    last: Nanos,
    /// Fraction lost by sending.
    pub send_loss: f64,
    /// Fraction lost by results, from below and to above.
    result_loss: f64,
    /// MB/ns from the parent; over a shared port, the least that it is until the share leaves its band.
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

    /// Has another compute rate from now on; settled before.
    pub fn compute_at(&mut self, compute_per_s: f64) {
        self.compute = compute_per_s * 1e-9;
    }

    /// Loses another part per MB/s received from now on; settled before.
    pub fn ir_receive_at(&mut self, s_per_mb: f64) {
        self.ir_receive = s_per_mb * 1e9;
    }

    pub fn ir_receive(&self) -> f64 {
        self.ir_receive
    }

    /// Results begin or stop to move over a link of the node; returns what all of them cost now.
    pub fn add_result_loss(&mut self, loss: f64) -> f64 {
        self.result_loss += loss;
        if self.result_loss < 1e-12 {
            self.result_loss = 0.0; // what is left of sums and differences
        }
        self.result_loss
    }

    /// Whether it would stand still within the rates of a band: then bytes do not say how much is lost.
    pub fn stands_still_at(&self, receive: f64) -> bool {
        self.send_loss + self.result_loss + self.ir_receive * receive > 1.0
    }

    /// Accounts for the work since the last time, where the port above is not shared.
    #[inline]
    pub fn settle(&mut self, now: Nanos) {
        if self.last == now {
            return; // nothing is done in no time
        }
        self.remaining -= self.rate * span(self.last, now);
        self.last = now;
    }

    /// The same over a shared port; `received` is what each child of the port has received by now, MB.
    pub fn settle_shared(&mut self, now: Nanos, received: f64) {
        let Some(before) = self.shared.filter(|_| self.last != now) else { return };
        let time = span(self.last, now);
        self.last = now;
        let lost = self.send_loss + self.result_loss;
        self.remaining -= self.compute * (time * (1.0 - lost) - self.ir_receive * (received - before));
        self.shared = Some(received);
    }

    /// Begins a task; settled before.
    #[inline]
    pub fn begin(&mut self, now: Nanos, task: u64, work: f64) {
        let ahead = if self.freed == now { self.remaining } else { 0.0 };
        self.remaining = work + ahead;
        (self.task, self.began, self.fresh) = (task, now, true);
    }

    /// Ends a task, settled before, if there is no work left: the task and when it began.
    #[inline]
    pub fn end(&mut self, now: Nanos) -> Option<(u64, Nanos)> {
        // Only what a lower bound was scheduled for can have more than rounding left.
        if self.shared.is_some() && self.remaining > 1e-3 * self.rate {
            self.fresh = true;
            return None;
        }
        self.busy += now - self.began;
        self.computed += 1;
        self.freed = now;
        Some((std::mem::replace(&mut self.task, IDLE), self.began))
    }

    /// Forgets its task, settled before: the node is gone. Returns the task, when it began and the work left of it.
    pub fn drop_task(&mut self, now: Nanos) -> Option<(u64, Nanos, f64)> {
        if self.task == IDLE {
            return None;
        }
        self.busy += now - self.began;
        Some((std::mem::replace(&mut self.task, IDLE), self.began, self.remaining))
    }

    /// Takes up the rate that follows from what it sends and receives; when its task ends, if that is not known yet.
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

/// What a changed rate means for the agenda.
pub(crate) enum Refreshed {
    Same,
    Ends(Nanos),
    /// The task does not end at this rate.
    StandsStill,
}
