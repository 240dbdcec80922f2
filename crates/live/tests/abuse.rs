//! Tests of protocol violations by an authenticated child: it is dropped, and other agents do its tasks. This is a
//! separate program, because it measures the memory of its process.

#![allow(clippy::unwrap_used)] // failures in tests panic

mod tree;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;

use crosswind_access::greeting::{GREETING_BYTES, Greeting};
use crosswind_access::token::{End, Transcript};
use crosswind_agent::frame::{Form, Frame, LARGEST_FRAME, decode};
use crosswind_agent::settings::Work;
use crosswind_live::farm::agent::{Bare, factory};
use crosswind_live::farm::payload::Payload;
use crosswind_live::farm::root::Delivery;
use crosswind_live::protocol::PROTOCOL;
use tree::{List, access, agent, platform, root, settings};

/// Connects as a child that knows the token. What follows the welcome is left unread.
fn enter(address: &str, name: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let caller = [7; 32];
    stream.write_all(&Greeting { word: 0, nonce: caller }.encode(PROTOCOL)).unwrap();
    let mut bytes = [0; GREETING_BYTES];
    stream.read_exact(&mut bytes).unwrap();
    let listener = Greeting::decode(&bytes, PROTOCOL).unwrap().unwrap().nonce;
    let proof =
        access().proof(&Transcript { protocol: PROTOCOL, caller, listener, channel: [0; 32] }, End::Caller, name);
    let mut out = Vec::new();
    Frame::Prove { proof, name: name.into(), about: String::new() }.encode(0, &mut out);
    stream.write_all(&out).unwrap();
    let mut got = Vec::new();
    loop {
        if let Some(decoded) = decode(&got, LARGEST_FRAME).unwrap() {
            assert!(matches!(decoded.frame, Frame::Welcome { .. }), "{:?}", decoded.frame);
            return stream;
        }
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0);
        got.extend_from_slice(&buffer[..read]);
    }
}

/// Replays bytes recorded from another child's handshake. Returns the listener's first frame in answer, if there is one.
fn replayed(address: &str, heard: &[Vec<u8>]) -> Option<Frame> {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut got = Vec::new();
    for bytes in heard {
        let _ = stream.write_all(bytes);
        if got.is_empty() {
            got = vec![0; GREETING_BYTES];
            stream.read_exact(&mut got).unwrap();
        }
    }
    got.clear();
    // The listener may close the connection with bytes unread.
    let _ = stream.read_to_end(&mut got);
    decode(&got, LARGEST_FRAME).unwrap().map(|decoded| decoded.frame)
}

#[test]
fn a_handshake_that_was_heard_is_refused_a_second_time() {
    let mut run = settings(platform(&[("r", "", 0.0), ("a", "r", 1.0), ("b", "r", 1.0), ("c", "r", 1.0)]), Work::Noop);
    run.patience.start_s = 4.0; // how long the root waits for c, which does not come
    let farm = root(&run, Vec::new());
    let address = farm.address().unwrap();
    let (honest, _) = agent(&address, "a", access());
    let replaying = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(&address).unwrap();
        let caller = [7; 32];
        let greeting = Greeting { word: 0, nonce: caller }.encode(PROTOCOL).to_vec();
        stream.write_all(&greeting).unwrap();
        let mut bytes = [0; GREETING_BYTES];
        stream.read_exact(&mut bytes).unwrap();
        let listener = Greeting::decode(&bytes, PROTOCOL).unwrap().unwrap().nonce;
        let transcript = Transcript { protocol: PROTOCOL, caller, listener, channel: [0; 32] };
        let mut proof = Vec::new();
        let shown = Frame::Prove {
            proof: access().proof(&transcript, End::Caller, "b"),
            name: "b".into(),
            about: String::new(),
        };
        shown.encode(0, &mut proof);
        stream.write_all(&proof).unwrap();
        // It was accepted, so the proof is valid.
        let mut head = [0; 5];
        stream.read_exact(&mut head).unwrap();
        drop(stream);
        let answers = [vec![greeting.clone(), proof.clone()], vec![greeting, [proof.clone(), proof].concat()]];
        answers.map(|heard| replayed(&address, &heard))
    });
    let mut task_source = List { tasks: Vec::new().into_iter(), next: 0, results: Vec::new() };
    let own = factory(&run, Vec::new(), std::env::temp_dir(), &mut Bare).unwrap();
    let ended = farm.run(&mut task_source, own);
    for answer in replaying.join().unwrap() {
        // Refused, or closed before the refusal could be read.
        assert!(matches!(&answer, None | Some(Frame::Refused { .. })), "{answer:?}");
    }
    ended.unwrap();
    honest.join().unwrap().unwrap();
}

