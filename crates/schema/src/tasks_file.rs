//! A user's tasks: a CSV file with the columns `size_mb` and `work`, one line per task.
//!
//! It is comma-separated, starts with a header, and may have the columns in either order. Blank lines and lines that
//! start with `#` are skipped. Numbers may be in double quotes, as spreadsheets write them.

use crate::error::{DescriptionError, Problem, nearest};
use crate::experiment::draw::{Column, Tasks};
use crate::read;
use crate::units::{Megabytes, Quantity, WorkUnits};

const COLUMNS: [&str; 2] = ["size_mb", "work"];

/// Parses the tasks of a file.
///
/// # Errors
/// The first thing that is wrong, with its line and column.
pub fn read(bytes: &[u8], file: &str) -> Result<Tasks, DescriptionError> {
    read::text(bytes).and_then(parse).map_err(|e| e.in_file(file))
}

fn parse(text: &str) -> Result<Tasks, DescriptionError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines().enumerate().filter(|(_, line)| !is_skipped(line));
    let Some((at, header)) = lines.next() else { return Err(Problem::Empty.at_line(1, 1)) };
    let of_size = size_first(header, at + 1)?;
    let (mut sizes, mut works) = (Vec::new(), Vec::new());
    for (at, line) in lines {
        let mut cells = line.split(',');
        let (Some(first), Some(second), None) = (cells.next(), cells.next(), cells.next()) else {
            let found = line.split(',').count();
            let problem = Problem::Value(format!("the line has {found} values; it must have 2: {header}"));
            return Err(problem.at_line(at + 1, 1));
        };
        let second_at = first.chars().count() + 2;
        let (size, work) = if of_size { ((first, 1), (second, second_at)) } else { ((second, second_at), (first, 1)) };
        sizes.push(number(size.0, "size_mb", Megabytes::new).map_err(|p| p.at_line(at + 1, size.1))?);
        works.push(number(work.0, "work", WorkUnits::new).map_err(|p| p.at_line(at + 1, work.1))?);
    }
    if sizes.is_empty() {
        return Err(Problem::Value("there is no task below the header".into()).at_line(at + 1, 1));
    }
    Ok(Tasks { count: sizes.len() as u64, size_mb: Column::Each(sizes), work: Column::Each(works) })
}

fn is_skipped(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

fn bare(cell: &str) -> &str {
    let cell = cell.trim();
    cell.strip_prefix('"').and_then(|c| c.strip_suffix('"')).unwrap_or(cell).trim()
}

/// Whether the first column is `size_mb` (and the second `work`) rather than the other way round.
fn size_first(header: &str, line: usize) -> Result<bool, DescriptionError> {
    let names: Vec<&str> = header.split(',').map(bare).collect();
    let mut column = 1;
    for (cell, name) in header.split(',').zip(&names) {
        if !COLUMNS.contains(name) {
            let near =
                nearest(name, COLUMNS.into_iter()).map(|n| format!("; the nearest is `{n}`")).unwrap_or_default();
            let shown: String = name.chars().take(40).collect();
            let problem = format!("the column `{shown}` is neither `size_mb` nor `work`{near}");
            return Err(Problem::Value(problem).at_line(line, column));
        }
        column += cell.chars().count() + 1;
    }
    match names[..] {
        ["size_mb", "work"] => Ok(true),
        ["work", "size_mb"] => Ok(false),
        _ => Err(Problem::Value("the header must name `size_mb` and `work`, each once".into()).at_line(line, 1)),
    }
}

fn number<Q: Quantity>(cell: &str, name: &str, new: impl Fn(f64) -> Result<Q, String>) -> Result<f64, Problem> {
    let text = bare(cell);
    let value: f64 = text.parse().map_err(|_| {
        let shown: String = text.chars().take(40).collect();
        Problem::Value(format!("{name} is {shown:?}; it must be a number"))
    })?;
    new(value).map(Quantity::get).map_err(|sentence| Problem::Value(format!("{name} {sentence}")))
}
