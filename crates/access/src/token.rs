//! The shared token, and the proof of knowing it.
//!
//! The token itself is never sent. Each end sends an HMAC-SHA256 of both ends' random bytes, its own role and its name.
//! The roles differ, so that a proof cannot be reflected.

use std::fmt;
use std::io;

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

use crate::error::AccessError;
use crate::greeting::Protocol;

/// Minimum length of a token, bytes.
pub const SHORTEST: usize = 16;

/// The shared secret. Never printed.
#[derive(Clone)]
pub struct Token(hmac::Key);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Caller,
    Listener,
}

/// The data that identify one handshake. A proof for one handshake is invalid for any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transcript {
    pub protocol: Protocol,
    /// Random bytes drawn by the caller.
    pub caller: [u8; 32],
    /// Random bytes drawn by the listener.
    pub listener: [u8; 32],
    /// Secret known only to the two ends of a TLS connection ([`Transport::channel`](crate::Transport::channel)). Zeros
    /// without TLS.
    pub channel: [u8; 32],
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Token {
    /// Creates a token from the text of a file or a pipe. Surrounding space is ignored.
    ///
    /// # Errors
    /// If it is too short to be secret, or not printable. The error does not contain the text.
    pub fn new(text: &str) -> Result<Self, AccessError> {
        let text = text.trim();
        if let Some(what) = unprintable(text) {
            return Err(AccessError::Unprintable { what });
        }
        let bytes = text.as_bytes();
        if bytes.len() < SHORTEST {
            return Err(AccessError::Short { bytes: bytes.len() });
        }
        Ok(Self::keyed(bytes))
    }

    /// Returns a random token.
    ///
    /// # Errors
    /// If the kernel has no random bytes.
    pub fn drawn() -> io::Result<Self> {
        random::<32>().map(|bytes| Self::keyed(&bytes))
    }

    /// The token used if none is given. It is public and only separates this protocol from others.
    pub(crate) fn none() -> Self {
        Self::keyed(b"crosswind without a token")
    }

    fn keyed(bytes: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    /// Returns the proof that one end sends.
    #[must_use]
    pub fn proof(&self, transcript: &Transcript, end: End, name: &str) -> [u8; 32] {
        self.tag(&message(transcript, end.word(), name))
    }

    /// Verifies the other end's proof, in constant time.
    #[must_use]
    pub fn accepts(&self, transcript: &Transcript, end: End, name: &str, proof: &[u8]) -> bool {
        hmac::verify(&self.0, &message(transcript, end.word(), name), proof).is_ok()
    }

    /// Derives a key for further connections of a handshake. It cannot be computed without this one.
    #[must_use]
    pub(crate) fn derived(&self, transcript: &Transcript) -> Self {
        Self::keyed(&self.tag(&message(transcript, b"key for what belongs", "")))
    }

    fn tag(&self, message: &[u8]) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(hmac::sign(&self.0, message).as_ref());
        bytes
    }
}

impl End {
    /// The roles have the same length, so that messages are unambiguous.
    fn word(self) -> &'static [u8; 20] {
        match self {
            Self::Caller => b"crosswind, a caller ",
            Self::Listener => b"crosswind, listening",
        }
    }
}

fn message(transcript: &Transcript, word: &[u8; 20], name: &str) -> Vec<u8> {
    let Transcript { protocol, caller, listener, channel } = transcript;
    let version = protocol.version.to_be_bytes();
    [&word[..], &protocol.magic, &version, caller, listener, channel, name.as_bytes()].concat()
}

/// Returns the kind of character that no editor shows, if the text contains one. Two files that look alike would be
/// different tokens, and a run of NUL bytes is no secret.
fn unprintable(text: &str) -> Option<&'static str> {
    if text.starts_with('\u{feff}') {
        return Some("a byte order mark");
    }
    text.chars().any(char::is_control).then_some("a control character")
}

/// Returns cryptographically secure random bytes from the system.
///
/// # Errors
/// If the kernel has none.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0u8; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("the kernel has no random bytes"))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROTOCOL: Protocol = Protocol { magic: *b"TEST", version: 1 };

    #[test]
    fn only_the_same_token_end_name_and_meeting_are_accepted() {
        let token = Token::new("0123456789abcdef\n").expect("long enough");
        let transcript = Transcript { protocol: PROTOCOL, caller: [1; 32], listener: [2; 32], channel: [0; 32] };
        let proof = token.proof(&transcript, End::Caller, "a");
        assert!(token.accepts(&transcript, End::Caller, "a", &proof));
        assert!(!token.accepts(&transcript, End::Listener, "a", &proof));
        assert!(!token.accepts(&transcript, End::Caller, "b", &proof));
        assert!(!token.accepts(&transcript, End::Caller, "a", &proof[..31]));
        let mirrored = Transcript { caller: [2; 32], listener: [1; 32], ..transcript };
        assert!(!token.accepts(&mirrored, End::Caller, "a", &proof));
        assert!(!token.accepts(&Transcript { channel: [1; 32], ..transcript }, End::Caller, "a", &proof));
        let other = Transcript { protocol: Protocol { version: 2, ..PROTOCOL }, ..transcript };
        assert!(!token.accepts(&other, End::Caller, "a", &proof));
        assert!(!token.derived(&transcript).accepts(&transcript, End::Caller, "a", &proof));
        assert!(!Token::new("0123456789abcdeF").expect("long enough").accepts(&transcript, End::Caller, "a", &proof));
    }

    #[test]
    fn a_token_is_never_shown() {
        let token = Token::new("a secret of some length").expect("long enough");
        assert!(!format!("{token:?}").contains("secret"));
        let error = Token::new("short secret").expect_err("too short").to_string();
        assert!(!error.contains("short secret"), "{error}");
    }

    #[test]
    fn what_no_editor_shows_is_no_token() {
        for text in ["\0".repeat(16), format!("\u{feff}{}", "a".repeat(20)), format!("{}\u{7f}a", "a".repeat(20))] {
            let error = Token::new(&text).expect_err("refused");
            assert!(matches!(error, AccessError::Unprintable { .. }) && error.code() == "token", "{error}");
        }
    }

    #[test]
    fn no_two_draws_are_alike() {
        assert_ne!(random::<32>().expect("bytes"), random::<32>().expect("bytes"));
    }
}
