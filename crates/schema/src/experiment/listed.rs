//! Lists of tables that are each about a node, and paths into them: `change[PLACE].FIELD`, `failure[NAME].FIELD`.

use std::collections::HashMap;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::sweep::with;
use crate::error::{DescriptionError, Problem, nearest};
use crate::platform::Platform;

/// A table of such a list.
pub(super) trait OfNode: Clone + Serialize + DeserializeOwned {
    /// Name of the list in the file.
    const LIST: &'static str;
    /// Field that an error gives as an example.
    const FIELD: &'static str;
    /// Name of the node; `None`: it is about several.
    fn node(&self) -> Option<&str>;

    /// Creates an error about a field of the table at a place.
    fn wrong(at: usize, field: &str, sentence: String) -> DescriptionError {
        Problem::Value(sentence).at(format!("{}[{at}].{field}", Self::LIST))
    }
}

/// Whether a path is one into the list of `T`.
pub(super) fn is_into<T: OfNode>(path: &str) -> bool {
    path.strip_prefix(T::LIST).is_some_and(|rest| rest.starts_with('['))
}

/// Returns the list with a field of one table replaced. The place counts from 0; a node's name stands for its only table.
///
/// # Errors
/// When there is no such table, or the value is not permitted.
pub(super) fn with_field<T: OfNode>(tables: &[T], path: &str, value: &Value) -> Result<Vec<T>, DescriptionError> {
    let list = T::LIST;
    let refused = |sentence: String| Err(Problem::Value(sentence).at(format!("sweep.{path}")));
    let parts = path.strip_prefix(list).and_then(|rest| rest.strip_prefix('[')).and_then(|rest| rest.split_once("]."));
    let Some((place, field)) = parts else {
        return refused(format!("must name a {list} and its field, as {list}[0].{}", T::FIELD));
    };
    let count = tables.len();
    let named: Vec<usize> = (0..count).filter(|&at| tables[at].node() == Some(place)).collect();
    let at = match (named.as_slice(), place.parse::<usize>()) {
        (&[only], _) => only,
        (&[], Ok(at)) if at < count => at,
        (&[], Ok(_)) => {
            return refused(format!("is of {list} {place}; the experiment has {count}, counted from 0"));
        }
        (&[], Err(_)) => {
            return refused(format!("is of a {list} of {place:?}; the experiment has none of that node"));
        }
        (several, _) => {
            let places: Vec<String> = several.iter().map(|at| format!("{list}[{at}]")).collect();
            let places = places.join(" or ");
            return refused(format!("is of one of {} {list}s of {place:?}; name {places}", several.len()));
        }
    };
    let mut found = tables.to_vec();
    found[at] = with(&tables[at], field, value, path)?;
    Ok(found)
}

/// The nodes of a platform by name.
pub(super) struct Places<'a> {
    platform: &'a Platform,
    places: HashMap<&'a str, usize>,
}

impl<'a> Places<'a> {
    pub fn of(platform: &'a Platform) -> Self {
        let places = platform.nodes.iter().zip(0..).map(|(node, at)| (node.name.as_str(), at)).collect();
        Self { platform, places }
    }

    /// Returns the index of the node that the table at a place names.
    ///
    /// # Errors
    /// When the platform has no such node.
    pub fn find<T: OfNode>(&self, at: usize, name: &str) -> Result<usize, DescriptionError> {
        self.places.get(name).copied().ok_or_else(|| {
            let near = nearest(name, self.platform.nodes.iter().map(|node| node.name.as_str()));
            let near = near.map(|near| format!("; the nearest is {near:?}")).unwrap_or_default();
            T::wrong(at, "node", format!("is {name:?}, which is no node of this platform{near}"))
        })
    }
}
