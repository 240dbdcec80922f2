//! Threads that move bytes while a kernel runs: each copies chunk after chunk, as they become due, on its own stream.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::block::Block;
use crate::driver::{self, Argument, Event, Stream};
use crate::error::GpuError;
use crate::gpu::{COPIED, Gpu, MB};
use crate::pace::Pace;
use crate::traffic::{Engine, MOST_LOADERS, Memory, Path, Traffic};

const THREADS_OF_COPY: u32 = 512;
/// Chunks in flight: enough that the stream never runs empty, few enough that the rate follows the pace quickly.
const IN_FLIGHT: usize = 3;

/// Start and end of one chunk on the device's clock.
pub(crate) struct Sent {
    pub(crate) begun: Event,
    pub(crate) ended: Event,
}

/// One thread: its traffic, the indices of its stream and queue, and its part of the buffers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mover {
    pub(crate) traffic: Traffic,
    stream: usize,
    pub(crate) queue: usize,
    first: usize,
    bytes: usize,
}

/// Returns the threads for a kind of traffic: one per direction, or those of a loader, which share one queue.
pub(crate) fn movers(traffic: Traffic) -> Vec<Mover> {
    if let Engine::Loader(threads) = traffic.engine {
        let bytes = COPIED / MOST_LOADERS as usize;
        return (0..threads as usize)
            .map(|place| Mover { traffic, stream: place, queue: 0, first: place * bytes, bytes })
            .collect();
    }
    let paths: &[Path] = match traffic.path {
        Path::HostToDevice => &[Path::HostToDevice],
        Path::DeviceToHost => &[Path::DeviceToHost],
        Path::DeviceToDevice => &[Path::DeviceToDevice],
        Path::Both => &[Path::HostToDevice, Path::DeviceToHost],
    };
    let of =
        |(at, &path)| Mover { traffic: Traffic { path, ..traffic }, stream: at, queue: at, first: 0, bytes: COPIED };
    paths.iter().enumerate().map(of).collect()
}

impl Mover {
    /// Returns the ordinary memory of a loader's thread, touched before anything is timed. Empty for other engines.
    pub(crate) fn staged(&self) -> Vec<u8> {
        match self.traffic.engine {
            Engine::Loader(_) => vec![1; self.traffic.chunk_bytes],
            _ => Vec::new(),
        }
    }
}

/// Chunks that one or several threads have yet to move.
pub(crate) struct Queue {
    pace: Pace,
    /// Time of the first request for a chunk, since threads take time to start.
    origin: Option<Instant>,
    taken: usize,
    chunks: Option<usize>,
}

/// The next action of a thread.
enum Next {
    Move,
    Wait(f64),
    End,
}

impl Queue {
    pub(crate) fn new(traffic: &Traffic, block: &Block) -> Self {
        Self {
            pace: Pace::new(traffic.chunk_bytes, block.mb_per_s.map(|rate| rate * MB)),
            origin: None,
            taken: 0,
            chunks: block.amount_mb.map(|amount| (amount * MB / traffic.chunk_bytes as f64).round() as usize),
        }
    }

    fn next(&mut self, stopped: bool) -> Next {
        if self.chunks.map_or(stopped, |chunks| self.taken >= chunks) {
            return Next::End;
        }
        let origin = *self.origin.get_or_insert_with(Instant::now);
        let wait_ns = self.pace.wait_ns(origin.elapsed().as_nanos() as f64);
        if wait_ns > 0.0 {
            return Next::Wait(wait_ns);
        }
        self.taken += 1;
        Next::Move
    }
}

