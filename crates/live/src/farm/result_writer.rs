//! Result writer, on its own thread. It writes each result to its file, then to the journal, and reports it after both
//! are on the disk. A slow disk therefore delays no agent, and a reported result survives a power cut.
//!
//! The disk is synced at most once per [`PAUSE`], for all results that have arrived meanwhile.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::LiveError;
use crate::farm::journal::{Delivered, Journal};
use crate::farm::payload::Payload;
use crate::farm::root::Delivery;
use crate::farm::task_source::Label;
use crosswind_agent::action::TaskBytes as _;

/// Minimum time between two syncs.
const PAUSE: Duration = Duration::from_millis(200);
/// Up to this number, files are synced one by one. For more, syncing the whole file system takes less time.
const ONE_BY_ONE: usize = 8;
const THREAD: &str = "the thread that writes results";

#[derive(Default)]
pub struct WriterSettings {
    /// Directory for one file per result. `None` writes no files.
    pub directory: Option<PathBuf>,
    pub journal: Option<Journal>,
    /// Whether files and journal are synced to the disk before results are reported.
    pub sync: bool,
}

/// Receives written results, and the bytes of memory that they occupied until then.
type Report = Box<dyn FnMut(&mut Vec<Delivery>, u64) + Send>;
type Fail = Box<dyn FnOnce(LiveError) + Send>;

pub(crate) struct ResultWriter {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    results: Vec<(Label, Delivery)>,
    over: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the queued results; waits until `until` for at least one. The second value is true if no more will be queued.
    fn take(&self, until: Option<Instant>) -> (Vec<(Label, Delivery)>, bool) {
        let mut queue = self.lock();
        while queue.results.is_empty() && !queue.over {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            queue = match left {
                Some(Duration::ZERO) => break,
                Some(left) => self.changed.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
            };
        }
        (std::mem::take(&mut queue.results), queue.over)
    }
}

impl ResultWriter {
    /// Starts the thread. It passes written results to `report`, and to `fail` the error after which it writes no more.
    pub fn start(settings: WriterSettings, report: Report, fail: Fail) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let mut writing = Writing { settings, report, pending: Pending::default(), synced: None };
        let run = move || {
            let ended = catch_unwind(AssertUnwindSafe(|| writing.run(&own)));
            if let Err(error) = ended.unwrap_or_else(|panic| Err(LiveError::panicked(THREAD, &*panic))) {
                fail(error);
            }
        };
        Ok(Self { shared, thread: std::thread::Builder::new().name("cw-writer".into()).spawn(run)? })
    }

    pub fn write(&self, results: impl Iterator<Item = (Label, Delivery)>) {
        self.shared.lock().results.extend(results);
        self.shared.changed.notify_one();
    }

    /// Waits until all results are written. The error after which the thread wrote no more has gone to `fail`.
    ///
    /// # Errors
    /// When `fail` has panicked.
    pub fn close(self) -> Result<(), LiveError> {
        self.shared.lock().over = true;
        self.shared.changed.notify_one();
        self.thread.join().map_err(|panic| LiveError::panicked(THREAD, &*panic))
    }
}

/// Results that are in their files and not reported yet.
#[derive(Default)]
struct Pending {
    results: Vec<Delivery>,
    records: Vec<Delivered>,
    files: Vec<PathBuf>,
    held_bytes: u64,
}

struct Writing {
    settings: WriterSettings,
    report: Report,
    pending: Pending,
    synced: Option<Instant>,
}

impl Writing {
    fn run(&mut self, shared: &Shared) -> Result<(), LiveError> {
        loop {
            let due = if self.pending.results.is_empty() { None } else { self.due() };
            let (results, over) = shared.take(due);
            for (label, mut delivery) in results {
                self.pending.held_bytes += delivery.payload.in_memory();
                if let Err(error) = self.file(&label, &mut delivery) {
                    // Results that are in their files are recorded even if the next one did not fit.
                    let _ = self.commit();
                    return Err(error);
                }
                let bytes = delivery.payload.len();
                self.pending.records.push(Delivered { identity: label.identity, ok: delivery.ok, bytes });
                self.pending.results.push(delivery);
            }
            if over || self.due().is_none_or(|due| due <= Instant::now()) {
                self.commit()?;
            }
            if over {
                return Ok(());
            }
        }
    }

    /// Returns when the next sync may start. `None` means now.
    fn due(&self) -> Option<Instant> {
        self.synced.filter(|_| self.settings.sync).map(|synced| synced + PAUSE)
    }

