//! This end's view of a peer: the control connection, and the data connections with their threads.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crosswind_access::limits::PATIENCE;
use crosswind_access::place::host;
use crosswind_access::token::{Token, Transcript};
use crosswind_access::{Access, Transport};
use serde::Serialize;

use crate::config::{Config, Direction};
use crate::error::MeasureError;
use crate::flow::{Flow, FlowTally};
use crate::pacer::{Gate, Pacer};
use crate::protocol::{Belongs, ChannelSpec, Reply, Request, Role, greet, prove, read_frame, write_frame};
use crate::socket::{self, InForce};
use crosswind_linux as linux;

use crate::placement;

const PINGS: usize = 11;
const ODD: &str = "it answers something else than was asked";

pub struct Control {
    address: String,
    stream: Transport,
    key: Token,
}

impl Control {
    /// Connects, and authenticates with the token and the certificate, if configured.
    ///
    /// # Errors
    /// When the peer cannot be reached, speaks another protocol, or fails to authenticate.
    pub fn connect(address: &str, access: &Access) -> Result<Self, MeasureError> {
        access.permits(address)?;
        let socket = connected(address)?;
        let control = || {
            let mut stream = Transport::dialled(socket, access.tls())?;
            stream.wait_until(Some(Instant::now() + PATIENCE))?;
            stream.shake_hands()?;
            stream.names(host(address)).map_err(io::Error::other)?;
            let transcript = greet(&mut stream, Role::Control)?;
            let transcript = Transcript { channel: stream.channel()?, ..transcript };
            let key = prove(&mut stream, access, &transcript)?;
            stream.wait_until(None)?;
            stream.socket().set_read_timeout(Some(PATIENCE))?;
            Ok(Self { address: address.to_owned(), stream, key })
        };
        control().map_err(|error| refused(address, error))
    }

    /// Opens a session. Callers that only query, load or ping need no channels.
    ///
    /// # Errors
    /// When the peer is lost or refuses.
    pub fn open(&mut self, channels: Vec<ChannelSpec>) -> Result<Session, MeasureError> {
        match self.ask(&Request::Open { channels })? {
            Reply::Opened { session, host, boot } => Ok(Session { number: session, host, boot, key: self.key.clone() }),
            _ => Err(MeasureError::Refused { peer: self.address.clone(), why: ODD.into() }),
        }
    }

    /// Sends a request and waits for the reply.
    ///
    /// # Errors
    /// When the peer is lost or refuses.
    pub fn ask(&mut self, request: &Request) -> Result<Reply, MeasureError> {
        let reply = write_frame(&mut self.stream, request).and_then(|()| read_frame(&mut self.stream));
        match reply {
            Ok(Reply::Refused { why }) => Err(MeasureError::Refused { peer: self.address.clone(), why }),
            Ok(reply) => Ok(reply),
            Err(error) => Err(self.lost(&error)),
        }
    }

    fn lost(&self, error: &io::Error) -> MeasureError {
        let why = match error.kind() {
            io::ErrorKind::WouldBlock => "no answer for 5 s".into(),
            io::ErrorKind::UnexpectedEof => "it closed the connection".into(),
            _ => error.to_string(),
        };
        MeasureError::Lost { peer: self.address.clone(), why }
    }

    fn round_trip(&mut self) -> Result<Duration, MeasureError> {
        let mut times = Vec::with_capacity(PINGS);
        for _ in 0..PINGS {
            let start = Instant::now();
            self.ask(&Request::Ping {})?;
            times.push(start.elapsed());
        }
        times.sort();
        Ok(times[PINGS / 2])
    }
}

/// A session at a peer, as seen by its opener.
pub struct Session {
    number: u64,
    /// Host name reported by the peer.
    pub host: String,
    /// Boot id of its kernel.
    pub boot: String,
    key: Token,
}

