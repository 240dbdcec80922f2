//! The kernel's trace, through tracefs: a separate instance, which does not affect other users of tracing, with the
//! events that show what has a CPU.
//!
//! If tracefs is not mounted, it is mounted in a mount namespace private to the reading thread, which ends with the
//! thread. The instance is removed at the end, if necessary by the watchdog.

use std::ffi::CStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::events::{CauseId, Follower, Names, Turn};
use crate::leftovers;
use crosswind_linux::watchdog::{Undo, Watchdog};

const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// The event that is always required.
const SWITCH: &str = "sched/sched_switch";
/// Events that show when a thread could run.
const THREADS: [&str; 3] = ["sched/sched_wakeup", "sched/sched_wakeup_new", "sched/sched_migrate_task"];
/// What these events say is of use only with a filter: a thread that has run for some time, where the switch to it is not
/// written, and signals that stop.
const FILTERED: [(&str, &str); 2] =
    [("sched/sched_stat_runtime", "runtime > 200000"), ("signal/signal_generate", "sig >= 19 && sig <= 22")];
/// Interrupt events, enabled if they exist.
const INTERRUPTS: [&str; 4] =
    ["irq/irq_handler_entry", "irq/irq_handler_exit", "irq/softirq_entry", "irq/softirq_exit"];
/// All events of this group except those about the setup of vectors.
const VECTORS: (&str, &str) = ("irq_vectors", "vector_");
/// Memory for unread events, of all CPUs together, and the most for one CPU.
const BUFFERS_KIB: usize = 1 << 17;
const BUFFER_KIB: usize = 8192;

/// Returns the size of a processor's buffer, given the number of processors.
fn buffer_kib(cpus: usize) -> usize {
    (BUFFERS_KIB / cpus.max(1)).min(BUFFER_KIB)
}

fn has_tracefs(place: &Path) -> bool {
    place.join("instances").is_dir()
}

/// Returns where tracefs is mounted; mounts it for this thread alone if necessary.
///
/// # Errors
/// The reason why it is not available.
fn tracefs() -> Result<PathBuf, String> {
    if let Some(place) = PLACES.iter().map(Path::new).find(|place| has_tracefs(place)) {
        return Ok(place.to_owned());
    }
    let place = PathBuf::from(PLACES[0]);
    if !place.is_dir() {
        return Err("this kernel has no tracefs".into());
    }
    let said = |what: &'static str| move |error: Errno| format!("{what}: {error}");
    // SAFETY: only this thread's view of the file systems changes; it keeps its table of descriptors.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }
        .map_err(said("tracefs is not mounted, and a mount namespace is not permitted"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)
        .and_then(|()| mount("tracefs", &place, "tracefs", flags, None::<&CStr>))
        .map_err(said("tracefs is not mounted and can't be"))?;
    if has_tracefs(&place) { Ok(place) } else { Err("tracefs has no instances here".into()) }
}

/// A trace instance, which must be removed at the end.
#[derive(Clone, Debug)]
pub struct Instance(PathBuf);

impl Instance {
    /// Names an instance for this process; creates none yet. Call it on the thread that will read the trace.
    ///
    /// # Errors
    /// The reason why tracing is not available.
    pub fn named() -> Result<Self, String> {
        Ok(Self(tracefs()?.join("instances").join(leftovers::own_name())))
    }
}

impl Undo for Instance {
    fn perform(&self) {
        // Busy while one of its files is open. The kernel closes the files of a process before its parent is notified
        // of its end.
        for _ in 0..200 {
            match fs::remove_dir(&self.0) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                _ => return,
            }
        }
    }
}

#[derive(Debug)]
pub struct Trace {
    pipes: Vec<Pipe>,
    at: PathBuf,
}

#[derive(Debug)]
struct Pipe {
    cpu: usize,
    file: File,
    /// Start of a line whose end has not arrived yet.
    rest: Vec<u8>,
    follower: Follower,
}

impl Trace {
    /// Creates the instance and enables the events that show what has a CPU, interrupts included.
    ///
    /// # Errors
    /// The file that could not be written or opened.
    pub fn start(instance: &Instance, cpus: &[usize]) -> Result<Self, String> {
        let events = instance.0.join("events");
        Self::with_events(instance, cpus, || {
            let vectors = fs::read_dir(events.join(VECTORS.0)).into_iter().flatten().flatten();
            let vectors = vectors.filter(|entry| !entry.file_name().to_string_lossy().starts_with(VECTORS.1));
            INTERRUPTS.iter().map(|name| events.join(name)).chain(vectors.map(|entry| entry.path())).collect()
        })
    }

    /// Creates the instance and enables the events that show when threads could run.
    ///
    /// # Errors
    /// The file that could not be written or opened.
    pub fn of_threads(instance: &Instance, cpus: &[usize]) -> Result<Self, String> {
        let events = instance.0.join("events");
        Self::with_events(instance, cpus, || {
            let filtered = FILTERED.iter().map(|(name, filter)| (events.join(name), filter));
            let filtered = filtered.filter(|(event, filter)| fs::write(event.join("filter"), filter).is_ok());
            THREADS.iter().map(|name| events.join(name)).chain(filtered.map(|(event, _)| event)).collect()
        })
    }

