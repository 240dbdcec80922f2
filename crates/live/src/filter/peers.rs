//! How filters connect: a peer dials this filter or is dialled by it. Both ends prove that they know the token.
//!
//! Handshakes take time and may stay unanswered, so each direction has its own thread. Authenticated peers are passed to
//! the exchange. A dialled peer is dialled again after its connection is lost.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use crosswind_access::place::resolve;
use crosswind_access::{Access, Transport};
use crosswind_agent::frame::{Frame, Refusal};

use super::settings::{About, PEERS};
use super::sockets::arrived_mark;
use crate::dial::{Entered, Handshake, PeerRole};
use crate::error::LiveError;
use crate::listener::{AuthenticatedPeer, Listener, refuse};
use crosswind_linux::{self as linux, Waker, now_ns, watch};

/// The name that a filter uses to authenticate.
pub(super) const NAME: &str = "filter";
/// How long a peer is dialled before the thread checks whether it is still wanted, s.
const PATIENCE_S: f64 = 2.0;
/// Interval at which the listener checks whether it is still wanted, ns.
const LOOK_NS: u64 = 200_000_000;
/// Time limit for connecting to one address of a target.
const REACH: Duration = Duration::from_secs(5);

pub(super) struct Met {
    pub socket: Transport,
    /// Its address; without the port if it dialled this filter.
    pub peer: String,
    /// Its index among the dialled peers. `None` if it dialled this filter.
    pub dialled: Option<usize>,
    pub about: About,
    pub rest: Vec<u8>,
}

/// Messages of other threads to the exchange.
pub(super) enum News {
    Met(Met),
    /// The outcome of connecting to a target.
    Reached {
        carrier: u64,
        key: u64,
        result: Result<TcpStream, String>,
    },
    /// A complaint about a peer, logged once for each word and peer.
    Complaint {
        peer: String,
        word: &'static str,
        why: String,
    },
    Stop,
}

/// Handle with which other threads send messages to the exchange.
#[derive(Clone)]
pub(super) struct Post {
    pub sender: Sender<News>,
    pub waker: Arc<Waker>,
    pub wanted: Arc<AtomicBool>,
    pub connected: Arc<AtomicUsize>,
    /// Number of connected peers that were dialled.
    pub dialled: Arc<AtomicUsize>,
}

impl Post {
    pub fn send(&self, news: News) {
        // An exchange that has ended needs no messages.
        let _ = self.sender.send(news);
        self.waker.wake();
    }

    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }
}

pub(super) fn attend(mut listener: Listener, own: &About, post: &Post) {
    while post.is_wanted() {
        let mut watched: Vec<_> = listener.fds().map(|fd| watch(fd, true, false)).collect();
        if linux::wait(&mut watched, Some(LOOK_NS)).is_err() {
            return;
        }
        let mut complain = |peer: Option<&str>, line: &str| {
            // Logged once for each address, whatever else it tries.
            let peer = peer.unwrap_or_default().to_owned();
            post.send(News::Complaint { peer, word: "connected", why: line.to_owned() });
        };
        for peer in listener.attend(now_ns(), &mut complain) {
            if let Err((peer, why)) = let_in(peer, own, post) {
                post.send(News::Complaint { peer, word: "met", why });
            }
        }
    }
}

fn let_in(peer: AuthenticatedPeer, own: &About, post: &Post) -> Result<(), (String, String)> {
    let AuthenticatedPeer { mut stream, peer, name, about, rest, proof } = peer;
    let about = match accepted(&name, &about, post) {
        Ok(about) => about,
        Err(why) => {
            refuse(stream, Refusal::Final, &why);
            return Err((peer, why));
        }
    };
    let mut welcome = Vec::new();
    let own = About { tos: arrived_mark(stream.socket()), ..own.clone() };
    let settings = own.to_json().map_err(|error| (peer.clone(), error.to_string()))?.into_bytes();
    Frame::Welcome { proof, settings }.encode(0, &mut welcome);
    if let Err(error) = stream.write_all(&welcome) {
        return Err((peer, error.to_string()));
    }
    post.send(News::Met(Met { socket: stream, peer, dialled: None, about, rest }));
    Ok(())
}

fn accepted(name: &str, about: &str, post: &Post) -> Result<About, String> {
    if name != NAME {
        return Err(format!("is {name:?}, no filter"));
    }
    if post.connected.load(Ordering::Relaxed) >= PEERS {
        return Err(format!("is one more than the {PEERS} peers that there may be"));
    }
    About::decode(about.as_bytes())
}

/// Dials a peer until it accepts this filter.
pub(super) fn dial(place: usize, address: &str, own: &About, access: &Access, post: &Post) {
    let complain = |why: String| {
        post.send(News::Complaint { peer: address.to_owned(), word: "dialled", why });
    };
    let about = match own.to_json() {
        Ok(about) => about,
        Err(error) => return complain(error.to_string()),
    };
    while post.is_wanted() {
        let patience = Duration::from_secs_f64(PATIENCE_S);
        let still = || post.is_wanted();
        let (role, about) = (PeerRole::Host, about.as_str());
        match (Handshake { address, role, name: NAME, about, access, patience, still: &still }).enter() {
            Ok(Entered { stream, settings, rest }) => match About::decode(&settings) {
                Ok(about) => {
                    let peer = address.to_owned();
                    return post.send(News::Met(Met { socket: stream, peer, dialled: Some(place), about, rest }));
                }
                Err(why) => complain(why),
            },
            Err(LiveError::Interrupted) => return,
            Err(error) => complain(error.to_string()),
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

pub(super) fn reach(target: &str) -> Result<TcpStream, String> {
    let places = resolve(target).map_err(|error| error.to_string())?;
    let mut last = "no such host".to_owned();
    for place in places {
        match TcpStream::connect_timeout(&place, REACH) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error.to_string(),
        }
    }
    Err(last)
}

/// Returns an address for listening on loopback at a free port.
#[must_use]
pub fn free_loopback() -> String {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).to_string()
}