impl Session {
    /// Opens another connection, which the peer has accepted as one of the session's.
    ///
    /// # Errors
    /// When the peer cannot be reached, or refuses.
    pub fn join(&self, address: &str, role: Role, channel: usize) -> Result<TcpStream, MeasureError> {
        let mut stream = connected(address)?;
        let mut joined = || {
            let transcript = greet(&mut stream, role)?;
            write_frame(&mut stream, &Belongs::new(self.number, role, channel, &self.key, &transcript))?;
            read_frame(&mut stream)
        };
        match joined().map_err(|error| refused(address, error))? {
            Reply::Done {} => Ok(stream),
            Reply::Refused { why } => Err(MeasureError::Refused { peer: address.into(), why }),
            _ => Err(MeasureError::Refused { peer: address.into(), why: ODD.into() }),
        }
    }
}

fn connected(address: &str) -> Result<TcpStream, MeasureError> {
    socket::connect(address).map_err(|source| MeasureError::Unreachable { peer: address.to_owned(), source })
}

fn refused(address: &str, error: io::Error) -> MeasureError {
    let why = match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "it does not answer the greeting within 5 s".into(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => "it hangs up at the greeting".into(),
        _ => error.to_string(),
    };
    MeasureError::Refused { peer: address.to_owned(), why }
}

/// A peer with a session.
pub struct PeerLink {
    pub address: String,
    /// Host name reported by the peer.
    pub host: String,
    /// Whether it runs on the same kernel.
    pub loopback: bool,
    /// Median round-trip time of the control connection, s.
    pub rtt_s: f64,
    control: Control,
    session: Session,
}

/// Description of a peer in a measurement's file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Peer {
    address: String,
    host: String,
    loopback: bool,
    rtt_s: f64,
}

impl PeerLink {
    /// Returns the peer's description for a measurement's file.
    #[must_use]
    pub fn described(&self) -> Peer {
        Peer { address: self.address.clone(), host: self.host.clone(), loopback: self.loopback, rtt_s: self.rtt_s }
    }

    /// Opens a session with these channels.
    ///
    /// # Errors
    /// When the peer cannot be reached, or refuses.
    pub fn open(address: &str, channels: Vec<ChannelSpec>, access: &Access) -> Result<Self, MeasureError> {
        let mut control = Control::connect(address, access)?;
        let session = control.open(channels)?;
        let rtt_s = control.round_trip()?.as_secs_f64();
        let loopback = !session.boot.is_empty() && session.boot == linux::boot_id();
        Ok(Self { address: address.to_owned(), host: session.host.clone(), loopback, rtt_s, control, session })
    }

    /// Returns the bytes that the peer has counted on each channel.
    ///
    /// # Errors
    /// When the peer is lost.
    pub fn moved(&mut self) -> Result<Vec<u64>, MeasureError> {
        match self.control.ask(&Request::Moved {})? {
            Reply::Moved { bytes } => Ok(bytes),
            _ => Err(MeasureError::Refused { peer: self.address.clone(), why: ODD.into() }),
        }
    }

    /// Requests a ticket for one data connection of a channel.
    ///
    /// # Errors
    /// When the peer is lost or refuses.
    pub fn ticket(&mut self, channel: usize) -> Result<String, MeasureError> {
        match self.control.ask(&Request::Ticket { channel })? {
            Reply::Ticket { ticket } => Ok(ticket),
            _ => Err(MeasureError::Refused { peer: self.address.clone(), why: ODD.into() }),
        }
    }

    /// Returns the address and port at which the peer was reached.
    ///
    /// # Errors
    /// When the peer is lost.
    pub fn reached(&self) -> Result<SocketAddr, MeasureError> {
        self.control.stream.socket().peer_addr().map_err(|error| self.control.lost(&error))
    }

    /// Sends the peer the rates of its channels, MB/s, and waits for its confirmation.
    ///
    /// # Errors
    /// When the peer is lost.
    pub fn set_levels(&mut self, rates: Vec<Option<f64>>) -> Result<(), MeasureError> {
        self.control.ask(&Request::Levels { rates }).map(drop)
    }
}

/// One direction of one peer, at this end.
pub struct ChannelLink {
    direction: Direction,
    /// Present if this end paces the channel.
    gate: Option<Arc<Gate>>,
    flows: Vec<FlowThread>,
    address: String,
}

struct FlowThread {
    stream: Arc<TcpStream>,
    tally: Arc<FlowTally>,
    handle: Option<JoinHandle<()>>,
}

