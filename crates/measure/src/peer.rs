//! The other end (`crosswind serve`): answers probes, moves their bytes and paces their channels.
//!
//! A session lives as long as its control connection, and its data connections end with it. A connection that sends
//! garbage, announces a wrong length or stays silent is dropped, with no effect on the others.

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crosswind_access::limits::{LARGEST_UNAUTHENTICATED, PATIENCE, UNAUTHENTICATED};
use crosswind_access::token::{self, Token, Transcript};
use crosswind_access::transport::is_tls;
use crosswind_access::{Access, Transport};

use crate::config::{BUFFER_BYTES, CHANNELS, CHUNK_BYTES, Direction, MESSAGE_BYTES, STREAMS, Wait, within};
use crate::error::MeasureError;
use crate::flow::{Flow, FlowTally};
use crate::loader::Loader;
use crate::overlap::echo;
use crate::overlap::spec::PingSpec;
use crate::pacer::{Gate, Pacer};
use crate::protocol::{
    Belongs, ChannelSpec, Reply, Request, Role, TICKET_BYTES, TICKET_MARK, be_greeted, be_proved, new_ticket,
    read_frame, read_frame_up_to, write_frame,
};
use crate::socket;
use crosswind_linux as linux;

const CONNECTIONS: usize = 512;
/// Most connections with which this peer loads other peers for one session.
const LOADS: u32 = 64;
/// Most unused tickets of a session.
const TICKETS: usize = 64;
/// Poll interval while the number of unauthenticated connections is at its limit.
const MAKING_ROOM: Duration = Duration::from_millis(10);
/// Interval of the checks whether to stop.
const LOOK: Duration = Duration::from_millis(100);
/// Longest silence of a probe between two requests: a unit of the user's own work may take long.
const LONGEST_BLOCK: Duration = Duration::from_secs(3600);
const RECEIVE_BUFFER: usize = 1_000_000;
const NO_SESSION: &str = "no session is open";

struct Session {
    /// Key that its connections must prove to know.
    key: Token,
    channels: Vec<(ChannelSpec, Gate)>,
    streams: Mutex<Vec<Claim>>,
}

/// A data connection of a session.
#[derive(Clone)]
struct Claim {
    channel: usize,
    stream: Arc<TcpStream>,
    /// Bytes received before it became a data connection.
    greeting: u64,
    tally: Arc<FlowTally>,
}

/// State shared by all connections of a server.
#[derive(Default)]
struct Server {
    access: Access,
    unauthenticated: AtomicUsize,
    sessions: Mutex<HashMap<u64, Arc<Session>>>,
    /// Unused tickets, and the session and channel that each is for.
    tickets: Mutex<HashMap<String, (u64, usize)>>,
    connections: AtomicUsize,
    /// The ping being answered, at most one: two would disturb each other, and a caller could keep a host burning
    /// without end.
    pinged: Mutex<Option<TcpStream>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens the port.
///
/// # Errors
/// When the address is not local or is in use, or is reachable from other hosts without access control.
pub fn listen(address: &str, access: &Access) -> Result<TcpListener, MeasureError> {
    access.permits(address)?;
    let listener = TcpListener::bind(address).map_err(MeasureError::system(format!("listening on {address}")))?;
    listener.set_nonblocking(true).map_err(MeasureError::system("listening"))?;
    Ok(listener)
}

/// Serves authenticated callers until `should_stop` returns true; it is called ten times a second.
///
/// # Errors
/// When the port fails.
pub fn serve(
    listener: &TcpListener,
    access: &Access,
    mut should_stop: impl FnMut() -> bool,
) -> Result<(), MeasureError> {
    let server = Arc::new(Server { access: access.clone(), ..Server::default() });
    while !should_stop() {
        if server.unauthenticated.load(Ordering::Relaxed) >= UNAUTHENTICATED {
            std::thread::sleep(MAKING_ROOM); // new connections wait in the kernel's backlog
            continue;
        }
        match listener.accept() {
            Ok((stream, _)) => admit(stream, &server),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait_for_caller(listener),
            // The caller disconnected before it was accepted, or descriptors are exhausted for the moment.
            Err(_) => std::thread::sleep(LOOK),
        }
    }
    for (_, session) in locked(&server.sessions).drain() {
        session.end();
    }
    if let Some(stream) = locked(&server.pinged).as_ref() {
        let _ = stream.shutdown(Shutdown::Both); // already closed is fine
    }
    Ok(())
}

fn wait_for_caller(listener: &TcpListener) {
    use std::os::fd::AsRawFd as _;
    let mut watched = [linux::watch(listener.as_raw_fd(), true, false)];
    let _ = linux::wait(&mut watched, Some(LOOK.as_nanos() as u64)); // the caller asks again
}

fn admit(stream: TcpStream, server: &Arc<Server>) {
    let (connection, before) = Counted::add(server, |server| &server.connections);
    if before >= CONNECTIONS {
        return; // dropped: the caller sees the connection end
    }
    let own = Arc::clone(server);
    let (unauthenticated, _) = Counted::add(server, |server| &server.unauthenticated);
    let run = move || {
        let _connection = connection;
        let _ = own.receive_caller(stream, unauthenticated); // an error of a caller affects that caller only
    };
    // Without a thread, everything that it would own is dropped.
    drop(std::thread::Builder::new().name("cw-peer".into()).spawn(run));
}

/// Counts in one of the server's counters until it is dropped, also by a panic.
struct Counted {
    server: Arc<Server>,
    counter: fn(&Server) -> &AtomicUsize,
}

impl Counted {
    /// Also returns how many there were before.
    fn add(server: &Arc<Server>, counter: fn(&Server) -> &AtomicUsize) -> (Self, usize) {
        let before = counter(server).fetch_add(1, Ordering::Relaxed);
        (Self { server: Arc::clone(server), counter }, before)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.counter)(&self.server).fetch_sub(1, Ordering::Relaxed);
    }
}

