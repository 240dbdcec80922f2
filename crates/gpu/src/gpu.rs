//! One GPU: its memory and kernels, and the timing of one block.
//!
//! The calling thread launches the kernel, and other threads copy at the requested rate. Both are timed by events of
//! the device: the kernel from an event before the first launch to one after the last, each chunk of traffic by its own
//! pair of events. The host's clock only paces. Instead of a kernel, the caller's own function may enqueue work: the
//! context is the device's primary one, which other libraries of the process share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use cudarc::driver::sys::CUdevice_attribute as Attribute;
use serde::Serialize;

use crate::block::{Ahead, Block, Timed};
use crate::condition::{Condition, Manager};
use crate::driver::{Argument, Buffer, Context, Event, Function, HostBuffer, Module, Stream};
use crate::error::GpuError;
use crate::movers::{Queue, movers};
use crate::pace::part_within;
use crate::traffic::{MOST_LOADERS, Path};
use crate::work::{Kernel, STEP};

const MODULE: &str = include_str!("kernels/kernels.ptx");
const MIB: usize = 1 << 20;
/// Size of each array of the triad, and of the memory for the pointer chase: larger than any L2 cache.
const ARRAY: usize = 128 * MIB;
/// Size of each end of a copy.
pub(crate) const COPIED: usize = 256 * MIB;
/// At most one in this many bytes of free memory is used.
const SHARE: usize = 2;
const LINE: usize = 128;
pub(crate) const MB: f64 = 1e6;
/// Launches that keep the stream busy before a function's calls.
const LEADING: u32 = 10;

/// Enqueues work on [`Gpu::stream`], this number of times.
pub type Enqueue<'a> = &'a mut dyn FnMut(u32) -> Result<(), GpuError>;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct About {
    pub name: String,
    /// UUID, as printed by `nvidia-smi -L`.
    pub uuid: String,
    pub capability: String,
    pub multiprocessors: u32,
    pub memory_mb: f64,
    pub l2_mb: f64,
    /// Number of copy engines that work concurrently with kernels.
    pub copy_engines: u32,
    /// Generation of the PCI Express link, if known.
    pub link_generation: Option<u32>,
    /// Lanes of the link, if known.
    pub link_lanes: Option<u32>,
}

/// An opened device with its kernels and memory.
pub struct Gpu {
    about: About,
    pub(crate) functions: Functions,
    pub(crate) memory: Device,
    pub(crate) host: Host,
    pub(crate) streams: Vec<Stream>,
    computing: Stream,
    begin: Event,
    end: Event,
    #[allow(dead_code)] // its functions are used
    module: Module,
    manager: Option<Manager>,
    pub(crate) context: Arc<Context>,
}

pub(crate) struct Functions {
    kernels: Vec<(Kernel, Function)>,
    pub(crate) copy: Function,
}

pub(crate) struct Device {
    arrays: [Buffer; 3],
    chain: Buffer,
    out: Buffer,
    /// The device's ends of the two directions. Copies within the device go from the second to the first.
    pub(crate) copied: [Buffer; 2],
}

pub(crate) struct Host {
    pub(crate) pinned: [HostBuffer; 2],
    pub(crate) pageable: [HostBuffer; 2],
}

