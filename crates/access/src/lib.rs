//! Authentication and encryption of connections: what every listener and every dialling process requires of its peer
//! first.
//!
//! | module | contents |
//! |---|---|
//! | [`greeting`] | first bytes from both ends: protocol, version, nonce |
//! | [`token`] | shared token, and the proof that a peer knows it |
//! | [`place`] | addresses that need no authentication |
//! | [`tls`], [`transport`] | TLS, and the names in certificates |
//! | [`authority`] | creation of certificates |
//! | [`limits`] | resource limits for unauthenticated connections |
//!
//! [`Access`] holds the credentials of one end: a token, certificates, both, or neither, which is enough on loopback
//! only. The crate implements no protocol beyond the handshake. Those of `crosswind-live` and `crosswind-measure` start
//! after the proofs.

pub mod access;
pub mod authority;
pub mod error;
pub mod greeting;
pub mod limits;
pub mod place;
pub mod tls;
pub mod token;
pub mod transport;

pub use access::Access;
pub use error::AccessError;
pub use tls::Tls;
pub use transport::Transport;
