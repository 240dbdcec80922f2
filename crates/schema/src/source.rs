//! Fields that hold a name or a path, or an inline table.
//!
//! Implemented by hand, since serde's untagged enums lose which field of the table was wrong.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::error::nearest;

/// Parses a table, or a string with `named`, whose error states the permitted values. `expected` is the error message
/// for anything else.
pub(crate) fn string_or_table<'de, D, Table, T>(
    deserializer: D,
    expected: &'static str,
    named: impl FnOnce(&str) -> Result<T, String>,
    inline: impl FnOnce(Table) -> T,
) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    Table: Deserialize<'de>,
{
    deserializer.deserialize_any(StringOrTable { expected, named, inline, table: PhantomData })
}

/// Returns the value of a known name.
pub(crate) fn known<T: Copy>(name: &str, names: &[(&str, T)]) -> Result<T, String> {
    if let Some(&(_, value)) = names.iter().find(|(known, _)| *known == name) {
        return Ok(value);
    }
    let all: Vec<&str> = names.iter().map(|(known, _)| *known).collect();
    let near = nearest(name, all.iter().copied()).map(|near| format!("; the nearest is {near:?}")).unwrap_or_default();
    Err(format!("is {name:?}; it must be one of {}, or a table{near}", all.join(", ")))
}

struct StringOrTable<Named, Inline, Table> {
    expected: &'static str,
    named: Named,
    inline: Inline,
    table: PhantomData<Table>,
}

impl<'de, T, Table, Named, Inline> Visitor<'de> for StringOrTable<Named, Inline, Table>
where
    Table: Deserialize<'de>,
    Named: FnOnce(&str) -> Result<T, String>,
    Inline: FnOnce(Table) -> T,
{
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.named)(text).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<T, A::Error> {
        Table::deserialize(MapAccessDeserializer::new(table)).map(self.inline)
    }
}
