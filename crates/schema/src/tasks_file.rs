//! A user's tasks: a CSV file with the columns `size_mb` and `work`, one line per task. Optional columns are `release_s`
//! (when the task arrives), `deadline_s` (by when it is wanted; the cell may be empty), `class` and `user` (names).
//!
//! It is comma-separated, starts with a header, and may have the columns in any order. Blank lines and lines that
//! start with `#` are skipped. Numbers may be in double quotes, as spreadsheets write them.

use std::collections::HashMap;

use crate::error::{DescriptionError, Problem, nearest};
use crate::experiment::Classes;
use crate::experiment::draw::{Arrivals, Column, Tasks, Users};
use crate::read;
use crate::units::{Megabytes, Quantity, Seconds, WorkUnits};

const COLUMNS: [&str; 6] = ["size_mb", "work", "release_s", "deadline_s", "class", "user"];
const SIZE: usize = 0;
const WORK: usize = 1;
const RELEASE: usize = 2;
const DEADLINE: usize = 3;
const CLASS: usize = 4;
const USER: usize = 5;
/// Most different names in a column.
const MOST_NAMES: usize = 1 << 16;

/// The different names of a column, in the order in which they come.
#[derive(Default)]
struct Names {
    all: Vec<String>,
    places: HashMap<String, usize>,
}

impl Names {
    /// Returns the place of a name.
    fn place(&mut self, column: &str, cell: &str) -> Result<usize, Problem> {
        let name = bare(cell);
        if let Some(&place) = self.places.get(name) {
            return Ok(place);
        }
        if name.is_empty() {
            return Err(Problem::Value(format!("{column} is empty; it must be a name")));
        }
        if self.all.len() == MOST_NAMES {
            return Err(Problem::Value(format!("{column} has more than {MOST_NAMES} different names")));
        }
        self.all.push(name.to_owned());
        self.places.insert(name.to_owned(), self.all.len() - 1);
        Ok(self.all.len() - 1)
    }
}

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
    let columns = columns(header, at + 1)?;
    let mut values: [Vec<f64>; COLUMNS.len()] = Default::default();
    let (mut classes, mut users) = (Names::default(), Names::default());
    for (at, line) in lines {
        let found = line.split(',').count();
        if found != columns.len() {
            let wanted = columns.len();
            let problem = Problem::Value(format!("the line has {found} values; it must have {wanted}: {header}"));
            return Err(problem.at_line(at + 1, 1));
        }
        let mut character = 1;
        for (&column, cell) in columns.iter().zip(line.split(',')) {
            let value = match column {
                CLASS => classes.place(COLUMNS[column], cell).map(|place| place as f64),
                USER => users.place(COLUMNS[column], cell).map(|place| place as f64),
                _ => value(column, cell, values[RELEASE].last()),
            };
            let value = value.map_err(|p| p.at_line(at + 1, character))?;
            values[column].push(value);
            character += cell.chars().count() + 1;
        }
    }
    let [size_mb, work, release_s, deadline_s, class, user] = values;
    if size_mb.is_empty() {
        return Err(Problem::Value("there is no task below the header".into()).at_line(at + 1, 1));
    }
    let arrives = columns.contains(&RELEASE) || columns.contains(&DEADLINE);
    Ok(Tasks {
        count: size_mb.len() as u64,
        size_mb: Column::Each(size_mb),
        work: Column::Each(work),
        arrivals: arrives.then_some(Arrivals { release_s, deadline_s }),
        classes: columns.contains(&CLASS).then(|| Classes {
            names: classes.all,
            of_task: class.iter().map(|&place| place as u16).collect(),
            factors: Vec::new(),
        }),
        users: columns
            .contains(&USER)
            .then(|| Users { names: users.all, of_task: user.iter().map(|&place| place as u32).collect() }),
    })
}

fn value(column: usize, cell: &str, released: Option<&f64>) -> Result<f64, Problem> {
    let name = COLUMNS[column];
    match column {
        SIZE => number(cell, name, Megabytes::new),
        WORK => number(cell, name, WorkUnits::new),
        DEADLINE if bare(cell).is_empty() => Ok(f64::INFINITY),
        _ => {
            let value = number(cell, name, Seconds::new)?;
            match released {
                Some(&before) if column == RELEASE && value < before => Err(Problem::Value(format!(
                    "release_s is {value}, below the {before} of the task before; sort the lines by release_s"
                ))),
                _ => Ok(value),
            }
        }
    }
}

fn is_skipped(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

fn bare(cell: &str) -> &str {
    let cell = cell.trim();
    cell.strip_prefix('"').and_then(|c| c.strip_suffix('"')).unwrap_or(cell).trim()
}

/// Returns which of [`COLUMNS`] each column of the file is.
fn columns(header: &str, line: usize) -> Result<Vec<usize>, DescriptionError> {
    let mut columns = Vec::new();
    let mut character = 1;
    for cell in header.split(',') {
        let name = bare(cell);
        let Some(column) = COLUMNS.iter().position(|&column| column == name) else {
            let near =
                nearest(name, COLUMNS.into_iter()).map(|n| format!("; the nearest is `{n}`")).unwrap_or_default();
            let shown: String = name.chars().take(40).collect();
            let known = "`size_mb`, `work`, `release_s`, `deadline_s`, `class` or `user`";
            return Err(Problem::Value(format!("the column `{shown}` is not {known}{near}")).at_line(line, character));
        };
        if columns.contains(&column) {
            return Err(Problem::Value(format!("the column `{name}` is there twice")).at_line(line, character));
        }
        columns.push(column);
        character += cell.chars().count() + 1;
    }
    if columns.contains(&SIZE) && columns.contains(&WORK) {
        return Ok(columns);
    }
    Err(Problem::Value("the header must name `size_mb` and `work`".into()).at_line(line, 1))
}

fn number<Q: Quantity>(cell: &str, name: &str, new: impl Fn(f64) -> Result<Q, String>) -> Result<f64, Problem> {
    let text = bare(cell);
    let value: f64 = text.parse().map_err(|_| {
        let shown: String = text.chars().take(40).collect();
        Problem::Value(format!("{name} is {shown:?}; it must be a number"))
    })?;
    new(value).map(Quantity::get).map_err(|sentence| Problem::Value(format!("{name} {sentence}")))
}
