//! Why somebody may not listen or dial as asked.

use crate::token::SHORTEST;

/// What is wrong with what one end has, or has not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// Others reach the address, and there is nothing to keep them out.
    #[error("{address} is not on loopback, and there is no token")]
    Open {
        /// HOST:PORT as asked for.
        address: String,
    },
    /// A token that can be guessed. Its text is not repeated.
    #[error("the token has {bytes} bytes; it must have at least {SHORTEST}")]
    Short {
        /// How many it has, space around it left out.
        bytes: usize,
    },
}

impl AccessError {
    /// Stable word for scripts.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "token"
    }

    /// What would mend it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Open { .. } => "--token-file FILE: 16 bytes or more that both ends share",
            Self::Short { .. } => "head -c 32 /dev/urandom | base64 > token; chmod 600 token",
        }
    }
}
