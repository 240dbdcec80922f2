//! The journal: a file that records which results were delivered and survives the root.
//!
//! It is append-only: a head that identifies the run, then one record per result with its length and a checksum. A record
//! identifies its task by what the task was made of ([`Identity`]), so that a later run can detect changed inputs. It is
//! written after the result's own file (if results have files) and before the result is reported as kept.
//!
//! After `kill -9` or a power cut, a torn record at the end is cut off, so a result is computed again rather than lost. A
//! full disk leaves the journal as it was before the record that did not fit. A journal with a damaged head is renamed to
//! `NAME.damaged` (`NAME.damaged-2` if that exists) and a new one is started. All results are then computed again,
//! because it is unknown which ones it had.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crc32fast::hash as checksum;

use crate::error::LiveError;
use crate::farm::result_writer::sync_directory;

const MAGIC: &[u8; 8] = b"XWJRNL2\n";
/// Head of version 0.1, whose records have task numbers but not what the tasks were made of.
const MAGIC_OF_NUMBERS: &[u8; 8] = b"XWJRNL1\n";
/// Longest digest of a run in the head, bytes; longer ones are truncated.
const LONGEST_DIGEST: usize = 4096;
/// Longest label, bytes; longer ones are truncated. A path of the system has at most 4096 bytes.
const LONGEST_LABEL: usize = 8192;
/// Bytes of a record without its label: label length, input, recipe, outcome, result length, checksum.
const BESIDE_LABEL: usize = 4 + 8 + 8 + 1 + 8 + 4;

/// What identifies a task across runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Name of the task: the path of its input.
    pub label: Vec<u8>,
    /// Digest of the input, which is what the task was made of.
    pub input: u64,
    /// Digest of the command and of the result's name, which is how the result was made.
    pub recipe: u64,
}

/// A result that was delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    pub identity: Identity,
    /// Whether it was a result; otherwise an error.
    pub ok: bool,
    pub bytes: u64,
}

/// The last record of a task from earlier runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    pub input: u64,
    pub recipe: u64,
    /// Whether it was a result; otherwise an error.
    pub ok: bool,
    /// Length of the result, bytes.
    pub bytes: u64,
}

/// Index of the records of earlier runs: 17 bytes per record in memory, since there may be millions. Everything else
/// stays in the file.
#[derive(Debug, Default)]
pub struct JournalIndex {
    /// Hash of each record's label, and the record's offset in the file; sorted.
    places: Vec<(u64, u64)>,
    /// Whether each record's task was looked up, in the order of `places`.
    looked_up: Vec<bool>,
    journal: Option<File>,
    /// New path of a journal that had a damaged head.
    set_aside: Option<PathBuf>,
}

impl JournalIndex {
    fn new(mut places: Vec<(u64, u64)>, journal: File) -> Self {
        places.shrink_to_fit();
        places.sort_unstable();
        Self { looked_up: vec![false; places.len()], places, journal: Some(journal), set_aside: None }
    }

    /// Returns the new path of the journal if it was renamed because its head is damaged.
    #[must_use]
    pub fn set_aside(&self) -> Option<&Path> {
        self.set_aside.as_deref()
    }

    /// Returns the last record of a task. The task counts as looked up from now on.
    ///
    /// # Errors
    /// When the journal can't be read.
    pub fn known(&mut self, label: &[u8]) -> io::Result<Option<Known>> {
        let Some(journal) = &self.journal else { return Ok(None) };
        let hash = hashed(label);
        let first = self.places.partition_point(|(of, _)| *of < hash);
        let (mut found, mut record) = (None, vec![0; label.len() + BESIDE_LABEL]);
        for (n, (_, at)) in self.places.iter().enumerate().skip(first).take_while(|(_, (of, _))| *of == hash) {
            // Different labels can have equal hashes, so the label in the record is compared.
            let whole = read_at_most(journal, &mut record, *at)? == record.len();
            let so_long = record.starts_with(&(label.len() as u32).to_be_bytes());
            let delivered =
                decode(&record, label.len()).filter(|found| whole && so_long && found.identity.label == label);
            // The last record of a label wins.
            if let Some(Delivered { identity: Identity { input, recipe, .. }, ok, bytes }) = delivered {
                self.looked_up[n] = true;
                found = Some(Known { input, recipe, ok, bytes });
            }
        }
        Ok(found)
    }

