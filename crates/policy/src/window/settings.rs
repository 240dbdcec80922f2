//! How large the window is, when a credit comes back, and what happens to packets for a rank that is away.

use std::num::NonZeroU32;

use crosswind_schema::experiment::{Credit, WindowPolicy};

/// When the credit of a packet goes back to its sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CreditReturn {
    /// When the receiving program has handled the packet.
    #[default]
    Handled,
    /// When the packet has left the network for a buffer: the receiving program may be away, if a daemon polls for it.
    Extracted,
}

/// What happens to a packet that arrives while the receiving program is away and no daemon polls for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Away {
    #[default]
    Buffer,
    /// It is thrown away; the sender sends it again after so many nanoseconds.
    Discard {
        /// Nanoseconds from the first sending to the next.
        resend_ns: u64,
    },
}

/// Flow control of a program: the same for all its ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WindowSettings {
    /// Packets that may be under way to one destination; none: no limit, and nothing of this costs anything.
    pub packets: Option<NonZeroU32>,
    /// The window for a destination that is away, where windows follow whether destinations run: smaller, to spare its buffers, or
    /// larger, to spare its senders the wait.
    pub away_packets: Option<NonZeroU32>,
    /// When a credit goes back.
    pub credit: CreditReturn,
    /// What happens to packets for a rank that is away.
    pub away: Away,
}

/// Something that happened to a packet at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The receiving program has taken it off the network, and has not yet looked at it.
    Extracted,
    /// A daemon that polls while the program is away has taken it.
    ExtractedForIt,
    /// The receiving program has handled it.
    Handled,
}

/// How a credit goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnedBy {
    Nothing,
    /// By a message of its own.
    Acknowledgement,
    /// With the answer to the message that the packet ends.
    Answer,
}

impl WindowSettings {
    /// A window of so many packets to each destination, credits back when handled.
    #[must_use]
    pub fn of(packets: NonZeroU32) -> Self {
        Self { packets: Some(packets), ..Self::default() }
    }

    /// The flow control that an experiment describes.
    #[must_use]
    pub fn from_policy(policy: &WindowPolicy) -> Self {
        let packets = |packets: u64| NonZeroU32::new(u32::try_from(packets).unwrap_or(u32::MAX));
        Self {
            packets: policy.window_packets.and_then(|window| packets(window.get())),
            away_packets: policy.packets_away().and_then(packets),
            credit: match policy.credit {
                Credit::Handled => CreditReturn::Handled,
                Credit::Extracted => CreditReturn::Extracted,
            },
            away: policy
                .resent_after_s()
                .map_or(Away::Buffer, |seconds| Away::Discard { resend_ns: (seconds * 1e9).round() as u64 }),
        }
    }

    /// Whether there is any limit.
    #[must_use]
    pub const fn limits(&self) -> bool {
        self.packets.is_some()
    }

    /// Whether a sender must know which destinations run.
    #[must_use]
    pub const fn follows(&self) -> bool {
        self.packets.is_some() && self.away_packets.is_some()
    }

    /// How the credit of a packet goes back at this moment.
    ///
    /// Exactly one of the moments of a packet's life gives another answer than [`ReturnedBy::Nothing`], where
    /// [`Moment::ExtractedForIt`] replaces [`Moment::Extracted`] and the answer of a handled packet that was extracted for the
    /// program no longer counts: credits are neither lost nor made.
    ///
    /// `answer`: the packet is the last of a message that is answered. `extracted_for_it`: it went through
    /// [`Moment::ExtractedForIt`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::num::NonZeroU32;
    /// use crosswind_policy::window::{Moment, ReturnedBy, WindowSettings};
    ///
    /// let two = WindowSettings::of(NonZeroU32::new(2).unwrap());
    /// assert_eq!(two.returned(Moment::Extracted, false, false), ReturnedBy::Nothing);
    /// assert_eq!(two.returned(Moment::Handled, false, false), ReturnedBy::Acknowledgement);
    /// assert_eq!(two.returned(Moment::Handled, true, false), ReturnedBy::Answer);
    /// ```
    #[must_use]
    pub fn returned(&self, moment: Moment, answer: bool, extracted_for_it: bool) -> ReturnedBy {
        if !self.limits() {
            return ReturnedBy::Nothing;
        }
        let early = self.credit == CreditReturn::Extracted;
        match moment {
            Moment::ExtractedForIt if early => ReturnedBy::Acknowledgement,
            Moment::Extracted if early && !extracted_for_it && !answer => ReturnedBy::Acknowledgement,
            Moment::Handled if early && extracted_for_it => ReturnedBy::Nothing,
            Moment::Handled if answer => ReturnedBy::Answer,
            Moment::Handled if !early => ReturnedBy::Acknowledgement,
            _ => ReturnedBy::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credit_comes_back_once_whatever_the_settings_and_the_message() {
        for credit in [CreditReturn::Handled, CreditReturn::Extracted] {
            let settings = WindowSettings { credit, ..WindowSettings::of(NonZeroU32::MIN) };
            for answer in [false, true] {
                for elsewhere in [false, true] {
                    let first = if elsewhere { Moment::ExtractedForIt } else { Moment::Extracted };
                    let back = [first, Moment::Handled]
                        .into_iter()
                        .filter(|&moment| settings.returned(moment, answer, elsewhere) != ReturnedBy::Nothing)
                        .count();
                    assert_eq!(back, 1, "{credit:?}, answer {answer}, by a daemon {elsewhere}");
                }
            }
        }
    }

    #[test]
    fn without_a_limit_nothing_is_returned() {
        let settings = WindowSettings::default();
        for moment in [Moment::Extracted, Moment::ExtractedForIt, Moment::Handled] {
            assert_eq!(settings.returned(moment, true, false), ReturnedBy::Nothing);
        }
        assert!(!settings.follows());
    }
}
