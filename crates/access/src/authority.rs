//! Certificates of a cluster: its own certificate authority, and a certificate and key for each node.
//!
//! ```text
//! certs/ca/cert.pem, certs/ca/key.pem                        the authority: stays where it was created
//! certs/Lab3/cert.pem, certs/Lab3/key.pem, certs/Lab3/ca.pem  everything that the node Lab3 needs
//! ```

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde::{Deserialize, Serialize};
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;

use crate::error::AccessError;
use crate::tls::{
    AUTHORITY, CERTIFICATE, KEY, Kept, PARENT, names as certifies, read as read_file, refuse_directory_of_others,
};

/// Name of the authority's directory. No node may have it.
const AUTHORITYS: &str = "ca";
const DAY: Duration = Duration::from_secs(86_400);
/// Certificates are valid from this long before their creation, because clocks differ.
const SLACK: Duration = Duration::from_secs(3600);
/// The authority is valid for far longer than the first certificates, so that nodes can be added.
const AUTHORITY_DAYS: u32 = 3650;
/// Names in every certificate, for connections of a machine to itself.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// A node to create a certificate for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Its name in the platform; also the name of its directory.
    pub name: String,
    /// Host names and addresses at which others dial it.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Whether it may send code to others: the root, or a node with children.
    #[serde(default)]
    pub parent: bool,
}

/// The content of a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shown {
    pub name: String,
    /// All names and addresses, in the order of the certificate.
    pub names: Vec<String>,
    /// Whether it may send code to others.
    pub parent: bool,
    /// Start of validity, s since 1970.
    pub valid_from: i64,
    /// End of validity, s since 1970.
    pub valid_until: i64,
    /// Why the certificate is unusable. `None` if it is valid.
    pub problem: Option<String>,
}

/// Creates certificates for nodes, valid for `days` days, and the authority if there is none. Nothing is overwritten:
/// if one node is rejected, no node gets a certificate. If writing fails, the nodes written before keep theirs.
///
/// # Errors
/// If a name is invalid, a node already has a certificate, or the directory cannot be written.
pub fn make(directory: &Path, nodes: &[Node], days: u32) -> Result<(), AccessError> {
    let present = entries(directory);
    for (at, node) in nodes.iter().enumerate() {
        check(node)?;
        let alike = |other: &str| same(other, &node.name);
        if nodes[..at].iter().any(|other| alike(&other.name)) {
            return Err(AccessError::Name { name: node.name.clone(), why: "is named twice".into() });
        }
        if let Some(name) = present.iter().find(|name| alike(name)) {
            return Err(AccessError::Exists { path: directory.join(name).display().to_string() });
        }
    }
    let (certificate, issuer) = authority(directory, days.max(AUTHORITY_DAYS))?;
    let made = nodes.iter().map(|node| signed(node, &issuer, days)).collect::<Result<Vec<_>, _>>();
    let made = made.map_err(AccessError::sealing)?;
    for (node, (own, key)) in nodes.iter().zip(made) {
        write(directory, &node.name, &[(CERTIFICATE, &own), (KEY, &key), (AUTHORITY, &certificate)])?;
    }
    Ok(())
}

/// Whether two names are the same to TLS, which ignores case.
fn same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// Names of the entries of a directory; empty if it does not exist.
fn entries(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
}

fn check(node: &Node) -> Result<(), AccessError> {
    let wrong = |why: &str| Err(AccessError::Name { name: node.name.clone(), why: why.into() });
    let is_host_name = |name: &str| matches!(ServerName::try_from(name), Ok(ServerName::DnsName(_)));
    if !is_host_name(&node.name) || node.name.starts_with('.') || node.name.ends_with('.') {
        return wrong("must be a host name: letters, digits, hyphens, dots");
    }
    if [AUTHORITYS, PARENT].iter().any(|taken| same(&node.name, taken)) {
        return wrong("is taken for something else");
    }
    let named = |host: &&String| same(host.trim_end_matches('.'), PARENT);
    if let Some(host) = node.hosts.iter().find(named) {
        let why = "is that of parents, which --parent gives".into();
        return Err(AccessError::Name { name: host.clone(), why });
    }
    match node.hosts.iter().find(|host| ServerName::try_from(host.as_str()).is_err() || host.ends_with('.')) {
        Some(host) => Err(AccessError::Name { name: host.clone(), why: "must be a host name or an address".into() }),
        None => Ok(()),
    }
}

