//! The receiver's side of receiver credits: while parallel frames arrive, few local frames may be in flight.

use crosswind_schema::Class;

use super::settings::{CreditSettings, Grant};

/// The receiving end of one connection.
///
/// The repaired algorithm differs from the printed one, which deadlocks and starves (E4-15), in four ways. A place is
/// free again once its frame has been taken from the queue. The sender counts frames in flight against its window. The
/// local class may always have one frame in flight. Parallel frames are considered to have stopped when none arrived
/// for `idle_ns`, whatever was lost. The end of a message means nothing, because the next message may follow at once.
///
/// The printed algorithm (`literal`) never frees the place of a parallel frame. The parallel sender stops for good
/// after `receive_frames` frames, plus those in flight when the first grant reached it. A local sender that was granted
/// 0 resumes only after the last parallel frame, if that arrives.
///
/// # Examples
///
/// ```
/// use crosswind_policy::queue::{CreditSettings, Grant, ReceiverCredits};
/// use crosswind_schema::Class::{Local, Parallel};
///
/// let settings = CreditSettings { receive_frames: 16, receive_threshold: 1, idle_ns: 10_000, literal: false };
/// let mut credits = ReceiverCredits::new(settings);
/// assert_eq!(credits.on_frame(Parallel, 500, true), Some(Grant { class: Local, frames: 1, taken: 0 }));
/// assert_eq!(credits.next_timer(), Some(10_500));
/// assert_eq!(credits.on_timer(10_500), Some(Grant { class: Local, frames: 16, taken: 0 }));
/// ```
#[derive(Clone, Debug)]
pub struct ReceiverCredits {
    settings: CreditSettings,
    /// Frames that may be in flight, by class.
    windows: [u32; 2],
    /// Frames taken from the queue, and how many of them the last grant reported.
    taken: [u64; 2],
    granted: [u64; 2],
    /// When the last parallel frame arrived; `None` once they have stopped.
    parallel_at: Option<u64>,
    /// The variable `current_buf_p` of the printed algorithm.
    places: u32,
}

impl ReceiverCredits {
    /// Creates a receiver with empty queues. The sender may have as many frames of each class in flight as there are
    /// places.
    #[must_use]
    pub fn new(settings: CreditSettings) -> Self {
        let window = settings.window();
        Self { settings, windows: [window; 2], taken: [0; 2], granted: [0; 2], parallel_at: None, places: window }
    }

    /// Handles a frame from this connection. `last_of_parallel`: no other parallel frame follows it. The returned grant
    /// must be sent to the sender.
    #[inline]
    pub fn on_frame(&mut self, class: Class, now_ns: u64, last_of_parallel: bool) -> Option<Grant> {
        if self.settings.literal {
            return self.as_printed(class, now_ns, last_of_parallel);
        }
        if class == Class::Parallel { self.on_parallel_elsewhere(now_ns, last_of_parallel) } else { None }
    }

    /// Handles a parallel frame from another connection of the same receiver. The returned grant is for this
    /// connection's sender.
    #[inline]
    pub fn on_parallel_elsewhere(&mut self, now_ns: u64, last_of_parallel: bool) -> Option<Grant> {
        if self.settings.literal {
            self.parallel_at = (!last_of_parallel).then_some(now_ns);
            return last_of_parallel.then(|| self.printed(Class::Local, self.settings.window()));
        }
        let first = self.parallel_at.replace(now_ns).is_none();
        first.then(|| {
            self.windows[Class::Local as usize] = self.settings.receive_threshold.clamp(1, self.settings.window());
            self.grant(Class::Local)
        })
    }

    /// Handles a frame of this connection that was taken from the queue, which frees its place.
    #[inline]
    pub fn on_dequeue(&mut self, class: Class, _now_ns: u64) -> Option<Grant> {
        if self.settings.literal {
            return None;
        }
        let class_at = class as usize;
        self.taken[class_at] += 1;
        // Report in steps of half a window, so that a sender that has used up its window always gets a grant.
        let ungranted = self.taken[class_at] - self.granted[class_at];
        (ungranted >= u64::from(self.windows[class_at] / 2).max(1)).then(|| self.grant(class))
    }

    /// Checks whether parallel frames have stopped. Calling it early does no harm.
    pub fn on_timer(&mut self, now_ns: u64) -> Option<Grant> {
        if self.next_timer().is_none_or(|at| now_ns < at) {
            return None;
        }
        self.parallel_at = None;
        self.windows[Class::Local as usize] = self.settings.window();
        Some(self.grant(Class::Local))
    }

    /// When to call [`ReceiverCredits::on_timer`]. Every parallel frame postpones it.
    #[must_use]
    #[inline]
    pub fn next_timer(&self) -> Option<u64> {
        if self.settings.literal {
            return None;
        }
        self.parallel_at.map(|at| at.saturating_add(self.settings.idle_ns))
    }

    /// The current grant, to be repeated if messages may be lost.
    #[must_use]
    pub const fn standing(&self, class: Class) -> Grant {
        let at = class as usize;
        Grant { class, frames: self.windows[at], taken: self.taken[at] }
    }

    fn grant(&mut self, class: Class) -> Grant {
        self.granted[class as usize] = self.taken[class as usize];
        self.standing(class)
    }

    /// The printed procedure, "done before a frame reaches the receiving queue".
    fn as_printed(&mut self, class: Class, now_ns: u64, last_of_parallel: bool) -> Option<Grant> {
        match class {
            Class::Parallel if last_of_parallel => self.on_parallel_elsewhere(now_ns, true),
            Class::Parallel => {
                self.parallel_at = Some(now_ns);
                self.places = self.places.saturating_sub(1);
                Some(self.printed(Class::Parallel, self.places))
            }
            Class::Local if self.parallel_at.is_some() => {
                Some(self.printed(Class::Local, self.settings.receive_threshold))
            }
            Class::Local => Some(self.printed(Class::Local, self.settings.window())),
        }
    }

    fn printed(&mut self, class: Class, frames: u32) -> Grant {
        self.windows[class as usize] = frames;
        self.grant(class)
    }
}