    fn with_events(
        instance: &Instance,
        cpus: &[usize],
        further: impl FnOnce() -> Vec<PathBuf>,
    ) -> Result<Self, String> {
        let at = instance.0.clone();
        let set =
            |file: &Path, value: &str| fs::write(file, value).map_err(|error| format!("{}: {error}", file.display()));
        fs::create_dir(&at).map_err(|error| format!("{}: {error}", at.display()))?;
        set(&at.join("trace_clock"), "mono")?;
        let mut pipes = Vec::new();
        for cpu in cpus {
            let own = at.join(format!("per_cpu/cpu{cpu}"));
            set(&own.join("buffer_size_kb"), &buffer_kib(cpus.len()).to_string())?;
            let path = own.join("trace_pipe");
            let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
            let file = file.map_err(|error| format!("{}: {error}", path.display()))?;
            pipes.push(Pipe { cpu: *cpu, file, rest: Vec::new(), follower: Follower::default() });
        }
        set(&at.join("events").join(SWITCH).join("enable"), "1")?;
        for event in further().iter().filter(|event| event.join("format").is_file()) {
            set(&event.join("enable"), "1")?;
        }
        Ok(Self { pipes, at })
    }

    /// Forwards all turns that the kernel has written so far.
    ///
    /// # Errors
    /// When a pipe cannot be read.
    pub fn drain(
        &mut self,
        names: &mut Names,
        of_thread: impl Fn(i32) -> Option<CauseId>,
        mut hand: impl FnMut(usize, Turn),
    ) -> io::Result<()> {
        self.read(|pipe, line| {
            if let Some(turn) = pipe.follower.take(line, names, &of_thread) {
                hand(pipe.cpu, turn);
            }
        })
    }

    /// Forwards all lines that the kernel has written so far, with their CPU.
    ///
    /// # Errors
    /// When a pipe cannot be read.
    pub fn lines(&mut self, mut hand: impl FnMut(usize, &str)) -> io::Result<()> {
        self.read(|pipe, line| hand(pipe.cpu, line))
    }

    fn read(&mut self, mut hand: impl FnMut(&mut Pipe, &str)) -> io::Result<()> {
        let mut block = vec![0u8; 1 << 16];
        for pipe in &mut self.pipes {
            loop {
                let read = match pipe.file.read(&mut block) {
                    Ok(0) => break,
                    Ok(read) => read,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                };
                let mut unread = std::mem::take(&mut pipe.rest);
                unread.extend_from_slice(&block[..read]);
                let whole = unread.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                for line in unread[..whole].split(|byte| *byte == b'\n') {
                    hand(pipe, &String::from_utf8_lossy(line));
                }
                unread.drain(..whole);
                pipe.rest = unread;
            }
        }
        Ok(())
    }

    /// Returns the number of events that the kernel dropped because they were not read in time.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.counted("overrun: ").sum()
    }

    /// Returns which part of the fullest processor's buffer holds unread events, 0 to 1.
    #[must_use]
    pub fn fullest(&self) -> f64 {
        let size = buffer_kib(self.pipes.len()) << 10;
        self.counted("bytes: ").max().map_or(0.0, |bytes| bytes as f64 / size as f64)
    }

    /// Returns a number that the kernel counts for each processor.
    fn counted(&self, name: &'static str) -> impl Iterator<Item = u64> {
        self.pipes.iter().map(move |pipe| {
            let text = fs::read_to_string(self.at.join(format!("per_cpu/cpu{}/stats", pipe.cpu))).unwrap_or_default();
            let count = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
            count.unwrap_or(0)
        })
    }
}

/// A trace, and the watchdog that removes it if this process is killed.
#[derive(Debug)]
pub struct Traced {
    pub trace: Trace,
    instance: Instance,
    watchdog: Watchdog,
}

impl Traced {
    /// Starts the watchdog, then the trace. Call it on the thread that will read the trace.
    ///
    /// # Errors
    /// The reason why there is no trace; nothing of it is left.
    pub fn start(trace: impl FnOnce(&Instance) -> Result<Trace, String>) -> Result<Self, String> {
        let instance = Instance::named()?;
        let watchdog = Watchdog::start(&instance).map_err(|error| format!("the watchdog: {error}"))?;
        match trace(&instance) {
            Ok(trace) => Ok(Self { trace, instance, watchdog }),
            Err(why) => {
                instance.perform();
                watchdog.dismiss();
                Err(why)
            }
        }
    }

    pub fn end(self) {
        drop(self.trace);
        self.instance.perform();
        self.watchdog.dismiss();
    }
}

/// Calls `call` with the directory of all instances, on a thread whose mount namespace may change. `None` if tracing
/// is not available.
pub fn with_instances<T: Send + 'static>(call: impl FnOnce(&Path) -> T + Send + 'static) -> Option<T> {
    std::thread::spawn(move || tracefs().ok().map(|place| call(&place.join("instances")))).join().ok().flatten()
}

/// Checks whether the kernel's trace is available, on a thread that ends at once. Nothing of the trial remains.
///
/// # Errors
/// The reason why not.
pub fn permitted() -> Result<(), String> {
    let tried = std::thread::spawn(|| {
        let instance = Instance::named()?;
        let named = Instance(instance.0.with_file_name(leftovers::tried_name()));
        let trace = Trace::start(&named, &[]).map(drop);
        named.perform();
        trace
    });
    tried.join().unwrap_or_else(|_| Err("the try broke down".into()))
}
