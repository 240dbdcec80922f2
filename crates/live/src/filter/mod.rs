//! The message filter: a proxy on each host that frames, classifies, queues and credits the traffic of two classes.
//!
//! Applications connect to a port of the filter on their host, as to `ssh -L`. The port says the class, and the target that
//! the filter on the other host connects to. Between two filters there is one connection; what goes over it is cut into
//! frames, which wait in two queues and leave in the order that `crosswind_policy::queue` decides: the code that the
//! simulator drives. Source: communication-interactions, section 6; the credits are those of section 5.3, repaired.
//!
//! Where do frames wait? Not in the kernel: of what an application sends only the turn is queued, its bytes stay in its own
//! socket until then; a peer's socket takes few bytes beyond those on their way; and each stream has a window. A link that is
//! emulated or shaped ([`Rate`]) is where queues form on purpose.
//!
//! | question | module |
//! |---|---|
//! | what do filters say to each other, as bytes? | [`wire`] |
//! | how do they meet? | `peers` |
//! | what is an application's connection? | `connection` |
//! | what is a peer's, and what waits before it? | `carrier` |
//! | how does a link take its time? | `pace` |
//! | what happens when? | `exchange` (the loop) |
//! | do marks of packets arrive? | [`mark`] |
//!
//! Between filters that have certificates all is sealed.
//!
//! Frames are copied through this process: spliced from socket to socket they went slower, frames of 64 KB too.

pub mod asked;
mod carrier;
mod connection;
mod counters;
mod exchange;
pub mod mark;
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
use crosswind_linux::Bell;
use exchange::Exchange;
use peers::{News, Post, attend, dial};
use settings::{About, Limits};

/// Descriptors for what is no connection.
const SOME: usize = 256;

/// A filter at work, on threads of its own; dropping it ends it.
pub struct Filter {
    post: Post,
    shown: Arc<Mutex<Counters>>,
    address: Option<String>,
    ports: Vec<String>,
    peers: usize,
    work: Option<JoinHandle<Result<(), LiveError>>>,
}

/// Where peers connect, opened before the filter that is behind it: so filters can be told of each other.
pub struct Entrance(Listener);

impl Entrance {
    /// Opens it at HOST:PORT.
    ///
    /// # Errors
    /// When the port can't be had.
    pub fn open(listen: &str, access: &Access) -> Result<Self, LiveError> {
        Listener::open(listen, access.clone()).map(Self)
    }

    /// HOST:PORT in use.
    ///
    /// # Errors
    /// When the system does not know.
    pub fn address(&self) -> Result<String, LiveError> {
        self.0.address().map_err(LiveError::system("listening"))
    }
}

impl Filter {
    /// Opens the ports and begins.
    ///
    /// # Errors
    /// When a setting is out of its range, or a port can't be had.
    pub fn open(settings: FilterSettings, access: &Access, log: Log) -> Result<Self, LiveError> {
        let entrance = settings.listen.as_ref().map(|listen| Entrance::open(listen, access)).transpose()?;
        Self::open_at(settings, entrance, access, log)
    }

    /// The same behind an entrance that is there already; what the settings say of one counts for nothing.
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
        sockets::make_room(settings.connections + 2 * PEERS + SOME);
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
        let bell = Arc::new(Bell::new().map_err(LiveError::system("making a bell"))?);
        let (connected, dialled) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let post = Post { sender, bell, wanted: Arc::new(AtomicBool::new(true)), connected, dialled };
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

    /// HOST:PORT where peers connect.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        self.address.as_deref()
    }

    /// HOST:PORT of each forward, in the order of the settings.
    #[must_use]
    pub fn ports(&self) -> &[String] {
        &self.ports
    }

    /// What was done so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until all peers that are dialled are connected; false where the time was over before.
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

    /// Ends it; all connections are closed.
    ///
    /// # Errors
    /// What ended it earlier, where something did.
    pub fn stop(mut self) -> Result<Counters, LiveError> {
        let result = self.end();
        result.map(|()| self.counters())
    }

    fn end(&mut self) -> Result<(), LiveError> {
        self.post.wanted.store(false, Ordering::Relaxed);
        self.post.tell(News::Stop);
        match self.work.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(LiveError::Lost("the filter's thread panicked".into())),
            None => Ok(()),
        }
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        // The result is reported by `stop`, or not wanted.
        let _ = self.end();
    }
}

fn spawn<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>, LiveError> {
    std::thread::Builder::new().name(name.into()).spawn(work).map_err(LiveError::system("starting a thread"))
}
