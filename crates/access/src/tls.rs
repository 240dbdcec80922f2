//! TLS 1.3 with certificates at both ends. All nodes of a set have certificates of the same authority.
//!
//! The TLS handshake verifies the chain. The caller verifies the name afterwards
//! ([`Transport::names`](crate::transport::Transport::names)), because only it knows the expected one: a child is
//! configured with its parent's name, a filter dials a host.

use std::fmt;
use std::fs::{Metadata, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientConfig, Resumption, verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, ParsedCertificate, ServerConfig, WebPkiClientVerifier};
use rustls::{ClientConnection, Connection, DigitallySignedStruct, RootCertStore, ServerConnection, SignatureScheme};

use crate::error::AccessError;

/// Maximum size of a certificate or key file, bytes.
const LARGEST_FILE: u64 = 1 << 20;
/// Additional name in the certificate of a node that may send code to others: the root, and nodes with children.
pub const PARENT: &str = "parent.crosswind";

/// File names in a node's directory: its certificate, its key, and the authority that all nodes trust.
pub const CERTIFICATE: &str = "cert.pem";
/// File name of the key, in the directory of [`CERTIFICATE`].
pub const KEY: &str = "key.pem";
/// File name of the authority, in the directory of [`CERTIFICATE`].
pub const AUTHORITY: &str = "ca.pem";

/// One node's certificate and key, and the authority that it trusts. Never printed.
#[derive(Clone)]
pub struct Tls {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(..)")
    }
}

impl Tls {
    /// Loads a node's directory: `cert.pem` (its certificate first, then intermediate ones), `key.pem`, and `ca.pem`.
    ///
    /// # Errors
    /// Names the file that is missing or invalid, or that other users may write, or the key that they may read.
    pub fn of_directory(directory: &Path) -> Result<Self, AccessError> {
        let path = |name: &str| directory.join(name);
        let chain = certificates(&path(CERTIFICATE))?;
        refuse_directory_of_others(directory)?;
        let key = PrivateKeyDer::from_pem_slice(&read(&path(KEY), Kept::Secret)?);
        let key = key.map_err(|error| AccessError::file(&path(KEY), error))?;
        let mut roots = RootCertStore::empty();
        for authority in certificates(&path(AUTHORITY))? {
            roots.add(authority).map_err(|error| AccessError::file(&path(AUTHORITY), error))?;
        }
        let (roots, provider) = (Arc::new(roots), Arc::new(ring::default_provider()));
        let refused = |error: rustls::Error| AccessError::file(&path(CERTIFICATE), error);
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider)).build();
        let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(refused)?
            .with_client_cert_verifier(verifier.map_err(|error| AccessError::file(&path(AUTHORITY), error))?)
            .with_single_cert(chain.clone(), key.clone_key())
            .map_err(refused)?;
        // No session resumption: every connection presents its certificate.
        server.send_tls13_tickets = 0;
        server.session_storage = Arc::new(NoServerSessionStorage {});
        let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(refused)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(ByChain { roots, provider }))
            .with_client_auth_cert(chain, key)
            .map_err(refused)?;
        client.resumption = Resumption::disabled();
        client.enable_sni = false;
        Ok(Self { client: Arc::new(client), server: Arc::new(server) })
    }

    pub(crate) fn dialling(&self) -> Result<Connection, rustls::Error> {
        // Neither sent nor verified: the dialling code checks the expected name afterwards.
        let name = ServerName::try_from("crosswind").map_err(|error| rustls::Error::General(error.to_string()))?;
        ClientConnection::new(Arc::clone(&self.client), name).map(Connection::Client)
    }

    pub(crate) fn listening(&self) -> Result<Connection, rustls::Error> {
        ServerConnection::new(Arc::clone(&self.server)).map(Connection::Server)
    }
}

/// Whether a certificate contains the name of a node or host, or an address.
pub(crate) fn names(certificate: &CertificateDer<'_>, name: &str) -> bool {
    let Ok(certificate) = ParsedCertificate::try_from(certificate) else { return false };
    ServerName::try_from(name).is_ok_and(|name| verify_server_name(&certificate, &name).is_ok())
}

/// Required protection of a file against other users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Secret,
    Readable,
}

impl Kept {
    fn refused(self) -> u32 {
        match self {
            Self::Secret => 0o077,
            Self::Readable => 0o022,
        }
    }
}

/// Reads a short certificate or key file. Type and mode are checked on the opened file.
pub(crate) fn read(path: &Path, kept: Kept) -> Result<Vec<u8>, AccessError> {
    let failed = |error: std::io::Error| AccessError::file(path, error);
    // Opening a named pipe would otherwise block until a writer appears.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(AccessError::file(path, "it is no regular file"));
    }
    refuse_others(path, &found, kept)?;
    let mut bytes = Vec::new();
    file.take(LARGEST_FILE + 1).read_to_end(&mut bytes).map_err(|error| AccessError::file(path, error))?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(AccessError::file(path, format!("it has more than {LARGEST_FILE} bytes, the most that are read")));
    }
    Ok(bytes)
}

/// Rejects a directory in which other users may create files.
pub(crate) fn refuse_directory_of_others(directory: &Path) -> Result<(), AccessError> {
    let found = std::fs::metadata(directory).map_err(|error| AccessError::file(directory, error))?;
    refuse_others(directory, &found, Kept::Readable)
}

/// Rejects a file that users other than its owner may write, or read if it is secret, and a file that belongs neither
/// to root nor to this user. Root accepts files of any owner.
fn refuse_others(path: &Path, found: &Metadata, kept: Kept) -> Result<(), AccessError> {
    let mode = found.mode() & 0o777;
    let path_text = || path.display().to_string();
    if mode & kept.refused() != 0 {
        return Err(match kept {
            Kept::Secret => AccessError::Loose { path: path_text(), mode, may: "read or write", must: "0600" },
            Kept::Readable => AccessError::Loose { path: path_text(), mode, may: "write", must: "go-w" },
        });
    }
    // `/proc/self` belongs to the process's effective user. Without `/proc`, owners are not checked.
    let own = std::fs::metadata("/proc/self").map_or(0, |own| own.uid());
    if own != 0 && found.uid() != 0 && found.uid() != own {
        return Err(AccessError::Foreign { path: path_text(), uid: found.uid() });
    }
    Ok(())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, AccessError> {
    let found = CertificateDer::pem_slice_iter(&read(path, Kept::Readable)?).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|error| AccessError::file(path, error))?;
    if found.is_empty() { Err(AccessError::file(path, "has no certificate in it")) } else { Ok(found) }
}

/// Accepts every certificate signed by the authority, whatever its name.
#[derive(Debug)]
struct ByChain {
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for ByChain {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let own = ParsedCertificate::try_from(own)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&own, &self.roots, between, now, algorithms)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
