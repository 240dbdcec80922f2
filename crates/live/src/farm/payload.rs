//! Payload of a task or a result: bytes in memory, a file, or blank bytes that only load the link.
//!
//! Every node on the way keeps a task's payload until its result has returned, so that a lost child's tasks can be sent
//! again. Payloads are shared, not copied. Large inputs are received into a file of the agent's own (the spool), not into
//! memory.

use std::fs::{File, Metadata};
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosswind_agent::action::TaskBytes;
use crosswind_agent::frame::Form;

use crate::farm::function::{Function, Shared};

#[derive(Clone, Debug)]
pub enum Payload {
    Bytes(Arc<Vec<u8>>),
    File(Arc<StoredFile>),
    /// A number of bytes without meaning.
    Blank(u64),
    /// Bytes in memory that have another owner.
    Shared(Shared),
    /// The input of a task that calls a function.
    Call(Arc<Call>),
}

/// A function and its input. Its length is the input's.
#[derive(Debug)]
pub struct Call {
    pub function: Arc<Function>,
    pub input: Payload,
    /// Whether the function's bytes arrived with the task.
    is_first: bool,
}

/// A file that is either temporary or a user's own.
#[derive(Debug)]
pub struct StoredFile {
    pub path: PathBuf,
    pub bytes: u64,
    /// The directory of a temporary file, which is removed with its last reference. `None` for a user's file.
    ours: Option<Arc<Directory>>,
    /// Why it could not be read from the start.
    unreadable: Option<String>,
}

/// A file system with less free space than this counts as full, bytes: one block is sometimes left.
const LITTLE: u64 = 64 << 10;

/// A directory that is removed with the last file in it.
#[derive(Debug)]
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        // A directory that remains, or was never created, does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl StoredFile {
    /// Keeps the file from being removed, because it has another owner now.
    pub fn keep(&mut self) {
        self.ours = None;
    }

    /// Returns whether the file is removed with its last reference.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.ours.is_some()
    }
}

impl Drop for StoredFile {
    fn drop(&mut self) {
        if self.ours.is_some() {
            // A file that cannot be removed is removed later with its directory.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Payload {
    #[must_use]
    pub fn bytes(bytes: Vec<u8>) -> Self {
        Self::Bytes(Arc::new(bytes))
    }

    /// Creates a payload from a user's file.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn file(path: &Path) -> io::Result<Self> {
        let (_, bytes) = open_regular(path)?;
        Ok(Self::File(Arc::new(StoredFile { path: path.to_owned(), bytes, ours: None, unreadable: None })))
    }

    /// Creates a payload from a user's file; one that cannot be read is missing when it is needed.
    #[must_use]
    pub fn any_file(path: &Path) -> Self {
        Self::file(path).unwrap_or_else(|error| {
            let unreadable = Some(format!("{}: {error}", path.display()));
            Self::File(Arc::new(StoredFile { path: path.to_owned(), bytes: 0, ours: None, unreadable }))
        })
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(file) => file.bytes,
            Self::Blank(bytes) => *bytes,
            Self::Shared(bytes) => bytes.as_slice().len() as u64,
            Self::Call(call) => call.input.len(),
        }
    }

    /// Returns a payload that also holds the function that its task calls.
    #[must_use]
    pub fn calling(self, function: Arc<Function>) -> Self {
        Self::Call(Arc::new(Call { function, input: self, is_first: false }))
    }

    /// As [`Self::calling`], of a task that brought its function.
    pub(crate) fn bringing(self, function: Arc<Function>) -> Self {
        Self::Call(Arc::new(Call { function, input: self, is_first: true }))
    }

    /// Returns the function that the task calls, if it has one.
    #[must_use]
    pub fn function(&self) -> Option<&Arc<Function>> {
        if let Self::Call(call) = self { Some(&call.function) } else { None }
    }

    /// Returns the payload without its function.
    #[must_use]
    pub fn input(&self) -> &Self {
        if let Self::Call(call) = self { call.input.input() } else { self }
    }

    /// Returns whether the length is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how the bytes are declared in a frame.
    #[must_use]
    pub fn form(&self) -> Form {
        if matches!(self.input(), Self::Blank(_)) { Form::Blank } else { Form::Bytes }
    }

