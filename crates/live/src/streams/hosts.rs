//! The hosts of a measurement: a filter on each, and the way of every stream through them.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::time::Duration;

use crosswind_access::Access;
use crosswind_policy::queue::{CreditSettings, QueueSettings};
use crosswind_schema::experiment::streams::{Links, Stream};
use crosswind_schema::units::Quantity;

use crate::error::LiveError;
use crate::filter::{Entrance, Filter, FilterSettings, Forward, Rate, WINDOW, free_loopback};
use crate::log::Log;

/// How long filters may take to meet.
const MEETING: Duration = Duration::from_secs(20);

/// How queues are served in a measurement.
#[derive(Clone, Copy)]
pub(super) struct Queues {
    pub queue: QueueSettings,
    pub credits: Option<CreditSettings>,
}

/// The hosts.
pub(super) struct Hosts {
    filters: Vec<Filter>,
    /// Of each stream, of each of its receivers: the port to send to, and where its messages arrive.
    ways: Vec<Vec<(String, TcpListener)>>,
}

impl Hosts {
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
            let way = |(to, sink)| (ports.get(&(at, to)).cloned().unwrap_or_default(), sink);
            ways.push(sinks.into_iter().enumerate().map(way).collect());
        }
        Ok(Self { filters, ways })
    }

    /// The ways of a stream of this measurement.
    pub fn ways(&self, stream: usize) -> &[(String, TcpListener)] {
        &self.ways[stream]
    }

    /// Ends the filters: frames that arrived, and how late frames left the links, as a part of the longest frame's time.
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
