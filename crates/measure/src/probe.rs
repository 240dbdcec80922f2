//! The probe: computes at full speed while it sends and receives at given rates, and counts both.
//!
//! A measurement is a sequence of blocks. In one [`Block`] all rates are constant, and a [`Row`] for each sampling
//! interval has the work done, the bytes moved and the CPU times. [`Probe::start`] starts the computation,
//! [`Probe::connect`] opens the connections to the peers, [`Probe::run_block`] runs one block, and [`Probe::take`] returns
//! its rows. Which levels follow each other, and when enough is known, is decided in Python
//! (`crosswind.measure.session`).

use std::time::Duration;

use crosswind_access::Access;
use serde::Serialize;

use crate::config::Config;
use crate::error::MeasureError;
use crate::foreign::{Foreign, ForeignHeader};
use crate::kernel::KernelFactory;
use crate::link::{Control, Peer, PeerLink};
use crate::placement::Stay;
use crate::protocol::Request;
use crate::sampler::{Reading, RuntimeCpu, Sampler};
use crate::work::{Own, Workload};
use crosswind_linux::{now_ns, sleep_until};

/// Interval of the calls that ask whether to stop, ns.
const LOOK_NS: u64 = 50_000_000;

/// Settings in force, for the header of a measurement's file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Header {
    peers: Vec<Peer>,
    congestion_control: String,
    send_buffer_bytes: i32,
    receive_buffer_bytes: i32,
    coarse: bool,
    elapsed_s: f64,
    foreign: Option<ForeignHeader>,
}

/// One setting of all levels.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// MB/s for each channel; 0: silence, `None`: no limit.
    pub levels: Vec<Option<f64>>,
    pub seconds: f64,
    /// Time at its start that is not used, s.
    pub settle_s: f64,
    /// Length of a sampling interval, s.
    pub interval_s: f64,
    pub phase: String,
    /// Number of its cycle; -1: none.
    pub cycle: i32,
    /// Connections of other senders that load the peers (contention).
    pub load: u32,
    /// Longest wait for a unit of coarse work, s.
    pub patience_s: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Start, s since the probe's start.
    pub t_s: f64,
    pub dt_s: f64,
    pub block: i32,
    pub cycle: i32,
    pub phase: String,
    /// Whether it lies in the unused start of a block.
    pub settling: bool,
    /// The amounts, in the order of [`AMOUNTS`].
    pub amounts: [f64; AMOUNTS.len()],
    /// MB moved and MB/s requested (NaN: no limit) of each channel.
    pub channels: Vec<(f64, f64)>,
    /// Whether a runtime's own threads are among the amounts.
    pub with_runtime: bool,
}

impl Row {
    #[must_use]
    pub fn names(&self) -> &'static [&'static str] {
        if self.with_runtime { &AMOUNTS } else { &AMOUNTS[..AMOUNTS.len() - OF_RUNTIME] }
    }
}

/// Names of a row's amounts; the last ones are those of a runtime.
pub const AMOUNTS: [&str; 20] = [
    "work",
    "compute_cpu_s",
    "compute_wait_s",
    "compute_switches",
    "traffic_cpu_s",
    "traffic_wait_s",
    "traffic_switches",
    "calls",
    "user_s",
    "system_s",
    "irq_s",
    "softirq_s",
    "steal_s",
    "idle_s",
    "context_switches",
    "foreign_cpu_s",
    "runtime_cpu_s",
    "carriers_cpu_s",
    "jit_cpu_s",
    "gc_cpu_s",
];

/// Number of amounts that only a foreign process has.
const OF_RUNTIME: usize = 4;

/// A probe. It computes from the start; sockets exist from [`Probe::connect`] on.
pub struct Probe {
    config: Config,
    work: Box<dyn Workload>,
    connected: bool,
    sampler: Sampler,
    peers: Vec<PeerLink>,
    access: Access,
    loaders: Vec<(Control, String)>,
    load: u32,
    rows: Vec<Row>,
    blocks: i32,
    start_ns: u64,
    // Last, so that the CPUs are restored after everything else has ended.
    _stay: Stay,
}