    /// Returns the number of tasks that were never looked up, and the labels of the first `most` of them.
    ///
    /// # Errors
    /// When the journal can't be read.
    pub fn gone(&self, most: usize) -> io::Result<(usize, Vec<Vec<u8>>)> {
        let Some(journal) = &self.journal else { return Ok((0, Vec::new())) };
        let unknown =
            self.places.iter().zip(&self.looked_up).filter_map(|(place, looked_up)| (!looked_up).then_some(*place));
        let mut last: Vec<(u64, u64)> = unknown.collect();
        // Keep only the last record of each label.
        last.dedup_by(|later, kept| {
            later.0 == kept.0 && {
                kept.1 = later.1;
                true
            }
        });
        last.sort_unstable_by_key(|(_, at)| *at);
        let label = |at: u64| {
            let mut length = [0; 4];
            journal.read_exact_at(&mut length, at)?;
            let mut label = vec![0; (u32::from_be_bytes(length) as usize).min(LONGEST_LABEL)];
            journal.read_exact_at(&mut label, at + 4)?;
            Ok(label)
        };
        Ok((last.len(), last.iter().take(most).map(|(_, at)| label(*at)).collect::<io::Result<_>>()?))
    }
}

/// Hashes a label. The hash is the same in every process.
fn hashed(label: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    label.hash(&mut hasher);
    hasher.finish()
}

#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    /// Offset at which the last whole record ends.
    end: u64,
    buffer: Vec<u8>,
}