/// Loads the authority, or creates one. Returns its certificate and its issuer.
fn authority(directory: &Path, days: u32) -> Result<(String, Issuer<'static, KeyPair>), AccessError> {
    let place = directory.join(AUTHORITYS);
    if place.exists() {
        refuse_directory_of_others(&place)?;
        let read = |name: &str, kept: Kept| {
            let path = place.join(name);
            String::from_utf8(read_file(&path, kept)?).map_err(|error| AccessError::file(&path, error))
        };
        let (certificate, key) = (read(CERTIFICATE, Kept::Readable)?, read(KEY, Kept::Secret)?);
        let key = KeyPair::from_pem(&key).map_err(|error| AccessError::file(&place.join(KEY), error))?;
        let issuer = Issuer::from_ca_cert_pem(&certificate, key);
        let issuer = issuer.map_err(|error| AccessError::file(&place.join(CERTIFICATE), error))?;
        return Ok((certificate, issuer));
    }
    let made = || {
        let mut params = lasting(CertificateParams::default(), days, "Crosswind authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.pem();
        Ok::<_, rcgen::Error>((certificate, key.serialize_pem(), Issuer::new(params, key)))
    };
    let (certificate, key, issuer) = made().map_err(AccessError::sealing)?;
    write(directory, AUTHORITYS, &[(CERTIFICATE, &certificate), (KEY, &key)])?;
    Ok((certificate, issuer))
}

fn lasting(mut params: CertificateParams, days: u32, name: &str) -> CertificateParams {
    let now = SystemTime::now();
    (params.not_before, params.not_after) = ((now - SLACK).into(), (now + DAY * days).into());
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn signed(node: &Node, issuer: &Issuer<'_, KeyPair>, days: u32) -> Result<(String, String), rcgen::Error> {
    let own = [node.name.as_str()].into_iter().chain(node.hosts.iter().map(String::as_str)).chain(LOOPBACK);
    let mut names: Vec<&str> = Vec::new();
    for name in own.chain(node.parent.then_some(PARENT)) {
        if !names.iter().any(|known| same(known, name)) {
            names.push(name);
        }
    }
    let mut params = lasting(CertificateParams::default(), days, &node.name);
    let alternative = |name: &&str| match name.parse::<IpAddr>() {
        Ok(address) => Ok(SanType::IpAddress(address)),
        Err(_) => (*name).try_into().map(SanType::DnsName),
    };
    params.subject_alt_names = names.iter().map(alternative).collect::<Result<_, _>>()?;
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    Ok((params.signed_by(&key, issuer)?.pem(), key.serialize_pem()))
}

/// Writes a directory under a temporary name and renames it, so that it appears completely or not at all.
fn write(directory: &Path, name: &str, files: &[(&str, &str)]) -> Result<(), AccessError> {
    let aside = directory.join(format!(".{name}.part"));
    let result = (|| {
        if aside.exists() {
            fs::remove_dir_all(&aside)?; // left by a process that was killed
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&aside)?;
        for (file, text) in files {
            let mode = if *file == KEY { 0o600 } else { 0o644 };
            let path = aside.join(file);
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
        }
        fs::rename(&aside, directory.join(name))
    })();
    result.map_err(|error| {
        let _ = fs::remove_dir_all(&aside);
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                AccessError::Full { directory: directory.display().to_string() }
            }
            _ => AccessError::file(&directory.join(name), error),
        }
    })
}

