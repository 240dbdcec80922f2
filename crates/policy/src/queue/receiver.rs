//! The receiver's side of receiver credits: while parallel frames arrive, few local frames may be on their way.

use crosswind_schema::Class;

use super::settings::{CreditSettings, Grant};

/// The receiving end of one connection.
///
/// The repaired algorithm differs from the printed one, which deadlocks and starves (E4-15), in four ways. A place is
/// free again once its frame has been taken from the queue. The sender counts frames in flight against its window. The
/// local class may always have one frame on its way. Parallel frames are considered to have stopped when none arrived
/// for `idle_ns`, whatever was lost. The end of a message means nothing, because the next message may follow at once.
///
/// While parallel frames arrive, a local sender may have `receive_threshold` frames on their way that have not arrived:
/// as printed, each local frame that arrives allows more. What waits in the receiver's queue counts against its places
/// only. So a local stream is never slowed by its receiver's other work: it sends `receive_threshold` frames a round
/// trip, until its places are full.
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
    /// Frames that may be sent as printed, by class.
    windows: [u32; 2],
    /// Frames that arrived, and those taken from the queue.
    arrived: [u64; 2],
    taken: [u64; 2],
    /// Frames that the last grant permits, counted from the connection's first.
    permitted: [u64; 2],
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
        Self {
            settings,
            windows: [window; 2],
            arrived: [0; 2],
            taken: [0; 2],
            permitted: [u64::from(window); 2],
            parallel_at: None,
            places: window,
        }
    }

    /// Handles a frame from this connection. `last_of_parallel`: no other parallel frame follows it. The returned grant
    /// must be sent to the sender.
    #[inline]
    pub fn on_frame(&mut self, class: Class, now_ns: u64, last_of_parallel: bool) -> Option<Grant> {
        if self.settings.literal {
            return self.as_printed(class, now_ns, last_of_parallel);
        }
        self.arrived[class as usize] += 1;
        match class {
            Class::Parallel => self.on_parallel_elsewhere(now_ns, last_of_parallel),
            Class::Local => self.due(class),
        }
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
        first.then(|| self.grant(Class::Local))
    }

    /// Handles a frame of this connection that was taken from the queue, which frees its place.
    #[inline]
    pub fn on_dequeue(&mut self, class: Class, _now_ns: u64) -> Option<Grant> {
        if self.settings.literal {
            return None;
        }
        self.taken[class as usize] += 1;
        self.due(class)
    }

    /// Checks whether parallel frames have stopped. Calling it early does no harm.
    pub fn on_timer(&mut self, now_ns: u64) -> Option<Grant> {
        if self.next_timer().is_none_or(|at| now_ns < at) {
            return None;
        }
        self.parallel_at = None;
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
    pub fn current(&self, class: Class) -> Grant {
        let at = class as usize;
        if self.settings.literal {
            return Grant { class, frames: self.windows[at], taken: self.taken[at] };
        }
        let places = self.settings.window();
        let frames = self.held_back(class).map_or(places, |on_their_way| {
            let waiting = self.arrived[at].saturating_sub(self.taken[at]);
            u32::try_from(waiting + u64::from(on_their_way)).map_or(places, |frames| frames.min(places))
        });
        Grant { class, frames, taken: self.taken[at] }
    }

    /// Frames that may be on their way, if few may.
    fn held_back(&self, class: Class) -> Option<u32> {
        let threshold = self.settings.receive_threshold.clamp(1, self.settings.window());
        (class == Class::Local && self.parallel_at.is_some()).then_some(threshold)
    }

    /// Returns a grant if it permits half a window more than the last one, so that a sender that has used up what it was
    /// granted always gets more.
    fn due(&mut self, class: Class) -> Option<Grant> {
        let step = u64::from(self.held_back(class).unwrap_or(self.settings.window()) / 2).max(1);
        let Grant { frames, taken, .. } = self.current(class);
        (taken + u64::from(frames) >= self.permitted[class as usize] + step).then(|| self.grant(class))
    }

    fn grant(&mut self, class: Class) -> Grant {
        let grant = self.current(class);
        self.permitted[class as usize] = grant.taken + u64::from(grant.frames);
        grant
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