/// The ping being answered, until it is dropped.
struct Answering<'a>(&'a Server);

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        *locked(&self.0.pinged) = None;
    }
}

/// An open session, until it is dropped.
struct Open<'a> {
    server: &'a Server,
    number: u64,
    session: Arc<Session>,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        locked(&self.server.sessions).remove(&self.number);
        locked(&self.server.tickets).retain(|_, (of, _)| *of != self.number);
        self.session.end();
    }
}

impl Server {
    fn receive_caller(&self, stream: TcpStream, unauthenticated: Counted) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        let stream = socket::prepare(stream)?;
        let until = Instant::now() + PATIENCE;
        let mut first = [0];
        // Control connections use TLS if there are certificates; measured connections do not.
        let uses_tls = stream.peek(&mut first)? > 0 && is_tls(first[0]);
        let mut stream = Transport::accepted(stream, self.access.tls().filter(|_| uses_tls))?;
        stream.wait_until(Some(until))?;
        if first[0] == TICKET_MARK {
            return self.ticketed(stream, unauthenticated);
        }
        stream.shake_hands()?;
        let (role, transcript) = be_greeted(&mut stream)?;
        if role == Role::Control {
            if self.access.tls().is_some() && !uses_tls {
                let why = "speaks TLS, and the caller does not: --tls DIR".into();
                return write_frame(&mut stream, &Reply::Refused { why });
            }
            let transcript = Transcript { channel: stream.channel()?, ..transcript };
            let key = be_proved(&mut stream, &self.access, &transcript)?;
            drop(unauthenticated);
            return self.control(&mut stream, &key);
        }
        let belongs: Belongs = read_frame_up_to(&mut stream, LARGEST_UNAUTHENTICATED)?;
        stream.wait_until(None)?;
        let Some(mut stream) = stream.into_plain() else { return Ok(()) };
        stream.set_read_timeout(Some(PATIENCE))?;
        let session = locked(&self.sessions).get(&belongs.session).map(Arc::clone);
        let Some(session) = session.filter(|session| belongs.is_proved(role, &session.key, &transcript)) else {
            return write_frame(&mut stream, &Reply::Refused { why: "it belongs to no session here".into() });
        };
        drop(unauthenticated);
        if role == Role::Data {
            return self.data(stream, &session, belongs.channel, true);
        }
        write_frame(&mut stream, &Reply::Done {})?;
        match role {
            Role::Ping => self.pinged(stream),
            _ => {
                socket::for_data(&stream, None, None)?;
                let tally = FlowTally::default();
                let message_bytes = RECEIVE_BUFFER;
                Flow { stream: &stream, message_bytes, wait: Wait::Event, pacer: None, tally: &tally }.receive()
            }
        }
    }

    /// Handles a data connection of a foreign process, admitted by its ticket, which is valid once.
    fn ticketed(&self, mut stream: Transport, unauthenticated: Counted) -> io::Result<()> {
        let mut ticket = [0; TICKET_BYTES];
        stream.read_exact(&mut ticket)?;
        stream.wait_until(None)?;
        let Some(stream) = stream.into_plain() else { return Ok(()) };
        let found = std::str::from_utf8(&ticket).ok().and_then(|ticket| locked(&self.tickets).remove(ticket));
        let Some((number, channel)) = found else { return Ok(()) };
        let Some(session) = locked(&self.sessions).get(&number).map(Arc::clone) else { return Ok(()) };
        drop(unauthenticated);
        self.data(stream, &session, channel, false)
    }

    fn ticket(&self, open: Option<&Open<'_>>, channel: usize) -> Reply {
        let Some(Open { number, session, .. }) = open else { return Reply::Refused { why: NO_SESSION.into() } };
        if channel >= session.channels.len() {
            return Reply::Refused { why: "no such channel".into() };
        }
        let mut tickets = locked(&self.tickets);
        if tickets.values().filter(|(of, _)| of == number).count() >= TICKETS {
            return Reply::Refused { why: format!("{TICKETS} tickets are out already") };
        }
        match new_ticket() {
            Ok(ticket) => {
                tickets.insert(ticket.clone(), (*number, channel));
                Reply::Ticket { ticket }
            }
            Err(error) => Reply::Refused { why: error.to_string() },
        }
    }

    fn control(&self, stream: &mut Transport, key: &Token) -> io::Result<()> {
        let mut mine: Option<Open<'_>> = None;
        let mut loader: Option<Loader> = None;
        stream.wait_until(None)?;
        stream.socket().set_read_timeout(Some(LONGEST_BLOCK))?;
        loop {
            let reply = match read_frame::<Request>(stream)? {
                Request::Ping {} => Reply::Done {},
                Request::Open { channels } if mine.is_none() => match self.open(channels, key) {
                    Ok((reply, open)) => {
                        mine = Some(open);
                        reply
                    }
                    Err(why) => Reply::Refused { why },
                },
                Request::Open { .. } => Reply::Refused { why: "this connection has a session already".into() },
                Request::Levels { rates } => match &mine {
                    Some(open) => open.session.set_levels(&rates),
                    None => Reply::Refused { why: NO_SESSION.into() },
                },
                Request::Moved {} => match &mine {
                    Some(open) => Reply::Moved { bytes: open.session.moved() },
                    None => Reply::Refused { why: NO_SESSION.into() },
                },
                Request::Ticket { channel } => self.ticket(mine.as_ref(), channel),
                Request::Load { target, streams } => load(&mut loader, target, streams, &self.access),
            };
            write_frame(stream, &reply)?;
        }
    }

    fn pinged(&self, mut stream: TcpStream) -> io::Result<()> {
        let spec: PingSpec = read_frame(&mut stream)?;
        {
            let mut pinged = locked(&self.pinged);
            if pinged.is_some() {
                let why = "it answers another ping at the moment".into();
                return write_frame(&mut stream, &Reply::Refused { why });
            }
            *pinged = Some(stream.try_clone()?);
        }
        let _answering = Answering(self);
        echo::answer(&mut stream, &spec)
    }

    fn open(&self, channels: Vec<ChannelSpec>, key: &Token) -> Result<(Reply, Open<'_>), String> {
        // With no channels, the caller only asks for the peer's description.
        if channels.len() > CHANNELS {
            return Err(format!("{} channels; at most {CHANNELS} are served", channels.len()));
        }
        for spec in &channels {
            check(spec).map_err(|error| error.to_string())?;
        }
        let number = u64::from_be_bytes(token::random().map_err(|error| error.to_string())?);
        let channels = channels.into_iter().map(|spec| (spec, Gate::shut())).collect();
        let session = Arc::new(Session { key: key.clone(), channels, streams: Mutex::default() });
        locked(&self.sessions).insert(number, Arc::clone(&session));
        let reply = Reply::Opened { session: number, host: linux::host_name(), boot: linux::boot_id() };
        Ok((reply, Open { server: self, number, session }))
    }

    /// Moves a channel's bytes. A caller that sent a greeting first gets a reply, an admission or a refusal; a caller
    /// with a ticket gets only data.
    fn data(&self, mut stream: TcpStream, session: &Session, channel: usize, ours: bool) -> io::Result<()> {
        let tell = |reply: Reply, stream: &mut TcpStream| if ours { write_frame(stream, &reply) } else { Ok(()) };
        let place = session.channels.get(channel);
        let claimed = place.and_then(|place| Some((place, session.claim(channel, place.0.streams as usize, &stream)?)));
        let Some(((spec, gate), claim)) = claimed else {
            let why = "no such channel, or all its connections".into();
            return tell(Reply::Refused { why }, &mut stream);
        };
        if let Err(error) = socket::for_data(&stream, spec.socket_buffer_bytes, spec.congestion_control.as_deref()) {
            let name = spec.congestion_control.as_deref().unwrap_or_default();
            let why = format!("congestion control {name:?}: {error}");
            return tell(Reply::Refused { why }, &mut stream);
        }
        tell(Reply::Done {}, &mut stream)?;
        linux::exact_timers();
        let pacer = spec.paced_there.then(|| {
            let pacer = Pacer::new(gate, spec.streams, spec.pacing_chunk_bytes);
            if spec.direction == Direction::Receive { pacer.awake() } else { pacer }
        });
        let flow = Flow {
            stream: &claim.stream,
            message_bytes: spec.message_bytes as usize,
            wait: Wait::Event,
            pacer,
            tally: &claim.tally,
        };
        match spec.direction {
            Direction::Receive => flow.send_from_file(),
            Direction::Send => flow.receive_messages(),
        }
    }
}

