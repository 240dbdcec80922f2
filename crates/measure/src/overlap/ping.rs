//! Ping: a program that only communicates. Sends a message, waits for its echo, and repeats.

use std::io;
use std::net::TcpStream;
use std::time::Duration;

use crosswind_access::Access;
use serde::{Deserialize, Serialize};

use super::burn::own_cpu_ns;
use super::line::Line;
use super::spec::{EchoDone, PingSpec};
use crate::error::MeasureError;
use crate::link::Control;
use crate::protocol::{Reply, Role, read_frame, write_frame};
use crosswind_linux as linux;

use crate::placement;

/// Bytes of the sequence number at the start of a message, if the message is that long.
const NUMBER: usize = 8;
/// Time limit for the other end to place its burners.
const READY_PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PingConfig {
    /// HOST:PORT of a `crosswind serve`.
    pub peer: String,
    pub spec: PingSpec,
    /// CPUs that this end may use; empty: any.
    #[serde(default)]
    pub cpus: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pinged {
    /// Time when it started, ns of the monotonic clock.
    pub began_ns: u64,
    /// Time when the last echo arrived, ns of the monotonic clock.
    pub ended_ns: u64,
    /// CPU time at this end, ns.
    pub cpu_ns: u64,
    /// Result of the other end.
    pub there: EchoDone,
}

/// A connection that is ready for a ping.
pub struct Ping {
    peer: String,
    spec: PingSpec,
    /// Keeps the session at the other end alive.
    _control: Control,
    stream: TcpStream,
    message: Vec<u8>,
}

impl Ping {
    /// Connects, and has the other end prepare.
    ///
    /// # Errors
    /// When a setting is out of its range, the other end cannot be reached, or it refuses.
    pub fn open(config: &PingConfig, access: &Access) -> Result<Self, MeasureError> {
        config.spec.check()?;
        placement::place_this_thread("the ping", &config.cpus, 0)?;
        let peer = config.peer.clone();
        let mut control = Control::connect(&peer, access)?;
        let mut stream = control.open(Vec::new())?.join(&peer, Role::Ping, 0)?;
        let refused = |why: String| MeasureError::Refused { peer: peer.clone(), why };
        let asked = stream
            .set_read_timeout(Some(READY_PATIENCE))
            .and_then(|()| write_frame(&mut stream, &config.spec))
            .and_then(|()| read_frame(&mut stream));
        let unheard = |error: io::Error| match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => "it hangs up when it is pinged".into(),
            _ => error.to_string(),
        };
        match asked.map_err(|error| refused(unheard(error)))? {
            Reply::Done {} => {}
            Reply::Refused { why } => return Err(refused(why)),
            _ => return Err(refused("it answers something else than was asked".into())),
        }
        let message = vec![1u8; config.spec.message_bytes as usize];
        Ok(Self { peer, spec: config.spec, _control: control, stream, message })
    }

    /// Waits for the common start, starts the other end, and exchanges all messages.
    ///
    /// # Errors
    /// When the peer disconnects, is silent for too long, or returns a different message.
    pub fn run(mut self, start_ns: u64) -> Result<Pinged, MeasureError> {
        linux::exact_timers();
        while linux::now_ns() < start_ns {
            linux::sleep_until(start_ns);
        }
        let began_ns = linux::now_ns();
        let before = own_cpu_ns()?;
        let exchanged = self.exchange();
        let (ended_ns, after) = (linux::now_ns(), own_cpu_ns()?);
        let there = exchanged.and_then(|()| read_frame(&mut self.stream));
        let there = there.map_err(|error| self.lost(&error))?;
        Ok(Pinged { began_ns, ended_ns, cpu_ns: after - before, there })
    }

    fn exchange(&mut self) -> io::Result<()> {
        let line = Line::new(&self.stream, self.spec.wait, self.spec.spin_ns)?;
        line.send(&[0])?;
        let marked = self.message.len().min(NUMBER);
        for number in 0..self.spec.messages {
            let mark = number.to_le_bytes();
            self.message[..marked].copy_from_slice(&mark[..marked]);
            line.send(&self.message)?;
            line.receive(&mut self.message)?;
            if self.message[..marked] != mark[..marked] {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "it sent back another message than it was sent",
                ));
            }
        }
        Ok(())
    }

    fn lost(&self, error: &io::Error) -> MeasureError {
        let why = match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => "it closed the connection".into(),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "it was silent for 300 s".into(),
            _ => error.to_string(),
        };
        MeasureError::Lost { peer: self.peer.clone(), why }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use crosswind_schema::overlap::Waiting;

    use super::super::spec::BurnThere;
    use super::*;
    use crate::peer;
    use crate::protocol::{Belongs, Request, be_greeted, be_proved};

    struct Peer {
        address: String,
        stop: Arc<AtomicBool>,
        thread: Option<std::thread::JoinHandle<()>>,
    }

    impl Peer {
        fn start() -> Self {
            let listener = peer::listen("127.0.0.1:0", &Access::default()).expect("a free port");
            let (address, stop) = (listener.local_addr().expect("bound").to_string(), Arc::new(AtomicBool::new(false)));
            let asked = Arc::clone(&stop);
            let run =
                move || peer::serve(&listener, &Access::default(), || asked.load(Ordering::Relaxed)).expect("serves");
            Self { address, stop, thread: Some(std::thread::spawn(run)) }
        }

        fn ping(&self, spec: PingSpec) -> Result<Ping, MeasureError> {
            Ping::open(&PingConfig { peer: self.address.clone(), spec, cpus: Vec::new() }, &Access::default())
        }
    }

    impl Drop for Peer {
        fn drop(&mut self) {
            self.stop.store(true, Ordering::Relaxed);
            let _ = self.thread.take().expect("joined once").join();
        }
    }

    const SPEC: PingSpec =
        PingSpec { messages: 20, message_bytes: 70_000, wait: Waiting::Event, spin_ns: 20_000, burn: None };

    #[test]
    fn every_message_comes_back_however_it_is_waited_for() {
        let peer = Peer::start();
        for wait in [Waiting::Event, Waiting::Poll, Waiting::SpinBlock] {
            for message_bytes in [1, 8, 70_000, 3_000_000] {
                let ping = peer.ping(PingSpec { wait, message_bytes, ..SPEC }).expect("the peer is ready");
                let start = linux::now_ns() + 1_000_000;
                let pinged = ping.run(start).expect("it answers");
                assert!(pinged.began_ns >= start && pinged.ended_ns > pinged.began_ns);
                assert!(pinged.cpu_ns > 0 && pinged.there.cpu_ns > 0 && pinged.there.burn_ns.is_empty());
            }
        }
    }

    #[test]
    fn a_peer_burns_on_each_of_its_processors_and_tells_for_how_long() {
        let peer = Peer::start();
        let burn = Some(BurnThere { iterations: 2_000_000, nice: 0 });
        let ping = peer.ping(PingSpec { messages: 0, burn, ..SPEC }).expect("the peer is ready");
        let there = ping.run(linux::now_ns()).expect("it burns").there;
        assert_eq!(there.burn_ns.len(), linux::affinity(0).expect("own").len());
        assert!(there.burn_ns.iter().all(|took| *took > 0));
    }

    #[test]
    fn a_second_ping_is_refused_while_one_is_answered_and_served_after_it() {
        let peer = Peer::start();
        let first = peer.ping(SPEC).expect("the peer is ready");
        let refused = peer.ping(SPEC).err().expect("one at a time").to_string();
        assert!(refused.ends_with("it answers another ping at the moment"), "{refused}");
        drop(first);
        while peer.ping(SPEC).is_err() {
            std::thread::yield_now(); // until the peer has noticed that the first has disconnected
        }
    }

    #[test]
    fn a_caller_that_leaves_ends_the_burners_that_it_asked_for() {
        let peer = Peer::start();
        let burn = Some(BurnThere { iterations: 1_000_000_000_000, nice: 19 });
        let mut ping = peer.ping(PingSpec { messages: 0, burn, ..SPEC }).expect("the peer is ready");
        ping.exchange().expect("begun");
        drop(ping);
        while peer.ping(SPEC).is_err() {
            std::thread::yield_now(); // would take hours if the burners were still running
        }
    }

    #[test]
    fn what_a_peer_cannot_do_is_refused_with_its_range() {
        for spec in [
            PingSpec { message_bytes: 0, ..SPEC },
            PingSpec { message_bytes: u64::MAX, ..SPEC },
            PingSpec { messages: u64::MAX, ..SPEC },
            PingSpec { burn: Some(BurnThere { iterations: 0, nice: 0 }), ..SPEC },
            PingSpec { burn: Some(BurnThere { iterations: 1, nice: 20 }), ..SPEC },
        ] {
            let error = spec.check().expect_err("out of range").to_string();
            assert!(error.contains("; it must be "), "{error}");
        }
    }

    #[test]
    fn a_peer_that_sends_back_something_else_is_named() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound").to_string();
        let liar = std::thread::spawn(move || {
            let access = Access::default();
            let (mut control, _) = listener.accept().expect("a caller");
            let (_, transcript) = be_greeted(&mut control).expect("greets");
            be_proved(&mut control, &access, &transcript).expect("proves");
            read_frame::<Request>(&mut control).expect("opens");
            let opened = Reply::Opened { session: 1, host: String::new(), boot: String::new() };
            write_frame(&mut control, &opened).expect("hears");
            let (mut stream, _) = listener.accept().expect("a caller");
            be_greeted(&mut stream).expect("greets");
            read_frame::<Belongs>(&mut stream).expect("belongs");
            write_frame(&mut stream, &Reply::Done {}).expect("hears");
            let spec: PingSpec = read_frame(&mut stream).expect("asks");
            write_frame(&mut stream, &Reply::Done {}).expect("hears");
            let line = Line::new(&stream, Waiting::Event, 0).expect("a connection");
            let mut message = vec![0u8; spec.message_bytes as usize];
            line.receive(&mut message[..1]).expect("begins");
            line.receive(&mut message).expect("sends");
            message[0] ^= 1;
            line.send(&message).expect("hears");
        });
        let ping = Ping::open(&PingConfig { peer: address.clone(), spec: SPEC, cpus: Vec::new() }, &Access::default());
        let ping = ping.expect("ready");
        let error = ping.run(0).expect_err("a lie").to_string();
        assert!(error.starts_with(&address) && error.ends_with("another message than it was sent"), "{error}");
        liar.join().expect("it lied");
    }
}
