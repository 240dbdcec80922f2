//! Finds the position of a field in a text.

use toml::de::{DeTable, DeValue};

use crate::pieces::{Piece, pieces};

/// Returns line and column, from 1, of a byte offset.
pub fn line_column(text: &str, at: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..at.min(text.len())];
    let line = before.iter().filter(|b| **b == b'\n').count() + 1;
    let start = before.iter().rposition(|b| *b == b'\n').map_or(0, |p| p + 1);
    (line, String::from_utf8_lossy(&before[start..]).chars().count() + 1)
}

/// Returns line and column, in a TOML text, of the value or (`of_name`) the name of a field such as `node[2].name`;
/// if the field does not exist, those of its nearest existing ancestor.
pub fn place_of(text: &str, field: &str, of_name: bool) -> Option<(usize, usize)> {
    let (head, mut nodes) = pieces(text);
    // Nodes written as `[[node]]` are looked up in their own piece: a whole large file would not fit in memory.
    if let Some((index, rest)) = field.strip_prefix("node[").and_then(|f| f.split_once(']')) {
        if let Some(Piece { text, line }) = nodes.nth(index.parse().ok()?) {
            let (row, column) = place_in(text, rest.trim_start_matches('.'), of_name).unwrap_or((1, 1));
            return Some((line + row - 1, column));
        }
    }
    if field == "node" && head.len() < text.len() {
        return Some((line_column(text, head.len()).0, 1));
    }
    place_in(head, field, of_name)
}

fn place_in(text: &str, field: &str, of_name: bool) -> Option<(usize, usize)> {
    let document = DeTable::parse(text).ok()?;
    let mut place = None;
    let mut here: Option<&DeValue<'_>> = None;
    for step in field.split(['.', '[']).filter(|s| !s.is_empty()) {
        let found = if let Some(index) = step.strip_suffix(']') {
            let DeValue::Array(items) = here? else { break };
            items.get(index.parse::<usize>().ok()?).map(|v| (v.span(), v.get_ref()))
        } else {
            let table = match here {
                None => document.get_ref(),
                Some(DeValue::Table(table)) => table,
                Some(_) => break,
            };
            table.get_key_value(step).map(|(key, value)| {
                let is_value = !of_name && !matches!(value.get_ref(), DeValue::Table(_) | DeValue::Array(_));
                (if is_value { value.span() } else { key.span() }, value.get_ref())
            })
        };
        let Some((span, value)) = found else { break };
        place = Some(line_column(text, span.start));
        here = Some(value);
    }
    place
}