impl Gpu {
    /// Copies chunks as they become due until the queue ends or `stop` is set. Returns the chunks copied.
    pub(crate) fn keep_moving(
        &self,
        mover: &Mover,
        mut staged: Vec<u8>,
        queue: &Mutex<Queue>,
        stop: &AtomicBool,
    ) -> Result<Vec<Sent>, GpuError> {
        let (stream, chunk_bytes) = (&self.streams[mover.stream], mover.traffic.chunk_bytes);
        let (mut sent, mut offset) = (Vec::<Sent>::new(), 0);
        loop {
            let next = queue.lock().unwrap_or_else(|held| held.into_inner()).next(stop.load(Ordering::Relaxed));
            match next {
                Next::End => break,
                // For shorter waits a sleep overshoots more than polling the clock.
                Next::Wait(wait_ns) if wait_ns > 2e5 => {
                    thread::sleep(Duration::from_nanos((wait_ns - 1e5) as u64));
                    continue;
                }
                Next::Wait(_) => {
                    std::hint::spin_loop();
                    continue;
                }
                Next::Move => {}
            }
            if let Some(earlier) = sent.len().checked_sub(IN_FLIGHT) {
                sent[earlier].ended.wait()?;
            }
            if offset + chunk_bytes > mover.bytes {
                offset = 0;
            }
            let place = mover.first + offset;
            if !staged.is_empty() {
                staged.fill(sent.len() as u8);
                // SAFETY: this is the thread's own part of the buffer, which holds more than `IN_FLIGHT` chunks. A
                // chunk is rewritten only after the copies of all but the last `IN_FLIGHT` chunks, including its own,
                // have ended.
                unsafe { self.host.pinned[0].write(place, &staged) };
            }
            let chunk = Sent { begun: Event::new(&self.context)?, ended: Event::new(&self.context)? };
            chunk.begun.record(stream)?;
            self.move_chunk(&mover.traffic, place, stream)?;
            chunk.ended.record(stream)?;
            sent.push(chunk);
            offset += chunk_bytes;
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
            (Engine::CopyEngine | Engine::Loader(_), Path::HostToDevice) => {
                // SAFETY: a chunk within buffers of `COPIED` bytes, which live as long as `self`; the caller waits for the
                // stream, and nothing reads what was copied.
                unsafe { driver::to_device(device[0], host[0].at(offset), bytes, stream) }
            }
            (Engine::CopyEngine, Path::DeviceToHost) => {
                // SAFETY: as above.
                unsafe { driver::to_host(host[1].at(offset), device[1], bytes, stream) }
            }
            (Engine::CopyEngine | Engine::Loader(_), _) => {
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

#[cfg(test)]
mod tests {
    use super::*;

    const LOADER: Traffic =
        Traffic { path: Path::HostToDevice, engine: Engine::Loader(8), memory: Memory::Pinned, chunk_bytes: 1 << 23 };
    const BLOCK: Block = Block {
        kernel: None,
        rounds: 1,
        launches: 1,
        traffic: Some(LOADER),
        mb_per_s: None,
        amount_mb: Some(84.0),
        settle_s: 0.0,
        seconds: 0.0,
    };

    #[test]
    fn threads_of_a_loader_share_a_queue_and_no_memory() {
        let found = movers(LOADER);
        assert_eq!(found.len(), 8);
        assert!(found.iter().enumerate().all(|(at, one)| one.queue == 0 && one.stream == at));
        assert!(found.windows(2).all(|two| two[0].first + two[0].bytes <= two[1].first));
        assert!(found.last().is_some_and(|one| one.first + one.bytes <= COPIED));
        // A chunk in the largest permitted size is not written before its copy has ended.
        assert!(found[0].bytes / LOADER.chunk_bytes > IN_FLIGHT);
    }

    #[test]
    fn both_directions_have_a_queue_each() {
        let both = Traffic { path: Path::Both, engine: Engine::CopyEngine, ..LOADER };
        let found = movers(both);
        assert_eq!(
            found.iter().map(|one| (one.traffic.path, one.queue)).collect::<Vec<_>>(),
            [(Path::HostToDevice, 0), (Path::DeviceToHost, 1)]
        );
    }

    #[test]
    fn an_amount_is_shared_by_the_threads_of_a_queue() {
        let mut queue = Queue::new(&LOADER, &BLOCK);
        let moved = (0..20).take_while(|_| matches!(queue.next(true), Next::Move)).count();
        assert_eq!(moved, 10);
        let mut endless = Queue::new(&LOADER, &Block { amount_mb: None, ..BLOCK });
        assert!(matches!(endless.next(false), Next::Move));
        assert!(matches!(endless.next(true), Next::End));
    }
}
