//! Tests of the message filter between honest applications: bytes arrive unchanged, and small messages overtake large ones.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use crate::between::{Between, PATIENCE, between, bytes, credits, settings, until};
use crosswind_live::filter::{FilterSettings, Rate};
use crosswind_policy::queue::Discipline;
use crosswind_schema::Class;

fn shaped(discipline: Discipline) -> FilterSettings {
    let rate = Rate { mb_per_s: 1.0, at_least_bytes: 1024 };
    FilterSettings { rate_out: Some(rate), ..settings(discipline) }
}

/// Sends in both directions on a connection of a class, and checks that everything arrives unchanged and to its end.
fn both_ways(pair: &Between, class: Class, count: usize) {
    let (mut here, mut there) = pair.connect(class);
    let sent = [bytes(count, 1), bytes(count / 2 + 1, 2)];
    std::thread::scope(|scope| {
        for (mut stream, sent) in [(here.try_clone().unwrap(), &sent[0]), (there.try_clone().unwrap(), &sent[1])] {
            scope.spawn(move || {
                stream.write_all(sent).unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
            });
        }
        for (stream, sent) in [(&mut there, &sent[0]), (&mut here, &sent[1])] {
            let mut got = Vec::new();
            stream.read_to_end(&mut got).unwrap();
            assert!(got == *sent, "{} of {} bytes", got.len(), sent.len());
        }
    });
}

