//! Errors in the credentials or the addresses of an end, and in loading or creating certificates.

use std::path::Path;

use crate::token::SHORTEST;

/// Why an end may not listen or dial, or its credentials are invalid. No message contains a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The address is reachable from outside, and there are no credentials.
    #[error("{address} is not on loopback, and there is neither a token nor a certificate")]
    Open { address: String },
    /// The token is not a line of printable text.
    #[error("the token has {what} in it; it must be printable text without spaces around it")]
    Unprintable { what: &'static str },
    /// The token is short enough to be guessed.
    #[error("the token has {bytes} bytes; it must have at least {SHORTEST}")]
    Short {
        /// Length of the token without surrounding space.
        bytes: usize,
    },
    /// A file or directory is missing or invalid.
    #[error("{path}: {why}")]
    File { path: String, why: String },
    /// Other users may read a key, or write a file or directory.
    #[error("{path} has mode {mode:04o}: users other than its owner may {may} it")]
    Loose {
        path: String,
        mode: u32,
        /// What other users may do.
        may: &'static str,
        /// The required mode, as an argument of `chmod`.
        must: &'static str,
    },
    /// A file belongs to another user.
    #[error("{path} belongs to user {uid}, which may change it; it must belong to this user or to root")]
    Foreign { path: String, uid: u32 },
    /// A name cannot be used in a certificate.
    #[error("the name {name:?} {why}")]
    Name { name: String, why: String },
    #[error("{path} is there already")]
    Exists { path: String },
    /// The disk has no room for a certificate.
    #[error("no space left on {directory}")]
    Full {
        /// The directory to which it was to be written.
        directory: String,
    },
    /// A certificate could not be created.
    #[error("certificates cannot be made: {0}")]
    Sealing(String),
}

impl AccessError {
    pub(crate) fn file(path: &Path, why: impl ToString) -> Self {
        Self::File { path: path.display().to_string(), why: why.to_string() }
    }

    pub(crate) fn sealing(why: impl ToString) -> Self {
        Self::Sealing(why.to_string())
    }

    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Open { .. } | Self::Short { .. } | Self::Unprintable { .. } => "token",
            Self::Exists { .. } => "out",
            Self::Full { .. } => "no-space",
            _ => "certificate",
        }
    }

    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Open { .. } => {
                "--token-file FILE: 16 bytes or more that both ends share; or --tls DIR: `crosswind cert` makes it"
            }
            Self::Short { .. } | Self::Unprintable { .. } => {
                "head -c 32 /dev/urandom | base64 > token; chmod 600 token"
            }
            Self::File { .. } => "`crosswind cert --help` shows which files there must be",
            Self::Loose { must: "0600", .. } => "chmod 600 it, and make a new one if another user had access",
            Self::Loose { .. } => "chmod go-w it: a process that can write there can have code run here",
            Self::Foreign { .. } => "copy the directory as the user that uses it",
            Self::Name { .. } => "name nodes as hosts are named, each once; ca is the authority's",
            Self::Exists { .. } => "nothing is overwritten: name the new nodes only, or another directory",
            Self::Full { .. } => "make space, or name another directory; what was complete stays",
            Self::Sealing(_) => "report this",
        }
    }
}