/// Reads the certificates of a directory: the authority's first, then the nodes' in the order of their names.
///
/// # Errors
/// If there is no authority, or a certificate cannot be read.
pub fn show(directory: &Path) -> Result<Vec<Shown>, AccessError> {
    let authority = read(&directory.join(AUTHORITYS).join(CERTIFICATE))?;
    let mut shown = vec![explain(AUTHORITYS, &authority, None)?];
    let mut names = entries(directory);
    names.sort();
    for name in names.iter().filter(|name| *name != AUTHORITYS && !name.starts_with('.')) {
        let path = directory.join(name).join(CERTIFICATE);
        if path.exists() {
            shown.push(explain(name, &read(&path)?, Some(&authority))?);
        }
    }
    Ok(shown)
}

fn read(path: &Path) -> Result<CertificateDer<'static>, AccessError> {
    CertificateDer::from_pem_slice(&read_file(path, Kept::Readable)?).map_err(|error| AccessError::file(path, error))
}

fn explain(
    name: &str,
    certificate: &CertificateDer<'_>,
    authority: Option<&CertificateDer<'_>>,
) -> Result<Shown, AccessError> {
    let wrong = |error: &dyn ToString| AccessError::Name { name: name.into(), why: error.to_string() };
    let (_, own) = parse_x509_certificate(certificate).map_err(|error| wrong(&error))?;
    let alternatives = own.subject_alternative_name().map_err(|error| wrong(&error))?;
    let names: Vec<String> =
        alternatives.iter().flat_map(|found| &found.value.general_names).filter_map(plain).collect();
    let problem = match authority.map(|one| parse_x509_certificate(one)) {
        _ if !own.validity().is_valid() => Some("is not valid now".into()),
        Some(Ok((_, authority))) if own.verify_signature(Some(authority.public_key())).is_err() => {
            Some("is not signed by this authority".into())
        }
        _ => None,
    };
    let parent = certifies(certificate, PARENT); // by the rule by which a child decides whether to run its code
    let (valid_from, valid_until) = (own.validity().not_before.timestamp(), own.validity().not_after.timestamp());
    Ok(Shown { name: name.into(), names, parent, valid_from, valid_until, problem })
}

