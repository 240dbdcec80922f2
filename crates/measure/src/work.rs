//! The workload that a probe drives and counts: it computes and moves bytes.
//!
//! [`Own`] runs a computing thread and traffic threads in this process. [`Foreign`](crate::foreign::Foreign) is a
//! separate process, in any language, that does both.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crosswind_linux::thread_cpu_ns;

use crate::config::Config;
use crate::error::MeasureError;
use crate::kernel::{Computation, KernelFactory};
use crate::link::{ChannelLink, PeerLink};
use crate::sampler::{Reading, Schedstats};
use crate::socket::InForce;

/// A workload that computes and communicates.
pub trait Workload: Send {
    /// Returns the steps of the computation per unit of work.
    fn steps_per_unit(&self) -> f64;

    /// Whether a step is a whole, indivisible unit.
    fn coarse(&self) -> bool {
        false
    }

    /// Connects the channels, replacing any earlier connections. `places` gives the index of each channel at its
    /// peer.
    ///
    /// # Errors
    /// When a connection, a socket setting or a placement is refused.
    fn connect(&mut self, config: &Config, peers: &mut [PeerLink], places: &[usize]) -> Result<(), MeasureError>;

    /// Moves to other memory, if it can.
    ///
    /// # Errors
    /// When memory is short.
    fn renew(&mut self, config: &Config) -> Result<(), MeasureError>;

    /// Applies new rates at this end, MB/s for each channel; the peers have already applied theirs.
    ///
    /// # Errors
    /// When a connection has ended.
    fn set_levels(&mut self, levels: &[Option<f64>]) -> Result<(), MeasureError>;

    /// Pauses or resumes computation and traffic.
    fn pause(&self, paused: bool);

    fn steps(&self) -> u64;

    /// Whether it has ended; [`Workload::check`] returns the cause.
    fn ended(&self) -> bool;

    /// Waits until more than `steps` steps are completed, at most `patience`. Returns whether they are.
    fn wait_beyond(&self, steps: u64, patience: Duration) -> bool;

    /// Checks that it still computes and that every connection is open.
    ///
    /// # Errors
    /// The failure, if any.
    fn check(&mut self) -> Result<(), MeasureError>;

    /// Reads the counters that must belong to one instant.
    ///
    /// # Errors
    /// When it has ended.
    fn read_exact(&self, reading: &mut Reading) -> Result<(), MeasureError>;

    /// Reads the counters that are too coarse for the instant to matter.
    fn read_coarse(&mut self, reading: &mut Reading, schedstats: &mut Schedstats);

    /// Returns the settings in force on the first connection.
    fn in_force(&self) -> InForce;

    /// Returns the description of a foreign process; `None` for [`Own`].
    fn foreign(&self) -> Option<crate::foreign::ForeignHeader> {
        None
    }
}

/// A computing thread and traffic threads of this process.
pub struct Own {
    computation: Computation,
    channels: Vec<ChannelLink>,
}

impl Own {
    /// Starts the computation.
    ///
    /// # Errors
    /// When the kernel cannot be created or the thread cannot be placed.
    pub fn start(config: &Config, own_work: Option<KernelFactory>) -> Result<Self, MeasureError> {
        Ok(Self { computation: Computation::start(config, own_work)?, channels: Vec::new() })
    }
}

impl Workload for Own {
    fn steps_per_unit(&self) -> f64 {
        self.computation.steps_per_unit
    }

    fn coarse(&self) -> bool {
        self.computation.coarse
    }

    fn connect(&mut self, config: &Config, peers: &mut [PeerLink], places: &[usize]) -> Result<(), MeasureError> {
        let mut channels = Vec::new();
        for (channel, place) in config.channels.iter().zip(places) {
            channels.push(ChannelLink::open(config, &peers[channel.peer], *place, channel.direction)?);
        }
        self.channels = channels; // the new connections exist before the old ones close, so that their memory differs
        Ok(())
    }

    fn renew(&mut self, config: &Config) -> Result<(), MeasureError> {
        if !self.computation.coarse {
            self.computation = Computation::start(config, None)?;
        }
        Ok(())
    }

    fn set_levels(&mut self, levels: &[Option<f64>]) -> Result<(), MeasureError> {
        for (channel, level) in self.channels.iter().zip(levels) {
            channel.set_level(*level);
        }
        Ok(())
    }

    fn pause(&self, paused: bool) {
        self.computation.tally.pause(paused);
    }

    fn steps(&self) -> u64 {
        self.computation.tally.steps()
    }

    fn ended(&self) -> bool {
        self.computation.tally.ended()
    }

    fn wait_beyond(&self, steps: u64, patience: Duration) -> bool {
        self.computation.tally.wait_beyond(steps, patience)
    }

    fn check(&mut self) -> Result<(), MeasureError> {
        self.computation.tally.take_failure().map_or(Ok(()), Err)?;
        self.channels.iter().try_for_each(ChannelLink::check)
    }

    fn read_exact(&self, reading: &mut Reading) -> Result<(), MeasureError> {
        let clock = |thread: i32| thread_cpu_ns(thread).map_err(MeasureError::system("reading a thread's CPU time"));
        let tally = &self.computation.tally;
        reading.steps = tally.steps();
        let mut compute_ns = clock(tally.thread())? + tally.children.cpu_ns.load(Ordering::Relaxed);
        let mut traffic_ns = 0;
        for channel in &self.channels {
            for flow in channel.tallies() {
                reading.calls += flow.calls();
                if !flow.ended() {
                    traffic_ns += clock(flow.thread())?;
                }
            }
            reading.bytes.push(channel.bytes());
        }
        if tally.ended() {
            compute_ns = 0; // its clock is no longer meaningful
        }
        reading.compute.cpu_s = compute_ns as f64 * 1e-9;
        reading.traffic.cpu_s = traffic_ns as f64 * 1e-9;
        Ok(())
    }

    fn read_coarse(&mut self, reading: &mut Reading, schedstats: &mut Schedstats) {
        let tally = &self.computation.tally;
        let computing = schedstats.of_thread(tally.thread());
        let children = &tally.children;
        reading.compute.wait_s = computing.wait_s + children.wait_ns.load(Ordering::Relaxed) as f64 * 1e-9;
        reading.compute.switches = computing.switches + children.switches.load(Ordering::Relaxed) as f64;
        for flow in self.channels.iter().flat_map(ChannelLink::tallies) {
            let moving = schedstats.of_thread(flow.thread());
            reading.traffic.wait_s += moving.wait_s;
            reading.traffic.switches += moving.switches;
        }
    }

    fn in_force(&self) -> InForce {
        self.channels.first().map(ChannelLink::in_force).unwrap_or_default()
    }
}