impl Journal {
    /// Creates a journal. An existing file is rejected, so that results are not overwritten by mistake.
    ///
    /// # Errors
    /// When the file exists, or can't be written. A file without a whole head does not remain: it would be no journal.
    pub fn create(path: &Path, digest: &str) -> Result<Self, LiveError> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path);
        let file = file.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => LiveError::Journal {
                file: path.display().to_string(),
                why: "exists: an earlier run wrote its results here".into(),
                hint: "--resume continues that run, --force runs everything again, or name another directory",
            },
            _ => LiveError::System { what: format!("{}", path.display()), source: error },
        })?;
        let mut journal = Self { file, path: path.into(), end: 0, buffer: Vec::new() };
        if let Err(error) = journal.write_head(digest) {
            let _ = std::fs::remove_file(path); // the error that is returned says what is wrong here
            return Err(error);
        }
        Ok(journal)
    }

    fn write_head(&mut self, digest: &str) -> Result<(), LiveError> {
        let digest = &digest.as_bytes()[..digest.len().min(LONGEST_DIGEST)];
        self.buffer.extend(MAGIC);
        self.buffer.extend((digest.len() as u32).to_be_bytes());
        self.buffer.extend(digest);
        self.buffer.extend(checksum(digest).to_be_bytes());
        self.write()?;
        self.sync()?;
        if let Some(directory) = std::path::absolute(&self.path).ok().as_deref().and_then(Path::parent) {
            sync_directory(directory).map_err(LiveError::system(format!("writing {}", self.path.display())))?;
        }
        Ok(())
    }

    /// Opens a journal to resume, with the index of its records. A torn record at the end is cut off. A journal with a
    /// damaged head is renamed, and a new one is created.
    ///
    /// # Errors
    /// When it is the journal of another run or of version 0.1, or cannot be read or renamed.
    pub fn resume(path: &Path, digest: &str) -> Result<(Self, JournalIndex), LiveError> {
        let doing = || LiveError::system(path.display().to_string());
        let wrong = |why: &str| LiveError::Journal {
            file: path.display().to_string(),
            why: why.into(),
            hint: "name another directory, or run without --resume",
        };
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(doing())?;
        let mut head = [0; MAGIC.len() + 4 + LONGEST_DIGEST + 4];
        let length = read_at_most(&file, &mut head, 0).map_err(doing())?;
        if head.starts_with(MAGIC_OF_NUMBERS) {
            return Err(LiveError::Journal {
                file: path.display().to_string(),
                why: "was written by version 0.1, which did not note what its results were made of".into(),
                hint: "remove it: the results are made again",
            });
        }
        let Some((start, found)) = read_head(&head[..length]) else {
            let aside = free_name(path);
            std::fs::rename(path, &aside).map_err(doing())?;
            let index = JournalIndex { set_aside: Some(aside), ..JournalIndex::default() };
            return Ok((Self::create(path, digest)?, index));
        };
        if found != &digest.as_bytes()[..digest.len().min(LONGEST_DIGEST)] {
            return Err(wrong("is the journal of another run: its tasks or its work differ"));
        }
        let mut places = Vec::new();
        (&file).seek(io::SeekFrom::Start(start as u64)).map_err(doing())?;
        let whole = each_record(&mut BufReader::with_capacity(1 << 20, &file), |at, delivered| {
            places.push((hashed(&delivered.identity.label), start as u64 + at));
        });
        let end = start as u64 + whole.map_err(doing())?;
        file.set_len(end).map_err(doing())?;
        (&file).seek(io::SeekFrom::Start(end)).map_err(doing())?;
        let index = JournalIndex::new(places, file.try_clone().map_err(doing())?);
        Ok((Self { file, path: path.into(), end, buffer: Vec::new() }, index))
    }

    /// Returns the number of records of results in a journal, and of tasks that have failed and were not done since. The
    /// journal stays as it is. `None` if its head is damaged, or it is the journal of another run.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn counts(path: &Path, digest: &str) -> io::Result<Option<(u64, u64)>> {
        let file = File::open(path)?;
        let mut head = [0; MAGIC.len() + 4 + LONGEST_DIGEST + 4];
        let length = read_at_most(&file, &mut head, 0)?;
        let Some((start, found)) = read_head(&head[..length]) else { return Ok(None) };
        if found != &digest.as_bytes()[..digest.len().min(LONGEST_DIGEST)] {
            return Ok(None);
        }
        (&file).seek(io::SeekFrom::Start(start as u64))?;
        let (mut results, mut failed) = (0, HashSet::new());
        each_record(&mut BufReader::new(&file), |_, delivered| {
            let task = hashed(&delivered.identity.label);
            if delivered.ok {
                results += 1;
                failed.remove(&task);
            } else {
                failed.insert(task);
            }
        })?;
        Ok(Some((results, failed.len() as u64)))
    }

    /// Appends results. They are in the file when this returns, and on the disk after [`Self::sync`].
    ///
    /// # Errors
    /// When the disk is full or broken. The journal is then as it was before.
    pub fn note<'a>(&mut self, delivered: impl IntoIterator<Item = &'a Delivered>) -> Result<(), LiveError> {
        for one in delivered {
            encode(one, &mut self.buffer);
        }
        self.write()
    }

    /// Waits until the appended records are on the disk.
    ///
    /// # Errors
    /// When the disk is full or broken.
    pub fn sync(&mut self) -> Result<(), LiveError> {
        self.file.sync_data().map_err(LiveError::system(format!("writing {}", self.path.display())))
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
                // If this fails too, the next reader drops the partial record.
                let _ = self.file.set_len(self.end);
                Err(LiveError::System { what: format!("writing {}", self.path.display()), source })
            }
        }
    }
}

fn read_at_most(file: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    let mut length = 0;
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], at + length as u64)? {
            0 => break,
            more => length += more,
        }
    }
    Ok(length)
}

/// Returns the length of the head in bytes, and the digest. `None` if the head is damaged.
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

fn encode(delivered: &Delivered, out: &mut Vec<u8>) {
    let Delivered { identity: Identity { label, input, recipe }, ok, bytes } = delivered;
    let start = out.len();
    let label = &label[..label.len().min(LONGEST_LABEL)];
    out.extend((label.len() as u32).to_be_bytes());
    out.extend(label);
    out.extend(input.to_be_bytes());
    out.extend(recipe.to_be_bytes());
    out.push(u8::from(*ok));
    out.extend(bytes.to_be_bytes());
    let sum = checksum(&out[start..]);
    out.extend(sum.to_be_bytes());
}

