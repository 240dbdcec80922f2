//! The filter's event loop: handles events of sockets and timers.
//!
//! It runs on one thread and never blocks on a single socket. It makes no scheduling decisions: the queues and credits of
//! `crosswind-policy`, which the simulator uses too, choose the next frame and whether it may leave.

mod input;
mod output;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

use crosswind_access::Access;
use crosswind_schema::Class;

use super::carrier::{Carrier, Ticket};
use super::connection::Connection;
use super::counters::Counters;
use super::pace::Paced;
use super::peers::{Met, News, Post, dial, reach};
use super::settings::{About, FilterSettings, Forward};
use super::slab::{Key, Slab};
use super::sockets::{Epoll, Event, is_out_of_descriptors};
use super::wire::{HEAD, Kind, LARGEST_TEXT};
use crate::error::LiveError;
use crate::log::Log;
use crosswind_linux::now_ns;

const WAKER: u64 = 0;
const DOOR: u64 = 1 << 56;
const CARRIER: u64 = 2 << 56;
const CONNECTION: u64 = 3 << 56;
/// Bits of an event's token that identify the entry within its kind.
const WHICH: u64 = (1 << 56) - 1;

/// Bytes to read from one peer before the others are served.
const TURN: usize = 1 << 20;
/// Interval between two checks for peers that make no progress, ns.
const LOOK_NS: u64 = 1_000_000_000;
/// A peer that makes no progress for this time within a frame, or with unsent output, is named in the log, ns.
const STILL_NS: u64 = 5_000_000_000;
/// A peer that makes no progress for this time within a frame is dropped, ns.
const BROKEN_NS: u64 = 30_000_000_000;
/// Number of frames on the incoming link at which peers are no longer read until some have left. Windows count bytes, but
/// even frames of few bytes take memory.
const MOST_ON_LINK: usize = 1 << 18;
/// Maximum number of threads that connect to targets, and of those for one peer.
const REACHING: (usize, usize) = (64, 16);

/// A frame on the incoming link.
struct Arrived {
    carrier: Key,
    connection: Option<Key>,
    bytes: Vec<u8>,
}