impl ChannelLink {
    /// Connects a channel's streams and starts their threads.
    ///
    /// # Errors
    /// When a connection, a socket setting or a placement is refused.
    pub fn open(config: &Config, peer: &PeerLink, channel: usize, direction: Direction) -> Result<Self, MeasureError> {
        let gate = config.paced_here(direction).then(|| Arc::new(Gate::shut()));
        let mut link = Self { direction, gate, flows: Vec::new(), address: peer.address.clone() };
        for _ in 0..config.streams {
            let stream = peer.session.join(&peer.address, Role::Data, channel)?;
            let congestion = config.congestion_control.as_deref();
            socket::for_data(&stream, config.socket_buffer_bytes, congestion)
                .map_err(MeasureError::system(format!("setting congestion control {congestion:?}")))?;
            link.flows.push(start(config, stream, direction, link.gate.clone())?);
        }
        Ok(link)
    }

    /// Returns the direction as seen from this host.
    #[must_use]
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Sets the rate of the gate, if this end paces the channel.
    pub fn set_level(&self, rate_mb_per_s: Option<f64>) {
        if let Some(gate) = &self.gate {
            gate.set(rate_mb_per_s);
        }
    }

    pub fn tallies(&self) -> impl Iterator<Item = &FlowTally> {
        self.flows.iter().map(|flow| &*flow.tally)
    }

    /// Returns the bytes moved so far: received here, or acknowledged by the other end's TCP.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let sent = |flow: &FlowThread| socket::bytes_acknowledged(&flow.stream).unwrap_or_else(|_| flow.tally.bytes());
        match self.direction {
            Direction::Receive => self.tallies().map(FlowTally::bytes).sum(),
            Direction::Send => self.flows.iter().map(sent).sum(),
        }
    }

    /// Returns the settings in force on the first connection.
    #[must_use]
    pub fn in_force(&self) -> InForce {
        self.flows.first().map(|flow| socket::in_force(&flow.stream)).unwrap_or_default()
    }

    /// Checks that every connection is still open.
    ///
    /// # Errors
    /// When one has ended.
    pub fn check(&self) -> Result<(), MeasureError> {
        if self.tallies().any(FlowTally::ended) {
            let why = "a data connection ended".into();
            return Err(MeasureError::Lost { peer: self.address.clone(), why });
        }
        Ok(())
    }
}

impl Drop for ChannelLink {
    fn drop(&mut self) {
        if let Some(gate) = &self.gate {
            gate.end();
        }
        for flow in &self.flows {
            let _ = flow.stream.shutdown(Shutdown::Both); // already closed is fine
        }
        for handle in self.flows.iter_mut().filter_map(|flow| flow.handle.take()) {
            let _ = handle.join();
        }
    }
}

fn start(
    config: &Config,
    stream: TcpStream,
    direction: Direction,
    gate: Option<Arc<Gate>>,
) -> Result<FlowThread, MeasureError> {
    let (stream, tally) = (Arc::new(stream), Arc::new(FlowTally::default()));
    let (own_stream, own_tally) = (Arc::clone(&stream), Arc::clone(&tally));
    let (cpus, nice, wait) = (config.placement.traffic_cpus.clone(), config.placement.traffic_nice, config.wait);
    let (message_bytes, chunk, streams) = (config.message_bytes as usize, config.pacing_chunk_bytes, config.streams);
    let (ready, placed) = std::sync::mpsc::channel();
    let run = move || {
        own_tally.belongs_to_this_thread();
        let result = placement::place_this_thread("a traffic thread", &cpus, nice);
        let stays = result.is_ok();
        let _ = ready.send(result); // the waiting thread may have ended
        if stays {
            linux::exact_timers();
            let pacer = gate.as_deref().map(|gate| Pacer::new(gate, streams, chunk));
            let flow = Flow { stream: &own_stream, message_bytes, wait, pacer, tally: &own_tally };
            // An unrequested end shows in the tally.
            let _ = if direction == Direction::Send { flow.send() } else { flow.receive() };
        }
    };
    let handle = std::thread::Builder::new()
        .name("cw-traffic".into())
        .spawn(run)
        .map_err(MeasureError::system("starting a traffic thread"))?;
    placed.recv().unwrap_or_else(|_| Err(MeasureError::Task("a traffic thread ended".into())))?;
    Ok(FlowThread { stream, tally, handle: Some(handle) })
}
