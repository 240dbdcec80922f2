//! The other end of a ping: echoes every message, waits in the requested way, and runs burners meanwhile if
//! requested.
//!
//! It ends, and stops its burners, when the caller disconnects or is silent for [`PATIENCE`](super::line::PATIENCE).

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use crosswind_schema::overlap::Waiting;

use super::burn::{self, Burner};
use super::line::Line;
use super::spec::{BurnThere, EchoDone, PingSpec};
use crate::error::MeasureError;
use crate::protocol::{Reply, write_frame};
use crosswind_linux as linux;

/// Interval of checks for the caller's disconnection while burners still compute.
const LOOK: Duration = Duration::from_millis(100);

/// The burners of one ping: placed, then waiting for its start. They stop when this is dropped.
struct Burners {
    begin: Vec<Sender<()>>,
    threads: Vec<JoinHandle<u64>>,
    stop: Arc<AtomicBool>,
}

impl Burners {
    fn place(wanted: Option<BurnThere>) -> Result<Self, MeasureError> {
        let mut burners = Self { begin: Vec::new(), threads: Vec::new(), stop: Arc::default() };
        let Some(wanted) = wanted else { return Ok(burners) };
        let cpus = linux::affinity(0).map_err(MeasureError::system("reading the affinity"))?;
        for _ in cpus {
            burners.start(&Burner { iterations: wanted.iterations, nice: wanted.nice, cpus: Vec::new() })?;
        }
        Ok(burners)
    }

    fn start(&mut self, burner: &Burner) -> Result<(), MeasureError> {
        let (begin, start) = mpsc::channel();
        let (placed, ready) = mpsc::channel();
        let (own, stop) = (burner.clone(), Arc::clone(&self.stop));
        let run = move || {
            // If the waiting thread has ended, the answer is not needed and nothing is started.
            if placed.send(own.place()).is_ok() { compute(own.iterations, &start, &stop) } else { 0 }
        };
        let thread = std::thread::Builder::new()
            .name("cw-burn".into())
            .spawn(run)
            .map_err(MeasureError::system("starting a burner"))?;
        self.begin.push(begin);
        self.threads.push(thread);
        ready.recv().unwrap_or_else(|_| Err(MeasureError::Task("a burner ended".into())))
    }

    fn begin(&self) {
        for begin in &self.begin {
            let _ = begin.send(()); // an ended burner is detected when it is joined
        }
    }

    /// Waits for all burners, unless the caller disconnects. Returns how long each took, ns.
    fn finished(mut self, stream: &TcpStream) -> io::Result<Vec<u64>> {
        while !self.threads.iter().all(JoinHandle::is_finished) {
            if has_left(stream) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let failed = |_| io::Error::other("a thread that computes panicked");
        std::mem::take(&mut self.threads).into_iter().map(|thread| thread.join().map_err(failed)).collect()
    }
}

impl Drop for Burners {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.begin.clear();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn compute(iterations: u64, start: &Receiver<()>, stop: &AtomicBool) -> u64 {
    if start.recv().is_err() {
        return 0; // the ping was abandoned before it began
    }
    let began_ns = linux::now_ns();
    burn::burn(iterations, stop);
    linux::now_ns() - began_ns
}

/// Waits up to [`LOOK`] and returns whether the caller disconnected. Any data counts too: the caller has nothing left
/// to send.
fn has_left(stream: &TcpStream) -> bool {
    use std::os::fd::AsRawFd as _;
    let mut watched = [linux::watch(stream.as_raw_fd(), true, false)];
    linux::wait(&mut watched, Some(LOOK.as_nanos() as u64)).is_ok() && linux::readable(&watched[0])
}

/// Serves one ping on a connection whose first frame has been read.
///
/// # Errors
/// When the caller disconnects, or is silent for too long.
pub fn answer(stream: &mut TcpStream, spec: &PingSpec) -> io::Result<()> {
    let ready = spec.check().and_then(|()| Burners::place(spec.burn));
    let burners = match ready {
        Ok(burners) => burners,
        Err(error) => return write_frame(stream, &Reply::Refused { why: error.to_string() }),
    };
    // Not zeros: their pages would not be mapped yet, and the first message would pay for that.
    let mut message = vec![1u8; spec.message_bytes as usize];
    write_frame(stream, &Reply::Done {})?;
    let line = Line::new(stream, Waiting::Event, 0)?;
    line.receive(&mut [0u8; 1])?;
    burners.begin();
    let before = burn::own_cpu_ns().map_err(io::Error::other)?;
    let line = Line::new(stream, spec.wait, spec.spin_ns)?;
    for _ in 0..spec.messages {
        line.receive(&mut message)?;
        line.send(&message)?;
    }
    let cpu_ns = burn::own_cpu_ns().map_err(io::Error::other)? - before;
    let burn_ns = burners.finished(stream)?;
    write_frame(stream, &EchoDone { cpu_ns, burn_ns })
}