impl Probe {
    /// Starts the computation. The calling thread becomes the sampler and is pinned until the probe is dropped.
    ///
    /// # Errors
    /// When the kernel cannot be created or a thread cannot be placed.
    pub fn start(config: Config, own_work: Option<KernelFactory>) -> Result<Self, MeasureError> {
        let stay = Stay::on(&config.placement.sampler_cpus)?;
        let sampler = Sampler::new(&config.placement.compute_cpus)?;
        let work: Box<dyn Workload> = match &config.kernel.foreign {
            Some(foreign) => Box::new(Foreign::start(foreign, &config, stay.before())?),
            None => Box::new(Own::start(&config, own_work)?),
        };
        Ok(Self {
            config,
            work,
            connected: false,
            sampler,
            peers: Vec::new(),
            access: Access::default(),
            loaders: Vec::new(),
            load: 0,
            rows: Vec::new(),
            blocks: 0,
            start_ns: now_ns(),
            _stay: stay,
        })
    }

    /// Connects to all peers with the given credentials. Nothing moves yet.
    ///
    /// # Errors
    /// When a peer cannot be reached or refuses.
    pub fn connect(&mut self, access: &Access) -> Result<(), MeasureError> {
        self.access = access.clone();
        let (mut peers, mut at) = (Vec::new(), vec![0; self.config.channels.len()]);
        for (index, address) in self.config.peers.iter().enumerate() {
            let mut specs = Vec::new();
            for (channel, place) in self.config.channels.iter().zip(&mut at).filter(|(c, _)| c.peer == index) {
                *place = specs.len();
                specs.push(self.config.channel_spec(channel.direction));
            }
            peers.push(PeerLink::open(address, specs, access)?);
        }
        self.work.connect(&self.config, &mut peers, &at)?;
        (self.peers, self.connected) = (peers, true);
        Ok(())
    }

    /// Moves to other memory for the kernel, and to other connections and buffers at both ends.
    ///
    /// Effects that depend on them would otherwise stay the same within a measurement and differ from the next one
    /// (docs/decisions/0018-renewed-cycles.md). The new ones are allocated before the old ones are freed, so that
    /// they lie elsewhere. The user's own work is kept.
    ///
    /// # Errors
    /// When a peer is lost.
    pub fn renew(&mut self) -> Result<(), MeasureError> {
        self.work.renew(&self.config)?;
        let access = self.access.clone();
        self.connect(&access).map_err(|error| match error {
            MeasureError::Unreachable { peer, source } => MeasureError::Lost { peer, why: source.to_string() },
            MeasureError::Refused { peer, why } => MeasureError::Lost { peer, why },
            other => other,
        })
    }

    #[must_use]
    pub fn peers(&self) -> &[PeerLink] {
        &self.peers
    }

    /// Pauses computation and traffic so that another probe has the CPU; the next block resumes them.
    ///
    /// # Errors
    /// When a peer is lost.
    pub fn hold(&mut self) -> Result<(), MeasureError> {
        if self.connected {
            self.set_rates(&vec![Some(0.0); self.config.channels.len()])?;
        }
        self.work.pause(true);
        Ok(())
    }

    #[must_use]
    pub fn header(&self) -> Header {
        let in_force = self.work.in_force();
        Header {
            peers: self.peers.iter().map(PeerLink::described).collect(),
            congestion_control: in_force.congestion_control,
            send_buffer_bytes: in_force.send_buffer,
            receive_buffer_bytes: in_force.receive_buffer,
            coarse: self.coarse(),
            elapsed_s: self.elapsed_s(),
            foreign: self.work.foreign(),
        }
    }

    #[must_use]
    pub fn elapsed_s(&self) -> f64 {
        (now_ns() - self.start_ns) as f64 * 1e-9
    }

    /// Sets the levels, waits until they are in force, and samples. `interrupted` is called twenty times a second.
    ///
    /// Coarse work lengthens the block until its last unit has ended.
    ///
    /// # Errors
    /// When a peer is lost, the work fails or the caller asked to stop; the rows until then are kept.
    pub fn run_block(&mut self, block: &Block, interrupted: &mut dyn FnMut() -> bool) -> Result<(), MeasureError> {
        self.work.pause(false);
        let result = self.sample_block(block, interrupted);
        if self.work.coarse() {
            self.work.pause(true);
        }
        result
    }

