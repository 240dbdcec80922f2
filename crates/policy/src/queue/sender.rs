//! The sender's side of receiver credits: what the receiver granted, and what is in flight to it.

use crosswind_schema::Class;

use super::settings::{CreditSettings, Grant};

/// The sending end of one connection.
///
/// # Examples
///
/// ```
/// use crosswind_policy::queue::{CreditSettings, Grant, SenderCredits};
/// use crosswind_schema::Class::Local;
///
/// let settings = CreditSettings { receive_frames: 2, receive_threshold: 1, idle_ns: 10_000, literal: false };
/// let mut credits = SenderCredits::new(settings);
/// credits.on_sent(Local);
/// credits.on_grant(Grant { class: Local, frames: 1, taken: 0 });
/// assert!(!credits.may_send(Local), "one is under way, and no more than one may be");
/// credits.on_grant(Grant { class: Local, frames: 1, taken: 1 });
/// assert!(credits.may_send(Local));
/// ```
#[derive(Clone, Debug)]
pub struct SenderCredits {
    literal: bool,
    /// Frames that may be in flight. In the printed algorithm: frames that may still be sent.
    windows: [u32; 2],
    sent: [u64; 2],
    taken: [u64; 2],
}

impl SenderCredits {
    /// Creates a sender with nothing in flight and the receiver's queues empty.
    #[must_use]
    pub fn new(settings: CreditSettings) -> Self {
        Self { literal: settings.literal, windows: [settings.window(); 2], sent: [0; 2], taken: [0; 2] }
    }

    /// Handles a grant. A count of taken frames beyond those sent is clamped to those sent.
    pub fn on_grant(&mut self, grant: Grant) {
        let at = grant.class as usize;
        self.windows[at] = grant.frames;
        self.taken[at] = grant.taken.min(self.sent[at]).max(self.taken[at]);
    }

    /// Whether a frame of the class may be sent.
    #[must_use]
    #[inline]
    pub const fn may_send(&self, class: Class) -> bool {
        let window = self.windows[class as usize];
        if self.literal { window > 0 } else { self.in_flight(class) < window as u64 }
    }

    /// Records that a frame was sent.
    #[inline]
    pub const fn on_sent(&mut self, class: Class) {
        let at = class as usize;
        self.sent[at] += 1;
        if self.literal {
            self.windows[at] = self.windows[at].saturating_sub(1);
        }
    }

    /// Records that a sent frame was lost and is no longer in flight.
    #[inline]
    pub const fn on_lost(&mut self, class: Class) {
        let at = class as usize;
        if self.sent[at] > self.taken[at] {
            self.sent[at] -= 1;
        }
    }

    /// Number of frames sent that the receiver has not reported as taken from its queue.
    #[must_use]
    #[inline]
    pub const fn in_flight(&self, class: Class) -> u64 {
        self.sent[class as usize] - self.taken[class as usize]
    }
}
