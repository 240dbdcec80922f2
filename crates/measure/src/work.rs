//! What a probe drives and counts: something that computes and moves bytes.
//!
//! [`Own`] is this crate's own: a computing thread and traffic threads of this process.
//! [`Foreign`](crate::foreign::Foreign) is a process of its own, in whatever language, that does both.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crosswind_linux::thread_cpu_ns;

use crate::config::Config;
use crate::error::MeasureError;
use crate::kernel::{Computation, Maker};
use crate::link::{ChannelLink, PeerLink};
use crate::sampler::{Reading, Schedstats};
use crate::socket::InForce;

/// Computes and communicates, and is counted.
pub trait Workload: Send {
    /// Steps of the computation in one unit of work.
    fn steps_per_unit(&self) -> f64;

    /// Whether a step is a whole unit that cannot be cut.
    fn coarse(&self) -> bool {
        false
    }

    /// Connects the channels; those that were there before are given up. `places` says which channel of its peer each is.
    ///
    /// # Errors
    /// When a connection, a socket setting or a placement is refused.
    fn connect(&mut self, config: &Config, peers: &mut [PeerLink], places: &[usize]) -> Result<(), MeasureError>;

    /// Takes other memory, where it can.
    ///
    /// # Errors
    /// When there is none.
    fn renew(&mut self, config: &Config) -> Result<(), MeasureError>;

    /// The peers keep these rates from now on, MB/s for each channel; what this end keeps is set here.
    ///
    /// # Errors
    /// When a connection has ended.
    fn set_levels(&mut self, levels: &[Option<f64>]) -> Result<(), MeasureError>;

    /// Computes and moves bytes, or holds still.
    fn pause(&self, paused: bool);

    fn steps(&self) -> u64;

    /// Whether it has ended; [`Workload::check`] tells why.
    fn ended(&self) -> bool;

    /// Waits until a step after `steps` is done, or the time is over.
    fn wait_beyond(&self, steps: u64, patience: Duration) -> bool;

    /// Checks that it still computes and that every connection is there.
    ///
    /// # Errors
    /// What has failed.
    fn check(&mut self) -> Result<(), MeasureError>;

    /// Reads what must belong to one instant.
    ///
    /// # Errors
    /// When it has ended.
    fn read_exact(&self, reading: &mut Reading) -> Result<(), MeasureError>;

    /// Reads what is too coarse for the instant to matter.
    fn read_coarse(&mut self, reading: &mut Reading, schedstats: &mut Schedstats);

    /// What the kernel uses for the first connection.
    fn in_force(&self) -> InForce;

    /// What it says of itself, where it is a process of its own.
    fn foreign(&self) -> Option<crate::foreign::Told> {
        None
    }
}

/// A thread that computes and threads that move bytes, of this process.
pub struct Own {
    computation: Computation,
    channels: Vec<ChannelLink>,
}

impl Own {
    /// Starts to compute.
    ///
    /// # Errors
    /// When kernel or placement are impossible.
    pub fn start(config: &Config, own_work: Option<Maker>) -> Result<Self, MeasureError> {
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
        self.channels = channels; // the new stand before the old go, so that they lie elsewhere
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
            compute_ns = 0; // its clock means nothing any more
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
