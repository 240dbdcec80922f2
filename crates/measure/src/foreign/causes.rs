//! Splits the CPU time of a foreign process into task, traffic and runtime, by thread name.
//!
//! The total is the process's CPU clock; the parts come from the threads' `schedstat`. Both lag by up to a tick while
//! a thread runs, so the kernel is made to account for running threads before they are read. The time of ended
//! threads is kept.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};

use crosswind_linux as linux;

use crate::error::MeasureError;
use crate::sampler::{Reading, RuntimeCpu, Use, schedstat};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Task,
    Traffic,
    /// Carries virtual threads of any purpose.
    Carrier,
    Jit,
    Gc,
    Other,
}

/// Prefixes of thread names as the kernel stores them: 15 bytes at most. HotSpot's are those of JDK 17 to 25.
const NAMES: [(&str, Cause); 18] = [
    ("cw-compute", Cause::Task),
    ("cw-traffic", Cause::Traffic),
    ("ForkJoinPool", Cause::Carrier),
    ("VirtualThread", Cause::Carrier),
    ("C1 Compiler", Cause::Jit),
    ("C2 Compiler", Cause::Jit),
    ("JVMCI", Cause::Jit),
    ("Sweeper", Cause::Jit),
    ("GC Thread", Cause::Gc),
    ("G1 ", Cause::Gc),
    ("ParGC", Cause::Gc),
    ("VM Thread", Cause::Gc), // runs the serial collector, and stops the world for the others
    ("XDriver", Cause::Gc),
    ("XWorker", Cause::Gc),
    ("ZDriver", Cause::Gc),
    ("ZWorker", Cause::Gc),
    ("ZDirector", Cause::Gc),
    ("Shenandoah", Cause::Gc),
];

impl Cause {
    /// Returns the purpose of a thread of this name.
    #[must_use]
    pub fn of(name: &str) -> Self {
        NAMES.iter().find(|(start, _)| name.starts_with(start)).map_or(Self::Other, |(_, cause)| *cause)
    }
}

struct Thread {
    cause: Cause,
    file: Option<File>,
    had: Use,
    /// Whether it ran between the last two scans.
    ran: bool,
}

/// The threads of a process, including ended ones.
pub struct Threads {
    process: i32,
    known: HashMap<i32, Thread>,
    placed: BTreeSet<i32>,
}

impl Threads {
    /// Scans the threads of a process once.
    #[must_use]
    pub fn of(process: i32) -> Self {
        Self { process, known: HashMap::new(), placed: BTreeSet::new() }
    }

    fn numbers(&self) -> Vec<i32> {
        let listed = fs::read_dir(format!("/proc/{}/task", self.process)).into_iter().flatten().flatten();
        listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }

    /// Scans the threads and updates the CPU time of each.
    pub fn look(&mut self) {
        for number in self.numbers() {
            let at = format!("/proc/{}/task/{number}", self.process);
            let thread = self.known.entry(number).or_insert_with(|| {
                let file = File::open(format!("{at}/schedstat")).ok();
                Thread { cause: Cause::Other, file, had: Use::default(), ran: true }
            });
            if thread.cause == Cause::Other {
                // A thread may get its name a moment after its start.
                let name = fs::read_to_string(format!("{at}/comm")).unwrap_or_default();
                thread.cause = Cause::of(name.trim_end());
            }
        }
        for thread in self.known.values_mut() {
            if let Some(had) = thread.file.as_ref().and_then(schedstat) {
                thread.ran = had.cpu_s > thread.had.cpu_s;
                thread.had = had;
            }
        }
    }

    /// Makes the kernel account for threads that may be running now.
    pub fn account(&self) {
        for (number, thread) in &self.known {
            if thread.ran || matches!(thread.cause, Cause::Task | Cause::Traffic | Cause::Carrier) {
                linux::account_for(*number);
            }
        }
    }

    /// Whether the names show both a computing thread and one that moves bytes.
    #[must_use]
    pub fn names_both(&self) -> bool {
        [Cause::Task, Cause::Traffic].iter().all(|cause| self.known.values().any(|thread| thread.cause == *cause))
    }

    /// Divides the CPU time of all threads among causes. If no thread has a task's name, the task gets everything
    /// that is not a carrier, compiler, collector or traffic thread by name.
    pub fn divide(&self, reading: &mut Reading) {
        let of = |cause: Cause| {
            let mut sum = Use::default();
            for thread in self.known.values().filter(|thread| thread.cause == cause) {
                sum.cpu_s += thread.had.cpu_s;
                sum.wait_s += thread.had.wait_s;
                sum.switches += thread.had.switches;
            }
            sum
        };
        let (task, traffic, other) = (of(Cause::Task), of(Cause::Traffic), of(Cause::Other));
        let (carriers_s, jit_s, gc_s) = (of(Cause::Carrier).cpu_s, of(Cause::Jit).cpu_s, of(Cause::Gc).cpu_s);
        let named = self.known.values().any(|thread| thread.cause == Cause::Task);
        let all_s = carriers_s + jit_s + gc_s + if named { other.cpu_s } else { 0.0 };
        reading.runtime = Some(RuntimeCpu { all_s, carriers_s, jit_s, gc_s });
        reading.traffic = traffic;
        reading.compute.cpu_s -= traffic.cpu_s + all_s;
        let computing = if named { task } else { other };
        (reading.compute.wait_s, reading.compute.switches) = (computing.wait_s, computing.switches);
    }

    /// Pins every thread to these CPUs; an empty list changes nothing. Threads started later inherit the affinity.
    ///
    /// # Errors
    /// When a CPU may not be used.
    pub fn keep_on(&mut self, cpus: &[u32]) -> Result<(), MeasureError> {
        if cpus.is_empty() {
            return Ok(());
        }
        // A thread started in between by one not yet placed is found in the next round.
        for _ in 0..8 {
            let new: Vec<i32> = self.numbers().into_iter().filter(|number| !self.placed.contains(number)).collect();
            if new.is_empty() {
                break;
            }
            for number in new {
                match linux::set_affinity(number, cpus) {
                    Err(error) if error.raw_os_error() != Some(libc::ESRCH) => {
                        let what = format!("placing a thread of the probe on CPUs {cpus:?}");
                        return Err(MeasureError::system(what)(error));
                    }
                    _ => drop(self.placed.insert(number)),
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_told_apart_by_their_names() {
        for (name, cause) in [
            ("cw-compute", Cause::Task),
            ("cw-traffic-3", Cause::Traffic),
            ("ForkJoinPool-1-", Cause::Carrier),
            ("C2 CompilerThre", Cause::Jit),
            ("GC Thread#0", Cause::Gc),
            ("G1 Service", Cause::Gc),
            ("VM Thread", Cause::Gc),
            ("VM Periodic Tas", Cause::Other),
            ("node", Cause::Other),
        ] {
            assert_eq!(Cause::of(name), cause, "{name}");
        }
    }

    #[test]
    fn the_parts_are_the_whole() {
        let mut threads = Threads::of(std::process::id() as i32);
        threads.look();
        let mut reading = Reading::default();
        reading.compute.cpu_s = 100.0;
        threads.divide(&mut reading);
        let runtime = reading.runtime.expect("divided");
        assert!((reading.compute.cpu_s + reading.traffic.cpu_s + runtime.all_s - 100.0).abs() < 1e-9);
    }
}
