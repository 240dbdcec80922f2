//! Operations of a rank: those of Split-C (scheduling-and-communication, section 2.1) and of message passing.
//!
//! Ordered by how tightly they couple ranks: computing; one-way messages (store, active message); answered messages
//! (get, put, request), up to the next sync; barriers. A blocking read or write is a get or put and a sync. A polling
//! loop is [`Op::Wait`].

/// Payload of a message, as delivered to the receiver. Its size on the wire is separate.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Body {
    #[default]
    Empty,
    /// At most two words, which fit into one packet of any network.
    Pair([u64; 2]),
    Words(Box<[u64]>),
}

/// Purpose of a one-sided message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One-way data for the receiver's memory. Counts for [`Op::WaitStored`] and [`Op::StoreSync`].
    Store,
    /// One-way active message, whose handler may change the receiver. Counts for [`Op::StoreSync`] only.
    Post,
    /// Answered data for the receiver's memory. The answer is empty.
    Put,
    /// Answered read: the answer carries data of the receiver.
    Get,
    /// Answered active message with a reply.
    Request,
}

impl Kind {
    pub const ALL: [Self; 5] = [Self::Store, Self::Post, Self::Put, Self::Get, Self::Request];

    /// Whether the sender waits for an answer at its next sync.
    #[must_use]
    pub const fn is_answered(self) -> bool {
        matches!(self, Self::Put | Self::Get | Self::Request)
    }
}

/// The next operation of a rank.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Computes for `ns` nanoseconds of an undisturbed processor. Arriving messages are not handled meanwhile.
    Compute { ns: u64 },
    /// Sends a one-sided message. Ends when the last packet is with the network.
    Message {
        /// The receiver, below the number of ranks. May be the sender itself, which bypasses the network unless
        /// [`Rank::ITSELF_BY_NETWORK`](crate::Rank::ITSELF_BY_NETWORK) is set.
        to: u32,
        kind: Kind,
        /// Bytes on the wire, at least 1. For a get, those of the request.
        bytes: u64,
        /// Payload passed to the receiver's [`crate::Rank::handle`].
        body: Body,
    },
    /// Waits until all own gets, puts and requests are answered.
    Sync,
    /// Waits until `bytes` bytes of stores have been handled here, and subtracts them from the count.
    WaitStored { bytes: u64 },
    /// Waits until a message or an answer has been handled here after this operation was issued. Nothing is missed:
    /// [`crate::Rank::next`] has seen all that arrived before. The rank then checks its condition again.
    Wait,
    /// Waits until all ranks have arrived here and all one-way messages of all ranks (stores and posts) have been
    /// handled.
    StoreSync,
    /// Waits until all ranks have arrived here.
    Barrier,
    /// Sends to a receive with the same tag. Ends when the last packet is with the network.
    Send {
        to: u32,
        /// Tag of the matching receive.
        tag: u32,
        bytes: u64,
    },
    /// Waits for a send with this tag. Of several, takes the first sent.
    Receive {
        from: u32,
        /// Tag of the matching send.
        tag: u32,
    },
    /// No more operations. Messages that arrive are still handled.
    Done,
}

impl Op {
    /// Returns the bytes on the wire of the message that the operation sends, at least 1; 0 if it sends none.
    #[must_use]
    #[inline]
    pub fn message_bytes(&self) -> u64 {
        match *self {
            Self::Message { bytes, .. } | Self::Send { bytes, .. } => bytes.max(1),
            _ => 0,
        }
    }
}
