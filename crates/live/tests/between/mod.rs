//! Fixture for filter tests: two filters, with applications at both ends.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crosswind_access::Access;
use crosswind_access::greeting::{GREETING_BYTES, Greeting};
use crosswind_access::token::{End, Transcript};
use crosswind_agent::frame::{Frame, LARGEST_FRAME, decode};
use crosswind_live::filter::{Filter, FilterSettings, Forward};
use crosswind_live::log::Log;
use crosswind_live::protocol::PROTOCOL;
use crosswind_policy::queue::{CreditSettings, Discipline, QueueSettings};
use crosswind_schema::Class;

pub const PATIENCE: Duration = Duration::from_secs(120);

/// A log whose lines can be read.
#[derive(Clone, Default)]
pub struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Lines {
    pub fn log(&self) -> Log {
        Log::new("filter", Box::new(self.clone()))
    }

    pub fn lines(&self) -> Vec<String> {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap().lines().map(str::to_owned).collect()
    }
}

/// Returns access without a token, which loopback does not need.
pub fn access() -> Access {
    Access::default()
}

pub fn settings(discipline: Discipline) -> FilterSettings {
    FilterSettings {
        listen: Some("127.0.0.1:0".into()),
        peers: Vec::new(),
        forwards: Vec::new(),
        queue: QueueSettings { discipline, threshold: 4, ..QueueSettings::fifo(1024) },
        credits: None,
        rate_out: None,
        rate_in: None,
        window: 64 << 10,
        connections: 256,
    }
}

pub fn credits() -> CreditSettings {
    CreditSettings { receive_frames: 16, receive_threshold: 1, idle_ns: 10_000_000, literal: false }
}

/// Two filters. `near` forwards a port of each class to the two listeners.
pub struct Between {
    pub near: Filter,
    pub far: Filter,
    pub far_log: Lines,
    pub targets: [TcpListener; 2],
}

pub fn between(near: FilterSettings, far: FilterSettings) -> Between {
    let far_log = Lines::default();
    let far = Filter::open(far, &access(), far_log.log()).unwrap();
    let targets = Class::BOTH.map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    let forward = |class: Class| Forward {
        class,
        listen: "127.0.0.1:0".into(),
        target: targets[class as usize].local_addr().unwrap().to_string(),
        peer: 0,
    };
    let peers = vec![far.address().unwrap().to_owned()];
    let near = FilterSettings { listen: None, peers, forwards: Class::BOTH.map(forward).to_vec(), ..near };
    let near = Filter::open(near, &access(), Lines::default().log()).unwrap();
    assert!(near.wait_for_peers(PATIENCE));
    Between { near, far, far_log, targets }
}

impl Between {
    /// Returns a connection of a class: the application's end, and the target's.
    pub fn connect(&self, class: Class) -> (TcpStream, TcpStream) {
        let here = TcpStream::connect(&self.near.ports()[class as usize]).unwrap();
        let (there, _) = self.targets[class as usize].accept().unwrap();
        for stream in [&here, &there] {
            stream.set_nodelay(true).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
        }
        (here, there)
    }
}

/// Waits until a condition holds.
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < end, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns bytes that differ from position to position.
pub fn bytes(count: usize, seed: u32) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    };
    (0..count).map(|_| next()).collect()
}

/// Connects as an authenticated filter.
pub fn enter(address: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let caller = [7; 32];
    stream.write_all(&Greeting { word: 0, nonce: caller }.encode(PROTOCOL)).unwrap();
    let mut first = [0; GREETING_BYTES];
    stream.read_exact(&mut first).unwrap();
    let listener = Greeting::decode(&first, PROTOCOL).unwrap().unwrap().nonce;
    let proof =
        access().proof(&Transcript { protocol: PROTOCOL, caller, listener, channel: [0; 32] }, End::Caller, "filter");
    let about = r#"{"version": 2, "window": 65536, "limits": null, "tos": null}"#;
    let mut out = Vec::new();
    Frame::Prove { proof, name: "filter".into(), about: about.into() }.encode(0, &mut out);
    stream.write_all(&out).unwrap();
    let mut got = Vec::new();
    let mut byte = [0];
    loop {
        stream.read_exact(&mut byte).unwrap();
        got.push(byte[0]);
        if let Some(decoded) = decode(&got, LARGEST_FRAME).unwrap() {
            assert!(matches!(decoded.frame, Frame::Welcome { .. }), "{:?}", decoded.frame);
            return stream;
        }
    }
}
