//! The credits of one sender: number of packets in flight to each destination.

use std::num::NonZeroU32;

use super::settings::WindowSettings;

/// The credits of one sending rank, by destination.
///
/// # Examples
///
/// ```
/// use std::num::NonZeroU32;
/// use crosswind_policy::window::{Credits, WindowSettings};
///
/// let mut credits = Credits::new(&WindowSettings::of(NonZeroU32::new(2).unwrap()));
/// assert!(credits.take(7, true) && credits.take(7, true));
/// assert!(!credits.take(7, true), "two packets are under way");
/// assert!(credits.take(3, true), "every destination has its own window");
/// credits.give_back(7, 1);
/// assert!(credits.take(7, true));
/// ```
#[derive(Clone, Debug)]
pub struct Credits {
    running: NonZeroU32,
    away: NonZeroU32,
    /// (destination, packets in flight), sorted by destination. Destinations without packets in flight are omitted.
    under_way: Vec<(u32, u32)>,
}

impl Credits {
    /// Creates a sender with nothing in flight. Without a limit in the settings, the window is `u32::MAX`.
    #[must_use]
    pub fn new(settings: &WindowSettings) -> Self {
        let running = settings.packets.unwrap_or(NonZeroU32::MAX);
        let away = settings.away_packets.unwrap_or(running);
        Self { running, away, under_way: Vec::new() }
    }

    /// The window of a destination: how many packets may be in flight to it. `running`: whether the destination runs.
    #[must_use]
    pub const fn window(&self, running: bool) -> u32 {
        if running { self.running.get() } else { self.away.get() }
    }

    /// Takes a credit for a packet to `to`. `running`: whether the destination runs, as far as the sender knows.
    /// Returns `false` if no credit is left; the sender must then wait.
    #[must_use]
    pub fn take(&mut self, to: u32, running: bool) -> bool {
        let window = self.window(running);
        match self.under_way.binary_search_by_key(&to, |&(destination, _)| destination) {
            Ok(at) if self.under_way[at].1 >= window => false,
            Ok(at) => {
                self.under_way[at].1 += 1;
                true
            }
            Err(at) => {
                self.under_way.insert(at, (to, 1));
                true
            }
        }
    }

    /// Returns `packets` credits for destination `to`. Credits beyond those taken are ignored, and their number is
    /// returned. It is 0 unless a receiver misbehaves.
    pub fn give_back(&mut self, to: u32, packets: u32) -> u32 {
        let Ok(at) = self.under_way.binary_search_by_key(&to, |&(destination, _)| destination) else {
            return packets;
        };
        let out = &mut self.under_way[at].1;
        let counted = packets.min(*out);
        *out -= counted;
        if *out == 0 {
            self.under_way.remove(at);
        }
        packets - counted
    }

    /// Number of packets in flight to a destination.
    #[must_use]
    pub fn under_way(&self, to: u32) -> u32 {
        self.under_way.binary_search_by_key(&to, |&(destination, _)| destination).map_or(0, |at| self.under_way[at].1)
    }

    /// Whether nothing is in flight.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.under_way.is_empty()
    }
}