#[test]
fn bytes_arrive_unchanged_and_to_their_end_both_ways_whatever_the_discipline() {
    for (discipline, frame_bytes) in Discipline::ALL.into_iter().flat_map(|one| [(one, 1024), (one, 65_536)]) {
        let mut both = FilterSettings { credits: Some(credits()), window: 256 << 10, ..settings(discipline) };
        both.queue.frame_bytes = frame_bytes;
        let pair = between(both.clone(), both);
        std::thread::scope(|scope| {
            for (class, count) in [(Class::Parallel, 1), (Class::Local, 3_000_000), (Class::Parallel, 1_000_000)] {
                let pair = &pair;
                scope.spawn(move || both_ways(pair, class, count));
                // The listener of a class returns connections in order, so they are opened one after another.
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        until("all connections are gone", || {
            pair.near.counters().connections == 0 && pair.far.counters().connections == 0
        });
        let (near, far) = (pair.near.stop().unwrap(), pair.far.stop().unwrap());
        assert_eq!(near.local.sent_bytes, far.local.received_bytes);
        assert_eq!((near.parallel.sent_bytes, near.local.sent_bytes), (1_000_001, 3_000_000));
        assert_eq!((near.held_bytes, near.parallel.waiting_frames, near.local.waiting_frames), (0, 0, 0));
    }
}

#[test]
fn a_small_message_passes_a_large_one_that_waits_except_in_one_queue() {
    for (discipline, passes) in
        [(Discipline::Fifo, false), (Discipline::Drr, true), (Discipline::Strict, true), (Discipline::Threshold, true)]
    {
        let pair = between(shaped(discipline), settings(discipline));
        let (mut local, mut local_end) = pair.connect(Class::Local);
        let (mut parallel, mut parallel_end) = pair.connect(Class::Parallel);
        // 64 frames of 1 ms each.
        local.write_all(&vec![1; 64 << 10]).unwrap();
        until("the large message waits", || pair.near.counters().local.waiting_frames > 32);
        parallel.write_all(&[2; 64]).unwrap();
        let mut small = [0; 64];
        parallel_end.read_exact(&mut small).unwrap();
        let left = pair.near.counters().local.waiting_frames;
        assert_eq!(left > 8, passes, "{discipline:?}: {left} frames of the large one were left");
        let mut large = vec![0; 64 << 10];
        local_end.read_exact(&mut large).unwrap();
        assert!(large.iter().all(|&byte| byte == 1));
    }
}

#[test]
fn an_application_that_reads_nothing_holds_up_no_other_and_no_memory() {
    let pair = between(settings(Discipline::Drr), settings(Discipline::Drr));
    let (stuck, _never_read) = pair.connect(Class::Local);
    stuck.set_nonblocking(true).unwrap();
    let block = vec![0; 1 << 20];
    let mut sent = 0;
    let end = Instant::now() + Duration::from_millis(500);
    while Instant::now() < end {
        match (&stuck).write(&block) {
            Ok(more) => sent += more,
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
    for class in Class::BOTH {
        both_ways(&pair, class, 300_000);
    }
    let far = pair.far.counters();
    assert!(far.held_bytes <= 64 << 10, "{} bytes are held", far.held_bytes);
    assert!(sent as u64 > far.received_frames_of_all(), "something was sent");
}

/// Sums a counter over both classes of frames.
trait OfAll {
    fn received_frames_of_all(&self) -> u64;
}

impl OfAll for crosswind_live::filter::Counters {
    fn received_frames_of_all(&self) -> u64 {
        self.parallel.received_frames + self.local.received_frames
    }
}

#[test]
fn a_receiver_holds_local_senders_back_while_parallel_frames_come_and_lets_go_afterwards() {
    let far = FilterSettings { credits: Some(credits()), ..settings(Discipline::Drr) };
    let pair = between(settings(Discipline::Drr), far);
    let (mut parallel, mut parallel_end) = pair.connect(Class::Parallel);
    let (mut local, mut local_end) = pair.connect(Class::Local);
    let mut small = [0; 64];
    for _ in 0..50 {
        parallel.write_all(&[2; 64]).unwrap();
        local.write_all(&[1; 4096]).unwrap();
        parallel_end.read_exact(&mut small).unwrap();
        let mut large = [0; 4096];
        local_end.read_exact(&mut large).unwrap();
    }
    // Without any parallel frame: the last credit was small, so only the timeout can let all of this through.
    let large = bytes(200_000, 3);
    let mut got = vec![0; large.len()];
    std::thread::scope(|scope| {
        scope.spawn(|| local.write_all(&large).unwrap());
        local_end.read_exact(&mut got).unwrap();
    });
    assert!(got == large);
    assert!(pair.far.counters().local.credits_sent > 0);
}

#[test]
fn large_frames_wait_for_a_slow_application_and_for_no_other() {
    let mut both = FilterSettings { window: 256 << 10, ..settings(Discipline::Drr) };
    both.queue.frame_bytes = 65_536;
    let pair = between(both.clone(), both);
    let (mut slow, mut slow_end) = pair.connect(Class::Local);
    let sent = bytes(20_000_000, 9);
    let mut got = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| slow.write_all(&sent).unwrap());
        until("the slow one's window is full", || pair.far.counters().held_bytes > 0);
        both_ways(&pair, Class::Parallel, 3_000_000);
        let mut piece = vec![0; 100_000];
        while got.len() < sent.len() {
            let read = slow_end.read(&mut piece).unwrap();
            got.extend_from_slice(&piece[..read]);
        }
    });
    assert!(got == sent);
    // A connection that breaks off in the middle does not delay the others.
    drop((slow, slow_end));
    let (mut breaks, breaks_end) = pair.connect(Class::Local);
    breaks.write_all(&sent[..200_000]).unwrap();
    drop(breaks_end);
    both_ways(&pair, Class::Local, 1_000_000);
    drop(breaks);
    until("all are gone", || pair.near.counters().connections == 0 && pair.far.counters().connections == 0);
    assert_eq!((pair.far.counters().held_bytes, pair.far.counters().peers), (0, 1));
}

#[test]
fn a_target_without_a_listener_ends_the_connection_and_is_logged_once() {
    let pair = between(settings(Discipline::Drr), settings(Discipline::Drr));
    drop(pair.targets);
    for _ in 0..3 {
        let mut here = std::net::TcpStream::connect(&pair.near.ports()[0]).unwrap();
        here.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut got = Vec::new();
        // An end of file and a reset both show that the connection has ended.
        let _ = here.read_to_end(&mut got);
        assert!(got.is_empty());
    }
    until("all were refused", || pair.far.counters().refused == 3);
}

#[test]
fn a_peer_that_comes_back_is_dialled_again() {
    let far = settings(Discipline::Drr);
    let pair = between(settings(Discipline::Drr), far);
    let address = pair.far.address().unwrap().to_owned();
    pair.far.stop().unwrap();
    until("the peer is missed", || pair.near.counters().peers == 0);
    let listen = Some(address);
    let again = FilterSettings { listen, ..settings(Discipline::Drr) };
    let mut far = None;
    until("the port is free again", || {
        far = crosswind_live::filter::Filter::open(
            again.clone(),
            &crate::between::access(),
            crate::between::Lines::default().log(),
        )
        .ok();
        far.is_some()
    });
    assert!(pair.near.wait_for_peers(PATIENCE));
}

#[test]
fn settings_out_of_range_are_named() {
    let open = |settings: FilterSettings| {
        let opened = crosswind_live::filter::Filter::open(
            settings,
            &crate::between::access(),
            crate::between::Lines::default().log(),
        );
        opened.err().map(|error| error.to_string()).unwrap_or_default()
    };
    let good = settings(Discipline::Drr);
    let mut frames = good.clone();
    frames.queue.frame_bytes = 0;
    assert!(open(frames).starts_with("frame_bytes is 0"));
    assert!(open(FilterSettings { window: 10, ..good.clone() }).starts_with("window is 10"));
    let rate = Some(Rate { mb_per_s: -1.0, at_least_bytes: 0 });
    assert!(open(FilterSettings { rate_out: rate, ..good.clone() }).starts_with("rate is -1 MB/s"));
    assert!(open(FilterSettings { listen: None, ..good }).starts_with("peers is empty"));
}
