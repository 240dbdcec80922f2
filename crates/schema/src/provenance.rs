//! Provenance of runs: everything that they were made from, so that a `runs.json` is enough to make them again.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::experiment::Paths;

/// What runs were made from. `crosswind run --again` needs no other file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// Versions of Crosswind that made runs of this file, the first one first.
    pub versions: Vec<String>,
    /// The experiment, with its sweep.
    pub experiment: OrderedJson,
    /// Path in the experiment -> content of the platform file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub platforms: BTreeMap<String, OrderedJson>,
    /// Path in the experiment -> content of the disturbance file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub disturbances: BTreeMap<String, OrderedJson>,
    /// Path in the experiment -> any other file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, EmbeddedFile>,
}

/// A file that an experiment refers to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EmbeddedFile {
    /// SHA-256 of its content, hexadecimal.
    pub sha256: String,
    /// Its content, compressed by zlib, in base64; absent if it is too large. The file itself is then needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

/// JSON whose tables keep their order: the order of a sweep's paths is that of its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OrderedJson {
    Table(Paths<Self>),
    List(Vec<Self>),
    Other(Value),
}

impl JsonSchema for OrderedJson {
    fn schema_name() -> Cow<'static, str> {
        "Json".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_keep_their_order_and_numbers_their_bits() {
        let text = r#"{"versions":["0.2.0"],"experiment":{"sweep":{"z":[1,2.5,1e-300],"a":[true,null,"x"]},"b":{}},"files":{"t.csv":{"sha256":"0"}}}"#;
        let read: Provenance = serde_json::from_str(text).expect("provenance");
        assert_eq!(serde_json::to_string(&read).expect("JSON"), text);
    }
}