/// Calls `take` with each record and its offset, up to the first torn or wrong one. Returns the bytes of the whole records.
fn each_record(reader: &mut impl BufRead, mut take: impl FnMut(u64, &Delivered)) -> io::Result<u64> {
    let mut whole = 0;
    let mut record = Vec::new();
    loop {
        record.clear();
        reader.by_ref().take(4).read_to_end(&mut record)?;
        let Some(length) = record.first_chunk::<4>() else { return Ok(whole) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > LONGEST_LABEL {
            return Ok(whole);
        }
        let rest = length + BESIDE_LABEL - 4;
        reader.by_ref().take(rest as u64).read_to_end(&mut record)?;
        let Some(delivered) = decode(&record, length) else { return Ok(whole) };
        take(whole, &delivered);
        whole += record.len() as u64;
    }
}

fn decode(record: &[u8], label: usize) -> Option<Delivered> {
    let (content, sum) = record.split_last_chunk::<4>().filter(|_| record.len() == label + BESIDE_LABEL)?;
    if *sum != checksum(content).to_be_bytes() {
        return None;
    }
    let (label, rest) = content[4..].split_at(label);
    let word = |at: usize| u64::from_be_bytes(std::array::from_fn(|i| rest[at + i]));
    let ok = match rest[16] {
        0 => false,
        1 => true,
        _ => return None,
    };
    let identity = Identity { label: label.to_vec(), input: word(0), recipe: word(8) };
    Some(Delivered { identity, ok, bytes: word(17) })
}

/// Returns the records up to the first torn or wrong one, and the bytes that they occupy.
#[must_use]
pub fn read_records(mut bytes: &[u8]) -> (Vec<Delivered>, usize) {
    let mut found = Vec::new();
    // Reading from memory never fails.
    let whole = each_record(&mut bytes, |_, delivered| found.push(delivered.clone())).unwrap_or(0);
    (found, whole as usize)
}

/// Returns an unused name for a damaged journal.
fn free_name(path: &Path) -> PathBuf {
    let named = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let is_free = |name: &PathBuf| std::fs::symlink_metadata(name).is_err();
    let later = (2u64..).map(|number| named(&format!(".damaged-{number}")));
    std::iter::once(named(".damaged")).chain(later).find(is_free).unwrap_or_else(|| named(".damaged"))
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

    fn entry(label: &str, input: u64) -> Delivered {
        let identity = Identity { label: label.into(), input, recipe: 7 };
        Delivered { identity, ok: input != 2, bytes: 10 }
    }

    fn known(index: &mut JournalIndex, label: &str) -> Option<(u64, bool)> {
        index.known(label.as_bytes()).expect("read").map(|known| (known.input, known.ok))
    }

    #[test]
    fn the_checksum_is_the_known_one() {
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn what_was_noted_is_found_again_and_a_torn_record_is_cut_off() {
        let path = path("torn");
        let mut journal = Journal::create(&path, "run").expect("created");
        journal.note([&entry("a", 1), &entry("b", 2)]).expect("written");
        drop(journal);
        let whole = std::fs::metadata(&path).expect("there").len();
        let mut torn = Vec::new();
        encode(&entry("c", 3), &mut torn);
        for cut in 1..torn.len() {
            let mut file = OpenOptions::new().append(true).open(&path).expect("opens");
            file.write_all(&torn[..cut]).expect("written");
            let (_, mut index) = Journal::resume(&path, "run").expect("resumed");
            assert_eq!((known(&mut index, "a"), known(&mut index, "b")), (Some((1, true)), Some((2, false))));
            assert_eq!(known(&mut index, "c"), None, "{cut} bytes of it");
            assert_eq!(std::fs::metadata(&path).expect("there").len(), whole);
        }
        let (mut journal, _) = Journal::resume(&path, "run").expect("resumed");
        journal.note([&entry("c", 3)]).expect("written");
        let (_, mut index) = Journal::resume(&path, "run").expect("resumed");
        assert_eq!(known(&mut index, "c"), Some((3, true)));
        std::fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn the_last_record_of_a_task_counts_and_what_is_not_asked_for_is_gone() {
        let path = path("last");
        let mut journal = Journal::create(&path, "run").expect("created");
        journal.note([&entry("a", 1), &entry("b", 1), &entry("c", 1), &entry("a", 9)]).expect("written");
        let (_, mut index) = Journal::resume(&path, "run").expect("resumed");
        assert_eq!(known(&mut index, "a"), Some((9, true)));
        assert_eq!(index.gone(1).expect("read"), (2, vec![b"b".to_vec()]));
        assert_eq!(index.gone(9).expect("read"), (2, vec![b"b".to_vec(), b"c".to_vec()]));
        std::fs::remove_file(&path).expect("removed");
    }

    /// In a process of its own, since the limit of file sizes is one of the whole process.
    #[test]
    fn a_journal_whose_head_cannot_be_written_leaves_no_file_and_the_next_run_begins() {
        let path = path("full");
        // SAFETY: plain system calls; the child leaves by _exit.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let limit = |bytes: usize| {
                let limit = libc::rlimit { rlim_cur: bytes as libc::rlim_t, rlim_max: 1 << 20 };
                // SAFETY: a live structure; the signal of an exceeded limit is ignored for a plain error.
                unsafe {
                    libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
                    libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) == 0
                }
            };
            let is_cut = limit(MAGIC.len() + 2) && Journal::create(&path, "run").is_err() && !path.exists();
            let right = is_cut && limit(1 << 20) && Journal::create(&path, "run").is_ok();
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(!right)) };
        }
        let mut status = 0;
        // SAFETY: our own child, and a live integer.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0);
        std::fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn another_runs_journal_and_an_old_one_are_refused() {
        let path = path("other");
        drop(Journal::create(&path, "run").expect("created"));
        assert!(Journal::create(&path, "run").expect_err("there").to_string().contains("exists"));
        assert!(Journal::resume(&path, "another").expect_err("differs").to_string().contains("another run"));
        std::fs::write(&path, b"XWJRNL1\n\0\0\0\x03run").expect("written");
        assert!(Journal::resume(&path, "run").expect_err("old").to_string().contains("version 0.1"));
        std::fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn a_journal_whose_head_is_damaged_is_set_aside_for_a_new_one() {
        let path = path("head");
        let aside = path.with_extension("damaged");
        let mut journal = Journal::create(&path, "run").expect("created");
        journal.note([&entry("a", 1)]).expect("written");
        let whole = std::fs::read(&path).expect("there");
        let head = MAGIC.len() + 4 + 3 + 4;
        let flipped = (0..head).map(|at| {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            bytes
        });
        for damaged in (0..head).map(|cut| whole[..cut].to_vec()).chain(flipped) {
            std::fs::write(&path, &damaged).expect("written");
            let (mut journal, mut index) = Journal::resume(&path, "run").expect("a new journal");
            assert_eq!(index.set_aside(), Some(&*aside));
            assert_eq!(known(&mut index, "a"), None);
            assert_eq!(std::fs::read(&aside).expect("kept"), damaged);
            std::fs::remove_file(&aside).expect("removed");
            journal.note([&entry("b", 3)]).expect("written");
            let (_, mut index) = Journal::resume(&path, "run").expect("whole");
            assert_eq!(index.set_aside(), None);
            assert_eq!(known(&mut index, "b"), Some((3, true)));
        }
        std::fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn a_journal_that_was_set_aside_is_not_replaced_by_one_that_is_damaged_later() {
        let path = path("twice");
        let aside = ["damaged", "damaged-2", "damaged-3"].map(|end| path.with_extension(end));
        for (number, aside) in aside.iter().enumerate() {
            std::fs::write(&path, [number as u8]).expect("written");
            let (_, index) = Journal::resume(&path, "run").expect("resumes");
            assert_eq!(index.set_aside(), Some(&**aside));
        }
        for (number, aside) in aside.iter().enumerate() {
            assert_eq!(std::fs::read(aside).expect("kept"), [number as u8]);
            std::fs::remove_file(aside).expect("removed");
        }
        std::fs::remove_file(&path).expect("removed");
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic_and_what_it_takes_is_what_would_be_written(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let (found, whole) = read_records(&bytes);
            prop_assert!(whole <= bytes.len());
            let mut written = Vec::new();
            found.iter().for_each(|delivered| encode(delivered, &mut written));
            prop_assert_eq!(&written, &bytes[..whole]);
            let _ = read_head(&bytes);
        }
    }
}
