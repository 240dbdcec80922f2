//! Hosts: the addresses at which children reach the nodes of a farm whose agents are started by hand.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{DescriptionError, Problem};
use crate::platform::Tree;
use crate::read;

/// The hosts of a farm; the root holds the input data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hosts {
    /// Version of this file's schema; this build reads 1.
    pub schema_version: u64,
    /// The hosts, each with the name of its parent; exactly one, the root, has none.
    #[serde(rename = "host")]
    #[schemars(length(min = 1))]
    pub hosts: Vec<Host>,
}

/// A host that runs a node of the platform.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Name of the node; unique in the file.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
    /// Name of the node that sends it tasks; absent at the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// HOST:PORT to which its children connect, as they reach it, with a port of 1 to 65535. Required if it has
    /// children.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
}

impl Hosts {
    /// Parses and checks a `hosts.toml`.
    ///
    /// # Errors
    /// The first thing that is wrong, with file, line, column and field.
    pub fn from_toml(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        read::toml_checked(text, file, Self::check)
    }

    /// Parses and checks the same description as JSON.
    ///
    /// # Errors
    /// As [`Hosts::from_toml`].
    pub fn from_json(text: &[u8], file: &str) -> Result<Self, DescriptionError> {
        read::json_checked(text, file, Self::check)
    }

    fn check(&self) -> Result<(), DescriptionError> {
        read::version(self.schema_version)?;
        let named = self.hosts.iter().map(|host| (host.name.as_str(), host.parent.as_deref()));
        let tree = Tree::of("host", named)?;
        for (at, host) in self.hosts.iter().enumerate() {
            let field = |name: &str| format!("host[{at}].{name}");
            if host.name.is_empty() || host.name.chars().count() > 255 {
                return Err(Problem::Length { permitted: "1 to 255 characters" }.at(field("name")));
            }
            match &host.listen {
                None if at as u32 == tree.root || !tree.children(at as u32).is_empty() => {
                    return Err(Problem::Missing.at(field("listen")));
                }
                Some(listen) if !is_address(listen) => {
                    let problem = format!("is {listen:?}; it must be HOST:PORT with a port of 1 to 65535");
                    return Err(Problem::Value(problem).at(field("listen")));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Whether a text is HOST:PORT, or [V6]:PORT.
fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let host_is_one = match host.strip_prefix('[') {
        Some(v6) => v6.strip_suffix(']').is_some_and(|v6| v6.contains(':')),
        None => !host.contains(':'),
    };
    !host.is_empty() && host_is_one && port.parse::<u16>().is_ok_and(|port| port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "schema_version = 1\n[[host]]\nname = \"head\"\nlisten = \"10.0.0.1:7200\"\n[[host]]\nname = \
        \"a\"\nparent = \"head\"\nlisten = \"[fd00::2]:7200\"\n[[host]]\nname = \"b\"\nparent = \"a\"\n";

    fn refusal(from: &str, to: &str) -> String {
        assert!(FILE.contains(from));
        Hosts::from_toml(FILE.replacen(from, to, 1).as_bytes(), "h.toml").expect_err("must be refused").to_string()
    }

    #[test]
    fn a_file_of_hosts_is_read_and_what_is_wrong_in_it_is_said_with_its_place() {
        assert_eq!(Hosts::from_toml(FILE.as_bytes(), "h.toml").expect("right").hosts.len(), 3);
        assert_eq!(
            refusal("10.0.0.1:7200", "10.0.0.1"),
            "h.toml:4:10: host[0].listen is \"10.0.0.1\"; it must be HOST:PORT with a port of 1 to 65535"
        );
        assert!(refusal("10.0.0.1:7200", "fd00::2:7200").contains("HOST:PORT"));
        assert!(refusal("10.0.0.1:7200", "h:0").contains("port of 1 to 65535"));
        assert!(refusal("listen = \"[fd00::2]:7200\"\n", "").contains("host[1].listen is missing"));
        assert!(refusal("parent = \"a\"", "parent = \"haed\"").contains("the nearest is \"head\""));
        assert!(refusal("parent = \"a\"", "parnt = \"a\"").contains("the nearest is `parent`"));
        assert!(refusal("parent = \"head\"\n", "parent = \"b\"\n").contains("a cycle"));
        assert!(refusal("name = \"b\"", "name = \"a\"").contains("the name of host[1] already"));
    }
}
