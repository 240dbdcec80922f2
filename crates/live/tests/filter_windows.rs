//! Tests of windows: every byte of a peer counts against a window. A peer that exceeds it is disconnected, and nothing is
//! kept.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use crate::between::{Between, between, bytes, credits, enter, settings, until};
use crosswind_live::filter::wire::{Head, Kind, append};
use crosswind_live::filter::{FilterSettings, Rate};
use crosswind_policy::queue::Discipline;
use crosswind_schema::Class::{self, Local};

/// Window of a stream in these tests, bytes.
const WINDOW: usize = 64 << 10;

fn frame(kind: Kind, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    append(kind, Local, stream, payload, &mut out);
    out
}

fn data(stream: u32, count: usize) -> Vec<u8> {
    frame(Kind::Data, stream, &vec![0; count])
}

/// Creates two filters and an authenticated peer of the far one, whose incoming link has the given rate.
fn behind(mb_per_s: Option<f64>) -> (Between, TcpStream) {
    let rate_in = mb_per_s.map(|mb_per_s| Rate { mb_per_s, at_least_bytes: 1 });
    let pair = between(settings(Discipline::Drr), FilterSettings { rate_in, ..settings(Discipline::Drr) });
    let peer = enter(pair.far.address().unwrap());
    (pair, peer)
}

/// Reads frames until the first of a kind, and returns its head.
fn heard_until(peer: &mut TcpStream, kind: Kind) -> Head {
    loop {
        let mut head = [0; 12];
        peer.read_exact(&mut head).unwrap();
        let head = Head::decode(&head).unwrap().unwrap();
        peer.read_exact(&mut vec![0; head.bytes as usize]).unwrap();
        if head.kind == kind {
            return head;
        }
    }
}

fn is_dropped(pair: &Between, what: &str, why: &str) {
    until(what, || pair.far.counters().peers_dropped == 1);
    let lines = pair.far_log.lines();
    assert!(lines.len() == 1 && lines[0].contains(why), "{what}: {lines:?}");
}

/// Returns how many bytes a peer can write before the filter stops reading them, or ends the connection.
fn written(peer: &mut TcpStream, block: &[u8], most: usize) -> usize {
    peer.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut sent = 0;
    while sent < most {
        match peer.write(block) {
            Ok(count) => sent += count,
            Err(_) => break,
        }
    }
    sent
}

#[test]
fn data_of_a_stream_that_was_never_opened_ends_the_link() {
    for rate in [None, Some(0.001)] {
        let (pair, mut peer) = behind(rate);
        let block = data(77, 256 << 10).repeat(4);
        let sent = written(&mut peer, &block, 200 << 20);
        assert!(sent < 100 << 20, "{sent} bytes were taken");
        is_dropped(&pair, "it is dropped", "sent data of a connection that is not open");
        assert!(pair.far.counters().local.received_bytes <= 256 << 10);
    }
}

#[test]
fn data_after_the_end_of_a_stream_ends_the_link() {
    for (last, why) in [
        (Kind::End, "sent data after it had ended the connection"),
        (Kind::Reset, "sent data of a connection that is not open"),
    ] {
        let (pair, mut peer) = behind(Some(1.0));
        let target = pair.targets[1].local_addr().unwrap().to_string();
        peer.write_all(&frame(Kind::Open, 1, target.as_bytes())).unwrap();
        peer.write_all(&[data(1, 10), frame(last, 1, &[]), data(1, 10)].concat()).unwrap();
        is_dropped(&pair, "it is dropped", why);
    }
}

#[test]
fn a_stream_that_was_reset_here_keeps_its_window_until_the_peer_has_heard_of_it() {
    let closed = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let refused = |peer: &mut TcpStream| {
        peer.write_all(&frame(Kind::Open, 1, closed().as_bytes())).unwrap();
        assert_eq!(heard_until(peer, Kind::Reset).stream, 1);
    };
    // Data that was in flight is discarded.
    let (pair, mut peer) = behind(Some(0.001));
    refused(&mut peer);
    peer.write_all(&data(1, WINDOW)).unwrap();
    peer.write_all(&frame(Kind::Open, 2, closed().as_bytes())).unwrap();
    assert_eq!(heard_until(&mut peer, Kind::Reset).stream, 2);
    assert_eq!(pair.far.counters().peers_dropped, 0);
    peer.write_all(&data(1, 1)).unwrap();
    is_dropped(&pair, "beyond its window", "sent more than its window");
    // A peer that has received the reset confirms it, and sends no more.
    let (pair, mut peer) = behind(Some(0.001));
    refused(&mut peer);
    peer.write_all(&[frame(Kind::End, 1, &[]), data(1, 1)].concat()).unwrap();
    is_dropped(&pair, "after it has heard", "sent data of a connection that is not open");
}