    /// Writes a result to its file.
    fn file(&mut self, label: &Label, delivery: &mut Delivery) -> Result<(), LiveError> {
        let Some(directory) = self.settings.directory.as_ref().filter(|_| delivery.ok) else { return Ok(()) };
        let name = if label.name.is_empty() { format!("{:08}", delivery.task).into() } else { label.name.clone() };
        let path = directory.join(name);
        let writing = || LiveError::system(format!("writing {}", path.display()));
        // The file appears under its name only when it is whole, so it is never partial if this process dies.
        let part = part_below(directory).map_err(writing())?;
        let written = write_whole(&delivery.payload, &part).and_then(|()| std::fs::rename(&part, &path));
        if written.is_err() {
            let _ = std::fs::remove_file(&part); // remove the partial file
        }
        written.map_err(writing())?;
        delivery.payload = Payload::file(&path).map_err(writing())?;
        if self.settings.sync {
            self.pending.files.push(path);
        }
        Ok(())
    }

    /// Records results that are in their files in the journal, and reports them.
    fn commit(&mut self) -> Result<(), LiveError> {
        let Pending { mut results, records, files, held_bytes } = std::mem::take(&mut self.pending);
        if results.is_empty() {
            return Ok(());
        }
        if let Some(directory) = &self.settings.directory {
            let first = self.synced.is_none() && self.settings.sync;
            let sync = || if first { sync_above(directory) } else { Ok(()) };
            sync_files(directory, &files)
                .and_then(|()| sync())
                .map_err(LiveError::system(format!("writing to {}", directory.display())))?;
        }
        if let Some(journal) = &mut self.settings.journal {
            journal.note(&records)?;
            if self.settings.sync {
                journal.sync()?;
            }
        }
        self.synced = Some(Instant::now());
        (self.report)(&mut results, held_bytes);
        Ok(())
    }
}

/// Returns an unpredictable file name in a directory. `crosswind.stored` removes such files after a process was killed.
fn part_below(directory: &Path) -> io::Result<PathBuf> {
    let name = u64::from_ne_bytes(crosswind_access::token::random()?);
    Ok(directory.join(format!(".crosswind-{name:016x}.part")))
}

fn write_whole(payload: &Payload, path: &Path) -> io::Result<()> {
    // `create_new` never writes through an existing file or symbolic link.
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    match payload {
        // A rename would do within one file system, but not across two.
        Payload::File(stored) => io::copy(&mut File::open(&stored.path)?, &mut file).map(drop),
        other => file.write_all(other.read()?.as_slice()),
    }
}

/// Waits until files and their directory entries are on the disk.
fn sync_files(top: &Path, files: &[PathBuf]) -> io::Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    if files.len() > ONE_BY_ONE {
        return Ok(rustix::fs::syncfs(File::open(top)?)?);
    }
    for file in files {
        File::open(file)?.sync_data()?;
    }
    for one in directories_of(top, files) {
        sync_directory(one)?;
    }
    Ok(())
}

/// Returns the directories through which files are found, from their own up to `top`, each after those in it.
fn directories_of<'a>(top: &Path, files: &'a [PathBuf]) -> impl Iterator<Item = &'a Path> {
    let above = files.iter().flat_map(|file| file.ancestors().skip(1));
    let found: BTreeSet<&Path> = above.filter(|directory| directory.starts_with(top)).collect();
    found.into_iter().rev()
}

/// Waits until a directory that may be new is on the disk, with those above it.
fn sync_above(directory: &Path) -> io::Result<()> {
    std::fs::canonicalize(directory)?.ancestors().try_for_each(sync_directory)
}

/// Waits until the entries of a directory are on the disk, where the file system can say so and the user may ask.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    match File::open(directory).and_then(|directory| directory.sync_all()) {
        Err(error) if !matches!(error.kind(), InvalidInput | PermissionDenied | Unsupported) => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_panic_of_the_thread_is_the_error_that_ends_the_run() {
        let (failed, failure) = mpsc::channel();
        let settings = WriterSettings::default();
        let report: Report = Box::new(|_, _| panic!("the report"));
        let fail: Fail = Box::new(move |error| failed.send(error).expect("is waited for"));
        let writer = ResultWriter::start(settings, report, fail).expect("starts");
        let payload = Payload::bytes(vec![1]);
        let delivery = Delivery { task: 0, node: "root".into(), ok: true, payload };
        writer.write([(Label::default(), delivery)].into_iter());
        let error = failure.recv_timeout(Duration::from_secs(60)).expect("the panic is reported");
        assert_eq!(error.to_string(), "a fault of Crosswind: the thread that writes results panicked: the report");
        writer.close().expect("the thread has reported it");
    }

    #[test]
    fn the_directories_that_name_a_result_are_on_the_disk_before_it_is_reported() {
        let files = ["out/a/b/1", "out/a/2", "out/a/b/3", "out/c/4"].map(PathBuf::from);
        let found: Vec<&Path> = directories_of(Path::new("out"), &files).collect();
        assert_eq!(found, ["out/c", "out/a/b", "out/a", "out"].map(Path::new));
        let files = [PathBuf::from("/x/out/1")];
        let found: Vec<&Path> = directories_of(Path::new("/x/out/"), &files).collect();
        assert_eq!(found, [Path::new("/x/out")]);
    }
}
