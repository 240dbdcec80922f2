//! Several sends that share a limit max-min fairly, each with its own limit.
//!
//! Sends whose own limit binds are *capped*. The others are *fair*: each gets the same share of the rest. `progress` is
//! the integral of the share since the start, so a change of the share touches no send: each fair send ends when the
//! progress reaches its own target. Each capped send ends at its own time.
//!
//! With thousands of sends, every send changes the share a little. A caller that needs only bounds uses the *band*,
//! which is valid until the share leaves it.

use crosswind_policy::heap::Heap;

use crate::time::{Nanos, span};

/// Up to this many fair sends, receivers are notified of every change of the share.
const FEW: usize = 8;
/// Half-width of the band, relative to the share.
const BAND: f64 = 0.2;
/// Limits whose relative difference is at most this are equal.
const ROUNDING: f64 = 1e-12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Absent,
    Capped,
    /// Gets the fair share of the port.
    Fair,
    Paused,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Send {
    pub kind: Kind,
    /// Own limit, MB/ns: the smaller of the next two fields.
    pub cap: f64,
    receive_limit: f64,
    policy_limit: f64,
    /// Fraction of its compute rate that the sender loses per MB/ns.
    ir: f64,
    /// MB until it stops, at its end or where it is to be held. For a capped send, as of `last`.
    left: f64,
    /// Data left to send after the stop, MB.
    beyond: f64,
    last: Nanos,
    /// Progress at which it stops, if fair.
    ends: f64,
    size: f64,
    pub task: u64,
    pub began: Nanos,
    /// MB left when the current part began.
    pub began_left: f64,
    /// When the child's last send ended, and how many ns late.
    freed: (Nanos, f64),
}

#[derive(Clone, Debug)]
pub(crate) struct Shared {
    limit: f64,
    sends: Vec<Send>,
    /// Rate of each fair send, MB/ns. Infinite if the limit does not bind.
    pub share: f64,
    progress: f64,
    last: Nanos,
    fair_ends: Heap<f64>,
    fair_caps: Heap<f64>,
    capped_ends: Heap<f64>,
    capped_caps: Heap<f64>,
    fair: usize,
    capped: usize,
    capped_rate: f64,
    capped_loss: f64,
    fair_ir: f64,
    /// Children whose kind or rate changed. The caller notifies them, then clears the list.
    pub changed: Vec<u32>,
    /// The band last reported to the receivers of fair sends.
    pub band: (f64, f64),
    /// Whether receivers of fair sends are notified of every change.
    pub exact: bool,
    pub tells_all: bool,
}

impl Shared {
    pub fn new(limit: f64) -> Self {
        Self {
            limit,
            sends: Vec::new(),
            share: f64::INFINITY,
            progress: 0.0,
            last: 0,
            fair_ends: Heap::default(),
            fair_caps: Heap::default(),
            capped_ends: Heap::default(),
            capped_caps: Heap::default(),
            fair: 0,
            capped: 0,
            capped_rate: 0.0,
            capped_loss: 0.0,
            fair_ir: 0.0,
            changed: Vec::new(),
            band: (0.0, 0.0),
            exact: true,
            tells_all: false,
        }
    }

    /// Returns an empty port with the same limit.
    pub fn anew(&self) -> Self {
        Self { tells_all: self.tells_all, ..Self::new(self.limit) }
    }

    /// Adds a child. Children are numbered in the order of addition.
    pub fn add(&mut self, receive_limit: f64, ir: f64) {
        self.sends.push(Send {
            kind: Kind::Absent,
            cap: 0.0,
            receive_limit,
            policy_limit: f64::INFINITY,
            ir,
            left: 0.0,
            beyond: 0.0,
            last: 0,
            ends: 0.0,
            size: 0.0,
            task: 0,
            began: 0,
            began_left: 0.0,
            freed: (Nanos::MAX, 0.0),
        });
    }

    pub fn send(&self, child: u32) -> &Send {
        &self.sends[child as usize]
    }

    pub fn is_sending(&self) -> bool {
        self.fair + self.capped > 0
    }

