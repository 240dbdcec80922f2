//! The credits of one sender: how many packets are under way to each destination.

use std::num::NonZeroU32;

use super::settings::WindowSettings;

/// What one sending rank may still send to each destination.
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
    /// Destinations with packets under way, and how many; by destination.
    under_way: Vec<(u32, u32)>,
}

impl Credits {
    /// All credits at home. Without a limit: as many as can be counted.
    #[must_use]
    pub fn new(settings: &WindowSettings) -> Self {
        let running = settings.packets.unwrap_or(NonZeroU32::MAX);
        let away = settings.away_packets.unwrap_or(running);
        Self { running, away, under_way: Vec::new() }
    }

    /// The window for a destination: what may be under way to it.
    #[must_use]
    pub const fn window(&self, running: bool) -> u32 {
        if running { self.running.get() } else { self.away.get() }
    }

    /// Takes a credit for a packet to `to`, which runs as far as the sender knows, or does not. `false`: there is none, and
    /// the sender waits.
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

    /// So many credits of packets to `to` are back. More than were taken are not counted; how many were too many is returned,
    /// which is 0 unless a receiver errs.
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

    /// How many packets are under way to a destination.
    #[must_use]
    pub fn under_way(&self, to: u32) -> u32 {
        self.under_way.binary_search_by_key(&to, |&(destination, _)| destination).map_or(0, |at| self.under_way[at].1)
    }

    /// Whether all credits are at home.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.under_way.is_empty()
    }
}
