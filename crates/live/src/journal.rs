//! The journal: which results have been delivered, in a file that survives the root.
//!
//! Append-only: a head with what run it is of, then a record for each result, each with its length and a checksum. A record
//! is written when its result stands in its own file (where results have one) and before anybody is told of it. After
//! `kill -9` a torn record at the end is dropped; so a result is delivered again rather than lost.
//! A full disk leaves the journal as it was before the record that did not fit.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::error::LiveError;

const MAGIC: &[u8; 8] = b"XWJRNL1\n";
/// Bytes of a record: task, outcome, length of the result, checksum.
const RECORD: usize = 8 + 1 + 8 + 4;
/// A run's name for itself.
const LONGEST_DIGEST: usize = 4096;

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    /// Where the last whole record ends.
    end: u64,
    buffer: Vec<u8>,
}

/// A result that was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// Which task.
    pub task: u64,
    /// Whether it was a result, not an error.
    pub ok: bool,
    /// Its length.
    pub bytes: u64,
}

impl Journal {
    /// Starts a journal; an existing file is refused, so that nobody's results are forgotten by a slip.
    ///
    /// # Errors
    /// When the file is there, or can't be written.
    pub fn create(path: &Path, digest: &str) -> Result<Self, LiveError> {
        let digest = &digest.as_bytes()[..digest.len().min(LONGEST_DIGEST)];
        let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => LiveError::Journal {
                file: path.display().to_string(),
                why: "is there already: it is another run's journal, or this one's to be resumed".into(),
            },
            _ => LiveError::System { what: format!("{}", path.display()), source: error },
        })?;
        let mut journal = Self { file, path: path.into(), end: 0, buffer: Vec::new() };
        journal.buffer.extend(MAGIC);
        journal.buffer.extend((digest.len() as u32).to_be_bytes());
        journal.buffer.extend(digest);
        journal.buffer.extend(checksum(digest).to_be_bytes());
        journal.write()?;
        Ok(journal)
    }

    /// Opens a journal to go on with; what was delivered before.
    ///
    /// # Errors
    /// When it is no journal, or one of another run.
    pub fn resume(path: &Path, digest: &str) -> Result<(Self, Vec<Delivered>), LiveError> {
        let doing = || LiveError::system(path.display().to_string());
        let wrong = |why: &str| LiveError::Journal { file: path.display().to_string(), why: why.into() };
        let mut file = OpenOptions::new().read(true).write(true).open(path).map_err(doing())?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(doing())?;
        let (head, found) = read_head(&bytes).ok_or_else(|| wrong("is no journal"))?;
        if found != &digest.as_bytes()[..digest.len().min(LONGEST_DIGEST)] {
            return Err(wrong("is the journal of another run: its tasks or its work differ"));
        }
        let (delivered, whole) = read_records(&bytes[head..]);
        let end = (head + whole) as u64;
        file.set_len(end).map_err(doing())?;
        file.seek(io::SeekFrom::Start(end)).map_err(doing())?;
        Ok((Self { file, path: path.into(), end, buffer: Vec::new() }, delivered))
    }

    /// Notes results; they stand in the file when this returns.
    ///
    /// # Errors
    /// When the disk is full or broken; the journal is then as it was.
    pub fn note(&mut self, delivered: impl IntoIterator<Item = Delivered>) -> Result<(), LiveError> {
        for Delivered { task, ok, bytes } in delivered {
            let start = self.buffer.len();
            self.buffer.extend(task.to_be_bytes());
            self.buffer.push(u8::from(ok));
            self.buffer.extend(bytes.to_be_bytes());
            let sum = checksum(&self.buffer[start..]);
            self.buffer.extend(sum.to_be_bytes());
        }
        self.write()
    }

    fn write(&mut self) -> Result<(), LiveError> {
        let result = self.file.write_all(&self.buffer);
        let length = self.buffer.len() as u64;
        self.buffer.clear();
        match result {
            Ok(()) => {
                self.end += length;
                Ok(())
            }
            Err(source) => {
                // A record cut short is dropped by the next reader too, if this fails.
                let _ = self.file.set_len(self.end);
                Err(LiveError::System { what: format!("writing {}", self.path.display()), source })
            }
        }
    }
}

/// Bytes of the head, and the digest.
fn read_head(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let length = u32::from_be_bytes(*length) as usize;
    if length > LONGEST_DIGEST {
        return None;
    }
    let (digest, rest) = rest.split_at_checked(length)?;
    let (sum, _) = rest.split_first_chunk::<4>()?;
    (u32::from_be_bytes(*sum) == checksum(digest)).then_some((MAGIC.len() + 4 + length + 4, digest))
}

/// Records up to the first that is torn or wrong, each task once, and the bytes that they take.
#[must_use]
pub fn read_records(bytes: &[u8]) -> (Vec<Delivered>, usize) {
    let mut seen = HashSet::new();
    let mut delivered = Vec::new();
    let mut whole = 0;
    for record in bytes.chunks_exact(RECORD) {
        let (content, sum) = record.split_at(RECORD - 4);
        if sum != checksum(content).to_be_bytes() || content[8] > 1 {
            break;
        }
        whole += RECORD;
        let word = |at: usize| u64::from_be_bytes(std::array::from_fn(|i| content[at + i]));
        let entry = Delivered { task: word(0), ok: content[8] == 1, bytes: word(9) };
        if seen.insert(entry.task) {
            delivered.push(entry);
        }
    }
    (delivered, whole)
}

/// CRC-32 (IEEE 802.3), bit by bit: records are short and rare.
fn checksum(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg());
        }
    }
    !sum
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("crosswind-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        path
    }

    #[test]
    fn the_checksum_is_the_known_one() {
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn what_was_noted_is_found_again_and_a_torn_record_is_dropped() {
        let path = path("torn");
        let entry = |task| Delivered { task, ok: task != 2, bytes: 10 };
        let mut journal = Journal::create(&path, "run").expect("created");
        journal.note([entry(1), entry(2)]).expect("written");
        drop(journal);
        let mut file = OpenOptions::new().append(true).open(&path).expect("opens");
        file.write_all(&[0; 5]).expect("written");
        let (mut journal, found) = Journal::resume(&path, "run").expect("resumed");
        assert_eq!(found, [entry(1), entry(2)]);
        journal.note([entry(3)]).expect("written");
        let (_, found) = Journal::resume(&path, "run").expect("resumed");
        assert_eq!(found, [entry(1), entry(2), entry(3)]);
        std::fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn another_runs_journal_and_a_file_that_is_none_are_refused() {
        let path = path("other");
        drop(Journal::create(&path, "run").expect("created"));
        assert!(Journal::create(&path, "run").expect_err("there").to_string().contains("is there already"));
        assert!(Journal::resume(&path, "another").expect_err("differs").to_string().contains("another run"));
        std::fs::write(&path, b"XWJRNL1\n\xff\xff\xff\xff").expect("written");
        assert!(Journal::resume(&path, "run").expect_err("none").to_string().contains("no journal"));
        std::fs::remove_file(&path).expect("removed");
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic_or_count_a_task_twice(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let (found, whole) = read_records(&bytes);
            prop_assert!(whole <= bytes.len());
            let tasks: HashSet<u64> = found.iter().map(|entry| entry.task).collect();
            prop_assert_eq!(tasks.len(), found.len());
            let _ = read_head(&bytes);
        }
    }
}