    /// Returns why the bytes can no longer be read: the file is gone, is no regular file any more, or is shorter than
    /// before. `None` if they can.
    #[must_use]
    pub fn missing(&self) -> Option<io::Error> {
        let Self::File(stored) = self.input() else { return None };
        if let Some(why) = &stored.unreadable {
            return Some(io::Error::other(why.clone()));
        }
        match open_regular(&stored.path) {
            Ok((_, bytes)) if bytes >= stored.bytes => None,
            Ok((_, bytes)) => {
                Some(io::Error::other(format!("{} has {bytes} bytes; it had {}", stored.path.display(), stored.bytes)))
            }
            Err(error) => Some(io::Error::new(error.kind(), format!("{}: {error}", stored.path.display()))),
        }
    }

    /// Returns the bytes in memory. A file is read.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn read(&self) -> io::Result<Arc<Vec<u8>>> {
        Ok(match self {
            Self::Bytes(bytes) => Arc::clone(bytes),
            Self::File(file) => {
                let mut bytes = Vec::new();
                open_regular(&file.path)?.0.read_to_end(&mut bytes)?;
                Arc::new(bytes)
            }
            Self::Blank(bytes) => Arc::new(vec![0; *bytes as usize]),
            Self::Shared(bytes) => Arc::new(bytes.as_slice().to_vec()),
            Self::Call(call) => call.input.read()?,
        })
    }
}

impl TaskBytes for Payload {
    fn of_text(text: String) -> Self {
        Self::bytes(text.into_bytes())
    }

    fn blank(bytes: u64) -> Self {
        Self::Blank(bytes)
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Call(call) if call.is_first => self.len() + call.function.len(),
            _ => self.len(),
        }
    }

    fn in_memory(&self) -> u64 {
        if matches!(self.input(), Self::Bytes(_) | Self::Shared(_)) { self.len() } else { 0 }
    }

    fn missing(&self) -> Option<String> {
        self.missing().map(|error| error.to_string())
    }
}

/// Opens a regular file and returns its length, bytes. Never waits, as a FIFO would make it.
///
/// # Errors
/// When it cannot be opened, or is something else.
pub(crate) fn open_regular(path: &Path) -> io::Result<(File, u64)> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let check = |found: &Metadata| match kind_of(found) {
        None => Ok(()),
        Some(kind) => Err(io::Error::other(format!("it is {kind}, not a regular file"))),
    };
    // Before it is opened, since opening a device may do something.
    check(&std::fs::metadata(path)?)?;
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let found = file.metadata()?;
    check(&found)?;
    Ok((file, found.len()))
}

/// Returns what a file is in words; `None` for a regular one.
pub(crate) fn kind_of(found: &Metadata) -> Option<&'static str> {
    use std::os::unix::fs::FileTypeExt as _;
    let kind = found.file_type();
    (!kind.is_file()).then(|| match kind {
        kind if kind.is_dir() => "a directory",
        kind if kind.is_fifo() => "a FIFO",
        kind if kind.is_symlink() => "a link",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    })
}

/// Returns "no space left on DIR" if that is so, because an error there need not mention it.
#[must_use]
pub fn no_space(directory: &Path) -> Option<String> {
    let state = rustix::fs::statvfs(directory).ok()?;
    let bytes = state.f_bavail.saturating_mul(state.f_frsize);
    let out_of_files = state.f_files > 0 && state.f_favail == 0;
    (bytes < LITTLE || out_of_files).then(|| format!("no space left on {}", directory.display()))
}

#[derive(Debug)]
pub(crate) enum Place {
    Memory(Vec<u8>),
    Spool(File, StoredFile),
    Nowhere(u64),
}

impl Place {
    /// Returns the payload, after all bytes were received.
    pub fn payload(self) -> Payload {
        match self {
            Self::Memory(bytes) => Payload::bytes(bytes),
            Self::Spool(_, stored) => Payload::File(Arc::new(stored)),
            Self::Nowhere(bytes) => Payload::Blank(bytes),
        }
    }

    /// Appends bytes from a buffer.
    pub fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Memory(memory) => memory.extend_from_slice(bytes),
            Self::Spool(file, stored) => {
                file.write_all(bytes)?;
                stored.bytes += bytes.len() as u64;
            }
            Self::Nowhere(count) => *count += bytes.len() as u64,
        }
        Ok(())
    }
}

/// A directory for the files of tasks, which is removed with this object.
#[derive(Debug)]
pub struct TaskDirectory(PathBuf);