    fn sample_block(&mut self, block: &Block, interrupted: &mut dyn FnMut() -> bool) -> Result<(), MeasureError> {
        self.set_levels(block)?;
        self.set_load(block.load)?;
        let number = self.blocks;
        self.blocks += 1;
        let mut last = self.read()?;
        let start_ns = last.at_ns;
        let used_s = (block.seconds - block.settle_s).max(0.0);
        let intervals = (used_s / block.interval_s).round().max(1.0);
        let settle = (block.settle_s > 0.0).then_some((block.settle_s, true));
        let used = (1..=intervals as u32).map(|i| (block.settle_s + used_s * f64::from(i) / intervals, false));
        for (end_s, settling) in settle.into_iter().chain(used) {
            let end_ns = start_ns + (end_s * 1e9) as u64;
            let only_one_left = end_s >= block.seconds && self.rows.last().is_none_or(|row| row.settling);
            if self.work.coarse() && last.at_ns >= end_ns && !settling && !only_one_left {
                continue; // the unit that ended the interval before was longer than this one
            }
            self.wait_until(end_ns, last.steps, block.patience_s, interrupted)?;
            let reading = self.read()?;
            self.rows.push(self.row(block, number, settling, &last, &reading));
            last = reading;
            self.work.check()?;
        }
        Ok(())
    }

    /// Returns the MB that the peers have counted on each channel, since the connections were made.
    ///
    /// # Errors
    /// When a peer is lost.
    pub fn moved_there_mb(&mut self) -> Result<Vec<f64>, MeasureError> {
        let mut of_peers = Vec::new();
        for peer in &mut self.peers {
            of_peers.push(peer.moved()?.into_iter());
        }
        let next = |peer: usize| of_peers.get_mut(peer).and_then(Iterator::next).unwrap_or(0) as f64 * 1e-6;
        Ok(self.config.channels.iter().map(|channel| channel.peer).map(next).collect())
    }

