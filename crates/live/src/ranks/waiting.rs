//! What a rank may wait for.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    Nothing,
    Credit {
        to: u32,
    },
    Room {
        to: u32,
    },
    Answers,
    Stored {
        bytes: u64,
    },
    /// More messages and answers than so many.
    More {
        than: u64,
    },
    StoreSync,
    Barrier,
    Receive {
        from: u32,
        tag: u32,
    },
    Finish,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("goes on"),
            Self::Credit { to } => write!(f, "waits for a credit of rank {to}"),
            Self::Room { to } => write!(f, "waits until rank {to} reads"),
            Self::Answers => f.write_str("waits for answers"),
            Self::Stored { bytes } => write!(f, "waits for {bytes} bytes of stores"),
            Self::More { .. } => f.write_str("waits for anything"),
            Self::StoreSync => f.write_str("waits until all one-way messages of all ranks are handled"),
            Self::Barrier => f.write_str("waits at a barrier"),
            Self::Receive { from, tag } => write!(f, "waits for a send of tag {tag} from rank {from}"),
            Self::Finish => f.write_str("is done"),
        }
    }
}
