//! How many frames may be under way to a receiver: while parallel frames come, few of class local.

use crosswind_schema::Class;

use super::settings::{CreditSettings, Grant};

/// The receiving end of one connection.
///
/// Repaired, where the printed form stops and starves (E4-15): a place is free again when its frame has been taken from the
/// queue; frames under way are counted, by the sender, against what it may have under way; the local class may always have one
/// frame under way; and parallel frames no longer come when none has for `idle_ns`, whatever was lost. The end of a message says
/// nothing: the next may be about to come.
///
/// As printed (`literal`): every parallel frame takes a place for ever, so the parallel sender stops for good after
/// `receive_frames` frames, and those that were under way when it first heard of it; and a local sender that was told 0 sends again only after the last parallel frame, if that comes.
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
    /// What may be under way.
    windows: [u32; 2],
    /// Frames taken from the queue, and how many of them the sender has been told.
    taken: [u64; 2],
    told: [u64; 2],
    /// When the last parallel frame came, while they come.
    parallel_at: Option<u64>,
    /// As printed: `current_buf_p`.
    places: u32,
}

impl ReceiverCredits {
    /// An empty queue; the sender may have as many frames of each class under way as it has places.
    #[must_use]
    pub fn new(settings: CreditSettings) -> Self {
        let window = settings.window();
        Self { settings, windows: [window; 2], taken: [0; 2], told: [0; 2], parallel_at: None, places: window }
    }

    /// A frame came over this connection. `last_of_parallel`: no other parallel frame is behind it. What is returned goes to the
    /// sender.
    #[inline]
    pub fn on_frame(&mut self, class: Class, now_ns: u64, last_of_parallel: bool) -> Option<Grant> {
        if self.settings.literal {
            return self.as_printed(class, now_ns, last_of_parallel);
        }
        if class == Class::Parallel { self.on_parallel_elsewhere(now_ns, last_of_parallel) } else { None }
    }

    /// A parallel frame came over another connection of the same receiver. What is returned goes to this connection's sender.
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

    /// A frame of this connection has been taken from the queue: its place is free.
    #[inline]
    pub fn on_dequeue(&mut self, class: Class, _now_ns: u64) -> Option<Grant> {
        if self.settings.literal {
            return None;
        }
        let class_at = class as usize;
        self.taken[class_at] += 1;
        // Half a window at a time: a sender that has used it all up always hears of it.
        let untold = self.taken[class_at] - self.told[class_at];
        (untold >= u64::from(self.windows[class_at] / 2).max(1)).then(|| self.grant(class))
    }

    /// Time has passed; early calls do no harm.
    pub fn on_timer(&mut self, now_ns: u64) -> Option<Grant> {
        if self.next_timer().is_none_or(|at| now_ns < at) {
            return None;
        }
        self.parallel_at = None;
        self.windows[Class::Local as usize] = self.settings.window();
        Some(self.grant(Class::Local))
    }

    /// When [`ReceiverCredits::on_timer`] wants to be called; every parallel frame puts it off.
    #[must_use]
    #[inline]
    pub fn next_timer(&self) -> Option<u64> {
        if self.settings.literal {
            return None;
        }
        self.parallel_at.map(|at| at.saturating_add(self.settings.idle_ns))
    }

    /// What the sender should know now: sent again where messages may be lost.
    #[must_use]
    pub const fn standing(&self, class: Class) -> Grant {
        let at = class as usize;
        Grant { class, frames: self.windows[at], taken: self.taken[at] }
    }

    fn grant(&mut self, class: Class) -> Grant {
        self.told[class as usize] = self.taken[class as usize];
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
