//! Keeps another server busy, so that the pair under study gets less of it (the papers' contention ladder).

use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;

use crosswind_access::Access;

use crate::config::Wait;
use crate::error::MeasureError;
use crate::flow::{Flow, FlowTally};
use crate::link::{Control, Session};
use crate::protocol::Role;
use crate::socket;

const MESSAGE_BYTES: usize = 1_000_000;

/// Connections to one target, each sending as fast as it can.
pub struct Loader {
    target: String,
    access: Access,
    /// Session at the target; it ends when this is dropped.
    opened: Option<(Control, Session)>,
    streams: Vec<(Arc<TcpStream>, JoinHandle<()>)>,
}

impl Loader {
    /// Creates a loader with no connection yet.
    #[must_use]
    pub fn of(target: String, access: Access) -> Self {
        Self { target, access, opened: None, streams: Vec::new() }
    }

    /// Returns the address of the loaded peer.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Opens or closes connections until there are `streams`.
    ///
    /// # Errors
    /// When the target cannot be reached or refuses.
    pub fn set(&mut self, streams: usize) -> Result<(), MeasureError> {
        while self.streams.len() > streams {
            if let Some((stream, handle)) = self.streams.pop() {
                let _ = stream.shutdown(Shutdown::Both); // already closed is fine
                let _ = handle.join();
            }
        }
        while self.streams.len() < streams {
            if self.opened.is_none() {
                let mut control = Control::connect(&self.target, &self.access)?;
                let session = control.open(Vec::new())?;
                self.opened = Some((control, session));
            }
            let Some((_, session)) = &self.opened else { return Ok(()) };
            let stream = session.join(&self.target, Role::Load, 0)?;
            let loading = || MeasureError::system("loading");
            socket::for_data(&stream, None, None).map_err(loading())?;
            let stream = Arc::new(stream);
            let own = Arc::clone(&stream);
            let run = move || {
                let tally = FlowTally::default();
                let flow =
                    Flow { stream: &own, message_bytes: MESSAGE_BYTES, wait: Wait::Event, pacer: None, tally: &tally };
                let _ = flow.send(); // ends when either end closes
            };
            let handle = std::thread::Builder::new().name("cw-load".into()).spawn(run).map_err(loading())?;
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