#[test]
fn what_waits_on_the_incoming_link_keeps_its_connection_s_place() {
    let few = FilterSettings {
        rate_in: Some(Rate { mb_per_s: 0.001, at_least_bytes: 1 }),
        connections: 10,
        ..settings(Discipline::Drr)
    };
    let pair = between(settings(Discipline::Drr), few);
    let mut peer = enter(pair.far.address().unwrap());
    let target = pair.targets[1].local_addr().unwrap().to_string();
    // It repeatedly opens a stream, sends data within its window, and resets it.
    for stream in 1..=100 {
        let open = frame(Kind::Open, stream, target.as_bytes());
        peer.write_all(&[open, data(stream, 1000)].concat()).unwrap();
        peer.write_all(&frame(Kind::Reset, stream, &[])).unwrap();
    }
    until("the rest is refused", || pair.far.counters().refused == 90);
    assert_eq!(pair.far.counters().peers_dropped, 0);
}

#[test]
fn frames_of_one_byte_fill_no_memory() {
    let (pair, mut peer) = behind(Some(0.001));
    let target = pair.targets[1].local_addr().unwrap().to_string();
    let mut sent = 0;
    for stream in 1..=250 {
        peer.write_all(&frame(Kind::Open, stream, target.as_bytes())).unwrap();
        let block = data(stream, 1).repeat(WINDOW);
        let more = written(&mut peer, &block, block.len());
        sent += more;
        if more < block.len() {
            break;
        }
    }
    // 250 windows of such frames are 213 MB on the wire, and more in memory.
    assert!(sent < 60 << 20, "{sent} bytes were taken");
    assert_eq!(pair.far.counters().peers_dropped, 0, "{:?}", pair.far_log.lines());
}

#[test]
fn applications_that_break_off_cost_no_link() {
    let rate = Some(Rate { mb_per_s: 2.0, at_least_bytes: 1 });
    let slow =
        || FilterSettings { rate_out: rate, rate_in: rate, credits: Some(credits()), ..settings(Discipline::Drr) };
    let pair = between(slow(), slow());
    for round in 0..30 {
        let class = Class::BOTH[round % 2];
        let (mut here, mut there) = pair.connect(class);
        here.write_all(&[1; 40_000]).unwrap();
        there.write_all(&[2; 40_000]).unwrap();
        // Closing with unread bytes at both ends resets the connection.
        match round % 3 {
            0 => drop(here),
            1 => drop(there),
            _ => drop((here, there)),
        }
    }
    let (mut here, mut there) = pair.connect(Local);
    here.write_all(b"still here").unwrap();
    let mut got = [0; 10];
    there.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"still here");
    until("all have gone", || pair.far.counters().connections == 1 && pair.near.counters().connections == 1);
    assert_eq!((pair.near.counters().peers_dropped, pair.far.counters().peers_dropped), (0, 0));
}

/// Returns a frame of any kind about one of a few streams, chosen by `word`. Some are frames that no honest peer sends.
fn any_frame(word: &[u8], targets: &[String]) -> Vec<u8> {
    let [kind, stream, size, class, ..] = *word else { return Vec::new() };
    let stream = 1 + u32::from(stream % 5);
    let class = if class == 0 { Class::Parallel } else { Local };
    let mut out = Vec::new();
    match kind % 16 {
        0..=3 => append(Kind::Open, class, stream, targets[usize::from(size) % targets.len()].as_bytes(), &mut out),
        4..=9 => append(Kind::Data, class, stream, &vec![7; 1 + usize::from(size) * 20], &mut out),
        10 => append(Kind::Window, class, stream, &(u32::from(size) << 24).to_be_bytes(), &mut out),
        11 => append(Kind::End, class, stream, &[], &mut out),
        12 | 13 => append(Kind::Reset, class, stream, &[b'x'; 3], &mut out),
        14 => append(Kind::Credit, class, 0, &[size; 12], &mut out),
        _ => append(Kind::Opened, class, stream, &[], &mut out),
    }
    out
}

#[test]
fn whatever_a_peer_says_the_filter_goes_on_and_forgets_it() {
    let rate = Some(Rate { mb_per_s: 50.0, at_least_bytes: 1 });
    for rate_in in [None, rate] {
        let far = FilterSettings { rate_in, rate_out: rate_in, credits: Some(credits()), ..settings(Discipline::Drr) };
        let pair = between(settings(Discipline::Drr), far);
        let (mut here, mut there) = pair.connect(Local);
        // One target listens and reads nothing, the other does not listen.
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let targets = [pair.targets[0].local_addr().unwrap().to_string(), closed];
        for seed in 1..=150 {
            let script = bytes(4 * 60, seed * 7919);
            let said: Vec<u8> = script.chunks(4).flat_map(|word| any_frame(word, &targets)).collect();
            let mut peer = enter(pair.far.address().unwrap());
            // It may be dropped at any of its frames.
            let _ = peer.write_all(&said);
            drop(peer);
            here.write_all(&seed.to_be_bytes()).unwrap();
            let mut got = [0; 4];
            there.read_exact(&mut got).unwrap();
            assert_eq!(got, seed.to_be_bytes(), "seed {seed}");
        }
        assert!(pair.far.is_at_work());
        assert!(pair.far.counters().peers_dropped > 20, "some of them broke the rules");
        until("its connections are gone", || pair.far.counters().connections == 1 && pair.far.counters().peers == 1);
        until("nothing is held", || pair.far.counters().held_bytes == 0);
    }
}
