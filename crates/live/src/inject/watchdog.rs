//! The watchdog: a process of its own that lets everything go when the injector is no more, however it ended.
//!
//! It is forked before anything is changed, leads a session of its own (so that what is sent to the injector's group or
//! terminal does not reach it), and waits for its pipe to end, which the kernel sees to even on SIGKILL. Twice a second
//! it also looks for what should have been let go [`LATE_NS`] ago: an injector that was stopped itself holds nobody.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use super::group::Groups;
use super::ledger::{Held, Ledger};
use super::priority;
use super::processes::{self, Pid};
use crate::linux::now_ns;

/// How late a process may be continued before the watchdog does it.
const LATE_NS: u64 = 1_000_000_000;
const LOOK_MS: i32 = 500;
/// How often the processes are looked through: those that were just being born are found at the second time.
const ROUNDS: usize = 3;

/// What is to be undone.
#[derive(Debug)]
pub struct Undo {
    /// What is held now.
    pub ledger: Arc<Ledger>,
    /// The command's mark, which all of its processes carry.
    pub mark: String,
    /// The groups that were, or may be, made.
    pub groups: Option<Groups>,
    /// CPUs that the command's processes had before they were pinned; none: they were not.
    pub cpus: Option<Vec<usize>>,
}

impl Undo {
    /// Continues, thaws, unpins, removes. Can be called again at any time.
    pub fn perform(&self) {
        for held in self.ledger.held() {
            self.let_go(held);
        }
        if let Some(groups) = &self.groups {
            let _ = groups.remove(); // somebody else put a group of his own below: nothing more can be done
        }
        for _ in 0..ROUNDS {
            let marked: Vec<Pid> = processes::all().filter(|pid| processes::is_marked(*pid, &self.mark)).collect();
            for pid in processes::with_descendants(&marked) {
                if processes::parent_and_state(pid).is_some_and(|(_, state)| state == 'T') {
                    // SAFETY: a process of the command.
                    unsafe { libc::kill(pid, libc::SIGCONT) };
                }
                if let Some(cpus) = &self.cpus {
                    priority::place_all_threads(pid, cpus);
                }
            }
        }
    }

    fn let_go(&self, held: Held) {
        match held {
            // SAFETY: a process that the injector stopped.
            Held::Process(pid) => unsafe {
                libc::kill(pid, libc::SIGCONT);
            },
            Held::Group(rank) => {
                if let Some(groups) = &self.groups {
                    let _ = groups.freeze(rank, false); // removed meanwhile: then nobody is in it
                }
            }
        }
    }
}

/// The injector's end of the watchdog.
#[derive(Debug)]
pub struct Watchdog {
    pid: Pid,
    process: OwnedFd,
    pipe: OwnedFd,
}

fn checked(result: libc::c_long) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

fn owned(fd: i32) -> OwnedFd {
    // SAFETY: a descriptor that was just opened belongs to nobody else.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// A descriptor that can be read from when a process has ended.
///
/// # Errors
/// When there is no such process.
pub fn process_descriptor(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: takes integers only.
    checked(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) }).map(owned)
}

impl Watchdog {
    /// Starts it.
    ///
    /// # Errors
    /// When no process or descriptor is left.
    pub fn start(undo: &Undo) -> io::Result<Self> {
        let mut ends = [0i32; 2];
        // SAFETY: two live integers.
        checked(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }.into())?;
        let (reading, pipe) = (owned(ends[0]), owned(ends[1]));
        // SAFETY: the child calls the kernel, reads files and allocates (glibc readies its allocator for a forked child);
        // it takes no lock of this process, knows no Python, and leaves by _exit.
        let pid = checked(unsafe { libc::fork() }.into())?;
        if pid == 0 {
            let known = reading.as_raw_fd();
            std::mem::forget((reading, pipe));
            watch(known, undo);
        }
        let process = process_descriptor(pid).inspect_err(|_| kill_and_reap(pid))?;
        Ok(Self { pid, process, pipe })
    }

    /// Can be read from when it has ended.
    #[must_use]
    pub fn descriptor(&self) -> RawFd {
        self.process.as_raw_fd()
    }

    /// Tells it that all is undone, and waits for its end.
    pub fn dismiss(self) {
        // SAFETY: one live byte. Where it has ended already, there is nobody to tell (SIGPIPE is ignored by Python, and by
        // Rust's runtime).
        unsafe { libc::write(self.pipe.as_raw_fd(), c"q".as_ptr().cast(), 1) };
        drop(self.pipe);
        reap(self.pid);
    }
}

fn reap(pid: Pid) {
    // SAFETY: our own child; its status is not wanted.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
}

fn kill_and_reap(pid: Pid) {
    // SAFETY: our own child, not yet waited for.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    reap(pid);
}

/// The watchdog's life.
fn watch(pipe: RawFd, undo: &Undo) -> ! {
    become_a_stranger(pipe);
    let mut watched = libc::pollfd { fd: pipe, events: libc::POLLIN, revents: 0 };
    loop {
        // SAFETY: one live entry.
        let ready = unsafe { libc::poll(&raw mut watched, 1, LOOK_MS) };
        if ready > 0 {
            break;
        }
        let late: Vec<Held> = undo.ledger.due_before(now_ns().saturating_sub(LATE_NS)).collect();
        late.into_iter().for_each(|held| undo.let_go(held));
    }
    let mut word = 0u8;
    // SAFETY: one live byte.
    let dismissed = unsafe { libc::read(pipe, (&raw mut word).cast(), 1) } == 1;
    if !dismissed {
        undo.perform();
    }
    // SAFETY: ends the process without running what others registered for its end.
    unsafe { libc::_exit(0) }
}

/// A session of its own, no descriptor but the pipe, deaf to every signal that can be ignored.
fn become_a_stranger(pipe: RawFd) {
    // SAFETY: async-signal-safe calls on integers and a live string.
    unsafe {
        libc::setsid();
        for signal in 1..32 {
            if ![libc::SIGKILL, libc::SIGSTOP, libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE]
                .contains(&signal)
            {
                libc::signal(signal, libc::SIG_IGN);
            }
        }
        libc::prctl(libc::PR_SET_NAME, c"crosswind-watch".as_ptr());
        let nowhere = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for fd in 0..3 {
            if nowhere >= 0 && pipe != fd {
                libc::dup2(nowhere, fd);
            }
        }
        let (below, above) = (pipe as libc::c_uint, pipe as libc::c_uint);
        if below > 3 {
            libc::syscall(libc::SYS_close_range, 3, below - 1, 0);
        }
        libc::syscall(libc::SYS_close_range, above + 1, libc::c_uint::MAX, 0);
    }
}
