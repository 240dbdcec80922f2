//! What computes while bytes move.
//!
//! A kernel works in *steps*, much finer than a unit of work, so that a block of 40 ms resolves its rate far below
//! 1 %. Work that cannot be cut (a command, a Python callable) has one step per unit and is *coarse*: the sampler then
//! reads its counters when a unit ends, never in the middle of one, so that no unit is shared between two blocks.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crosswind_schema::Kernel as Synthetic;

use crate::config::{Config, KernelConfig};
use crate::error::MeasureError;
use crate::placement;

pub mod burn;
pub mod command;
pub mod diagonals;
pub mod triad;

/// Work that can be done again and again.
pub trait Kernel {
    /// Does one step.
    ///
    /// # Errors
    /// When the user's own work fails.
    fn step(&mut self) -> Result<(), MeasureError>;

    /// Steps per unit of work; below 1 where a step does several units.
    fn steps_per_unit(&self) -> f64;
}

/// Makes the user's own work, on the computing thread, so that memory lies near it.
pub type Maker = Box<dyn FnOnce(&Arc<Tally>) -> Result<Box<dyn Kernel>, MeasureError> + Send>;

/// A value alone on its cache lines (two: processors fetch pairs), so that reading it disturbs nothing beside it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

/// What the computing thread tells the sampler.
#[derive(Debug, Default)]
pub struct Tally {
    steps: Padded<AtomicU64>,
    ended: Padded<AtomicBool>,
    /// CPU time, run delay and switches of children that ended (command only).
    pub children: ChildUsage,
    /// Process group of the child that runs now; 0: none (command only).
    pub child: Mutex<i32>,
    thread: AtomicI32,
    failure: Mutex<Option<MeasureError>>,
    completed: Condvar,
    completion: Mutex<()>,
    /// Written under `completion`, told by `completed`.
    paused: AtomicBool,
}

/// Resources that ended children used.
#[derive(Debug, Default)]
pub struct ChildUsage {
    /// CPU time, ns.
    pub cpu_ns: AtomicU64,
    /// Time runnable but waiting, ns.
    pub wait_ns: AtomicU64,
    pub switches: AtomicU64,
}

impl Tally {
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps.0.load(Ordering::Relaxed)
    }

    /// The computing thread's id.
    #[must_use]
    pub fn thread(&self) -> i32 {
        self.thread.load(Ordering::Relaxed)
    }

    /// Whether the thread should stop, or has.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.ended.0.load(Ordering::Relaxed)
    }

    /// Why the computation failed, once.
    pub fn take_failure(&self) -> Option<MeasureError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Waits until a step after `steps` is done, or the time is over.
    pub fn wait_beyond(&self, steps: u64, patience: Duration) -> bool {
        let guard = self.completion.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = |_: &mut ()| self.steps() <= steps && !self.ended();
        let _done = self.completed.wait_timeout_while(guard, patience, waiting).unwrap_or_else(PoisonError::into_inner);
        self.steps() > steps
    }

    /// Holds the computation back before its next step, or lets it go on.
    ///
    /// Coarse work is held between blocks: a callable and the design of the next block would fight for Python.
    /// Any other is held while another probe has its turn.
    pub fn pause(&self, paused: bool) {
        let _guard = self.completion.lock().unwrap_or_else(PoisonError::into_inner);
        self.paused.store(paused, Ordering::Relaxed);
        self.completed.notify_all();
    }

    fn wait_while_paused(&self) {
        let guard = self.completion.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = |_: &mut ()| self.paused.load(Ordering::Relaxed) && !self.ended();
        drop(self.completed.wait_while(guard, waiting).unwrap_or_else(PoisonError::into_inner));
    }

    fn announce(&self) {
        let _guard = self.completion.lock().unwrap_or_else(PoisonError::into_inner);
        self.completed.notify_all();
    }
}

pub struct Computation {
    pub tally: Arc<Tally>,
    /// Steps per unit of work.
    pub steps_per_unit: f64,
    /// Whether a step is a whole unit that cannot be cut.
    pub coarse: bool,
    gone: Receiver<()>,
    handle: Option<JoinHandle<()>>,
}

/// How long the end of the user's own work is waited for; a thread that is still inside it is left to itself.
const PATIENCE: Duration = Duration::from_secs(2);

