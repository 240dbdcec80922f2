//! Fields of the platform's nodes that an experiment replaces: `node[NAME].FIELD` -> value.

use serde_json::Value;

use super::sweep::{Params, with};
use crate::error::{DescriptionError, Problem, nearest};
use crate::platform::{Node, Platform};
use crate::read;

/// A node that any field of a node may be set on: it has a parent, and both rates.
const ANY_NODE: &[u8] = br#"{"name": "n", "parent": "p", "compute_per_s": 1, "receive_limit_mb_per_s": 1}"#;

/// Whether a path names a field of a node.
pub(super) fn is_one(path: &str) -> bool {
    path.starts_with("node[")
}

/// Splits `node[NAME].FIELD` into the name, or the place, of the node and its field.
fn parts(path: &str) -> Result<(&str, &str), DescriptionError> {
    path.strip_prefix("node[").and_then(|rest| rest.split_once("].")).filter(|(name, _)| !name.is_empty()).ok_or_else(
        || {
            let how = "must name a node and its field, as node[NAME].compute_per_s";
            Problem::Value(how.into()).at(format!("sweep.{path}"))
        },
    )
}

/// Checks a field and its value as far as that is possible without the platform.
///
/// # Errors
/// When no node has such a field, or the value is not permitted.
pub(super) fn check(path: &str, value: &Value) -> Result<(), DescriptionError> {
    let (_, field) = parts(path)?;
    with::<Node>(&read::json(ANY_NODE, "")?, field, value, path).map(drop)
}

/// Returns the platform with fields of its nodes replaced. A node is named, or counted from 0 in the order of the file;
/// a name comes first.
///
/// # Errors
/// When the platform has no such node, or is invalid with the values.
///
/// # Examples
/// ```
/// use crosswind_schema::Platform;
/// use crosswind_schema::experiment::{Params, platform_fields::with_fields};
///
/// let text = br#"{"schema_version": 1, "name": "p", "node": [{"name": "r", "compute_per_s": 2.0}]}"#;
/// let platform = Platform::from_json(text, "p.json")?;
/// let faster = with_fields(&platform, &Params::from_iter([("node[r].compute_per_s".into(), 3.into())]))?;
/// assert_eq!(faster.nodes[0].compute_per_s.get(), 3.0);
/// # use crosswind_schema::units::Quantity;
/// # Ok::<(), crosswind_schema::DescriptionError>(())
/// ```
pub fn with_fields(platform: &Platform, fields: &Params) -> Result<Platform, DescriptionError> {
    let mut changed = platform.clone();
    for (path, value) in &fields.0 {
        let set = parts(path).and_then(|(name, field)| {
            let at = place(&changed, name, path)?;
            with(&changed.nodes[at], field, value, path).map(|node| (at, node))
        });
        let (at, node) = set.map_err(without_sweep)?;
        changed.nodes[at] = node;
    }
    changed.check()?;
    Ok(changed)
}

fn place(platform: &Platform, name: &str, path: &str) -> Result<usize, DescriptionError> {
    let names = || platform.nodes.iter().map(|node| node.name.as_str());
    if let Some(at) = names().position(|known| known == name) {
        return Ok(at);
    }
    let count = platform.nodes.len();
    let sentence = match name.parse::<usize>() {
        Ok(at) if at < count => return Ok(at),
        Ok(_) => format!("is of node {name}; {:?} has {count} nodes, counted from 0", platform.name),
        Err(_) => {
            let near = nearest(name, names()).map(|near| format!("; the nearest is {near:?}")).unwrap_or_default();
            format!("is of {name:?}, which is no node of {:?}{near}", platform.name)
        }
    };
    Err(Problem::Value(sentence).at(format!("sweep.{path}")))
}

/// Returns an error about a value without the sweep, which may not be where it is from.
fn without_sweep(mut error: DescriptionError) -> DescriptionError {
    error.field = error.field.map(|field| field.strip_prefix("sweep.").map_or(field.clone(), str::to_owned));
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Quantity;

    fn pair() -> Platform {
        let leaf = r#"{"name": "10.0.0.2", "parent": "r", "compute_per_s": 4.0, "receive_limit_mb_per_s": 10.0}"#;
        let text = format!(
            r#"{{"schema_version": 1, "name": "pair", "node": [{{"name": "r", "compute_per_s": 2.0}}, {leaf}]}}"#
        );
        Platform::from_json(text.as_bytes(), "pair.json").expect("a platform")
    }

    fn set(path: &str, value: impl Into<Value>) -> Result<Platform, DescriptionError> {
        with_fields(&pair(), &Params::from_iter([(path.to_owned(), value.into())]))
    }

    #[test]
    fn a_node_is_named_with_its_dots_or_counted() {
        for path in ["node[10.0.0.2].receive_limit_mb_per_s", "node[1].receive_limit_mb_per_s"] {
            let changed = set(path, 3).expect(path);
            assert_eq!(changed.nodes[1].receive_limit_mb_per_s.map(Quantity::get), Some(3.0));
            assert_eq!(changed.nodes[0], pair().nodes[0]);
        }
    }

    #[test]
    fn what_a_platform_cannot_have_is_named() {
        for (path, value, words) in [
            ("node[2].compute_per_s", Value::from(1), "2 nodes, counted from 0"),
            ("node[10.0.0.3].compute_per_s", Value::from(1), "is no node of \"pair\""),
            ("node[10.1.0.2].compute_per_s", Value::from(1), "the nearest is \"10.0.0.2\""),
            ("node[r].compute_per_s", Value::from(-1), "-1"),
            ("node[r].compute", Value::from(1), "compute_per_s"),
            ("node[r]", Value::from(1), "node[NAME].compute_per_s"),
            ("node[r].parent", Value::from("10.0.0.2"), ""),
        ] {
            let error = set(path, value).expect_err(path).to_string();
            assert!(error.contains(words) && !error.contains("sweep."), "{path}: {error}");
        }
    }
}