impl Gpu {
    /// Opens the device with this number and allocates its memory.
    ///
    /// # Errors
    /// There is no driver, no such device, the driver or device is too old, or there is too little memory.
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
            streams: (0..MOST_LOADERS).map(|_| Stream::new(&context, true)).collect::<Result<_, GpuError>>()?,
            computing: Stream::new(&context, false)?,
            begin: Event::new(&context)?,
            end: Event::new(&context)?,
            module,
            manager,
            context,
        })
    }

    #[must_use]
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Returns the current clocks, power and temperature.
    #[must_use]
    pub fn condition(&self) -> Condition {
        self.manager.as_ref().map(Manager::condition).unwrap_or_default()
    }

    /// Returns the number of rounds for which one launch of a kernel lasts about `seconds`.
    ///
    /// # Errors
    /// The driver fails.
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
            let each = self.time(&block, None)?.seconds / f64::from(block.launches);
            if each >= seconds / 4.0 || rounds >= 1 << 24 {
                return Ok(((f64::from(rounds) * seconds / each).round() as u32).max(1));
            }
            rounds *= 2;
        }
    }

    /// Returns the stream on which kernels run, as `CUstream`. Valid while the device is open.
    #[must_use]
    pub fn stream(&self) -> u64 {
        self.computing.handle()
    }

    /// Calls a function while other work keeps the stream busy for about `lead_s`, and times when its calls return and
    /// when its own work ends. A function that waits for the device does not return before the other work has ended.
    ///
    /// # Errors
    /// The function or the driver fails.
    pub fn ahead(&self, calls: u32, lead_s: f64, enqueue: Enqueue<'_>) -> Result<Ahead, GpuError> {
        let rounds = self.rounds_for(Kernel::Fma, lead_s.clamp(1e-3, 1.0) / f64::from(LEADING))?;
        let led = Event::new(&self.context)?;
        led.record(&self.computing)?;
        for _ in 0..if lead_s > 0.0 { LEADING } else { 0 } {
            self.launch(Kernel::Fma, rounds)?;
        }
        self.begin.record(&self.computing)?;
        let called = Instant::now();
        let enqueued = enqueue(calls);
        let host_s = called.elapsed().as_secs_f64();
        self.end.record(&self.computing)?;
        self.end.wait()?;
        enqueued?;
        Ok(Ahead { lead_s: self.begin.since(&led)?, host_s, gpu_s: self.end.since(&self.begin)? })
    }

    /// Runs one block. If the block has no kernel, `enqueue` is called once with its number of launches.
    ///
    /// # Errors
    /// A field is out of range, or the function or the driver fails.
    pub fn time(&self, block: &Block, enqueue: Option<Enqueue<'_>>) -> Result<Timed, GpuError> {
        block.check()?;
        self.context.enter()?;
        let stop = AtomicBool::new(false);
        let movers = block.traffic.map(movers).unwrap_or_default();
        let queues = movers.iter().map(|mover| Mutex::new(Queue::new(&mover.traffic, block))).collect::<Vec<_>>();
        // The threads are started before anything is timed, so a transfer and a kernel begin together.
        let started = Barrier::new(movers.len() + 1);
        thread::scope(|scope| {
            let (stop, started, queues) = (&stop, &started, &queues);
            let moving: Vec<_> = movers
                .iter()
                .map(|mover| {
                    let task = move || {
                        let entered = self.context.enter();
                        let staged = mover.staged();
                        started.wait();
                        entered.and_then(|()| self.keep_moving(mover, staged, &queues[mover.queue], stop))
                    };
                    (mover.traffic, scope.spawn(task))
                })
                .collect();
            let stopping = StopOnDrop(stop); // also after a panic, which would wait for the threads
            started.wait();
            let computed = self.compute(block, enqueue);
            drop(stopping);
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

    /// Computes, or waits, between the two events. Returns the seconds and the work.
    fn compute(&self, block: &Block, enqueue: Option<Enqueue<'_>>) -> Result<(f64, f64), GpuError> {
        thread::sleep(Duration::from_secs_f64(block.settle_s));
        self.begin.record(&self.computing)?;
        let (mut work, mut enqueued) = (0.0, Ok(()));
        if let Some(kernel) = block.kernel {
            for _ in 0..block.launches {
                work += self.launch(kernel, block.rounds)?;
            }
        } else if let Some(enqueue) = enqueue {
            enqueued = enqueue(block.launches);
            work = f64::from(block.launches);
        } else {
            thread::sleep(Duration::from_secs_f64(block.seconds));
        }
        // Work enqueued by a function that then failed must end before the failure is reported.
        self.end.record(&self.computing)?;
        self.end.wait()?;
        enqueued?;
        Ok((self.end.since(&self.begin)?, work))
    }

    /// Launches a kernel once. Returns its work.
    fn launch(&self, kernel: Kernel, rounds: u32) -> Result<f64, GpuError> {
        if kernel == Kernel::Step {
            for _ in 0..rounds {
                for (part, rounds) in STEP {
                    self.launch(part, rounds)?;
                }
            }
            return Ok(f64::from(rounds));
        }
        let elements = (ARRAY / 16) as u64;
        let shape = kernel.shape(self.about.multiprocessors, elements);
        let [a, b, c] = self.memory.arrays.each_ref().map(|array| Argument::Address(array.at(0)));
        let out = Argument::Address(self.memory.out.at(0));
        let rounds_of = Argument::Word(rounds);
        let arguments = match kernel {
            Kernel::Tensor | Kernel::Fma | Kernel::Step => vec![out, rounds_of],
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
}

/// Ends the threads that copy when it is dropped.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns a single cycle through `lines` cache lines of memory, in an order that no prefetcher predicts. The first
/// word of each line is the index of the next. Sattolo's algorithm, driven by a 64-bit linear congruential generator
/// (Knuth, MMIX).
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
