//! Handshake, first part: protocol, version, purpose and nonce, in each direction.
//!
//! A greeting of [`GREETING_BYTES`] bytes consists of magic, version, a word that the protocol defines, and a nonce.
//! The proof that the peer knows the token follows ([`crate::token`]).

/// Size of a greeting, bytes.
pub const GREETING_BYTES: usize = 40;

/// Protocol and version, which must be the same at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// First bytes of every connection.
    pub magic: [u8; 4],
    pub version: u16,
}

/// Content of a greeting besides the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// A word that the protocol defines.
    pub word: u16,
    /// Random bytes drawn by this end.
    pub nonce: [u8; 32],
}

/// Why bytes are not a greeting of this protocol and version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GreetingError {
    /// The first bytes belong to something else.
    #[error("is no Crosswind of this kind: the first bytes are wrong")]
    NotCrosswind,
    #[error("speaks version {there} of the protocol; this build speaks {here}")]
    Version { there: u16, here: u16 },
}

impl Greeting {
    #[must_use]
    pub fn encode(&self, protocol: Protocol) -> [u8; GREETING_BYTES] {
        let mut bytes = [0; GREETING_BYTES];
        bytes[..4].copy_from_slice(&protocol.magic);
        bytes[4..6].copy_from_slice(&protocol.version.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.word.to_be_bytes());
        bytes[8..].copy_from_slice(&self.nonce);
        bytes
    }

    /// Decodes a greeting. `None` while it is incomplete.
    ///
    /// # Errors
    /// As soon as one byte is wrong, without waiting for the rest.
    pub fn decode(bytes: &[u8], protocol: Protocol) -> Result<Option<Self>, GreetingError> {
        let known = bytes.len().min(protocol.magic.len());
        if bytes[..known] != protocol.magic[..known] {
            return Err(GreetingError::NotCrosswind);
        }
        if let Some(&[high, low]) = bytes.get(4..6) {
            let there = u16::from_be_bytes([high, low]);
            if there != protocol.version {
                return Err(GreetingError::Version { there, here: protocol.version });
            }
        }
        let (Some(&[high, low]), Some(rest)) = (bytes.get(6..8), bytes.get(8..GREETING_BYTES)) else { return Ok(None) };
        let mut nonce = [0; 32];
        nonce.copy_from_slice(rest);
        Ok(Some(Self { word: u16::from_be_bytes([high, low]), nonce }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PROTOCOL: Protocol = Protocol { magic: *b"TEST", version: 1 };

    proptest! {
        #[test]
        fn a_greeting_cut_short_is_waited_for_and_no_other_bytes_are_one(
            nonce in any::<[u8; 32]>(), word in any::<u16>(), at in 0..GREETING_BYTES, wrong in 1u8..,
        ) {
            let greeting = Greeting { word, nonce };
            let mut bytes = greeting.encode(PROTOCOL);
            prop_assert_eq!(Greeting::decode(&bytes, PROTOCOL), Ok(Some(greeting)));
            prop_assert_eq!(Greeting::decode(&bytes[..at], PROTOCOL), Ok(None));
            bytes[at] = bytes[at].wrapping_add(wrong);
            prop_assert!(Greeting::decode(&bytes, PROTOCOL) != Ok(Some(greeting)));
        }
    }

    #[test]
    fn another_version_and_another_protocol_are_told_apart() {
        let mut bytes = Greeting { word: 0, nonce: [1; 32] }.encode(PROTOCOL);
        bytes[5] = 9;
        assert_eq!(Greeting::decode(&bytes[..6], PROTOCOL), Err(GreetingError::Version { there: 9, here: 1 }));
        for other in [b"GET / HTTP/1.1".as_slice(), b"G"] {
            assert_eq!(Greeting::decode(other, PROTOCOL), Err(GreetingError::NotCrosswind));
        }
    }
}