fn wire(frames: &[(Frame, usize)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (frame, body) in frames {
        frame.encode(*body, &mut out);
        out.extend(std::iter::repeat_n(0, *body));
    }
    out
}

#[test]
fn a_child_that_breaks_the_protocol_is_dropped_and_disturbs_no_other() {
    let result =
        |task, total, body| (Frame::Result { task, total, node: 1, ok: true, form: Form::Bytes, rate: 0.0 }, body);
    let event = || {
        let event = r#"{"root_ns":0,"code":"c","node":"../../etc","number":null,"tasks":null,"message":"a long story, told again and again and again and again"}"#;
        (Frame::Event { event: event.into() }, 0)
    };
    let abuses: Vec<(&str, Vec<u8>)> = vec![
        ("a length that lies", vec![0xff; 8]),
        ("an unknown kind", vec![0, 0, 0, 1, 99]),
        ("a chunk of nothing", wire(&[(Frame::ResultChunk { task: 3 }, 10)])),
        ("a result longer than it says", wire(&[result(3, 5, 10)])),
        ("a result of a size beyond all", wire(&[result(3, u64::MAX, 10)])),
        ("a result within a result", wire(&[result(3, 100, 10), result(4, 100, 10)])),
        ("a parent's words", wire(&[(Frame::Finish, 0)])),
        ("code of its own", wire(&[(Frame::Code { last: true, piece: vec![b'c'; 100] }, 0)])),
        ("a function of its own", wire(&[(Frame::Function { task: 3, number: 1, bytes: 1 << 20 }, 0)])),
        ("an order to forget a function", wire(&[(Frame::Forget { number: 1 }, 0)])),
        (
            "output of a task that is not asked for",
            wire(&[(Frame::Printed { node: 1, task: 3, call: 0, left_out: 0, text: vec![b'x'] }, 0)]),
        ),
        ("a request for more tasks than there can be", wire(&[(Frame::Ask { tasks: 1 << 60 }, 0)])),
        ("requests without end", wire(&vec![(Frame::Ask { tasks: 1 << 23 }, 0); 3])),
        ("ready twice, with a whole world below it", wire(&[(Frame::Ready { agents: u32::MAX, tasks: 1 }, 0)])),
        ("a report before the end", wire(&[(Frame::Report { node: 1, part: 0, piece: vec![0; 100] }, 0)])),
        ("events without end", wire(&vec![event(); 60_000])),
        ("a task given back that it never had", wire(&[(Frame::HandBack { task: 199 }, 0)])),
        (
            "results of tasks it never had",
            wire(&[result(0, 1, 1), result(1, 1, 1), result(999, 1, 1), (Frame::Bye, 0)]),
        ),
    ];
    for (what, bytes) in abuses {
        let mut run = settings(platform(&[("r", "", 0.0), ("a", "r", 1.0), ("b", "r", 1.0)]), Work::Noop);
        run.patience.start_s = 20.0;
        let farm = root(&run, Vec::new());
        let address = farm.address().unwrap();
        let (honest, _) = agent(&address, "a", access());
        let (said, done) = mpsc::channel();
        let handshake = std::thread::spawn(move || {
            let mut stream = enter(&address, "b");
            // Reports ready like an honest child, so that it violates the protocol in the middle of the run.
            stream.write_all(&wire(&[(Frame::Ready { agents: 1, tasks: 2 }, 0)])).unwrap();
            let mut buffer = [0; 4096];
            let _ = stream.read(&mut buffer); // the start, and perhaps tasks
            // It may be dropped before everything is sent.
            let _ = stream.write_all(&bytes);
            while stream.read(&mut buffer).is_ok_and(|read| read > 0) {}
            said.send(()).unwrap();
        });
        let tasks: Vec<(Payload, f64)> = (0..200).map(|_| (Payload::bytes(vec![1; 2000]), 1.0)).collect();
        let mut task_source = List { tasks: tasks.into_iter(), next: 0, results: Vec::new() };
        let own = factory(&run, Vec::new(), std::env::temp_dir(), &mut Bare).unwrap();
        let summary = farm.run(&mut task_source, own).unwrap();
        let mut tasks: Vec<u64> = task_source.results.iter().map(|result| result.task).collect();
        tasks.sort_unstable();
        assert_eq!(tasks, (0..200).collect::<Vec<u64>>(), "{what}");
        let why = summary.events.iter().find(|(_, event)| event.node.as_deref() == Some("b"));
        let why = &why.unwrap_or_else(|| panic!("{what}: nothing was told")).1.message;
        assert!(!why.contains("silent"), "{what}: {why}");
        done.recv().unwrap();
        handshake.join().unwrap();
        honest.join().unwrap().unwrap();
    }
}

/// Runs a farm with an honest agent and with `b`, which does as it likes once accepted. Returns the results, and the
/// messages of events about `b`.
fn beside(evil: impl FnOnce(TcpStream) + Send + 'static) -> (Vec<Delivery>, Vec<String>) {
    let mut run = settings(platform(&[("r", "", 0.0), ("a", "r", 1.0), ("b", "r", 1.0)]), Work::Noop);
    run.patience.start_s = 20.0;
    let farm = root(&run, Vec::new());
    let address = farm.address().unwrap();
    let (honest, _) = agent(&address, "a", access());
    let handshake = std::thread::spawn(move || evil(enter(&address, "b")));
    let tasks: Vec<(Payload, f64)> = (0..200).map(|_| (Payload::bytes(vec![1; 2000]), 1.0)).collect();
    let mut task_source = List { tasks: tasks.into_iter(), next: 0, results: Vec::new() };
    let own = factory(&run, Vec::new(), std::env::temp_dir(), &mut Bare).unwrap();
    let summary = farm.run(&mut task_source, own).unwrap();
    handshake.join().unwrap();
    honest.join().unwrap().unwrap();
    let told = summary.events.into_iter().filter(|(_, event)| event.node.as_deref() == Some("b"));
    let mut tasks: Vec<u64> = task_source.results.iter().map(|result| result.task).collect();
    tasks.sort_unstable();
    assert_eq!(tasks, (0..200).collect::<Vec<u64>>());
    (task_source.results, told.map(|(_, event)| event.message).collect())
}

/// Returns the numbers of the first tasks that arrive.
fn tasks_of(stream: &mut TcpStream, count: usize) -> Vec<u64> {
    let (mut got, mut tasks) = (Vec::new(), Vec::new());
    let mut buffer = [0; 4096];
    while tasks.len() < count {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0);
        got.extend_from_slice(&buffer[..read]);
        while let Some(decoded) = decode(&got, LARGEST_FRAME).unwrap() {
            if got.len() < decoded.used + decoded.body {
                break;
            }
            got.drain(..decoded.used + decoded.body);
            if let Frame::Task { task, .. } = decoded.frame {
                tasks.push(task);
            }
        }
    }
    tasks
}

