//! The first bytes of a connection, each way: are you of ours, of this version, and what is to be signed?
//!
//! [`GREETING_BYTES`]: magic, version, a nonce. Whether the other end knows the token is told by frames that follow
//! ([`crate::token`]).

use crate::fields::FrameError;

/// First bytes of every connection between agents.
pub const MAGIC: [u8; 4] = *b"XWFM";
/// Version of this protocol; both ends must speak the same.
pub const VERSION: u16 = 1;
/// Bytes of a greeting: magic, version, two bytes of zero, a nonce.
pub const GREETING_BYTES: usize = 40;

/// The first bytes of a connection.
#[must_use]
pub fn greeting(nonce: &[u8; 32]) -> [u8; GREETING_BYTES] {
    let mut bytes = [0; GREETING_BYTES];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4..6].copy_from_slice(&VERSION.to_be_bytes());
    bytes[8..].copy_from_slice(nonce);
    bytes
}

/// The nonce of a greeting; none while bytes are missing.
///
/// # Errors
/// As soon as a byte is wrong: nobody is waited for who speaks something else.
pub fn read_greeting(bytes: &[u8]) -> Result<Option<[u8; 32]>, FrameError> {
    let known = bytes.len().min(MAGIC.len());
    if bytes[..known] != MAGIC[..known] {
        return Err(FrameError::Stranger);
    }
    if let Some(&[high, low]) = bytes.get(4..6) {
        let version = u16::from_be_bytes([high, low]);
        if version != VERSION {
            return Err(FrameError::Version(version));
        }
    }
    let Some(nonce) = bytes.get(8..GREETING_BYTES) else { return Ok(None) };
    let mut own = [0; 32];
    own.copy_from_slice(nonce);
    Ok(Some(own))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_greeting_cut_short_is_waited_for_and_no_other_bytes_are_one(nonce in any::<[u8; 32]>(), at in 0..GREETING_BYTES, wrong in 1u8..) {
            let mut bytes = greeting(&nonce);
            prop_assert_eq!(read_greeting(&bytes[..at]), Ok(None));
            bytes[at] = bytes[at].wrapping_add(wrong);
            prop_assert!(read_greeting(&bytes) != Ok(Some(nonce)) || (6..8).contains(&at));
        }
    }

    #[test]
    fn another_version_and_another_protocol_are_told_apart() {
        let mut bytes = greeting(&[1; 32]);
        assert_eq!(read_greeting(&bytes), Ok(Some([1; 32])));
        bytes[5] = 9;
        assert_eq!(read_greeting(&bytes[..6]), Err(FrameError::Version(9)));
        assert_eq!(read_greeting(b"GET / HTTP/1.1"), Err(FrameError::Stranger));
        assert_eq!(read_greeting(b"G"), Err(FrameError::Stranger));
    }
}