/// Why a peer is dropped: a word for the log, and what the peer did.
type Violation = (&'static str, String);

pub(super) struct Exchange {
    pub settings: FilterSettings,
    pub access: Access,
    pub own: About,
    pub log: Log,
    pub post: Post,
    pub news: Receiver<News>,
    pub shown: Arc<Mutex<Counters>>,
    pub listeners: Vec<TcpListener>,
    epoll: Epoll,
    carriers: Slab<Carrier>,
    connections: Slab<Connection>,
    /// The connection to each dialled peer.
    dialled: Vec<Option<Key>>,
    outgoing: Option<Paced<Ticket>>,
    incoming: Option<Paced<Arrived>>,
    counters: Counters,
    /// Peers and words that are already in the log.
    named: HashSet<(String, &'static str)>,
    /// Peers with more input, which are read in the next iteration.
    again: Vec<Key>,
    /// Peers that are not read while the incoming link is full.
    held_back: Vec<Key>,
    /// Closed connections and their number of frames on the incoming link. They count as connections until those have left.
    departed: HashMap<Key, usize>,
    /// Targets to connect to, with the peers and connections that wait for them.
    to_reach: VecDeque<(Key, Key, String)>,
    /// The peer of each connection whose target is being connected.
    reaching: Vec<Key>,
    /// A descriptor to release when no other is left.
    spare: Option<OwnedFd>,
    frame: Vec<u8>,
    looked_ns: u64,
}

impl Exchange {
    #[allow(clippy::too_many_arguments)] // independent values, all from one caller
    pub fn new(
        settings: FilterSettings,
        access: Access,
        own: About,
        log: Log,
        post: Post,
        news: Receiver<News>,
        shown: Arc<Mutex<Counters>>,
        listeners: Vec<TcpListener>,
    ) -> Result<Self, LiveError> {
        let epoll = Epoll::new().map_err(LiveError::system("waiting for sockets"))?;
        let watching = LiveError::system("watching a port");
        let watch = |fd, token| epoll.watch_input(fd, token);
        let all = std::iter::once((post.waker.fd(), WAKER))
            .chain(listeners.iter().enumerate().map(|(place, port)| (port.as_raw_fd(), DOOR | place as u64)));
        all.into_iter().try_for_each(|(fd, token)| watch(fd, token)).map_err(watching)?;
        Ok(Self {
            dialled: vec![None; settings.peers.len()],
            outgoing: settings.rate_out.map(|rate| Paced::new(settings.queue, rate)),
            incoming: settings.rate_in.map(|rate| Paced::new(settings.queue, rate)),
            frame: vec![0; HEAD + settings.queue.frame_bytes as usize],
            settings,
            access,
            own,
            log,
            post,
            news,
            shown,
            listeners,
            epoll,
            carriers: Slab::default(),
            connections: Slab::default(),
            counters: Counters::default(),
            named: HashSet::new(),
            again: Vec::new(),
            held_back: Vec::new(),
            departed: HashMap::new(),
            to_reach: VecDeque::new(),
            reaching: Vec::new(),
            spare: spare(),
            looked_ns: now_ns(),
        })
    }

    /// Runs until the filter is stopped.
    pub fn run(&mut self) -> Result<(), LiveError> {
        crosswind_linux::exact_timers();
        let mut announced = Vec::new();
        loop {
            self.publish();
            announced.clear();
            let due = self.due();
            let timeout = if self.again.is_empty() { due.saturating_sub(now_ns()) } else { 0 };
            self.epoll.wait(Some(timeout), &mut announced).map_err(LiveError::system("waiting for sockets"))?;
            for key in std::mem::take(&mut self.again) {
                self.read(key);
            }
            for event in &announced {
                if !self.attend(*event) {
                    self.publish();
                    return Ok(());
                }
            }
            self.pass_time(now_ns());
        }
    }

    /// Returns when a timer is due, ns.
    fn due(&self) -> u64 {
        let links = [self.outgoing.as_ref().and_then(Paced::due), self.incoming.as_ref().and_then(Paced::due)];
        let limits = self.carriers.keys().into_iter();
        let limits = limits.filter_map(|key| self.carriers.get(key)?.limits.as_ref()?.next_timer());
        links.into_iter().flatten().chain(limits).fold(self.looked_ns + LOOK_NS, u64::min)
    }

    fn publish(&mut self) {
        self.counters.peers = self.carriers.len();
        self.counters.connections = self.connections.len();
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = self.counters.clone();
    }

    /// Handles an event. Returns false if the filter is to stop.
    fn attend(&mut self, event: Event) -> bool {
        let which = event.token & WHICH;
        match event.token & !WHICH {
            WAKER => {
                self.post.waker.clear();
                while let Ok(news) = self.news.try_recv() {
                    match news {
                        News::Stop => return false,
                        News::Met(met) => self.meet(met),
                        News::Reached { carrier, key, result } => {
                            self.reached(Key::from_number(carrier), Key::from_number(key), result);
                            self.reach_targets();
                        }
                        News::Complaint { peer, word, why } => self.name(&peer, word, &why),
                    }
                }
            }
            DOOR => self.accept(which as usize),
            CARRIER => {
                let key = Key::from_number(which);
                if event.readable {
                    self.read(key);
                }
                if event.writable {
                    self.pump(key);
                }
            }
            _ => {
                let key = Key::from_number(which);
                if event.writable {
                    self.flush_connection(key);
                }
                if event.readable {
                    if let Some(connection) = self.connections.get_mut(key) {
                        connection.application_ended |= event.ended;
                    }
                    self.take_tickets(key);
                }
            }
        }
        true
    }

    /// Logs a message about a peer, once for each word.
    fn name(&mut self, peer: &str, word: &'static str, why: &str) {
        if self.named.len() < 10_000 && self.named.insert((peer.to_owned(), word)) {
            let whose = if peer.is_empty() { String::new() } else { format!("{peer}: ") };
            self.log.note(&format!("{whose}{why}"));
        }
    }

    fn meet(&mut self, met: Met) {
        let Met { socket, peer, dialled, about, rest } = met;
        let (fd, holds) = (socket.fd(), socket.holds());
        let carrier = Carrier::new(socket, peer.clone(), dialled, &about, &rest, &self.settings, now_ns());
        let carrier = match carrier {
            Ok(carrier) => carrier,
            Err(error) => return self.name(&peer, "met", &error.to_string()),
        };
        let key = self.carriers.insert(carrier);
        if let Err(error) = self.epoll.watch_both(fd, CARRIER | key.number()) {
            return self.drop_carrier(key, Some(("met", error.to_string())));
        }
        if let Some(place) = dialled {
            self.dialled[place] = Some(key);
        }
        self.count_peers();
        if holds || !rest.is_empty() {
            self.read(key);
        }
    }

    /// Publishes the count before the connection is closed, because the refused client may query it immediately.
    fn count_refusal(&mut self) {
        self.counters.refused += 1;
        self.publish();
    }

    fn count_peers(&mut self) {
        self.publish();
        self.post.connected.store(self.carriers.len(), Ordering::Relaxed);
        self.post.dialled.store(self.dialled.iter().flatten().count(), Ordering::Relaxed);
    }

    /// Removes a peer and its connections. With an offence, the peer is also counted and logged as dropped.
    fn drop_carrier(&mut self, key: Key, offence: Option<Violation>) {
        let Some(carrier) = self.carriers.remove(key) else { return };
        if let Some((word, why)) = offence {
            self.counters.peers_dropped += 1;
            self.name(&carrier.peer, word, &format!("dropped: it {why}"));
        }
        for (_, connection) in carrier.streams {
            self.forget(connection);
        }
        for class in Class::BOTH {
            let left = carrier.waiting.len(class) as u64;
            let of = self.counters.of(class);
            of.waiting_frames = of.waiting_frames.saturating_sub(left);
        }
        if let Some(place) = carrier.dialled {
            self.dialled[place] = None;
        }
        self.count_peers();
        if let Some(place) = carrier.dialled {
            let (address, own, access, post) =
                (self.settings.peers[place].clone(), self.own.clone(), self.access.clone(), self.post.clone());
            // Without a thread the peer is not dialled again, which is logged.
            if let Err(error) = std::thread::Builder::new().spawn(move || dial(place, &address, &own, &access, &post)) {
                self.name(&carrier.peer, "dialled", &error.to_string());
            }
        }
    }

    /// Closes an application's connection here.
    fn forget(&mut self, key: Key) {
        if let Some(connection) = self.connections.remove(key) {
            self.counters.held_bytes = self.counters.held_bytes.saturating_sub(connection.held() as u64);
            if let Some(carrier) = self.carriers.get_mut(connection.carrier) {
                carrier.streams.remove(&connection.number);
            }
            if connection.on_link > 0 {
                self.departed.insert(key, connection.on_link);
            }
            // Its frames that were not accepted have left the receiver's queue too.
            for _ in 0..connection.frames_left() {
                self.dequeued(connection.carrier, connection.class);
            }
        }
    }

    /// Closes a connection here and sends a reset to the peer.
    fn reset(&mut self, key: Key, why: &str) {
        let Some(connection) = self.connections.get(key) else { return };
        let (carrier, number, class) = (connection.carrier, connection.number, connection.class);
        let may_come = (!connection.peer_ended).then_some(connection.may_come);
        self.forget(key);
        self.send_reset(carrier, class, number, may_come, why);
    }

    /// Sends a reset. Until the peer answers, `may_come` more bytes of the stream may arrive.
    fn send_reset(&mut self, carrier: Key, class: Class, number: u32, may_come: Option<usize>, why: &str) {
        if let (Some(found), Some(may_come)) = (self.carriers.get_mut(carrier), may_come) {
            found.closing.insert(number, may_come);
        }
        self.send_control(carrier, Kind::Reset, class, number, clipped(why).as_bytes());
    }

    /// Returns whether the maximum number of connections is reached.
    fn is_full(&self) -> bool {
        self.connections.len() + self.departed.len() >= self.settings.connections
    }

    fn send_control(&mut self, carrier: Key, kind: Kind, class: Class, number: u32, payload: &[u8]) {
        if let Some(found) = self.carriers.get_mut(carrier) {
            found.send_control(kind, class, number, payload);
            if let Err(error) = found.flush(now_ns()) {
                self.lost(carrier, &error);
            }
        }
    }

    /// Handles an error at a peer's socket: the peer has disconnected, or requests more than it reads.
    fn lost(&mut self, key: Key, error: &io::Error) {
        let offence = (error.kind() == io::ErrorKind::Other).then(|| ("deaf", error.to_string()));
        self.drop_carrier(key, offence);
    }

    /// Accepts applications that connect to a port.
    fn accept(&mut self, place: usize) {
        loop {
            let socket = match self.listeners[place].accept() {
                Ok((socket, _)) => socket,
                Err(error) if is_out_of_descriptors(&error) && self.spare.take().is_some() => {
                    // The pending connection would be reported again and again, so it is accepted and closed.
                    self.count_refusal();
                    drop(self.listeners[place].accept());
                    self.spare = spare();
                    self.name("applications", "many", "no descriptor is left (ulimit -n); a connection was refused");
                    continue;
                }
                Err(_) => return,
            };
            let Forward { class, target, peer, .. } = self.settings.forwards[place].clone();
            let carrier = self.dialled[peer];
            if self.is_full() {
                self.count_refusal();
                let most = self.settings.connections;
                self.name("applications", "many", &format!("more than {most} connections at a time; one was refused"));
                continue;
            }
            let Some((key, carrier)) = carrier.and_then(|key| Some((key, self.carriers.get_mut(key)?))) else {
                self.count_refusal();
                let peer = self.settings.peers[peer].clone();
                self.name(&peer, "absent", "is not connected; a connection to it was refused");
                continue;
            };
            let number = carrier.next_number;
            // A number is reused after 2^32 others, unless a connection still uses it.
            carrier.next_number = carrier.next_number.checked_add(1).unwrap_or(1);
            if carrier.streams.contains_key(&number) || carrier.closing.contains_key(&number) {
                continue;
            }
            let may_send = carrier.window;
            if self.add(Some(socket), key, number, class, may_send).is_some() {
                self.send_control(key, Kind::Open, class, number, target.as_bytes());
            }
        }
    }

    /// Adds an application's connection. If it has a socket, the socket is watched.
    fn add(
        &mut self,
        socket: Option<TcpStream>,
        carrier: Key,
        number: u32,
        class: Class,
        may_send: usize,
    ) -> Option<Key> {
        let connection = Connection::new(None, carrier, number, class, may_send, self.settings.window as usize);
        let key = self.connections.insert(connection);
        self.carriers.get_mut(carrier)?.streams.insert(number, key);
        self.counters.connections_made += 1;
        if let Some(socket) = socket {
            if self.begin(key, socket).is_err() {
                self.forget(key);
                return None;
            }
        }
        Some(key)
    }

    fn begin(&mut self, key: Key, socket: TcpStream) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        self.epoll.watch_both(socket.as_raw_fd(), CONNECTION | key.number())?;
        if let Some(connection) = self.connections.get_mut(key) {
            connection.socket = Some(socket);
        }
        Ok(())
    }

    fn reached(&mut self, carrier: Key, key: Key, result: Result<TcpStream, String>) {
        if let Some(place) = self.reaching.iter().position(|busy| *busy == carrier) {
            self.reaching.swap_remove(place);
        }
        let Some(connection) = self.connections.get(key) else { return };
        let (carrier, number, class) = (connection.carrier, connection.number, connection.class);
        match result.and_then(|socket| self.begin(key, socket).map_err(|error| error.to_string())) {
            Ok(()) => {
                self.send_control(carrier, Kind::Opened, class, number, &[]);
                self.flush_connection(key);
            }
            Err(why) => {
                self.count_refusal();
                self.reset(key, &why);
            }
        }
    }

    /// Opens a connection to a target, on request of a peer.
    fn open(&mut self, carrier: Key, number: u32, class: Class, target: String) {
        if self.is_full() {
            self.count_refusal();
            let window = Some(self.settings.window as usize);
            return self.send_reset(carrier, class, number, window, "there is no room for another connection");
        }
        let may_send = self.carriers.get(carrier).map_or(0, |carrier| carrier.window);
        if let Some(key) = self.add(None, carrier, number, class, may_send) {
            if self.to_reach.len() >= self.settings.connections {
                // A client may open and reset connections repeatedly.
                self.to_reach.retain(|(_, key, _)| self.connections.get(*key).is_some());
            }
            self.to_reach.push_back((carrier, key, target));
            self.reach_targets();
        }
    }

    /// Starts connecting to targets in the order of the requests, with a limit for each peer.
    fn reach_targets(&mut self) {
        while self.reaching.len() < REACHING.0 {
            let of = |peer: &Key| self.reaching.iter().filter(|busy| *busy == peer).count();
            let Some(place) = self.to_reach.iter().position(|(peer, ..)| of(peer) < REACHING.1) else { return };
            let Some((carrier, key, target)) = self.to_reach.remove(place) else { return };
            if self.connections.get(key).is_none() {
                continue;
            }
            self.reaching.push(carrier);
            let post = self.post.clone();
            let work = move || {
                let result = reach(&target).map_err(|error| format!("{target}: {error}"));
                post.send(News::Reached { carrier: carrier.number(), key: key.number(), result });
            };
            if let Err(error) = std::thread::Builder::new().stack_size(256 << 10).spawn(work) {
                self.reached(carrier, key, Err(error.to_string()));
            }
        }
    }

    fn pass_time(&mut self, now: u64) {
        while let Some((class, bytes, ticket, left_ns)) = self.outgoing.as_mut().and_then(|link| link.take(now)) {
            self.left_a_link(left_ns, now);
            self.send(class, bytes, ticket, now);
            // If the frame was not sent because its application is gone, its credit is free for another.
            self.pump(ticket.carrier);
        }
        while let Some((class, _, arrived, left_ns)) = self.incoming.as_mut().and_then(|link| link.take(now)) {
            self.left_a_link(left_ns, now);
            let Arrived { carrier, connection: known, bytes } = arrived;
            match known.and_then(|known| self.connections.get_mut(known)) {
                Some(connection) => {
                    connection.on_link -= 1;
                    let ends = connection.peer_ended && connection.on_link == 0;
                    let result = connection.deliver(&bytes);
                    self.delivered(carrier, known, class, result);
                    if ends {
                        known.into_iter().for_each(|known| self.flush_connection(known));
                    }
                }
                None => {
                    known.into_iter().for_each(|known| self.depart(known));
                    self.dequeued(carrier, class);
                }
            }
        }
        if self.incoming.as_ref().is_some_and(|link| link.len() < MOST_ON_LINK) {
            self.again.append(&mut self.held_back);
        }
        for key in self.carriers.keys() {
            let limits = self.carriers.get_mut(key).and_then(|carrier| carrier.limits.as_mut());
            if let Some(grant) = limits.and_then(|limits| limits.on_timer(now)) {
                self.grant(key, grant);
            }
        }
        if now >= self.looked_ns + LOOK_NS {
            self.looked_ns = now;
            self.look(now);
        }
    }

    /// Records that a frame of a closed connection has left the incoming link.
    fn depart(&mut self, key: Key) {
        if let Entry::Occupied(mut left) = self.departed.entry(key) {
            *left.get_mut() -= 1;
            if *left.get() == 0 {
                left.remove();
            }
        }
    }

    fn left_a_link(&mut self, left_ns: u64, now: u64) {
        self.counters.paced_frames += 1;
        self.counters.late_s += now.saturating_sub(left_ns) as f64 * 1e-9;
    }

    /// Logs peers that make no progress, and drops those that do not complete a frame.
    fn look(&mut self, now: u64) {
        for key in self.carriers.keys() {
            let Some(carrier) = self.carriers.get(key) else { continue };
            let (still, peer) = (now.saturating_sub(carrier.moved_ns), carrier.peer.clone());
            if carrier.has_begun() && still > BROKEN_NS {
                self.drop_carrier(key, Some(("half", "began a frame and did not end it".into())));
            } else if carrier.has_begun() && still > STILL_NS {
                self.name(&peer, "half", "began a frame and does not end it");
            } else if !carrier.has_room() && still > STILL_NS {
                self.name(&peer, "still", "takes nothing any more; what goes to it waits");
            }
        }
    }
}

fn spare() -> Option<OwnedFd> {
    std::fs::File::open("/dev/null").ok().map(OwnedFd::from)
}

/// Truncates a reason to the longest permitted text.
fn clipped(text: &str) -> &str {
    let mut end = text.len().min(LARGEST_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