fn check(spec: &ChannelSpec) -> Result<(), MeasureError> {
    within("message_bytes", spec.message_bytes, MESSAGE_BYTES, "bytes")?;
    within("pacing_chunk_bytes", spec.pacing_chunk_bytes, CHUNK_BYTES, "bytes")?;
    within("streams", spec.streams.into(), (1, STREAMS.into()), "connections")?;
    spec.socket_buffer_bytes.map_or(Ok(()), |bytes| within("socket_buffer_bytes", bytes, BUFFER_BYTES, "bytes"))
}

fn load(loader: &mut Option<Loader>, target: String, streams: u32, access: &Access) -> Reply {
    if streams > LOADS {
        return Reply::Refused { why: format!("{streams} loading connections; at most {LOADS}") };
    }
    if loader.as_ref().is_none_or(|loader| loader.target() != target) {
        *loader = Some(Loader::of(target, access.clone()));
    }
    match loader.as_mut().map_or(Ok(()), |loader| loader.set(streams as usize)) {
        Ok(()) => Reply::Done {},
        Err(error) => Reply::Refused { why: format!("loading: {error}") },
    }
}

impl Session {
    fn set_levels(&self, rates: &[Option<f64>]) -> Reply {
        if rates.len() != self.channels.len() {
            return Reply::Refused { why: format!("{} rates for {} channels", rates.len(), self.channels.len()) };
        }
        if rates.iter().flatten().any(|rate| !rate.is_finite() || *rate < 0.0) {
            return Reply::Refused { why: "a rate must be finite and at least 0 MB/s".into() };
        }
        for ((_, gate), rate) in self.channels.iter().zip(rates) {
            gate.set(*rate);
        }
        Reply::Done {}
    }