fn plain(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            let sixteen = |_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from);
            four.or_else(sixteen).ok().map(|address| address.to_string())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::PathBuf;

    use super::*;

    struct Fresh(PathBuf);

    impl Fresh {
        fn new() -> Self {
            let name = u64::from_ne_bytes(crate::token::random().expect("bytes"));
            Self(std::env::temp_dir().join(format!("crosswind-certs-{name:016x}")))
        }
    }

    impl Drop for Fresh {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn node(name: &str, parent: bool) -> Node {
        Node { name: name.into(), hosts: vec!["10.0.0.7".into()], parent }
    }

    #[test]
    fn what_cannot_be_put_in_its_place_leaves_nothing_aside() {
        let fresh = Fresh::new();
        fs::create_dir_all(&fresh.0).expect("made");
        fs::write(fresh.0.join("Lab3"), "in the way").expect("written");
        assert!(write(&fresh.0, "Lab3", &[(KEY, "secret")]).is_err());
        let left: Vec<_> = fs::read_dir(&fresh.0).expect("there").filter_map(Result::ok).collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[test]
    fn a_set_is_made_shown_and_added_to_and_nothing_is_overwritten() {
        let fresh = Fresh::new();
        make(&fresh.0, &[node("Lab0", true), node("Lab3", false)], 365).expect("made");
        make(&fresh.0, &[node("Lab9", false)], 30).expect("added");
        let shown = show(&fresh.0).expect("shown");
        let found: Vec<_> = shown.iter().map(|one| (one.name.as_str(), one.parent, one.problem.is_none())).collect();
        assert_eq!(found, [("ca", false, true), ("Lab0", true, true), ("Lab3", false, true), ("Lab9", false, true)]);
        assert_eq!(shown[3].names, ["Lab9", "10.0.0.7", "localhost", "127.0.0.1", "::1"]);
        assert_eq!((shown[3].valid_until - shown[3].valid_from) / 3600, 30 * 24 + 1);
        for key in ["ca", "Lab0", "Lab9"] {
            let mode = fs::metadata(fresh.0.join(key).join(KEY)).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        let before = fs::read(fresh.0.join("Lab3").join(KEY)).expect("there");
        let again = make(&fresh.0, &[node("Lab10", false), node("Lab3", false)], 365).expect_err("there already");
        assert!(matches!(again, AccessError::Exists { .. }), "{again}");
        assert!(!fresh.0.join("Lab10").exists(), "all or none");
        assert_eq!(fs::read(fresh.0.join("Lab3").join(KEY)).expect("there"), before);
    }

    #[test]
    fn what_is_no_host_name_is_no_name() {
        let fresh = Fresh::new();
        for name in ["", "ca", "CA", "../up", "a/b", "a b", "10.0.0.1", ".hidden", PARENT] {
            let error = make(&fresh.0, &[node(name, false)], 1).expect_err(name);
            assert!(matches!(error, AccessError::Name { .. }), "{error}");
        }
        assert!(
            make(&fresh.0, &[node("a", false), node("A", false)], 1).is_err(),
            "certificates do not tell them apart"
        );
        assert!(!fresh.0.exists());
    }

    #[test]
    fn no_spelling_of_the_name_of_parents_is_a_host_s() {
        let fresh = Fresh::new();
        for host in [PARENT, "Parent.Crosswind", "PARENT.CROSSWIND", "parent.crosswind.", "*.crosswind", "a.", ""] {
            let nodes = [Node { name: "x".into(), hosts: vec![host.into()], parent: false }];
            let error = make(&fresh.0, &nodes, 1).expect_err(host);
            assert!(matches!(error, AccessError::Name { .. }), "{error}");
        }
        assert!(!fresh.0.exists());
    }

    #[test]
    fn a_certificate_that_a_child_takes_for_a_parent_s_is_shown_as_one() {
        let fresh = Fresh::new();
        make(&fresh.0, &[node("a", true)], 1).expect("made");
        // As in a list of names from another tool.
        let key = KeyPair::generate().expect("a key");
        for (name, parent) in [("PARENT.Crosswind", true), ("*.crosswind", false), ("parent.crosswind.org", false)] {
            let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
            let own = params.self_signed(&key).expect("signed");
            assert_eq!(explain("x", own.der(), None).expect("shown").parent, parent, "{name}");
        }
    }

    #[test]
    fn a_node_is_not_made_again_in_another_case() {
        let fresh = Fresh::new();
        make(&fresh.0, &[node("Lab3", false)], 1).expect("made");
        let again = make(&fresh.0, &[node("LAB3", false)], 1).expect_err("there");
        assert!(matches!(again, AccessError::Exists { .. }), "{again}");
    }

    #[test]
    fn an_authority_that_others_may_read_or_change_signs_nothing() {
        let fresh = Fresh::new();
        make(&fresh.0, &[node("a", false)], 1).expect("made");
        let place = fresh.0.join(AUTHORITYS);
        for (path, mode) in [(place.join(KEY), 0o640), (place.join(CERTIFICATE), 0o664), (place.clone(), 0o770)] {
            let before = fs::metadata(&path).expect("there").permissions();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("the test's own");
            let error = make(&fresh.0, &[node("b", false)], 1).expect_err("loose");
            assert!(matches!(error, AccessError::Loose { .. }), "{error}");
            fs::set_permissions(&path, before).expect("the test's own");
        }
        make(&fresh.0, &[node("b", false)], 1).expect("made");
    }
}
