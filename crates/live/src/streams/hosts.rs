//! The hosts of a measurement and the paths of its streams. A host is a filter, or a network namespace whose device has
//! two queues and classifies parallel packets by their mark.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use crosswind_access::Access;
use crosswind_linux::in_namespace;
use crosswind_policy::queue::{CreditSettings, QueueSettings};
use crosswind_schema::experiment::streams::{Class, Links, Stream};
use crosswind_schema::units::Quantity;

use crate::error::LiveError;
use crate::filter::{Entrance, Filter, FilterSettings, Forward, Rate, WINDOW, connect_marked, free_loopback};
use crate::log::Log;

/// Time limit for the filters to connect to each other.
const MEETING: Duration = Duration::from_secs(20);

/// Type-of-service byte of parallel packets: DSCP 34.
const PARALLEL_TOS: u8 = 34 << 2;

/// A host that is a network namespace.
#[derive(Clone, Debug)]
pub struct NamespaceHost {
    /// Path of the namespace, such as `/run/netns/NAME`.
    pub namespace: PathBuf,
    /// Address at which the other hosts reach it.
    pub address: IpAddr,
}

/// Queues and credits of a measurement.
#[derive(Clone, Copy)]
pub(super) struct Queues {
    pub queue: QueueSettings,
    pub credits: Option<CreditSettings>,
}

/// The path from a stream's host to one of its receivers.
pub(super) struct Path {
    pub sink: TcpListener,
    entry: Entry,
}

enum Entry {
    /// Connects to a port of the host's filter.
    Filter(String),
    /// Connects from the host's namespace directly to the sink, with a mark.
    Namespace { namespace: PathBuf, to: SocketAddr, tos: u8 },
}

impl Path {
    pub fn connect(&self) -> io::Result<TcpStream> {
        match &self.entry {
            Entry::Filter(port) => TcpStream::connect(port),
            Entry::Namespace { namespace, to, tos } => in_namespace(namespace, || connect_marked(*to, *tos)),
        }
    }
}

pub(super) struct Hosts {
    filters: Vec<Filter>,
    /// Paths by stream and receiver.
    ways: Vec<Vec<Path>>,
}

impl Hosts {
    /// Uses existing namespaces, whose queues are already configured. Without a mark, all packets use the same queue.
    pub fn in_namespaces(hosts: &[NamespaceHost], streams: &[&Stream], marked: bool) -> Result<Self, LiveError> {
        let of = |host: u32| {
            hosts.get(host as usize).ok_or_else(|| LiveError::Setup(format!("host {host} has no namespace")))
        };
        let mut ways = Vec::new();
        for stream in streams {
            let mut own = Vec::new();
            for receiver in stream.to.hosts() {
                let (here, there) = (of(stream.from)?, of(*receiver)?);
                let listen = || TcpListener::bind((there.address, 0));
                let sink =
                    in_namespace(&there.namespace, listen).map_err(LiveError::system("listening in a namespace"))?;
                let to = sink.local_addr().map_err(LiveError::system("listening"))?;
                let tos = if marked && stream.class == Class::Parallel { PARALLEL_TOS } else { 0 };
                own.push(Path { sink, entry: Entry::Namespace { namespace: here.namespace.clone(), to, tos } });
            }
            ways.push(own);
        }
        Ok(Self { filters: Vec::new(), ways })
    }

