//! What a command prints: standard output as its result, standard error for people.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Arc;

use super::IN_MEMORY;
use crate::farm::payload::{Payload, Spool, StoredFile};
use crate::farm::printer::Printer;
use crate::farm::task_processes::Output;

/// How much of a failing command's stderr is reported: bytes, then lines of those.
const COMPLAINT: usize = 4_000;
const COMPLAINT_LINES: usize = 20;

/// What a command has printed by now.
pub(super) struct Printed<'a> {
    spool: &'a mut Spool,
    printer: Option<&'a Printer>,
    stdout: io::Result<Stdout>,
    /// The end of standard error.
    last: VecDeque<u8>,
}

/// Standard output, in memory as long as it is small.
enum Stdout {
    Memory(Vec<u8>),
    File(File, StoredFile),
}

impl<'a> Printed<'a> {
    pub fn new(spool: &'a mut Spool, printer: Option<&'a Printer>) -> Self {
        Self { spool, printer, stdout: Ok(Stdout::Memory(Vec::new())), last: VecDeque::new() }
    }

    /// Returns standard output, and the last lines of standard error.
    pub fn end(self) -> (io::Result<Payload>, String) {
        let bytes: Vec<u8> = self.last.into();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let stderr = lines[lines.len().saturating_sub(COMPLAINT_LINES)..].join("\n");
        let stdout = self.stdout.map(|stdout| match stdout {
            Stdout::Memory(bytes) => Payload::bytes(bytes),
            Stdout::File(_, stored) => Payload::File(Arc::new(stored)),
        });
        (stdout, stderr)
    }
}

impl Stdout {
    /// Adds bytes; what becomes large goes into a file of the spool.
    fn add(&mut self, bytes: &[u8], spool: &mut Spool) -> io::Result<()> {
        match self {
            Self::Memory(memory) if (memory.len() + bytes.len()) as u64 <= IN_MEMORY => memory.extend_from_slice(bytes),
            Self::Memory(memory) => {
                let mut stored = spool.file()?;
                let mut file = File::create_new(&stored.path)?;
                file.write_all(memory)?;
                file.write_all(bytes)?;
                stored.bytes = (memory.len() + bytes.len()) as u64;
                *self = Self::File(file, stored);
            }
            Self::File(file, stored) => {
                file.write_all(bytes)?;
                stored.bytes += bytes.len() as u64;
            }
        }
        Ok(())
    }
}

impl Output for Printed<'_> {
    fn stdout(&mut self, bytes: &[u8]) {
        if let Ok(stdout) = &mut self.stdout
            && let Err(error) = stdout.add(bytes, self.spool)
        {
            self.stdout = Err(error); // the rest is read nevertheless, or the command would wait
        }
    }

    fn stderr(&mut self, bytes: &[u8]) {
        self.last.extend(&bytes[bytes.len().saturating_sub(COMPLAINT)..]);
        self.last.drain(..self.last.len().saturating_sub(COMPLAINT));
        if let Some(printer) = self.printer {
            printer.print(bytes);
        }
    }
}