const FORGED: usize = 77;

fn forged(task: u64) -> (Frame, usize) {
    (Frame::Result { task, total: FORGED as u64, node: 1, ok: true, form: Form::Bytes, rate: 0.0 }, FORGED)
}

#[test]
fn a_child_cannot_answer_for_another() {
    let (results, told) = beside(|mut stream| {
        stream.write_all(&wire(&[(Frame::Ready { agents: 1, tasks: 2 }, 0)])).unwrap();
        let had = tasks_of(&mut stream, 2);
        let others: Vec<_> = (0..200).filter(|task| !had.contains(task)).map(forged).collect();
        let _ = stream.write_all(&wire(&others));
        while stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {}
    });
    assert!(results.iter().all(|result| result.payload.len() != FORGED as u64));
    assert!(told[0].contains("a result of a task that it does not have"), "{told:?}");
}

#[test]
fn a_result_counts_once() {
    let (results, told) = beside(|mut stream| {
        stream.write_all(&wire(&[(Frame::Ready { agents: 1, tasks: 1 }, 0)])).unwrap();
        let had = tasks_of(&mut stream, 1);
        stream.write_all(&wire(&[forged(had[0]), forged(had[0])])).unwrap();
        while stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {}
    });
    assert_eq!(results.iter().filter(|result| result.payload.len() == FORGED as u64).count(), 1);
    assert!(told[0].contains("a result of a task that it does not have"), "{told:?}");
}

#[test]
fn a_long_result_that_is_announced_and_does_not_come_takes_no_memory_and_no_disk() {
    let before = resident_bytes();
    let (_, told) = beside(move |mut stream| {
        stream.write_all(&wire(&[(Frame::Ready { agents: 1, tasks: 1 }, 0)])).unwrap();
        let had = tasks_of(&mut stream, 1);
        let begun = Frame::Result { task: had[0], total: 1 << 39, node: 1, ok: true, form: Form::Bytes, rate: 0.0 };
        stream.write_all(&wire(&[(begun, 10)])).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(300));
        assert!(resident_bytes().saturating_sub(before) < 100 << 20);
    });
    assert!(told[0].contains("lost"), "{told:?}");
}

#[test]
fn a_child_that_asks_and_takes_no_answer_fills_no_memory() {
    let before = resident_bytes();
    beside(move |mut stream| {
        stream.write_all(&wire(&[(Frame::Ready { agents: 1, tasks: 0 }, 0)])).unwrap();
        let pings = wire(&vec![(Frame::Ping { child_ns: 1 }, 0); 100_000]);
        for _ in 0..100 {
            stream.write_all(&pings).unwrap();
        }
        // Ten million answers of 21 bytes were due.
        assert!(resident_bytes().saturating_sub(before) < 100 << 20);
    });
}

/// Returns the resident memory of this process, bytes.
fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}