    pub fn open(links: &Links, streams: &[&Stream], queues: &Queues) -> Result<Self, LiveError> {
        let access = Access::drawn().map_err(LiveError::system("drawing a token"))?;
        let named = streams.iter().flat_map(|stream| stream.to.hosts().iter().copied().chain([stream.from]));
        let mut entrances = BTreeMap::new();
        for host in named {
            if let std::collections::btree_map::Entry::Vacant(place) = entrances.entry(host) {
                let entrance = Entrance::open(&free_loopback(), &access)?;
                let address = entrance.address()?;
                place.insert((Some(entrance), address));
            }
        }
        // The listeners for messages are open before the first send.
        let mut sinks = Vec::new();
        for stream in streams {
            let listen = |_: &u32| TcpListener::bind("127.0.0.1:0").map_err(LiveError::system("listening"));
            sinks.push(stream.to.hosts().iter().map(listen).collect::<Result<Vec<_>, _>>()?);
        }
        let rate = Rate {
            mb_per_s: links.link_mb_per_s.get(),
            at_least_bytes: if links.pad { links.frame_bytes.get() as u32 } else { 0 },
        };
        let hosts: Vec<u32> = entrances.keys().copied().collect();
        let addresses: Vec<String> = entrances.values().map(|(_, address)| address.clone()).collect();
        let mut filters = Vec::new();
        let mut ports = BTreeMap::new();
        for (place, host) in hosts.iter().enumerate() {
            let mut settings = FilterSettings {
                listen: None,
                peers: Vec::new(),
                forwards: Vec::new(),
                queue: queues.queue,
                credits: queues.credits,
                rate_out: Some(rate),
                rate_in: Some(rate),
                window: WINDOW.max(queues.queue.frame_bytes),
                connections: 100_000,
            };
            let mut whose = Vec::new();
            for (at, stream) in streams.iter().enumerate().filter(|(_, stream)| stream.from == *host) {
                for (to, receiver) in stream.to.hosts().iter().enumerate() {
                    let there = hosts.iter().position(|host| host == receiver).unwrap_or_default();
                    let peer = settings.peers.iter().position(|known| *known == addresses[there]);
                    let peer = peer.unwrap_or_else(|| {
                        settings.peers.push(addresses[there].clone());
                        settings.peers.len() - 1
                    });
                    let arrives = sinks[at][to].local_addr().map_err(LiveError::system("listening"))?;
                    let (class, listen, target) = (stream.class, free_loopback(), arrives.to_string());
                    settings.forwards.push(Forward { class, listen, target, peer });
                    whose.push((at, to));
                }
            }
            let entrance = entrances.get_mut(host).and_then(|(entrance, _)| entrance.take());
            let log = Log::on_stderr(&format!("host {host}"));
            let filter = Filter::open_at(settings, entrance, &access, log)?;
            ports.extend(whose.into_iter().zip(filter.ports().iter().cloned()));
            filters.push(filter);
            debug_assert_eq!(filters.len(), place + 1);
        }
        if !filters.iter().all(|filter| filter.wait_for_peers(MEETING)) {
            return Err(LiveError::Lost("the filters of the hosts did not meet in time".into()));
        }
        let mut ways = Vec::new();
        for (at, sinks) in sinks.into_iter().enumerate() {
            let way = |(to, sink)| {
                let port = ports.get(&(at, to)).cloned().unwrap_or_default();
                Path { sink, entry: Entry::Filter(port) }
            };
            ways.push(sinks.into_iter().enumerate().map(way).collect());
        }
        Ok(Self { filters, ways })
    }

    /// Returns the paths of a stream of this measurement.
    pub fn ways(&self, stream: usize) -> &[Path] {
        &self.ways[stream]
    }

    /// Ends the filters. Returns the number of received frames, and the mean lateness as a fraction of the longest
    /// frame's time.
    pub fn close(self, links: &Links) -> (u64, f64) {
        let (mut frames, mut late_s, mut paced) = (0, 0.0, 0u64);
        for filter in self.filters {
            let counters = filter.counters();
            frames += counters.parallel.received_frames + counters.local.received_frames;
            late_s += counters.late_s;
            paced += counters.paced_frames;
            drop(filter);
        }
        let frame_s = links.frame_ns(links.frame_bytes.get() as u32) as f64 * 1e-9;
        (frames, if paced == 0 { 0.0 } else { late_s / paced as f64 / frame_s })
    }
}
