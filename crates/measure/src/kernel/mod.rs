//! Compute kernels, which run while bytes move.
//!
//! A kernel works in *steps*, much finer than a unit of work, so that a block of 40 ms resolves its rate far below 1
//! %. Work that cannot be divided (a command, a Python callable) has one step per unit and is *coarse*. The sampler
//! then reads its counters when a unit ends, never within one, so that no unit spans two blocks.

use std::panic::{AssertUnwindSafe, catch_unwind};
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

pub trait Kernel {
    /// Does one step.
    ///
    /// # Errors
    /// When the user's own work fails.
    fn step(&mut self) -> Result<(), MeasureError>;

    /// Returns the steps per unit of work; below 1 if a step does several units.
    fn steps_per_unit(&self) -> f64;
}

/// Creates the user's own work on the computing thread, so that its memory is local to it.
pub type KernelFactory = Box<dyn FnOnce(&Arc<Tally>) -> Result<Box<dyn Kernel>, MeasureError> + Send>;

/// A value that shares no cache line (two: processors prefetch pairs), so that reading it disturbs nothing beside it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

/// Counters and state of the computing thread, read by the sampler.
#[derive(Debug, Default)]
pub struct Tally {
    steps: Padded<AtomicU64>,
    ended: Padded<AtomicBool>,
    /// CPU time, run delay and switches of children that ended (command only).
    pub children: ChildUsage,
    /// Process group of the running child; 0: none (command only).
    pub child: Mutex<i32>,
    thread: AtomicI32,
    failure: Mutex<Option<MeasureError>>,
    completed: Condvar,
    completion: Mutex<()>,
    /// Written under the lock `completion`; `completed` notifies of changes.
    paused: AtomicBool,
}

/// Resource use of ended children.
#[derive(Debug, Default)]
pub struct ChildUsage {
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

    #[must_use]
    pub fn thread(&self) -> i32 {
        self.thread.load(Ordering::Relaxed)
    }

    /// Whether the thread should stop, or has.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.ended.0.load(Ordering::Relaxed)
    }

    /// Takes the reason why the computation failed.
    pub fn take_failure(&self) -> Option<MeasureError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Waits until more than `steps` steps are completed, at most `patience`. Returns whether they are.
    pub fn wait_beyond(&self, steps: u64, patience: Duration) -> bool {
        let guard = self.completion.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = |_: &mut ()| self.steps() <= steps && !self.ended();
        let _done = self.completed.wait_timeout_while(guard, patience, waiting).unwrap_or_else(PoisonError::into_inner);
        self.steps() > steps
    }

    /// Pauses the computation before its next step, or resumes it.
    ///
    /// Coarse work is paused between blocks: a callable and the design of the next block would compete for Python's
    /// lock. Other work is paused during another probe's block.
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

    /// Ends the computation with the reason why it failed.
    fn fail(&self, error: MeasureError) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        self.ended.0.store(true, Ordering::Relaxed);
        self.announce();
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
    /// Whether a step is a whole, indivisible unit.
    pub coarse: bool,
    gone: Receiver<()>,
    handle: Option<JoinHandle<()>>,
}

/// Longest wait for the end of the user's own work; after that its thread is abandoned.
const PATIENCE: Duration = Duration::from_secs(2);

impl Computation {
    /// Starts the computation, on the requested CPUs and at the requested nice level.
    ///
    /// # Errors
    /// When the kernel cannot be created or the thread cannot be placed.
    pub fn start(config: &Config, own_work: Option<KernelFactory>) -> Result<Self, MeasureError> {
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
                .and_then(|()| own_work.map_or_else(|| make(&kernel, &shared), |factory| factory(&shared)));
            match made {
                Ok(mut kernel) => {
                    // If the waiting thread has ended, the answer is not needed.
                    let _ = ready.send(Ok(kernel.steps_per_unit()));
                    compute_or_fail(kernel.as_mut(), &shared, coarse);
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

    /// Stops the computation and waits for its end, at most 2 s.
    pub fn stop(&mut self) {
        self.tally.ended.0.store(true, Ordering::Relaxed);
        self.tally.announce();
        command::kill_child(&self.tally);
        if let Some(handle) = self.handle.take() {
            if !matches!(self.gone.recv_timeout(PATIENCE), Err(RecvTimeoutError::Timeout)) {
                let _ = handle.join(); // a panic has already been printed to stderr
            }
        }
    }
}

impl Drop for Computation {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Computes until the end. A panic is a failure: a computation that stands still would look like one that traffic slows.
fn compute_or_fail(kernel: &mut dyn Kernel, tally: &Tally, coarse: bool) {
    if catch_unwind(AssertUnwindSafe(|| compute(kernel, tally, coarse))).is_err() {
        tally.fail(MeasureError::Task("a fault of Crosswind: the computing thread panicked".into()));
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
                tally.fail(error);
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

/// Computes nothing, to measure traffic alone, as in the benchmarks of the traffic generator.
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

/// Default side of the matrix of the kernel `diagonals`.
pub const MATRIX: u32 = 1024;
/// Default diagonals per unit of work of that kernel.
pub const DIAGONALS: u32 = 1;

/// Creates a built-in kernel; `matrix` and `diagonals` apply to the kernel `diagonals` only.
///
/// # Errors
/// When a size is out of range, or memory is short.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Panics in its third step.
    struct Panics(u32);

    impl Kernel for Panics {
        fn step(&mut self) -> Result<(), MeasureError> {
            self.0 += 1;
            assert!(self.0 < 3, "the third step");
            Ok(())
        }

        fn steps_per_unit(&self) -> f64 {
            1.0
        }
    }

    #[test]
    fn a_panic_of_the_computation_is_its_failure_and_wakes_what_waits_for_a_step() {
        let tally = Tally::default();
        std::thread::scope(|scope| {
            scope.spawn(|| compute_or_fail(&mut Panics(0), &tally, false));
            assert!(!tally.wait_beyond(2, Duration::from_secs(60)));
        });
        assert_eq!((tally.steps(), tally.ended()), (2, true));
        let why = tally.take_failure().expect("a failure").to_string();
        assert!(why.contains("the computing thread panicked"), "{why}");
    }
}