    /// Returns the children whose sends are fair.
    pub fn fair(&self) -> impl Iterator<Item = u32> + '_ {
        self.fair_ends.numbers()
    }

    /// Returns the integral of the share until now, MB.
    #[inline]
    pub fn progress_at(&self, now: Nanos) -> f64 {
        if self.fair == 0 { self.progress } else { self.progress + self.share * span(self.last, now) }
    }

    /// Returns the total rate, MB/ns.
    pub fn rate(&self) -> f64 {
        self.capped_rate + if self.fair == 0 { 0.0 } else { self.share * self.fair as f64 }
    }

    /// Returns the fraction of its compute rate that the sender loses.
    pub fn loss(&self) -> f64 {
        self.capped_loss + if self.fair == 0 { 0.0 } else { self.share * self.fair_ir }
    }

    /// Returns the rate of the send to a child, MB/ns.
    pub fn rate_of(&self, child: u32) -> f64 {
        let send = self.send(child);
        match send.kind {
            Kind::Capped => send.cap,
            Kind::Fair => self.share,
            Kind::Absent | Kind::Paused => 0.0,
        }
    }

    /// Returns the time until the next send stops, ns.
    pub fn next(&self, now: Nanos) -> Option<f64> {
        let capped = self.capped_ends.first().map(|(at, _)| at - now as f64);
        let fair = self.fair_ends.first().map(|(ends, _)| (ends - self.progress) / self.share);
        match (capped, fair) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn advance(&mut self, now: Nanos) {
        self.progress = self.progress_at(now);
        self.last = now;
    }

    /// Starts sending a task, or resumes it if it was held.
    pub fn begin(&mut self, now: Nanos, child: u32, task: u64, size: f64, policy_limit: Option<f64>) {
        self.advance(now);
        let share = self.share;
        let send = &mut self.sends[child as usize];
        send.policy_limit = policy_limit.unwrap_or(f64::INFINITY);
        send.cap = send.receive_limit.min(send.policy_limit);
        let goes_on = send.kind == Kind::Paused && send.task == task;
        let mb = if goes_on { send.beyond } else { size };
        let late = if send.freed.0 == now { send.freed.1 } else { 0.0 };
        send.left = mb - late * send.cap.min(share);
        (send.beyond, send.size, send.task, send.began, send.began_left) = (0.0, size, task, now, mb);
        self.cap(now, child);
        self.balance(now);
    }

    /// Ends a send that stops now. Returns its child and whether the whole task was sent, or `None` if no send stops
    /// now.
    pub fn end(&mut self, now: Nanos) -> Option<(u32, bool)> {
        self.advance(now);
        let (time, rounding) = (now as f64, 1e-3 + now as f64 * 1e-15);
        let capped = self.capped_ends.first().map(|(at, child)| (time - at, child));
        let fair = self.fair_ends.first().map(|(ends, child)| ((self.progress - ends) / self.share, child));
        let (late, child) = match (capped, fair) {
            (Some(a), Some(b)) => {
                if a.0 >= b.0 {
                    a
                } else {
                    b
                }
            }
            (a, b) => a.or(b)?,
        };
        if late < -rounding {
            return None;
        }
        self.take_out(child);
        let send = &mut self.sends[child as usize];
        send.freed = (now, late.max(0.0));
        send.left = 0.0;
        let whole = send.beyond <= 0.0;
        send.kind = if whole { Kind::Absent } else { Kind::Paused };
        self.balance(now);
        Some((child, whole))
    }

    /// Makes a send stop at the end of its current chunk.
    pub fn hold(&mut self, now: Nanos, child: u32, chunk: f64) {
        self.settle(now, child);
        let send = &mut self.sends[child as usize];
        if !matches!(send.kind, Kind::Capped | Kind::Fair) {
            return;
        }
        let sent = send.size - send.left;
        let stop = (sent / chunk - 1e-9).ceil() * chunk;
        if stop < send.size * (1.0 - ROUNDING) {
            send.left = (stop - sent).max(0.0);
            send.beyond = send.size - stop;
        }
        self.place(now, child);
    }

    /// Changes the policy's limit of a send.
    pub fn limit(&mut self, now: Nanos, child: u32, policy_limit: Option<f64>) {
        self.sends[child as usize].policy_limit = policy_limit.unwrap_or(f64::INFINITY);
        self.recap(now, child);
    }

    pub fn receive_limit(&mut self, now: Nanos, child: u32, limit: f64) {
        let send = &mut self.sends[child as usize];
        if send.receive_limit == limit && matches!(send.kind, Kind::Absent | Kind::Paused) {
            return self.advance(now);
        }
        send.receive_limit = limit;
        self.recap(now, child);
    }

    /// Abandons a send because its child is gone.
    pub fn abandon(&mut self, now: Nanos, child: u32) {
        self.advance(now);
        self.take_out(child);
        self.sends[child as usize].kind = Kind::Absent;
        self.balance(now);
    }

    /// Returns, for a task being sent or held, the MB left before it stops and the MB already sent. Both are 0 if there
    /// is no task.
    pub fn so_far(&mut self, now: Nanos, child: u32) -> (f64, f64) {
        self.settle(now, child);
        let send = &self.sends[child as usize];
        match send.kind {
            Kind::Absent => (0.0, 0.0),
            _ => (send.left, send.size - send.left - send.beyond),
        }
    }

    fn recap(&mut self, now: Nanos, child: u32) {
        self.settle(now, child);
        let send = &mut self.sends[child as usize];
        let cap = send.receive_limit.min(send.policy_limit);
        if cap == send.cap || !matches!(send.kind, Kind::Capped | Kind::Fair) {
            send.cap = cap;
            return;
        }
        self.take_out(child);
        self.sends[child as usize].cap = cap;
        self.cap(now, child);
        self.balance(now);
    }

    /// Accounts for what a send has transferred by now.
    fn settle(&mut self, now: Nanos, child: u32) {
        self.advance(now);
        let progress = self.progress;
        let send = &mut self.sends[child as usize];
        match send.kind {
            Kind::Capped => send.left -= send.cap * span(send.last, now),
            Kind::Fair => send.left = send.ends - progress,
            Kind::Absent | Kind::Paused => {}
        }
        send.last = now;
    }

    /// Removes a send from the heaps and sums. Its `left` must be settled or no longer needed.
    fn take_out(&mut self, child: u32) {
        let send = &mut self.sends[child as usize];
        match send.kind {
            Kind::Capped => {
                self.capped_ends.remove(child);
                self.capped_caps.remove(child);
                self.capped -= 1;
                self.capped_rate -= send.cap;
                self.capped_loss -= send.ir * send.cap;
                if self.capped == 0 {
                    (self.capped_rate, self.capped_loss) = (0.0, 0.0); // no rounding is left behind
                }
            }
            Kind::Fair => {
                self.fair_ends.remove(child);
                self.fair_caps.remove(child);
                self.fair -= 1;
                self.fair_ir -= send.ir;
                if self.fair == 0 {
                    self.fair_ir = 0.0;
                }
            }
            Kind::Absent | Kind::Paused => return,
        }
        self.changed.push(child);
    }

    /// Makes a send capped; [`Self::balance`] may then make it fair.
    fn cap(&mut self, now: Nanos, child: u32) {
        let send = &mut self.sends[child as usize];
        (send.kind, send.last) = (Kind::Capped, now);
        self.capped += 1;
        self.capped_rate += send.cap;
        self.capped_loss += send.ir * send.cap;
        self.capped_caps.put(-send.cap, child);
        self.changed.push(child);
        self.place(now, child);
    }

    fn share_out(&mut self, child: u32) {
        let send = &mut self.sends[child as usize];
        (send.kind, send.ends) = (Kind::Fair, self.progress + send.left);
        self.fair += 1;
        self.fair_ir += send.ir;
        self.fair_caps.put(send.cap, child);
        self.fair_ends.put(send.ends, child);
        self.changed.push(child);
    }

    /// Enters the stop of a settled send into its heap.
    fn place(&mut self, now: Nanos, child: u32) {
        let progress = self.progress;
        let send = &mut self.sends[child as usize];
        match send.kind {
            Kind::Capped if send.cap > 0.0 => {
                self.capped_ends.put(now as f64 + send.left.max(0.0) / send.cap, child);
            }
            Kind::Capped => self.capped_ends.remove(child),
            Kind::Fair => {
                send.ends = progress + send.left;
                self.fair_ends.put(send.ends, child);
            }
            Kind::Absent | Kind::Paused => {}
        }
    }

    /// Moves sends between capped and fair until each has the right kind.
    fn balance(&mut self, now: Nanos) {
        loop {
            if self.fair == 0 {
                self.share = f64::INFINITY;
                if self.capped_rate <= self.limit * (1.0 + ROUNDING) {
                    return;
                }
            } else {
                self.share = ((self.limit - self.capped_rate) / self.fair as f64).max(0.0);
                if let Some((cap, child)) = self.fair_caps.first()
                    && cap <= self.share
                {
                    self.settle(now, child);
                    self.take_out(child);
                    self.cap(now, child);
                    continue;
                }
            }
            let share = if self.fair == 0 { 0.0 } else { self.share };
            match self.capped_caps.first() {
                Some((cap, child)) if -cap > share * (1.0 + ROUNDING) => {
                    self.settle_capped(now, child);
                    self.take_out(child);
                    self.share_out(child);
                }
                _ => return,
            }
        }
    }

    fn settle_capped(&mut self, now: Nanos, child: u32) {
        let send = &mut self.sends[child as usize];
        send.left -= send.cap * span(send.last, now);
        send.last = now;
    }

    /// Whether the receivers of fair sends must be notified of the share now.
    pub fn leaves_band(&self) -> bool {
        self.fair > 0 && (self.exact || self.share < self.band.0 || self.share > self.band.1)
    }

    /// Notifies receivers of every change until the next band is drawn.
    pub fn tell_all(&mut self) {
        self.exact = true;
        self.band = (self.share, self.share);
    }

    /// Returns the MB of the task after the point where the send stops.
    pub fn beyond(&self, child: u32) -> f64 {
        self.sends[child as usize].beyond
    }

    /// Draws a new band around the current share.
    pub fn draw_band(&mut self) {
        self.exact = self.tells_all || self.fair <= FEW;
        self.band =
            if self.exact { (self.share, self.share) } else { (self.share * (1.0 - BAND), self.share * (1.0 + BAND)) };
    }
}
