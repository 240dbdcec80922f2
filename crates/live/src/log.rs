//! Log of an agent: one line per event, on stderr or in a file. Tokens are never logged.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsFd as _;
use std::path::PathBuf;

use crate::error::LiveError;

/// Number of distinct lines remembered by [`Log::note_once`]. Further new lines are dropped.
const REMEMBERED: usize = 1_000;

pub struct Log {
    name: String,
    out: Box<dyn Write + Send>,
    written: HashSet<String>,
}

impl Log {
    #[must_use]
    pub fn on_stderr(name: &str) -> Self {
        // A copy: what tasks print may be captured later.
        match std::io::stderr().as_fd().try_clone_to_owned() {
            Ok(copy) => Self::new(name, Box::new(File::from(copy))),
            Err(_) => Self::new(name, Box::new(std::io::stderr())),
        }
    }

    #[must_use]
    pub fn new(name: &str, out: Box<dyn Write + Send>) -> Self {
        Self { name: name.into(), out, written: HashSet::new() }
    }

    /// Opens a log that appends to a file. `None` writes to stderr.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn at(name: &str, path: Option<&PathBuf>) -> Result<Self, LiveError> {
        let Some(path) = path else { return Ok(Self::on_stderr(name)) };
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.map_err(LiveError::system(path.display().to_string()))?;
        Ok(Self::new(name, Box::new(file)))
    }

    /// Writes a line. Control characters are escaped, because the line may contain text from a peer.
    pub fn note(&mut self, line: &str) {
        // A failure to write the log must not end a run.
        let _ = writeln!(self.out, "{}: {}", printable(&self.name), printable(line));
        let _ = self.out.flush();
    }

    /// Writes a line unless it was written before, so that repeated connections cannot fill a disk.
    pub fn note_once(&mut self, line: &str) {
        if self.written.len() < REMEMBERED && self.written.insert(line.to_owned()) {
            self.note(line);
        }
    }
}

/// Returns whether a terminal treats the character as a control or uses it to reorder text.
fn is_command(sign: char) -> bool {
    let turns = ['\u{61c}', '\u{200e}', '\u{200f}'].contains(&sign);
    turns || sign.is_control() || ('\u{2028}'..='\u{202e}').contains(&sign) || ('\u{2066}'..='\u{2069}').contains(&sign)
}

/// Escapes such characters in the same way as `python/crosswind/terminal/printable.py`.
fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_command) {
        return Cow::Borrowed(text);
    }
    let escaped = |sign: char| match sign {
        _ if !is_command(sign) => String::from(sign),
        '\n' => "\\n".into(),
        '\t' => "\\t".into(),
        '\r' => "\\r".into(),
        '\0'..='\u{ff}' => format!("\\x{:02x}", sign as u32),
        _ => format!("\\u{:04x}", sign as u32),
    };
    text.chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_s_text_is_one_line_that_no_terminal_obeys() {
        assert_eq!(printable("\x1b[2Jb\u{9b}\nroot: all is well\u{202e}"), "\\x1b[2Jb\\x9b\\nroot: all is well\\u202e");
        assert!(matches!(printable("Rechner-Ä, 机器"), Cow::Borrowed(_)));
    }
}