    /// Returns the rows since the last call.
    pub fn take(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.rows)
    }

    fn set_levels(&mut self, block: &Block) -> Result<(), MeasureError> {
        if !self.connected {
            if block.levels.iter().all(|level| *level == Some(0.0)) {
                return Ok(());
            }
            return Err(MeasureError::value("levels", "above 0 MB/s", "0 MB/s before the peers are connected"));
        }
        let channels = self.config.channels.len();
        if block.levels.len() != channels {
            let permitted = format!("one level for each of {channels} channels");
            return Err(MeasureError::value("levels", block.levels.len(), permitted));
        }
        self.set_rates(&block.levels)
    }

    fn set_rates(&mut self, levels: &[Option<f64>]) -> Result<(), MeasureError> {
        for (index, peer) in self.peers.iter_mut().enumerate() {
            let of_peer = self.config.channels.iter().zip(levels).filter(|(c, _)| c.peer == index);
            peer.set_levels(of_peer.map(|(_, level)| *level).collect())?;
        }
        self.work.set_levels(levels)
    }

    /// Sets the number of connections of the load generators: the configured servers, or each peer itself.
    fn set_load(&mut self, load: u32) -> Result<(), MeasureError> {
        if load == self.load {
            return Ok(());
        }
        if self.loaders.is_empty() {
            for peer in &self.config.peers {
                let own = std::slice::from_ref(peer);
                let servers = if self.config.loaders.is_empty() { own } else { &self.config.loaders };
                for server in servers {
                    self.loaders.push((Control::connect(server, &self.access)?, peer.clone()));
                }
            }
        }
        for (server, target) in &mut self.loaders {
            server.ask(&Request::Load { target: target.clone(), streams: load })?;
        }
        self.load = load;
        Ok(())
    }

    fn read(&mut self) -> Result<Reading, MeasureError> {
        self.work.check()?;
        self.sampler.read(self.work.as_mut())
    }

    /// Sleeps until a time; with coarse work, until the next unit has ended after it.
    fn wait_until(
        &self,
        end_ns: u64,
        steps: u64,
        patience_s: f64,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<(), MeasureError> {
        let mut seen = steps;
        loop {
            let now = now_ns();
            if now >= end_ns {
                break;
            }
            seen = self.work.steps();
            sleep_until(end_ns.min(now + LOOK_NS));
            if self.asked_to_stop(interrupted) {
                return Err(MeasureError::Interrupted);
            }
        }
        let deadline_ns = now_ns() + (patience_s * 1e9) as u64;
        while self.work.coarse() && !self.work.wait_beyond(seen.max(steps), Duration::from_nanos(LOOK_NS)) {
            if self.work.ended() {
                break; // the next reading returns the cause
            }
            if self.asked_to_stop(interrupted) {
                return Err(MeasureError::Interrupted);
            }
            if now_ns() > deadline_ns {
                return Err(MeasureError::Slow(patience_s));
            }
        }
        Ok(())
    }

    /// Calls the callback, for coarse work only between two units: while a callable keeps retaking Python's lock,
    /// other threads wait for it for seconds.
    fn asked_to_stop(&self, interrupted: &mut dyn FnMut() -> bool) -> bool {
        if !self.work.coarse() {
            return interrupted();
        }
        self.work.pause(true);
        let stop = interrupted();
        self.work.pause(false);
        stop
    }

    fn row(&self, block: &Block, number: i32, settling: bool, from: &Reading, to: &Reading) -> Row {
        let dt_s = (to.at_ns - from.at_ns) as f64 * 1e-9;
        let work = (to.steps - from.steps) as f64 / self.work.steps_per_unit();
        let compute_cpu_s = to.compute.cpu_s - from.compute.cpu_s;
        let traffic_cpu_s = to.traffic.cpu_s - from.traffic.cpu_s;
        // Idle and iowait of a CPU decrease at times, and so do sums that lose an ended thread.
        let risen = |to: f64, from: f64| (to - from).max(0.0);
        let idle_s = risen(to.cpu.idle_s, from.cpu.idle_s);
        let (runtime_to, runtime_from) = (to.runtime.unwrap_or_default(), from.runtime.unwrap_or_default());
        let of_runtime = |part: fn(&RuntimeCpu) -> f64| part(&runtime_to) - part(&runtime_from);
        let runtime_cpu_s = of_runtime(|cpu| cpu.all_s);
        let amounts = [
            work,
            compute_cpu_s,
            risen(to.compute.wait_s, from.compute.wait_s),
            risen(to.compute.switches, from.compute.switches),
            traffic_cpu_s,
            risen(to.traffic.wait_s, from.traffic.wait_s),
            risen(to.traffic.switches, from.traffic.switches),
            (to.calls - from.calls) as f64,
            risen(to.cpu.user_s, from.cpu.user_s),
            risen(to.cpu.system_s, from.cpu.system_s),
            risen(to.cpu.irq_s, from.cpu.irq_s),
            risen(to.cpu.softirq_s, from.cpu.softirq_s),
            risen(to.cpu.steal_s, from.cpu.steal_s),
            idle_s,
            to.context_switches.saturating_sub(from.context_switches) as f64,
            self.foreign_cpu_s(dt_s, compute_cpu_s + runtime_cpu_s, traffic_cpu_s, idle_s),
            runtime_cpu_s,
            of_runtime(|cpu| cpu.carriers_s),
            of_runtime(|cpu| cpu.jit_s),
            of_runtime(|cpu| cpu.gc_s),
        ];
        let asked = |channel: usize| block.levels.get(channel).map_or(0.0, |level| level.unwrap_or(f64::NAN));
        let moved = |channel: usize| {
            let bytes = |reading: &Reading| reading.bytes.get(channel).copied().unwrap_or(0);
            (bytes(to) - bytes(from)) as f64 * 1e-6
        };
        let channels = (0..self.config.channels.len()).map(|channel| (moved(channel), asked(channel))).collect();
        let t_s = (from.at_ns - self.start_ns) as f64 * 1e-9;
        let (phase, cycle) = (block.phase.clone(), block.cycle);
        Row { t_s, dt_s, block: number, cycle, phase, settling, amounts, channels, with_runtime: to.runtime.is_some() }
    }

    /// CPU time that others used on the computing CPU, s; NaN where threads may move between CPUs.
    fn foreign_cpu_s(&self, dt_s: f64, compute_cpu_s: f64, traffic_cpu_s: f64, idle_s: f64) -> f64 {
        let [cpu] = self.config.placement.compute_cpus[..] else { return f64::NAN };
        let traffic_s = match self.config.placement.traffic_cpus[..] {
            [own] if own == cpu => traffic_cpu_s,
            [] => return f64::NAN,
            ref cpus if cpus.contains(&cpu) => return f64::NAN,
            _ => 0.0,
        };
        // A kernel that never sleeps leaves no idle time; ticks of 10 ms would only add noise.
        let idle_s = if self.work.coarse() { idle_s } else { 0.0 };
        (dt_s - compute_cpu_s - traffic_s - idle_s).max(0.0)
    }

    /// Whether the units of the work are indivisible.
    #[must_use]
    pub fn coarse(&self) -> bool {
        self.work.coarse()
    }
}
