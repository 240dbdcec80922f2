//! The message filter: a proxy on each host that frames, classifies, queues and credits the traffic of two classes.
//!
//! Applications connect to a port of the filter on their host, as with `ssh -L`. The port determines the class, and the
//! target to which the filter on the other host connects. Two filters share one connection. Its traffic is cut into
//! frames, which wait in two queues and leave in the order set by `crosswind_policy::queue`, the code that the simulator
//! drives. Source: communication-interactions, section 6; the credits are those of section 5.3, repaired.
//!
//! Frames do not wait in the kernel. The queues hold only tickets for an application's bytes, which stay in its own
//! socket until sent. A peer's socket takes few bytes beyond those in flight, and each stream has a window. Only an
//! emulated or shaped link ([`Rate`]) forms queues, on purpose.
//!
//! | question | module |
//! |---|---|
//! | which bytes do filters exchange? | [`wire`] |
//! | how do filters connect and authenticate? | `peers` |
//! | what is the state of an application's connection? | `connection` |
//! | what is the state of a peer's connection, and which frames wait for it? | `carrier` |
//! | how is a link emulated? | `pace` |
//! | what handles events? | `exchange` (the event loop) |
//! | do marks of packets arrive? | [`mark`] |
//!
//! Filters with certificates use TLS between them.
//!
//! Frames are copied through this process: splicing them from socket to socket was slower, even for frames of 64 KB.

mod carrier;
mod connection;
mod counters;
mod exchange;
pub mod mark;
pub mod options;
mod pace;
mod peers;
mod settings;
mod slab;
mod sockets;
pub mod wire;

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crosswind_access::Access;

pub use counters::{ClassCounters, Counters};
pub use pace::Rate;
pub use peers::free_loopback;
pub use settings::{CONNECTIONS, FilterSettings, Forward, PEERS, WINDOW};
pub(crate) use sockets::connect_marked;

use crate::error::LiveError;
use crate::listener::Listener;
use crate::log::Log;
use crosswind_linux::Waker;
use exchange::Exchange;
use peers::{News, Post, attend, dial};
use settings::{About, Limits};

/// Descriptors for anything other than connections.
const SOME: usize = 256;

/// A running filter, on its own threads. Dropping it ends it.
pub struct Filter {
    post: Post,
    shown: Arc<Mutex<Counters>>,
    address: Option<String>,
    ports: Vec<String>,
    peers: usize,
    work: Option<JoinHandle<Result<(), LiveError>>>,
}

/// Listener for peers. It can be opened before its filter, so that filters can be given each other's addresses.
pub struct Entrance(Listener);

impl Entrance {
    /// Opens a listener at HOST:PORT.
    ///
    /// # Errors
    /// When the port cannot be bound.
    pub fn open(listen: &str, access: &Access) -> Result<Self, LiveError> {
        Listener::open(listen, access.clone()).map(Self)
    }

    /// Returns the HOST:PORT in use.
    ///
    /// # Errors
    /// When the socket has failed.
    pub fn address(&self) -> Result<String, LiveError> {
        self.0.address().map_err(LiveError::system("listening"))
    }
}

impl Filter {
    /// Opens the ports and starts the filter.
    ///
    /// # Errors
    /// When a setting is out of its range, or a port cannot be bound.
    pub fn open(settings: FilterSettings, access: &Access, log: Log) -> Result<Self, LiveError> {
        let entrance = settings.listen.as_ref().map(|listen| Entrance::open(listen, access)).transpose()?;
        Self::open_at(settings, entrance, access, log)
    }

    /// Does the same with an existing entrance. `listen` in the settings is ignored.
    ///
    /// # Errors
    /// As [`Filter::open`].
    pub fn open_at(
        settings: FilterSettings,
        entrance: Option<Entrance>,
        access: &Access,
        log: Log,
    ) -> Result<Self, LiveError> {
        settings.check(entrance.is_some())?;
        settings.peers.iter().try_for_each(|peer| access.permits(peer))?;
        crosswind_linux::make_room(settings.connections + 2 * PEERS + SOME);
        let address = entrance.as_ref().map(Entrance::address).transpose()?;
        let mut listeners = Vec::new();
        let mut ports = Vec::new();
        for forward in &settings.forwards {
            let listening = || LiveError::system(format!("listening on {}", forward.listen));
            let listener = TcpListener::bind(&forward.listen).map_err(listening())?;
            listener.set_nonblocking(true).map_err(listening())?;
            ports.push(listener.local_addr().map_err(listening())?.to_string());
            listeners.push(listener);
        }
        let (sender, news) = channel();
        let waker = Arc::new(Waker::new().map_err(LiveError::system("creating a waker"))?);
        let (connected, dialled) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let post = Post { sender, waker, wanted: Arc::new(AtomicBool::new(true)), connected, dialled };
        let own = About {
            version: About::VERSION,
            window: settings.window,
            limits: settings.credits.as_ref().map(Limits::of),
            tos: None,
        };
        let shown = Arc::new(Mutex::new(Counters::default()));
        let peers = settings.peers.clone();
        let mut exchange =
            Exchange::new(settings, access.clone(), own.clone(), log, post.clone(), news, shown.clone(), listeners)?;
        if let Some(Entrance(listener)) = entrance {
            let (own, post) = (own.clone(), post.clone());
            spawn("filter-listener", move || attend(listener, &own, &post))?;
        }
        for (place, peer) in peers.iter().cloned().enumerate() {
            let (own, access, post) = (own.clone(), access.clone(), post.clone());
            spawn("filter-dial", move || dial(place, &peer, &own, &access, &post))?;
        }
        let ends = post.clone();
        let work = spawn("filter", move || {
            let result = exchange.run();
            ends.wanted.store(false, Ordering::Relaxed);
            result
        })?;
        Ok(Self { post, shown, address, ports, peers: peers.len(), work: Some(work) })
    }

    /// Returns the HOST:PORT where peers connect. `None` if there is no listener.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        self.address.as_deref()
    }

    /// Returns the HOST:PORT of each forward, in the order of the settings.
    #[must_use]
    pub fn ports(&self) -> &[String] {
        &self.ports
    }

    #[must_use]
    pub fn counters(&self) -> Counters {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until all dialled peers are connected. Returns false if that takes longer than `patience`, or the filter ends.
    #[must_use]
    pub fn wait_for_peers(&self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        while self.post.dialled.load(Ordering::Relaxed) < self.peers {
            if Instant::now() >= until || !self.post.is_wanted() {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        true
    }

    #[must_use]
    pub fn is_at_work(&self) -> bool {
        self.work.as_ref().is_some_and(|work| !work.is_finished())
    }

    /// Ends the filter and closes all connections.
    ///
    /// # Errors
    /// What ended the filter earlier, if anything did.
    pub fn stop(mut self) -> Result<Counters, LiveError> {
        let result = self.end();
        result.map(|()| self.counters())
    }

    fn end(&mut self) -> Result<(), LiveError> {
        self.post.wanted.store(false, Ordering::Relaxed);
        self.post.send(News::Stop);
        match self.work.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(panic)) => Err(LiveError::panicked("the filter's thread", &*panic)),
            None => Ok(()),
        }
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        // Only `stop` reports the result.
        let _ = self.end();
    }
}

fn spawn<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>, LiveError> {
    std::thread::Builder::new().name(name.into()).spawn(work).map_err(LiveError::system("starting a thread"))
}
