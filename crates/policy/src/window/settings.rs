//! Size of the window, when a credit returns, and the treatment of packets for a rank that is descheduled (away).

use std::num::NonZeroU32;

use crosswind_schema::experiment::{Credit, WindowPolicy};

/// When the credit of a packet returns to its sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CreditReturn {
    /// When the receiving program has handled the packet.
    #[default]
    Handled,
    /// When the packet has left the network for a buffer. If a daemon polls, the receiving program may be away.
    Extracted,
}

/// What happens to a packet that arrives while the receiving program is away and no daemon polls for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Away {
    #[default]
    Buffer,
    /// The packet is dropped, and the sender retransmits it.
    Discard {
        /// Time between two transmissions, ns.
        resend_ns: u64,
    },
}

/// Flow control of a program, the same for all its ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WindowSettings {
    /// Packets that may be in flight to one destination. `None`: no limit and no cost for flow control.
    pub packets: Option<NonZeroU32>,
    /// The window for a destination that is away, if windows depend on whether destinations run. Smaller than `packets`
    /// to spare the destination's buffers, or larger to spare senders the wait.
    pub away_packets: Option<NonZeroU32>,
    pub credit: CreditReturn,
    pub away: Away,
}

/// A step in the life of a packet at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The receiving program has taken it off the network and has not processed it yet.
    Extracted,
    /// A daemon that polls while the program is away has taken it off the network.
    ExtractedForIt,
    /// The receiving program has processed it.
    Handled,
}

/// How a credit returns to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnedBy {
    Nothing,
    /// A separate message returns the credit.
    Acknowledgement,
    /// In the answer to the message that this packet completes.
    Answer,
}

impl WindowSettings {
    /// A window of `packets` packets to each destination, with credits returned once packets are handled.
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

    /// Whether there is a limit.
    #[must_use]
    pub const fn limits(&self) -> bool {
        self.packets.is_some()
    }

    /// Whether a sender must know which destinations run.
    #[must_use]
    pub const fn follows(&self) -> bool {
        self.packets.is_some() && self.away_packets.is_some()
    }

    /// Returns how the credit of a packet goes back at this moment.
    ///
    /// Over a packet's life exactly one call returns something other than [`ReturnedBy::Nothing`], so credits are
    /// neither lost nor duplicated. For a packet taken by a daemon, [`Moment::ExtractedForIt`] takes the place of
    /// [`Moment::Extracted`].
    ///
    /// `answer`: whether the packet is the last of a message that is answered. `extracted_for_it`: whether a daemon
    /// took it ([`Moment::ExtractedForIt`]).
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
