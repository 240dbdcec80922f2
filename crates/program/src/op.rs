//! What a rank can do: the operations of Split-C (scheduling-and-communication, section 2.1) and of message passing.
//!
//! In the order of how much they bind ranks together: computing; one-way messages (store, active message); messages that are
//! answered (get, put, request) up to the next sync; barriers. A blocking read or write is a get or put and a sync; a loop that
//! polls until something is so is [`Op::Wait`].

/// Data on its way: what the receiver gets, whatever number of bytes it counts for on the wire.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Body {
    #[default]
    Empty,
    /// Two words at most, which fit into one packet of any network.
    Pair([u64; 2]),
    Words(Box<[u64]>),
}

/// What a one-sided message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One way: data for the receiver's memory; counts for [`Op::WaitStored`] and [`Op::StoreSync`].
    Store,
    /// One way: an active message, whose handler may change the receiver; counts for [`Op::StoreSync`] only.
    Post,
    /// Answered: data for the receiver's memory; the answer is empty.
    Put,
    /// Answered: the answer carries data of the receiver.
    Get,
    /// Answered: an active message with a reply.
    Request,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Store, Self::Post, Self::Put, Self::Get, Self::Request];

    /// Whether the sender waits for an answer at its next sync.
    #[must_use]
    pub const fn is_answered(self) -> bool {
        matches!(self, Self::Put | Self::Get | Self::Request)
    }
}

/// What a rank does next.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Computes for so many nanoseconds of an undisturbed processor. Nothing that arrives is handled meanwhile.
    Compute {
        /// Nanoseconds.
        ns: u64,
    },
    /// Sends a one-sided message; over when the last packet is with the network.
    Message {
        /// The receiver: below the number of ranks; itself is allowed, and costs no network but where
        /// [`Rank::ITSELF_BY_NETWORK`](crate::Rank::ITSELF_BY_NETWORK) says so.
        to: u32,
        kind: Kind,
        /// Bytes on the wire, at least 1; of a get: of the request.
        bytes: u32,
        /// What the receiver's [`crate::Rank::handle`] gets.
        body: Body,
    },
    /// Waits until all own gets, puts and requests are answered.
    Sync,
    /// Waits until so many bytes of stores have been handled here, and takes them off the count.
    WaitStored {
        /// Bytes.
        bytes: u64,
    },
    /// Waits until a message or an answer has been handled here after this operation was given: [`crate::Rank::next`] knows all that
    /// came before, so nothing is missed. What looks again whether what it waits for is so.
    Wait,
    /// Waits until all ranks are here and all one-way messages of all ranks (stores and posts) have been handled.
    StoreSync,
    /// Waits until all ranks are here.
    Barrier,
    /// Sends to a receive of the same tag; over when the last packet is with the network.
    Send {
        to: u32,
        /// What the receive must ask for.
        tag: u32,
        /// Bytes on the wire.
        bytes: u64,
    },
    /// Waits for a send of that tag; of several, the first sent.
    Receive {
        from: u32,
        /// What the send must say.
        tag: u32,
    },
    /// Nothing more; messages that come are handled still.
    Done,
}
