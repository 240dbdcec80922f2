//! What one end has to show, and asks the other end for.

use std::path::Path;

use crate::error::AccessError;
use crate::place::is_loopback;
use crate::tls::Tls;
use crate::token::{End, Meeting, Token};

/// A token, certificates, or both. With neither, every connection that reaches the address is accepted, so it must be one that
/// only this machine reaches.
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
    /// Of a token's text and a node's directory of certificates, where they are.
    ///
    /// # Errors
    /// When the token is too short to be secret, or a file is missing, wrong, or readable by every user.
    pub fn of(token: Option<&str>, tls: Option<&Path>) -> Result<Self, AccessError> {
        Ok(Self { token: token.map(Token::new).transpose()?, tls: tls.map(Tls::of_directory).transpose()? })
    }

    /// Certificates, where there are some.
    #[must_use]
    pub fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// A random token, for both ends in one process.
    ///
    /// # Errors
    /// When the kernel has no random bytes.
    pub fn drawn() -> std::io::Result<Self> {
        Token::drawn().map(Self::from)
    }

    /// Whether one may listen there, or dial it, with what one has.
    ///
    /// # Errors
    /// When others reach the address and there is neither.
    pub fn permits(&self, address: &str) -> Result<(), AccessError> {
        if self.token.is_some() || self.tls.is_some() || is_loopback(address) {
            return Ok(());
        }
        Err(AccessError::Open { address: address.into() })
    }

    /// The proof that one end sends.
    #[must_use]
    pub fn proof(&self, meeting: &Meeting, end: End, name: &str) -> [u8; 32] {
        self.key().proof(meeting, end, name)
    }

    /// Whether the other end's proof is right; takes as long whatever is wrong with it.
    #[must_use]
    pub fn accepts(&self, meeting: &Meeting, end: End, name: &str, proof: &[u8]) -> bool {
        self.key().accepts(meeting, end, name, proof)
    }

    /// A key that only the two ends of a meeting know, for what belongs to it.
    #[must_use]
    pub fn key_of(&self, meeting: &Meeting) -> Token {
        self.key().derived(meeting)
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