    /// Adds a connection to a channel, unless the channel already has all of its connections.
    fn claim(&self, channel: usize, most: usize, stream: &TcpStream) -> Option<Claim> {
        let mut streams = locked(&self.streams);
        if streams.iter().filter(|claim| claim.channel == channel).count() >= most {
            return None;
        }
        let greeting = socket::bytes_received(stream).unwrap_or_default();
        let claim = Claim { channel, stream: Arc::new(stream.try_clone().ok()?), greeting, tally: Arc::default() };
        streams.push(claim.clone());
        Some(claim)
    }

    fn moved(&self) -> Vec<u64> {
        let mut bytes = vec![0; self.channels.len()];
        for claim in locked(&self.streams).iter() {
            let spec = &self.channels[claim.channel].0;
            bytes[claim.channel] += if spec.direction == Direction::Send && !spec.paced_there {
                // The thread receives whole messages, so its count lags.
                socket::bytes_received(&claim.stream)
                    .map_or_else(|_| claim.tally.bytes(), |bytes| bytes.saturating_sub(claim.greeting))
            } else {
                claim.tally.bytes()
            };
        }
        bytes
    }

    fn end(&self) {
        for (_, gate) in &self.channels {
            gate.end();
        }
        for claim in locked(&self.streams).iter() {
            let _ = claim.stream.shutdown(Shutdown::Both); // already closed is fine
        }
    }
}
