//! Connections of a foreign process: configured from this process, with byte counts from the kernel.

use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crosswind_linux::tcp_counts::{Connection, TcpCounts, borrow_socket};

use super::lines::Request;
use super::process::Process;
use crate::config::{Config, Direction};
use crate::error::MeasureError;
use crate::link::PeerLink;
use crate::socket::{self, InForce};

/// Time limit for an announced connection to appear.
const TO_APPEAR: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(2);
/// Longest wait for buffers to fill at silence: a sender continues until all of them are full.
const TO_FALL_SILENT: Duration = Duration::from_millis(300);

struct Channel {
    direction: Direction,
    flows: Vec<Connection>,
    /// Whether its last rate was 0.
    silent: bool,
}

/// All connections of a process, channel by channel.
pub struct Flows {
    counts: TcpCounts,
    channels: Vec<Channel>,
    in_force: Option<InForce>,
    sockets_set: bool,
}

impl Flows {
    /// Creates an empty set of connections.
    ///
    /// # Errors
    /// When the kernel does not report counters of other processes.
    pub fn none() -> io::Result<Self> {
        Ok(Self { counts: TcpCounts::open()?, channels: Vec::new(), in_force: None, sockets_set: true })
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.channels.is_empty()
    }

    /// Drops all connections: the process is about to close them.
    pub fn give_up(&mut self) {
        self.channels.clear();
    }

    /// Makes the process connect the streams of a channel, and sets their buffers and congestion control.
    ///
    /// # Errors
    /// When the peer refuses, or a connection is not established.
    pub fn open(
        &mut self,
        process: &mut Process,
        config: &Config,
        peer: &mut PeerLink,
        place: usize,
        direction: Direction,
    ) -> Result<(), MeasureError> {
        let mut channel = Channel { direction, flows: Vec::new(), silent: true };
        for _ in 0..config.streams {
            let (to, ticket) = (peer.reached()?, peer.ticket(place)?);
            let request = Request::Flow { direction, to, ticket: &ticket, message_bytes: config.message_bytes };
            let port = process.flow(&request)?;
            let deadline = Instant::now() + TO_APPEAR;
            let found = loop {
                let found = self.counts.find(port, (to.ip(), to.port()));
                match found.map_err(MeasureError::system("asking the kernel for a connection (sock_diag)"))? {
                    Some(found) => break found,
                    None if Instant::now() < deadline => sleep(LOOK),
                    None => {
                        let why = format!("it said that port {port} is connected to {to}; there is no such connection");
                        return Err(process.wrong(&why));
                    }
                }
            };
            self.set_up(process, config, &found)?;
            channel.flows.push(found);
        }
        self.channels.push(channel);
        Ok(())
    }

    /// Languages differ in the socket options they offer, so options are set from this process. If the system does
    /// not let a process do that to its child, the child's own settings stay in force and the header records that.
    fn set_up(&mut self, process: &Process, config: &Config, flow: &Connection) -> Result<(), MeasureError> {
        let Ok(stream) = borrow_socket(process.number(), flow.inode) else {
            self.sockets_set = false;
            return Ok(());
        };
        let congestion = config.congestion_control.as_deref();
        socket::for_data(&stream, config.socket_buffer_bytes, congestion)
            .map_err(MeasureError::system(format!("setting congestion control {congestion:?}")))?;
        self.in_force = Some(socket::in_force(&stream));
        Ok(())
    }

    /// Returns the bytes of each channel so far: received, or acknowledged by the other end's TCP.
    ///
    /// # Errors
    /// `NotFound` when a connection has ended.
    pub fn bytes(&self) -> io::Result<Vec<u64>> {
        self.channels.iter().map(|channel| self.bytes_of(channel)).collect()
    }

    fn bytes_of(&self, channel: &Channel) -> io::Result<u64> {
        let mut sum = 0;
        for flow in &channel.flows {
            let moved = self.counts.moved(flow)?;
            sum += if channel.direction == Direction::Send { moved.acknowledged } else { moved.received };
        }
        Ok(sum)
    }

    /// Records the rates, and waits until senders that are to be silent have filled the buffers.
    ///
    /// # Errors
    /// `NotFound` when a connection has ended.
    pub fn set_levels(&mut self, levels: &[Option<f64>]) -> io::Result<()> {
        let deadline = Instant::now() + TO_FALL_SILENT;
        for (at, level) in levels.iter().enumerate().take(self.channels.len()) {
            let silent = *level == Some(0.0);
            let was_silent = std::mem::replace(&mut self.channels[at].silent, silent);
            if silent && !was_silent && self.channels[at].direction == Direction::Send {
                let (mut last, mut still) = (u64::MAX, 0);
                while still < 2 && Instant::now() < deadline {
                    let bytes = self.bytes_of(&self.channels[at])?;
                    still = if bytes == last { still + 1 } else { 0 };
                    last = bytes;
                    sleep(LOOK);
                }
            }
        }
        Ok(())
    }

    /// Whether buffers and congestion control could be set.
    #[must_use]
    pub fn sockets_set(&self) -> bool {
        self.sockets_set
    }

    /// Returns the settings in force on the last connection that was set up.
    #[must_use]
    pub fn in_force(&self) -> InForce {
        let unknown = || InForce { congestion_control: "unknown".into(), ..InForce::default() };
        self.in_force.clone().unwrap_or_else(unknown)
    }
}
