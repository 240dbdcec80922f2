//! The shared token, and the proof of knowing it.
//!
//! The token itself never travels: each end hashes what both ends drew at random, the role and the name (HMAC-SHA256).
//! Roles differ, so that an answer can't be sent back as one's own. What follows is neither encrypted nor signed: a network
//! on which somebody else can write into connections needs more than a token (docs/concepts/agents.md, "Trust").

use std::fmt;
use std::io;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Fewest bytes of a token.
pub const SHORTEST: usize = 16;

/// A secret that all agents of a farm share. Never shown.
#[derive(Clone)]
pub struct Token(Vec<u8>);

/// Who proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The end that dialled.
    Child,
    /// The end that listened.
    Parent,
}

/// What both ends drew at random for one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonces {
    /// The dialling end's.
    pub child: [u8; 32],
    /// The listening end's.
    pub parent: [u8; 32],
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Token {
    /// A token from a file's or a variable's text; space around it counts for nothing.
    ///
    /// # Errors
    /// When it is too short to be secret; the text is not repeated.
    pub fn new(text: &str) -> Result<Self, String> {
        let bytes = text.trim().as_bytes();
        if bytes.len() < SHORTEST {
            return Err(format!("has {} bytes; it must have at least {SHORTEST}", bytes.len()));
        }
        Ok(Self(bytes.to_vec()))
    }

    fn keyed(&self, role: Role, nonces: &Nonces, name: &str) -> Hmac<Sha256> {
        // A key of any length is taken: HMAC hashes long ones.
        #[allow(clippy::expect_used)]
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.update(match role {
            Role::Child => b"crosswind agent, child",
            Role::Parent => b"crosswind agent, parent",
        });
        mac.update(&crate::greeting::VERSION.to_be_bytes());
        mac.update(&nonces.child);
        mac.update(&nonces.parent);
        mac.update(name.as_bytes());
        mac
    }

    /// The proof that one end sends.
    #[must_use]
    pub fn proof(&self, role: Role, nonces: &Nonces, name: &str) -> [u8; 32] {
        self.keyed(role, nonces, name).finalize().into_bytes().into()
    }

    /// Whether the other end's proof is right; takes as long whatever is wrong with it.
    #[must_use]
    pub fn accepts(&self, role: Role, nonces: &Nonces, name: &str, proof: &[u8; 32]) -> bool {
        self.keyed(role, nonces, name).verify_slice(proof).is_ok()
    }
}

/// Bytes that nobody can guess.
///
/// # Errors
/// When the kernel has none.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0u8; N];
    // SAFETY: the buffer is live and its length is passed along; up to 256 bytes come whole.
    if unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), N, 0) } != N as isize {
        return Err(io::Error::last_os_error());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_token_role_name_and_nonces_are_accepted() {
        let token = Token::new("0123456789abcdef\n").expect("long enough");
        let nonces = Nonces { child: [1; 32], parent: [2; 32] };
        let proof = token.proof(Role::Child, &nonces, "a");
        assert!(token.accepts(Role::Child, &nonces, "a", &proof));
        assert!(!token.accepts(Role::Parent, &nonces, "a", &proof));
        assert!(!token.accepts(Role::Child, &nonces, "b", &proof));
        assert!(!token.accepts(Role::Child, &Nonces { child: [2; 32], parent: [1; 32] }, "a", &proof));
        assert!(!Token::new("0123456789abcdeF").expect("long enough").accepts(Role::Child, &nonces, "a", &proof));
    }

    #[test]
    fn a_token_is_never_shown() {
        let token = Token::new("a secret of some length").expect("long enough");
        assert!(!format!("{token:?}").contains("secret"));
        let error = Token::new("short secret").expect_err("too short");
        assert!(!error.contains("secret"), "{error}");
    }
}
