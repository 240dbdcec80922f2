//! Authentication: what every listening and every dialling end of Crosswind asks of the other before anything else.
//!
//! | question | module |
//! |---|---|
//! | what do both ends say first? | [`greeting`] |
//! | how does one prove that it knows the token? | [`token`] |
//! | where may one do without? | [`place`] |
//! | how are both ends encrypted, and how do they know each other's name? | [`tls`], [`transport`] |
//! | how are certificates made? | [`authority`] |
//! | resource limits for unauthenticated connections | [`limits`] |
//!
//! [`Access`] is what one end has: a token, certificates, both, or nothing, which is enough on loopback only. It knows no protocol: what is said
//! once the proofs are shown is the business of `crosswind-live` and `crosswind-measure`.

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
