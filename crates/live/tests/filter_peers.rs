//! Tests of broken and hostile peers: other traffic continues, memory stays bounded, and the log names the peer once.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::between::{Between, between, bytes, enter, settings, until};
use crosswind_live::filter::FilterSettings;
use crosswind_live::filter::wire::{Head, Kind, append};
use crosswind_policy::queue::Discipline;
use crosswind_schema::Class;

/// Checks that an honest application's traffic continues.
fn goes_on(pair: &Between, honest: &mut (TcpStream, TcpStream)) {
    let sent = bytes(100_000, 5);
    let mut got = vec![0; sent.len()];
    let (here, there) = honest;
    std::thread::scope(|scope| {
        scope.spawn(|| here.write_all(&sent).unwrap());
        there.read_exact(&mut got).unwrap();
    });
    assert!(got == sent);
    assert!(pair.far.is_at_work());
}

fn open_frame(stream: u32, target: &str) -> Vec<u8> {
    let mut out = Vec::new();
    append(Kind::Open, Class::Local, stream, target.as_bytes(), &mut out);
    out
}

fn data(class: Class, stream: u32, count: usize) -> Vec<u8> {
    let mut out = Vec::new();
    append(Kind::Data, class, stream, &vec![0; count], &mut out);
    out
}

#[test]
fn a_peer_that_lies_is_dropped_and_named_once_and_others_go_on() {
    let pair = between(settings(Discipline::Drr), settings(Discipline::Drr));
    let mut honest = pair.connect(Class::Parallel);
    let address = pair.far.address().unwrap().to_owned();
    let target = pair.targets[1].local_addr().unwrap().to_string();
    let mut too_long =
        Head { kind: Kind::Data, class: Class::Local, last: false, stream: 1, bytes: 9 }.encode().to_vec();
    too_long[..4].copy_from_slice(&u32::MAX.to_be_bytes());
    let mut no_class = data(Class::Local, 1, 8);
    no_class[5] = 9;
    let after_open = |more: Vec<u8>| [open_frame(1, &target), more].concat();
    let lies: Vec<(&str, Vec<u8>)> = vec![
        ("a length beyond all", too_long),
        ("an unknown class", no_class),
        ("another class than its stream's", after_open(data(Class::Parallel, 1, 8))),
        (
            "more than its window",
            after_open([data(Class::Local, 1, 60 << 10), data(Class::Local, 1, 60 << 10)].concat()),
        ),
        ("a stream twice", after_open(open_frame(1, &target))),
        ("a target that is none", open_frame(1, "no target at all")),
        ("another protocol", b"GET / HTTP/1.1\r\n\r\n".to_vec()),
    ];
    for (what, bytes) in &lies {
        let before = pair.far.counters().peers_dropped;
        let mut stream = enter(&address);
        stream.write_all(bytes).unwrap();
        let mut rest = Vec::new();
        // Whatever else it receives, the connection ends.
        let _ = stream.read_to_end(&mut rest);
        until(what, || pair.far.counters().peers_dropped == before + 1);
        goes_on(&pair, &mut honest);
    }
    let lines = pair.far_log.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("127.0.0.1: dropped: it sent"), "{lines:?}");
    assert_eq!(pair.far.counters().peers, 1);
}

#[test]
fn half_a_frame_delays_no_other_connection() {
    let pair = between(settings(Discipline::Drr), settings(Discipline::Drr));
    let mut honest = pair.connect(Class::Parallel);
    let whole = data(Class::Local, 1, 1000);
    let halves: Vec<TcpStream> = [1, 11, 12, 500]
        .into_iter()
        .map(|part| {
            let mut stream = enter(pair.far.address().unwrap());
            stream.write_all(&whole[..part]).unwrap();
            stream
        })
        .collect();
    until("all are there", || pair.far.counters().peers == 1 + halves.len());
    goes_on(&pair, &mut honest);
    assert_eq!(pair.far.counters().held_bytes, 0);
}

#[test]
fn a_peer_that_asks_and_takes_no_answer_is_dropped() {
    let pair = between(settings(Discipline::Drr), FilterSettings { connections: 1, ..settings(Discipline::Drr) });
    let mut honest = pair.connect(Class::Parallel);
    let mut stream = enter(pair.far.address().unwrap());
    let opens: Vec<u8> = (1..=1000).flat_map(|number| open_frame(number, "127.0.0.1:9")).collect();
    // There is room for one connection, so each request is answered, and the answers are never read.
    let mut again = 0u32;
    while stream.write_all(&opens).is_ok() {
        again += 1;
        assert!(again < 2_000, "it was never dropped");
    }
    until("it is dropped", || pair.far.counters().peers_dropped == 1 && pair.far.counters().peers == 1);
    goes_on(&pair, &mut honest);
    assert_eq!(pair.far_log.lines().len(), 1, "{:?}", pair.far_log.lines());
}

#[test]
fn a_peer_that_stops_reading_holds_up_no_other_and_no_memory() {
    let pair = between(settings(Discipline::Drr), settings(Discipline::Drr));
    let mut honest = pair.connect(Class::Parallel);
    // It opens a stream whose target sends without end, and reads none of it.
    let target = pair.targets[1].local_addr().unwrap().to_string();
    let mut deaf = enter(pair.far.address().unwrap());
    deaf.write_all(&open_frame(1, &target)).unwrap();
    let (source, _) = pair.targets[1].accept().unwrap();
    source.set_nonblocking(true).unwrap();
    let block = vec![0; 1 << 20];
    let mut stopped = 0;
    while stopped < 50 {
        match (&source).write(&block) {
            Ok(sent) if sent > 0 => stopped = 0,
            _ => {
                stopped += 1;
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        }
    }
    for _ in 0..3 {
        goes_on(&pair, &mut honest);
    }
    // No more than its window was sent to it.
    let sent = pair.far.counters().local.sent_bytes;
    assert!(sent <= 65_536, "{sent}");
}

#[test]
fn a_thousand_connections_of_one_peer_and_a_thousand_strangers_leave_the_others_alone() {
    let few = FilterSettings { connections: 50, ..settings(Discipline::Drr) };
    let pair = between(few, settings(Discipline::Drr));
    let mut honest = pair.connect(Class::Parallel);
    let mut crowd = std::collections::VecDeque::new();
    for _ in 0..1000 {
        crowd.push_back(TcpStream::connect(&pair.near.ports()[1]).unwrap());
        // This process may have no more than about a thousand descriptors.
        crowd.truncate(300);
    }
    until("the rest is refused", || pair.near.counters().refused >= 900);
    assert!(pair.near.counters().connections <= 50);
    goes_on(&pair, &mut honest);
    drop(crowd);
    pair.targets[1].set_nonblocking(true).unwrap();
    until("their places are free again", || {
        // The target closes each connection that has reached it, too.
        while pair.targets[1].accept().is_ok() {}
        pair.near.counters().connections == 1
    });
    // Unauthenticated connections that send nothing, or invalid bytes.
    let address = pair.far.address().unwrap();
    let silent: Vec<TcpStream> = (0..300).filter_map(|_| TcpStream::connect(address).ok()).collect();
    for stream in silent.iter().step_by(2) {
        // Some are refused already.
        let _ = (&*stream).write(b"hello");
    }
    goes_on(&pair, &mut honest);
    assert!(pair.far_log.lines().len() <= 1, "{:?}", pair.far_log.lines());
}
