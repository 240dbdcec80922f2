//! What an authenticated but broken child may say: it is dropped, and its tasks are done by others.
#![allow(clippy::unwrap_used)]

mod tree;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;

use crosswind_access::greeting::{GREETING_BYTES, Greeting};
use crosswind_access::token::{End, Meeting};
use crosswind_live::agent::{Bare, maker};
use crosswind_live::frame::{Form, Frame, LARGEST_FRAME, PROTOCOL, decode};
use crosswind_live::payload::Payload;
use crosswind_live::settings::Work;
use tree::{List, access, agent, platform, root, settings};

/// Knocks as a child that knows the token; what it was sent beyond the welcome is left unread.
fn enter(address: &str, name: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let caller = [7; 32];
    stream.write_all(&Greeting { word: 0, nonce: caller }.encode(PROTOCOL)).unwrap();
    let mut bytes = [0; GREETING_BYTES];
    stream.read_exact(&mut bytes).unwrap();
    let listener = Greeting::decode(&bytes, PROTOCOL).unwrap().unwrap().nonce;
    let proof = access().proof(&Meeting { protocol: PROTOCOL, caller, listener, channel: [0; 32] }, End::Caller, name);
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

fn wire(frames: &[(Frame, usize)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (frame, body) in frames {
        frame.encode(*body, &mut out);
        out.extend(std::iter::repeat_n(0, *body));
    }
    out
}

#[test]
fn a_child_that_breaks_the_protocol_is_dropped_and_disturbs_nobody() {
    let result =
        |task, total, body| (Frame::Result { task, total, node: 1, ok: true, form: Form::Bytes, rate: 0.0 }, body);
    let abuses: Vec<(&str, Vec<u8>)> = vec![
        ("a length that lies", vec![0xff; 8]),
        ("a kind that nobody knows", vec![0, 0, 0, 1, 99]),
        ("a chunk of nothing", wire(&[(Frame::ResultChunk { task: 3 }, 10)])),
        ("a result longer than it says", wire(&[result(3, 5, 10)])),
        ("a result of a size beyond all", wire(&[result(3, u64::MAX, 10)])),
        ("a result within a result", wire(&[result(3, 100, 10), result(4, 100, 10)])),
        ("a parent's words", wire(&[(Frame::Finish, 0)])),
        (
            "results of tasks it never had",
            wire(&[result(0, 1, 1), result(1, 1, 1), result(999, 1, 1), (Frame::Bye, 0)]),
        ),
    ];
    for (what, bytes) in abuses {
        let mut run = settings(platform(&[("r", "", 0.0), ("a", "r", 1.0), ("b", "r", 1.0)]), Work::Noop);
        run.start_s = 20.0;
        let farm = root(&run, Vec::new());
        let address = farm.address().unwrap();
        let (honest, _) = agent(&address, "a", access());
        let (said, done) = mpsc::channel();
        let knock = std::thread::spawn(move || {
            let mut stream = enter(&address, "b");
            // Ready, as if it were honest: so it breaks the protocol in the middle of the run.
            stream.write_all(&wire(&[(Frame::Ready { agents: 1, tasks: 2 }, 0)])).unwrap();
            let mut buffer = [0; 4096];
            let _ = stream.read(&mut buffer); // the start, and perhaps tasks
            stream.write_all(&bytes).unwrap();
            while stream.read(&mut buffer).is_ok_and(|read| read > 0) {}
            said.send(()).unwrap();
        });
        let tasks: Vec<(Payload, f64)> = (0..200).map(|_| (Payload::bytes(vec![1; 2000]), 1.0)).collect();
        let mut desk = List { tasks: tasks.into_iter(), next: 0, results: Vec::new() };
        let own = maker(&run, Vec::new(), std::env::temp_dir(), &mut Bare).unwrap();
        let summary = farm.run(&mut desk, own).unwrap();
        let mut tasks: Vec<u64> = desk.results.iter().map(|result| result.task).collect();
        tasks.sort_unstable();
        assert_eq!(tasks, (0..200).collect::<Vec<u64>>(), "{what}");
        assert!(summary.events.iter().any(|(_, event)| event.node.as_deref() == Some("b")), "{what}");
        done.recv().unwrap();
        knock.join().unwrap();
        honest.join().unwrap().unwrap();
    }
}
