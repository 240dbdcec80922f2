//! An agent's log: one line per thing worth knowing, on stderr or in a file. Never a token.

use std::collections::HashSet;
use std::io::Write;

/// Different complaints that are remembered, so that each is written once.
const REMEMBERED: usize = 1_000;

/// Where lines go.
pub struct Diary {
    name: String,
    out: Box<dyn Write + Send>,
    written: HashSet<String>,
}

impl Diary {
    /// A diary on stderr.
    #[must_use]
    pub fn on_stderr(name: &str) -> Self {
        Self::new(name, Box::new(std::io::stderr()))
    }

    /// A diary somewhere else.
    #[must_use]
    pub fn new(name: &str, out: Box<dyn Write + Send>) -> Self {
        Self { name: name.into(), out, written: HashSet::new() }
    }

    /// Writes a line.
    pub fn note(&mut self, line: &str) {
        // A log that can't be written must not end a run.
        let _ = writeln!(self.out, "{}: {line}", self.name);
        let _ = self.out.flush();
    }

    /// Writes a line, unless it was written before: nobody fills a disk by knocking again and again.
    pub fn note_once(&mut self, line: &str) {
        if self.written.len() < REMEMBERED && self.written.insert(line.to_owned()) {
            self.note(line);
        }
    }
}
