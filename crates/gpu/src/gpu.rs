//! One GPU: its memory and kernels, and how one block is timed on it.
//!
//! The calling thread launches the kernel; one thread for each direction copies at the asked rate. Both are timed by
//! events of the device: from one recorded before the first launch to one after the last, each chunk of the traffic from
//! one event to the next. The host's clock only paces.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use cudarc::driver::sys::CUdevice_attribute as Attribute;
use serde::Serialize;

use crate::block::{Block, Timed};
use crate::condition::{Condition, Manager};
use crate::driver::{self, Argument, Buffer, Context, Event, Function, HostBuffer, Module, Stream};
use crate::error::GpuError;
use crate::pace::{Pace, part_within};
use crate::traffic::{Engine, Memory, Path, Traffic};
use crate::work::Kernel;

const MODULE: &str = include_str!("kernels/kernels.ptx");
const MIB: usize = 1 << 20;
/// Each array of the triad, and the memory that is chased through: larger than any L2 cache.
const ARRAY: usize = 128 * MIB;
/// Each end of a copy.
const COPIED: usize = 256 * MIB;
/// Of free memory that is taken at most.
const SHARE: usize = 2;
const LINE: usize = 128;
const THREADS_OF_COPY: u32 = 512;
/// Chunks in flight: the queue never runs empty, and the rate is soon that of the pace.
const IN_FLIGHT: usize = 3;
const MB: f64 = 1e6;

/// What a device is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct About {
    /// Its name.
    pub name: String,
    /// Its UUID, as `nvidia-smi -L` prints it.
    pub uuid: String,
    /// Compute capability.
    pub capability: String,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Memory, MB.
    pub memory_mb: f64,
    /// L2 cache, MB.
    pub l2_mb: f64,
    /// Copy engines that work beside kernels.
    pub copy_engines: u32,
    /// Generation of the PCI Express link, where it is known.
    pub link_generation: Option<u32>,
    /// Lanes of the link, where they are known.
    pub link_lanes: Option<u32>,
}

/// An opened device with its kernels and memory.
pub struct Gpu {
    about: About,
    functions: Functions,
    memory: Device,
    host: Host,
    streams: [Stream; 2],
    computing: Stream,
    begin: Event,
    end: Event,
    #[allow(dead_code)] // its functions are used
    module: Module,
    manager: Option<Manager>,
    context: Arc<Context>,
}

struct Functions {
    kernels: Vec<(Kernel, Function)>,
    copy: Function,
}

struct Device {
    arrays: [Buffer; 3],
    chain: Buffer,
    out: Buffer,
    /// The device's ends of the two directions; within the device, from the one to the other.
    copied: [Buffer; 2],
}

struct Host {
    pinned: [HostBuffer; 2],
    pageable: [HostBuffer; 2],
}

/// One chunk on the device's clock.
struct Sent {
    begun: Event,
    ended: Event,
}