impl Computation {
    /// Starts to compute, on the CPUs and at the nice level asked for.
    ///
    /// # Errors
    /// When the kernel or the placement is impossible.
    pub fn start(config: &Config, own_work: Option<Maker>) -> Result<Self, MeasureError> {
        let (kernel, cpus, nice) =
            (config.kernel.clone(), config.placement.compute_cpus.clone(), config.placement.compute_nice);
        let coarse = own_work.is_some() || kernel.name == "command";
        let tally = Arc::new(Tally::default());
        let shared = Arc::clone(&tally);
        tally.pause(coarse); // until the first block
        let (ready, started) = mpsc::channel();
        let (going, gone) = mpsc::channel();
        let run = move || {
            let _going = going; // dropped with the thread: the other end notices
            shared.thread.store(crosswind_linux::thread_id(), Ordering::Relaxed);
            let made = placement::place_this_thread("the computing thread", &cpus, nice)
                .and_then(|()| own_work.map_or_else(|| make(&kernel, &shared), |maker| maker(&shared)));
            match made {
                Ok(mut kernel) => {
                    // The waiting thread may have gone: then the answer is not needed.
                    let _ = ready.send(Ok(kernel.steps_per_unit()));
                    compute(kernel.as_mut(), &shared, coarse);
                }
                Err(error) => drop(ready.send(Err(error))),
            }
        };
        let handle = std::thread::Builder::new()
            .name("cw-compute".into())
            .spawn(run)
            .map_err(MeasureError::system("starting the computing thread"))?;
        let steps_per_unit =
            started.recv().unwrap_or_else(|_| Err(MeasureError::Task("the computing thread ended".into())))?;
        Ok(Self { tally, steps_per_unit, coarse, gone, handle: Some(handle) })
    }

    /// Stops and waits for the end; of the user's own work only a little.
    pub fn stop(&mut self) {
        self.tally.ended.0.store(true, Ordering::Relaxed);
        self.tally.announce();
        command::kill_child(&self.tally);
        if let Some(handle) = self.handle.take() {
            if !matches!(self.gone.recv_timeout(PATIENCE), Err(RecvTimeoutError::Timeout)) {
                let _ = handle.join(); // a panic there has been told on stderr already
            }
        }
    }
}

impl Drop for Computation {
    fn drop(&mut self) {
        self.stop();
    }
}

fn compute(kernel: &mut dyn Kernel, tally: &Tally, coarse: bool) {
    let mut steps = 0;
    loop {
        if tally.paused.load(Ordering::Relaxed) {
            tally.wait_while_paused();
        }
        if tally.ended() {
            break;
        }
        if let Err(error) = kernel.step() {
            if !tally.ended() {
                *tally.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                tally.ended.0.store(true, Ordering::Relaxed);
            }
            break;
        }
        steps += 1;
        tally.steps.0.store(steps, Ordering::Relaxed);
        if coarse {
            tally.announce();
        }
    }
    tally.announce();
}

/// Computes nothing: for what traffic does by itself, as in the benchmarks of the traffic generator.
struct Idle;

impl Kernel for Idle {
    fn step(&mut self) -> Result<(), MeasureError> {
        std::thread::sleep(Duration::from_millis(10));
        Ok(())
    }

    fn steps_per_unit(&self) -> f64 {
        1.0
    }
}

/// Side of the matrix of the kernel `diagonals`, where nothing else is said.
pub const MATRIX: u32 = 1024;
/// Diagonals per unit of work of that kernel, where nothing else is said.
pub const DIAGONALS: u32 = 1;

/// Makes a kernel that needs nothing of the user's; `matrix` and `diagonals` are of the kernel `diagonals`.
///
/// # Errors
/// A size that is out of range, or memory that is not there.
pub fn synthetic(kernel: Synthetic, matrix: u32, diagonals: u32) -> Result<Box<dyn Kernel + Send>, MeasureError> {
    Ok(match kernel {
        Synthetic::Diagonals => Box::new(diagonals::Diagonals::new(matrix as usize, diagonals as usize)?),
        Synthetic::Burn => Box::new(burn::Burn::new()),
        Synthetic::Triad => Box::new(triad::Triad::beyond_the_cache()?),
    })
}

fn make(kernel: &KernelConfig, tally: &Arc<Tally>) -> Result<Box<dyn Kernel>, MeasureError> {
    if let Some(known) = Synthetic::named(&kernel.name) {
        return Ok(synthetic(known, kernel.matrix, kernel.diagonals)?);
    }
    Ok(match kernel.name.as_str() {
        "idle" => Box::new(Idle),
        "command" => {
            let task = kernel.task.as_deref().unwrap_or_default();
            Box::new(command::Command::new(task, Arc::clone(tally))?)
        }
        other => {
            let known = Synthetic::ALL.map(|(_, name, _)| name).join(", ");
            return Err(MeasureError::value("kernel", other, format!("{known}, command, callable or idle")));
        }
    })
}