impl TaskDirectory {
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TaskDirectory {
    fn drop(&mut self) {
        // What cannot be removed is removed later with the spool.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A directory for large inputs and results. It is removed with the last of them.
#[derive(Debug)]
pub struct Spool {
    directory: Arc<Directory>,
    next: u64,
    /// Payloads larger than this are stored in files.
    pub over_bytes: u64,
    /// Large buffers for reuse, because the kernel maps fresh ones page by page.
    free: Vec<Vec<u8>>,
}

const KEPT: std::ops::RangeInclusive<usize> = (64 << 10)..=(64 << 20);
const KEPT_IN_ALL: usize = 64 << 20;

impl Spool {
    /// Creates a spool with its own directory below `parent`. The directory is created on first use.
    ///
    /// # Errors
    /// When the kernel has no random bytes for its name.
    pub fn below(parent: &Path, over_bytes: u64) -> io::Result<Self> {
        let name = u64::from_ne_bytes(crosswind_access::token::random()?);
        let directory = parent.join(format!("crosswind-{}-{name:016x}", std::process::id()));
        Ok(Self { directory: Arc::new(Directory(directory)), next: 0, over_bytes, free: Vec::new() })
    }

    /// Returns the parent of the spool's directory, which exists from the start.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.0.parent().unwrap_or(Path::new("/"))
    }

    /// Returns a new temporary file in the directory. The file itself is not created.
    ///
    /// # Errors
    /// When the directory cannot be created.
    pub fn file(&mut self) -> io::Result<StoredFile> {
        if self.next == 0 {
            use std::os::unix::fs::DirBuilderExt as _;
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory.0)?;
        }
        self.next += 1;
        let path = self.directory.0.join(self.next.to_string());
        Ok(StoredFile { path, bytes: 0, ours: Some(Arc::clone(&self.directory)), unreadable: None })
    }

    /// Whether a path is in the spool's directory itself.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        path.parent() == Some(self.directory.0.as_path())
    }

    /// Creates a directory of its own for tasks.
    ///
    /// # Errors
    /// When the directories cannot be created.
    pub fn task_directory(&mut self) -> io::Result<TaskDirectory> {
        let path = self.file()?.path.clone();
        std::fs::create_dir(&path)?;
        Ok(TaskDirectory(path))
    }

    /// Returns a destination for a payload of `bytes` bytes.
    pub(crate) fn place(&mut self, bytes: u64, form: Form) -> io::Result<Place> {
        if form == Form::Blank {
            return Ok(Place::Nowhere(0));
        }
        if bytes > self.over_bytes {
            let stored = self.file()?;
            return Ok(Place::Spool(File::create(&stored.path)?, stored));
        }
        let kept = if KEPT.contains(&(bytes as usize)) {
            self.free.iter().rposition(|buffer| buffer.capacity() >= bytes as usize).map(|at| self.free.swap_remove(at))
        } else {
            None
        };
        Ok(Place::Memory(kept.unwrap_or_default()))
    }

    /// Keeps a payload's buffer for reuse, if nothing else refers to it.
    pub fn recycle(&mut self, payload: Payload) {
        let payload = match payload {
            Payload::Call(call) => match Arc::try_unwrap(call) {
                Ok(call) => call.input,
                Err(_) => return,
            },
            other => other,
        };
        let Payload::Bytes(bytes) = payload else { return };
        let Ok(mut buffer) = Arc::try_unwrap(bytes) else { return };
        let held: usize = self.free.iter().map(Vec::capacity).sum();
        if KEPT.contains(&buffer.capacity()) && held + buffer.capacity() <= KEPT_IN_ALL {
            buffer.clear();
            self.free.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spooled_payload_is_gone_with_its_last_holder_and_the_directory_with_the_spool() {
        let mut spool = Spool::below(&std::env::temp_dir(), 4).expect("a name");
        let mut place = spool.place(8, Form::Bytes).expect("a file");
        place.take(b"12345678").expect("written");
        let payload = place.payload();
        let Payload::File(file) = &payload else { panic!("in memory") };
        let path = file.path.clone();
        assert_eq!(payload.len(), 8);
        assert_eq!(payload.read().expect("read").as_slice(), b"12345678");
        let other = payload.clone();
        let directory = spool.directory.0.clone();
        drop((payload, spool));
        assert!(path.exists());
        drop(other);
        assert!(!path.exists() && !directory.exists());
    }

    #[test]
    fn a_users_file_is_never_removed() {
        let path = std::env::temp_dir().join(format!("crosswind-test-{}", std::process::id()));
        std::fs::write(&path, b"abc").expect("written");
        drop(Payload::file(&path).expect("opens"));
        assert!(path.exists());
        std::fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn memory_is_taken_for_bytes_that_came_not_for_those_that_were_promised() {
        let mut spool = Spool::below(&std::env::temp_dir(), u64::MAX).expect("a name");
        let Place::Memory(memory) = spool.place(1 << 40, Form::Bytes).expect("a place") else { panic!("a file") };
        assert_eq!(memory.capacity(), 0);
    }
}
