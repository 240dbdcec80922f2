//! Links: measurements between the hosts of a cluster, before a tree is chosen.
//!
//! A platform states which node sends to which; this file states the capacity of each pair, in each direction. Pairs
//! may be missing: they were not measured, or one host cannot reach the other.

use std::collections::{HashMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{DescriptionError, Problem, nearest};
use crate::platform::is_none;
use crate::read;
use crate::units::{MegabytesPerSecond, Seconds, SecondsPerMegabyte, WorkPerSecond};

/// Hosts, and the links between ordered pairs of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Links {
    /// Version of this file's schema; this build reads 1.
    pub schema_version: u64,
    /// Name shown in results; may be any text.
    pub name: String,
    #[serde(rename = "host")]
    #[schemars(length(min = 1))]
    pub hosts: Vec<Host>,
    /// The known links, each in one direction.
    #[serde(rename = "link", default)]
    pub links: Vec<Link>,
}

/// A computer that could be a node of a tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Name of the host, unique in the file.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
    /// Work units per second while it neither sends nor receives.
    pub compute_per_s: WorkPerSecond,
    /// Highest rate to all others together, MB/s; absent: no limit. Used with multi-port sends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_limit_mb_per_s: Option<MegabytesPerSecond>,
}

/// One direction between two hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Name of the host that sends.
    pub from: String,
    /// Name of the host that receives.
    pub to: String,
    pub receive_limit_mb_per_s: MegabytesPerSecond,
    /// Time of a message beyond that of its bytes, s.
    #[serde(default, skip_serializing_if = "is_none")]
    pub latency_s: Seconds,
    /// Fraction of its compute rate that the receiver loses per MB/s.
    #[serde(default)]
    pub ir_receive_s_per_mb: SecondsPerMegabyte,
    /// Fraction of its compute rate that the sender loses per MB/s.
    #[serde(default)]
    pub ir_send_s_per_mb: SecondsPerMegabyte,
}

impl Links {
    /// Parses and checks a `links.toml`.
    ///
    /// # Errors
    /// The first thing that is wrong, with file, line, column, field, value, unit and range.
    pub fn from_toml(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        read::toml_checked(text, file, Self::check)
    }

    /// Parses and checks the same description as JSON.
    ///
    /// # Errors
    /// As [`Links::from_toml`].
    pub fn from_json(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        read::json_checked(text, file, Self::check)
    }

    /// Converts the file to TOML, with the fields in the order of the documentation.
    ///
    /// # Errors
    /// Never for a file that passed its checks.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }

    fn check(&self) -> Result<(), DescriptionError> {
        read::version(self.schema_version)?;
        self.ends().map(|_| ())
    }

    /// Returns sender and receiver of each link, as indices into `hosts`.
    ///
    /// # Errors
    /// When there is no host, a name is repeated, or a link is from or to an unknown host, from a host to itself, or
    /// repeated.
    pub fn ends(&self) -> Result<Vec<(usize, usize)>, DescriptionError> {
        if self.hosts.is_empty() {
            return Err(Problem::Length { permitted: "at least 1 host" }.at("host".into()));
        }
        let mut places: HashMap<&str, usize> = HashMap::with_capacity(self.hosts.len());
        for (at, host) in self.hosts.iter().enumerate() {
            let field = || format!("host[{at}].name");
            if host.name.is_empty() || host.name.chars().count() > 255 {
                return Err(Problem::Length { permitted: "1 to 255 characters" }.at(field()));
            }
            if let Some(first) = places.insert(&host.name, at) {
                let first = format!("host[{first}]");
                return Err(Problem::DuplicateName { name: host.name.clone(), first }.at(field()));
            }
        }
        let mut seen = HashSet::with_capacity(self.links.len());
        let mut ends = Vec::with_capacity(self.links.len());
        for (at, link) in self.links.iter().enumerate() {
            let place = |end: &str, name: &str| {
                places.get(name).copied().ok_or_else(|| {
                    let nearest = nearest(name, self.hosts.iter().map(|host| host.name.as_str()));
                    Problem::UnknownHost { host: name.into(), nearest }.at(format!("link[{at}].{end}"))
                })
            };
            let pair = (place("from", &link.from)?, place("to", &link.to)?);
            let refused = if pair.0 == pair.1 {
                Some(format!("is {:?}, the host that it comes from", link.to))
            } else if !seen.insert(pair) {
                Some(format!("is {:?}, and a link from {:?} to it stands above already", link.to, link.from))
            } else {
                None
            };
            if let Some(sentence) = refused {
                return Err(Problem::Value(sentence).at(format!("link[{at}].to")));
            }
            ends.push(pair);
        }
        Ok(ends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "schema_version = 1\nname = \"two\"\n[[host]]\nname = \"a\"\ncompute_per_s = 1\n\
        [[host]]\nname = \"bee\"\ncompute_per_s = 0\n";

    fn refusal(links: &str) -> String {
        Links::from_toml(format!("{TWO}{links}").as_bytes(), "l.toml").unwrap_err().to_string()
    }

    #[test]
    fn links_survive_being_written_and_read() {
        let link = "[[link]]\nfrom = \"a\"\nto = \"bee\"\nreceive_limit_mb_per_s = 10\nlatency_s = 1e-4\n";
        let read = Links::from_toml(format!("{TWO}{link}").as_bytes(), "l.toml").unwrap();
        assert_eq!(read.ends().unwrap(), [(0, 1)]);
        assert_eq!(Links::from_toml(read.to_toml().unwrap().as_bytes(), "again").unwrap(), read);
        assert_eq!(Links::from_json(&serde_json::to_vec(&read).unwrap(), "again").unwrap(), read);
    }

    #[test]
    fn a_wrong_link_is_named_with_its_place() {
        let link =
            |from: &str, to: &str| format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nreceive_limit_mb_per_s = 10\n");
        assert_eq!(
            refusal(&link("a", "be")),
            "l.toml:11:6: link[0].to is \"be\", which is no host of this file; the nearest is \"bee\""
        );
        assert_eq!(refusal(&link("a", "a")), "l.toml:11:6: link[0].to is \"a\", the host that it comes from");
        assert_eq!(
            refusal(&format!("{}{}", link("a", "bee"), link("a", "bee"))),
            "l.toml:15:6: link[1].to is \"bee\", and a link from \"a\" to it stands above already"
        );
        assert_eq!(
            refusal(&link("a", "bee").replace("= 10", "= 0")),
            "l.toml:12:26: link[0].receive_limit_mb_per_s is 0 MB/s; it must be finite and greater than 0 MB/s"
        );
    }
}