impl Gpu {
    /// Opens the device of this number and takes its memory.
    ///
    /// # Errors
    /// When there is no driver, no such device, or too little memory.
    pub fn open(index: usize) -> Result<Self, GpuError> {
        let context = Context::open(index)?;
        let (major, minor) = (
            context.attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            context.attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        if major < 8 {
            let found = format!("{major}.{minor}");
            return Err(GpuError::TooOld { what: "the device's compute capability", found, least: "8.0" });
        }
        let uuid = context.uuid()?;
        let manager = Manager::of(&uuid);
        let (link_generation, link_lanes) = manager.as_ref().map_or((None, None), Manager::link);
        let (free, all) = Context::memory()?;
        let about = About {
            name: context.name()?,
            uuid,
            capability: format!("{major}.{minor}"),
            multiprocessors: context.attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            memory_mb: all as f64 / MB,
            l2_mb: f64::from(context.attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?) / MB,
            copy_engines: context.attribute(Attribute::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT)?,
            link_generation,
            link_lanes,
        };
        let needed = 4 * ARRAY + 2 * COPIED;
        if free / SHARE < needed {
            let why = format!("{} MB are free, and {} MB are needed", free / MIB, SHARE * needed / MIB);
            return Err(GpuError::Driver { call: "taking memory of the device", why });
        }
        let array = || Buffer::new(&context, ARRAY);
        let copied = || Buffer::new(&context, COPIED);
        let memory = Device {
            arrays: [array()?, array()?, array()?],
            chain: array()?,
            out: Buffer::new(&context, 16 * MIB)?,
            copied: [copied()?, copied()?],
        };
        memory.chain.fill(&chain(ARRAY / LINE))?;
        let host = Host {
            pinned: [HostBuffer::pinned(COPIED)?, HostBuffer::pinned(COPIED)?],
            pageable: [HostBuffer::pageable(COPIED), HostBuffer::pageable(COPIED)],
        };
        let module = Module::new(&context, MODULE)?;
        let kernels = Kernel::ALL
            .iter()
            .map(|&kernel| Ok((kernel, module.function(kernel.function())?)))
            .collect::<Result<_, GpuError>>()?;
        Ok(Self {
            about,
            functions: Functions { kernels, copy: module.function("copy")? },
            memory,
            host,
            streams: [Stream::new(&context, true)?, Stream::new(&context, true)?],
            computing: Stream::new(&context, false)?,
            begin: Event::new(&context)?,
            end: Event::new(&context)?,
            module,
            manager,
            context,
        })
    }

    /// What the device is.
    #[must_use]
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Its clocks, power and temperature now.
    #[must_use]
    pub fn condition(&self) -> Condition {
        self.manager.as_ref().map(Manager::condition).unwrap_or_default()
    }

    /// The number of rounds with which one launch of a kernel lasts about `seconds`.
    ///
    /// # Errors
    /// When the driver fails.
    pub fn rounds_for(&self, kernel: Kernel, seconds: f64) -> Result<u32, GpuError> {
        let mut rounds = 1_u32;
        loop {
            let block = Block {
                kernel: Some(kernel),
                rounds,
                launches: 4,
                traffic: None,
                mb_per_s: None,
                amount_mb: None,
                settle_s: 0.0,
                seconds: 0.0,
            };
            let each = self.time(&block)?.seconds / f64::from(block.launches);
            if each >= seconds / 4.0 || rounds >= 1 << 24 {
                return Ok(((f64::from(rounds) * seconds / each).round() as u32).max(1));
            }
            rounds *= 2;
        }
    }

    /// Runs one block.
    ///
    /// # Errors
    /// When a field is out of range, or the driver fails.
    pub fn time(&self, block: &Block) -> Result<Timed, GpuError> {
        block.check()?;
        self.context.enter()?;
        let stop = AtomicBool::new(false);
        let directions = block.traffic.map_or(&[][..], |traffic| match traffic.path {
            Path::HostToDevice => &[Path::HostToDevice],
            Path::DeviceToHost => &[Path::DeviceToHost],
            Path::DeviceToDevice => &[Path::DeviceToDevice],
            Path::Both => &[Path::HostToDevice, Path::DeviceToHost],
        });
        // The threads are started before anything is timed: a transfer and a kernel then begin together.
        let started = Barrier::new(directions.len() + 1);
        thread::scope(|scope| {
            let (stop, started) = (&stop, &started);
            let moving: Vec<_> = directions
                .iter()
                .enumerate()
                .filter_map(|(at, &path)| block.traffic.map(|traffic| (at, Traffic { path, ..traffic })))
                .map(|(at, traffic)| {
                    let task = move || {
                        let entered = self.context.enter();
                        started.wait();
                        entered.and_then(|()| self.keep_moving(&traffic, block, &self.streams[at], stop))
                    };
                    (traffic, scope.spawn(task))
                })
                .collect();
            started.wait();
            let computed = self.compute(block);
            stop.store(true, Ordering::Relaxed);
            let mut timed = Timed::default();
            let mut sent = Vec::new();
            for (traffic, task) in moving {
                let failed = |_| GpuError::Driver { call: "copying", why: "its thread panicked".to_owned() };
                sent.push((traffic, task.join().map_err(failed).and_then(|sent| sent)));
            }
            (timed.seconds, timed.work) = computed?;
            for (traffic, chunks) in sent {
                let mut mb = 0.0;
                for chunk in chunks? {
                    let (begun, ended) = (chunk.begun.since(&self.begin)?, chunk.ended.since(&self.begin)?);
                    timed.moved_s = timed.moved_s.max(ended);
                    mb += part_within(begun, ended, timed.seconds) * traffic.chunk_bytes as f64 / MB;
                }
                match traffic.path {
                    Path::HostToDevice => timed.to_device_mb += mb,
                    Path::DeviceToHost => timed.to_host_mb += mb,
                    _ => timed.within_mb += mb,
                }
            }
            Ok(timed)
        })
    }

    /// Computes between the two events, or waits; seconds and work.
    fn compute(&self, block: &Block) -> Result<(f64, f64), GpuError> {
        thread::sleep(Duration::from_secs_f64(block.settle_s));
        self.begin.record(&self.computing)?;
        let mut work = 0.0;
        if let Some(kernel) = block.kernel {
            for _ in 0..block.launches {
                work += self.launch(kernel, block.rounds)?;
            }
        } else {
            thread::sleep(Duration::from_secs_f64(block.seconds));
        }
        self.end.record(&self.computing)?;
        self.end.wait()?;
        Ok((self.end.since(&self.begin)?, work))
    }

    /// Launches a kernel once; the work that it does.
    fn launch(&self, kernel: Kernel, rounds: u32) -> Result<f64, GpuError> {
        let elements = (ARRAY / 16) as u64;
        let shape = kernel.shape(self.about.multiprocessors, elements);
        let [a, b, c] = self.memory.arrays.each_ref().map(|array| Argument::Address(array.at(0)));
        let out = Argument::Address(self.memory.out.at(0));
        let rounds_of = Argument::Word(rounds);
        let arguments = match kernel {
            Kernel::Tensor | Kernel::Fma => vec![out, rounds_of],
            Kernel::Triad | Kernel::Mixed16 | Kernel::Mixed64 => {
                vec![a, b, c, Argument::Address(elements), Argument::Word(kernel.fmas()), rounds_of]
            }
            Kernel::Chase => {
                let next = Argument::Address(self.memory.chain.at(0));
                vec![out, next, Argument::Word((ARRAY / LINE) as u32), rounds_of]
            }
        };
        let found = self.functions.kernels.iter().find(|(one, _)| *one == kernel);
        let Some((_, function)) = found else { unreachable!("every kernel is loaded") };
        // SAFETY: the arguments are those of kernels.cu; `out` has 4 bytes for each thread of the largest grid, and all
        // memory lives as long as `self`, which waits for the launch.
        unsafe { function.launch(shape.grid, shape.threads, &self.computing, &arguments) }?;
        Ok(shape.work_per_round * f64::from(rounds))
    }

    /// Copies chunk after chunk, each when it is due, until it is to stop.
    fn keep_moving(
        &self,
        traffic: &Traffic,
        block: &Block,
        stream: &Stream,
        stop: &AtomicBool,
    ) -> Result<Vec<Sent>, GpuError> {
        let mut pace = Pace::new(traffic.chunk_bytes, block.mb_per_s.map(|rate| rate * MB));
        let chunks = block.amount_mb.map(|amount| (amount * MB / traffic.chunk_bytes as f64).round() as usize);
        let (origin, mut sent, mut offset) = (Instant::now(), Vec::<Sent>::new(), 0);
        let more = |sent: usize| chunks.map_or_else(|| !stop.load(Ordering::Relaxed), |chunks| sent < chunks);
        while more(sent.len()) {
            let wait_ns = pace.wait_ns(origin.elapsed().as_nanos() as f64);
            if wait_ns > 0.0 {
                // Below that a sleep is later than a look at the clock.
                if wait_ns > 2e5 {
                    thread::sleep(Duration::from_nanos((wait_ns - 1e5) as u64));
                } else {
                    std::hint::spin_loop();
                }
                continue;
            }
            if let Some(earlier) = sent.len().checked_sub(IN_FLIGHT) {
                sent[earlier].ended.wait()?;
            }
            if offset + traffic.chunk_bytes > COPIED {
                offset = 0;
            }
            let chunk = Sent { begun: Event::new(&self.context)?, ended: Event::new(&self.context)? };
            chunk.begun.record(stream)?;
            self.move_chunk(traffic, offset, stream)?;
            chunk.ended.record(stream)?;
            sent.push(chunk);
            offset += traffic.chunk_bytes;
        }
        stream.synchronize()?;
        Ok(sent)
    }

    fn move_chunk(&self, traffic: &Traffic, offset: usize, stream: &Stream) -> Result<(), GpuError> {
        let bytes = traffic.chunk_bytes;
        let host = match traffic.memory {
            Memory::Pinned => &self.host.pinned,
            Memory::Pageable => &self.host.pageable,
        };
        let device = self.memory.copied.each_ref().map(|buffer| buffer.at(offset));
        match (traffic.engine, traffic.path) {
            (Engine::CopyEngine, Path::HostToDevice) => {
                // SAFETY: a chunk within buffers of `COPIED` bytes, which live as long as `self`; the caller waits for the
                // stream, and nothing reads what was copied.
                unsafe { driver::to_device(device[0], host[0].at(offset), bytes, stream) }
            }
            (Engine::CopyEngine, Path::DeviceToHost) => {
                // SAFETY: as above.
                unsafe { driver::to_host(host[1].at(offset), device[1], bytes, stream) }
            }
            (Engine::CopyEngine, _) => {
                // SAFETY: as above; the two ends are different buffers.
                unsafe { driver::within(device[0], device[1], bytes, stream) }
            }
            (Engine::Multiprocessors(blocks), path) => {
                let (to, from) = match path {
                    Path::HostToDevice => (device[0], host[0].at(offset) as u64),
                    Path::DeviceToHost => (host[1].at(offset) as u64, device[1]),
                    _ => (device[0], device[1]),
                };
                let arguments =
                    [Argument::Address(to), Argument::Address(from), Argument::Address((bytes / 16) as u64)];
                // SAFETY: the arguments are those of kernels.cu; a chunk within both buffers, as above.
                unsafe { self.functions.copy.launch(blocks, THREADS_OF_COPY, stream, &arguments) }
            }
        }
    }
}

/// A single cycle through `lines` cache lines of memory, in an order that no prefetcher foresees; each word is the place of
/// the next one. Sattolo's algorithm, fed by a 64-bit linear congruential generator (Knuth, MMIX).
fn chain(lines: usize) -> Vec<u32> {
    let words = LINE / size_of::<u32>();
    let mut order: Vec<u32> = (0..lines as u32).collect();
    let mut state = 1_u64;
    for at in (1..lines).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(at, ((state >> 33) % at as u64) as usize);
    }
    let mut next = vec![0; lines * words];
    for (at, &line) in order.iter().enumerate() {
        next[line as usize * words] = order[(at + 1) % lines] * words as u32;
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_visits_every_line_once_before_it_returns() {
        let (lines, words) = (1000, LINE / 4);
        let next = chain(lines);
        let (mut at, mut seen) = (0_usize, vec![false; lines]);
        for _ in 0..lines {
            assert!(!std::mem::replace(&mut seen[at / words], true), "{at}");
            at = next[at] as usize;
        }
        assert_eq!(at, 0);
    }

    #[test]
    fn a_machine_without_a_driver_gets_one_sentence() {
        match Gpu::open(0) {
            Err(GpuError::NoDriver) => {
                assert_eq!(
                    GpuError::NoDriver.to_string(),
                    "this machine has no NVIDIA driver (libcuda.so was not found)"
                );
            }
            Err(error) => assert!(!error.to_string().is_empty()),
            Ok(gpu) => assert!(gpu.about().multiprocessors > 0),
        }
    }
}
