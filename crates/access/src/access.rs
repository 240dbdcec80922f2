//! The credentials that one end presents and requires of its peer.

use std::path::Path;

use crate::error::AccessError;
use crate::place::is_loopback;
use crate::tls::Tls;
use crate::token::{End, Token, Transcript};

/// A token, certificates, or both. With neither, every connection is accepted, so the address must be one that only
/// this machine can reach.
#[derive(Clone, Debug, Default)]
pub struct Access {
    token: Option<Token>,
    tls: Option<Tls>,
}

impl From<Token> for Access {
    fn from(token: Token) -> Self {
        Self { token: Some(token), tls: None }
    }
}

impl Access {
    /// Creates credentials from the text of a token and a node's directory of certificates, each if present.
    ///
    /// # Errors
    /// If the token is invalid, or a file is missing, invalid, or accessible to other users.
    pub fn of(token: Option<&str>, tls: Option<&Path>) -> Result<Self, AccessError> {
        Ok(Self { token: token.map(Token::new).transpose()?, tls: tls.map(Tls::of_directory).transpose()? })
    }

    /// Returns the certificates, if TLS is on.
    #[must_use]
    pub fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// Returns a random token, for two ends in one process.
    ///
    /// # Errors
    /// If the kernel has no random bytes.
    pub fn drawn() -> std::io::Result<Self> {
        Token::drawn().map(Self::from)
    }

    /// Checks whether these credentials suffice to listen at an address, or to dial it.
    ///
    /// # Errors
    /// If the address is reachable from outside and there are no credentials.
    pub fn permits(&self, address: &str) -> Result<(), AccessError> {
        if self.token.is_some() || self.tls.is_some() || is_loopback(address) {
            return Ok(());
        }
        Err(AccessError::Open { address: address.into() })
    }

    /// Returns the proof that one end sends.
    #[must_use]
    pub fn proof(&self, transcript: &Transcript, end: End, name: &str) -> [u8; 32] {
        self.key().proof(transcript, end, name)
    }

    /// Verifies the other end's proof, in constant time.
    #[must_use]
    pub fn accepts(&self, transcript: &Transcript, end: End, name: &str, proof: &[u8]) -> bool {
        self.key().accepts(transcript, end, name, proof)
    }

    /// Returns a key for further connections of a handshake, known only to its two ends.
    #[must_use]
    pub fn key_of(&self, transcript: &Transcript) -> Token {
        self.key().derived(transcript)
    }

    fn key(&self) -> Token {
        self.token.clone().unwrap_or_else(Token::none)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_token_there_is_loopback_only() {
        let (open, shut) = (Access::default(), Access::of(Some("0123456789abcdef"), None).expect("long enough"));
        assert_eq!(open.permits("127.0.0.1:0"), Ok(()));
        assert_eq!(open.permits("0.0.0.0:0"), Err(AccessError::Open { address: "0.0.0.0:0".into() }));
        assert_eq!(shut.permits("0.0.0.0:0"), Ok(()));
        assert_eq!(Access::of(Some(" short "), None).expect_err("too short"), AccessError::Short { bytes: 5 });
    }
}
