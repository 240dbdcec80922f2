//! Keeps another server busy, so that the pair under study gets less of it (the papers' contention ladder).

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::config::Wait;
use crate::flow::{Flow, FlowTally};
use crate::protocol::{Role, greet};
use crate::socket;

const MESSAGE_BYTES: usize = 1_000_000;

/// Connections to one target, each sending as fast as it can.
pub struct Loader {
    target: String,
    streams: Vec<(Arc<TcpStream>, JoinHandle<()>)>,
}

impl Loader {
    /// A loader with no connection yet.
    #[must_use]
    pub fn of(target: String) -> Self {
        Self { target, streams: Vec::new() }
    }

    /// Whom it loads.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Starts or ends connections until there are so many.
    ///
    /// # Errors
    /// When the target does not answer the handshake.
    pub fn set(&mut self, streams: usize) -> io::Result<()> {
        while self.streams.len() > streams {
            if let Some((stream, handle)) = self.streams.pop() {
                let _ = stream.shutdown(Shutdown::Both); // gone already is as good
                let _ = handle.join();
            }
        }
        while self.streams.len() < streams {
            let mut stream = socket::connect(&self.target)?;
            greet(&mut stream, Role::Load)?;
            socket::for_data(&stream, None, None)?;
            let stream = Arc::new(stream);
            let own = Arc::clone(&stream);
            let run = move || {
                let tally = FlowTally::default();
                let flow =
                    Flow { stream: &own, message_bytes: MESSAGE_BYTES, wait: Wait::Event, pacer: None, tally: &tally };
                let _ = flow.send(); // ends when either end closes
            };
            let handle = std::thread::Builder::new().name("cw-load".into()).spawn(run)?;
            self.streams.push((stream, handle));
        }
        Ok(())
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        let _ = self.set(0); // ending cannot fail
    }
}
