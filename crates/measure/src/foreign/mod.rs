//! An external process, in any language, that computes and moves bytes in place of this crate's threads.
//!
//! It does not pace traffic (the peer does) and counts nothing but its steps. Bytes come from the kernel, CPU time
//! from the process's CPU clock. The protocol: docs/reference/probe-protocol.md.
//!
//! | question | module |
//! |---|---|
//! | what are the messages, and which answers are well-formed? | [`lines`] |
//! | how does the process start, answer and end? | [`process`] |
//! | how many steps has it completed? | [`counter`] |
//! | which of its threads used the CPU? | [`causes`] |
//! | how many bytes have its connections moved? | [`flows`] |
//! | what is wrong with a probe? | [`check`] |

use std::io;
use std::time::Duration;

use crosswind_linux::process_cpu_ns;
use serde::Serialize;

use crate::config::{Config, ForeignConfig, Pin};
use crate::error::MeasureError;
use crate::link::PeerLink;
use crate::sampler::{Reading, Schedstats};
use crate::socket::InForce;
use crate::work::Workload;

pub mod causes;
pub mod check;
pub mod counter;
pub mod flows;
pub mod lines;
pub mod process;

use causes::Threads;
use counter::Counter;
use flows::Flows;
use lines::{Compute, Hello};
use process::Process;

/// Description of a foreign process in the header of a measurement's file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ForeignHeader {
    /// Name, version and further facts, as reported by the process.
    #[serde(flatten)]
    pub hello: Hello,
    /// Whether its thread names allow a split of its CPU time by cause.
    pub split: bool,
    /// Whether this process could set the buffers and congestion control of its sockets.
    pub sockets_set: bool,
}

/// A process that computes and communicates.
pub struct Foreign {
    process: Process,
    hello: Hello,
    counter: Counter,
    steps_per_unit: f64,
    threads: Threads,
    flows: Flows,
    /// CPUs that its threads are pinned to after its start; empty: any.
    kept_on: Vec<u32>,
}

impl Foreign {
    /// Starts the process on the configured CPUs, and starts the computation. `free` are the CPUs of a process that
    /// is pinned only after its start.
    ///
    /// # Errors
    /// When it does not start, or violates the protocol.
    pub fn start(foreign: &ForeignConfig, config: &Config, free: &[u32]) -> Result<Self, MeasureError> {
        let placement = &config.placement;
        let first = if foreign.pin == Pin::Process && !placement.compute_cpus.is_empty() {
            &placement.compute_cpus
        } else {
            free
        };
        let mut process = Process::start(&foreign.command, &foreign.environment, first, placement.compute_nice)?;
        let counter = Counter::new().map_err(MeasureError::system("making the file of the counter"))?;
        let hello = process.hello(counter.path())?;
        counter.unlink(); // it is open at both ends
        let mut threads = Threads::of(process.number());
        let kept_on = if foreign.pin == Pin::Threads { placement.compute_cpus.clone() } else { Vec::new() };
        threads.keep_on(&kept_on)?;
        let kernel = &config.kernel;
        let work = if foreign.own_work {
            Compute::Own
        } else {
            let diagonals = kernel.name == "diagonals";
            let sizes = if diagonals { vec![kernel.matrix, kernel.diagonals] } else { Vec::new() };
            Compute::Kernel { name: kernel.name.clone(), sizes }
        };
        let steps_per_unit = process.compute(&work)?;
        if counter.steps() == 0 {
            return Err(process.wrong("it answered `compute` before the counter showed its first step"));
        }
        let flows = Flows::none().map_err(MeasureError::system("asking the kernel for connections (sock_diag)"))?;
        threads.look();
        Ok(Self { process, hello, counter, steps_per_unit, threads, flows, kept_on })
    }
}

impl Workload for Foreign {
    fn steps_per_unit(&self) -> f64 {
        self.steps_per_unit
    }

    fn connect(&mut self, config: &Config, peers: &mut [PeerLink], places: &[usize]) -> Result<(), MeasureError> {
        self.process.hold(false);
        if !self.flows.is_empty() {
            self.flows.give_up();
            self.process.close()?;
        }
        for (channel, place) in config.channels.iter().zip(places) {
            let peer = &mut peers[channel.peer];
            self.flows.open(&mut self.process, config, peer, *place, channel.direction)?;
        }
        self.threads.look();
        self.threads.keep_on(&self.kept_on)
    }

    fn renew(&mut self, _config: &Config) -> Result<(), MeasureError> {
        Ok(()) // its memory is its own; its forks get other memory
    }

    fn set_levels(&mut self, levels: &[Option<f64>]) -> Result<(), MeasureError> {
        self.flows.set_levels(levels).map_err(|error| self.lost(&error))
    }

    fn pause(&self, paused: bool) {
        self.process.hold(paused);
    }

    fn steps(&self) -> u64 {
        self.counter.steps()
    }

    fn ended(&self) -> bool {
        self.process.ended()
    }

    fn wait_beyond(&self, _steps: u64, _patience: Duration) -> bool {
        true // steps are fine-grained: no wait needed
    }

    fn check(&mut self) -> Result<(), MeasureError> {
        self.process.check()?;
        self.threads.keep_on(&self.kept_on)
    }

    fn read_exact(&self, reading: &mut Reading) -> Result<(), MeasureError> {
        self.threads.account();
        reading.steps = self.counter.steps();
        let cpu_ns = process_cpu_ns(self.process.number()).map_err(|_| self.process.wrong("it has ended"))?;
        reading.compute.cpu_s = cpu_ns as f64 * 1e-9; // of all its threads; `read_coarse` splits it
        reading.bytes = self.flows.bytes().map_err(|error| self.lost(&error))?;
        Ok(())
    }

    fn read_coarse(&mut self, reading: &mut Reading, _schedstats: &mut Schedstats) {
        self.threads.look();
        self.threads.divide(reading);
    }

    fn in_force(&self) -> InForce {
        self.flows.in_force()
    }

    fn foreign(&self) -> Option<ForeignHeader> {
        let (split, sockets_set) = (self.threads.names_both(), self.flows.sockets_set());
        Some(ForeignHeader { hello: self.hello.clone(), split, sockets_set })
    }
}

impl Foreign {
    fn lost(&self, error: &io::Error) -> MeasureError {
        if error.kind() == io::ErrorKind::NotFound {
            return self.process.wrong("a connection of its has ended");
        }
        self.process.wrong(&format!("its connections cannot be counted: {error}"))
    }
}
