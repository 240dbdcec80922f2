//! Checks that the sum is right for every number of ranks. The tests drive [`Allreduce`] itself, not a copy of its
//! formulas.
//!
//! Recursive doubling: every rank sends, waits and adds, at every size. All sizes to 65,536 take 23e9 messages. Ring:
//! small sizes likewise; all to 65,536 would take 2e14 messages. A ring treats all ranks and all parts alike: in round
//! `k`, rank `r` sends part `r - k`, modulo the size, and gets part `r - k - 1`. For every size it is therefore enough
//! to check this along three lines (every rank in one round, one rank in every round, one part from rank to rank with
//! its numbers, twice around), and to check that the parts cover the vector without gap or overlap.
//!
//! `cargo test` covers the sizes that take seconds. The two ignored tests cover every size from 2 to 65,536;
//! `benchmarks/allreduce_at_every_size.py` runs them and writes the record.

use std::num::NonZeroU64;

use super::super::Bsp;
use super::*;
use crate::random::mixed;

/// Rings up to this size are driven message by message when every size is covered.
const RING_IN_FULL: u32 = 1024;

/// Returns a rank's contribution: 46 bits that identify the rank. The sum of 65,536 of them never overflows to 0, and a
/// sum with a contribution lost, doubled or replaced differs.
fn given(rank: u32) -> u64 {
    (mixed(u64::from(rank) + 1) >> 18) | 1
}

fn given_by_all(ranks: u32) -> u64 {
    (0..ranks).map(given).sum()
}

/// Runs all ranks of recursive doubling, each as far as it can go, until all are done. Returns the number of messages.
///
/// `mail` holds messages of one word by round and receiver, at most one each: otherwise a wait could take the wrong
/// one.
fn double(ranks: u32, nodes: &mut Vec<Allreduce>, mail: &mut Vec<Option<NonZeroU64>>) -> u64 {
    let place = |round: u32, rank: u32| round as usize * ranks as usize + rank as usize;
    nodes.clear();
    nodes.extend(
        (0..ranks).map(|rank| Allreduce::new(Algorithm::RecursiveDoubling, ranks, rank, std::iter::once(given(rank)))),
    );
    mail.resize(place(ranks.ilog2() + 2, 0), None);
    let (mut sent, mut received, mut done) = (0u64, 0u64, 0);
    let expected = given_by_all(ranks);
    while done < ranks {
        let before = sent + received;
        done = 0;
        for (rank, node) in (0..).zip(nodes.iter_mut()) {
            loop {
                match node.next() {
                    Action::Send { to, round, part } => {
                        assert!(to < ranks && to != rank, "{ranks} ranks: {rank} sends to {to}");
                        assert_eq!(part, 0..1, "{ranks} ranks, rank {rank}, round {round}");
                        let there = mail[place(round, to)].replace(NonZeroU64::new(node.words()[0]).unwrap());
                        assert_eq!(there, None, "{ranks} ranks: {to} gets a second message of round {round}");
                        node.sent();
                        sent += 1;
                    }
                    Action::Wait { round } => {
                        let Some(word) = mail[place(round, rank)].take() else { break };
                        node.received(&[word.get()]);
                        received += 1;
                    }
                    Action::Done => {
                        assert_eq!(node.words(), [expected], "{ranks} ranks: rank {rank}");
                        done += 1;
                        break;
                    }
                }
            }
        }
        assert!(done == ranks || sent + received > before, "{ranks} ranks: {} are stuck", ranks - done);
    }
    assert_eq!(sent, received, "{ranks} ranks: messages are left");
    let bsp =
        Bsp { ranks, halo_bytes: 0, allreduce_bytes: 8, algorithm: Algorithm::RecursiveDoubling, ..Bsp::default() };
    assert_eq!(sent, bsp.messages_per_iteration(), "{ranks} ranks");
    sent
}

/// Runs all ranks of recursive doubling at each of the sizes. Returns the number of messages.
fn double_at(sizes: impl IntoIterator<Item = u32>) -> u64 {
    let (mut nodes, mut mail) = (Vec::new(), Vec::new());
    sizes.into_iter().map(|ranks| double(ranks, &mut nodes, &mut mail)).sum()
}

/// Runs all ranks of a ring round by round. Returns the number of messages.
fn go_around(ranks: u32, words: usize) -> u64 {
    let own = |rank: u32| (0..words as u64).map(move |at| given(rank).wrapping_mul(at + 3));
    let owned = |rank: u32| own(rank).collect::<Vec<u64>>().into_iter();
    let mut nodes: Vec<Allreduce> =
        (0..ranks).map(|rank| Allreduce::new(Algorithm::Ring, ranks, rank, owned(rank))).collect();
    let mut mail: Vec<Option<(u32, Vec<u64>)>> = vec![None; ranks as usize];
    let mut sent = 0;
    while nodes[0].next() != Action::Done {
        for (rank, node) in (0..).zip(nodes.iter_mut()) {
            let Action::Send { to, round, part } = node.next() else { panic!("{ranks} ranks: {rank} does not send") };
            assert!(to < ranks && to != rank, "{ranks} ranks: {rank} sends to {to}");
            let there = mail[to as usize].replace((round, node.words()[part].to_vec()));
            assert_eq!(there, None, "{ranks} ranks: {to} gets a second message in round {round}");
            node.sent();
            sent += 1;
        }
        for (node, mail) in nodes.iter_mut().zip(&mut mail) {
            let Some((of, words)) = mail.take() else { panic!("{ranks} ranks: {} gets nothing", node.me) };
            assert_eq!(node.next(), Action::Wait { round: of }, "{ranks} ranks: rank {}", node.me);
            node.received(&words);
        }
    }
    let mut expected = vec![0u64; words];
    for rank in 0..ranks {
        expected.iter_mut().zip(own(rank)).for_each(|(sum, word)| *sum = sum.wrapping_add(word));
    }
    for node in &nodes {
        assert_eq!(node.next(), Action::Done, "{ranks} ranks: rank {}", node.me);
        assert_eq!(node.words(), expected, "{ranks} ranks: rank {}", node.me);
    }
    sent
}

/// Checks a ring along the three lines described in the module's documentation. Returns the number of sends checked.
fn look_along(ranks: u32) -> u64 {
    // Picks a round, rank or part, different at each size.
    let any = |what: u32, below: u32| (mixed(u64::from(ranks) << 2 | u64::from(what)) % u64::from(below)) as u32;
    let last = ranks - 1;
    let mut node = Allreduce::new(Algorithm::Ring, ranks, 0, vec![0; ranks as usize].into_iter());
    let mut looked = 0;
    let mut sends = |node: &mut Allreduce, rank: u32, round: u32| {
        (node.me, node.at) = (rank, 2 * round);
        let part = ((rank + 2 * ranks - round) % ranks) as usize;
        let to = if rank == last { 0 } else { rank + 1 };
        let wanted = Action::Send { to, round, part: part..part + 1 };
        assert_eq!(node.next(), wanted, "{ranks} ranks: rank {rank} in round {round}");
        node.sent();
        assert_eq!(node.next(), Action::Wait { round }, "{ranks} ranks: rank {rank} in round {round}");
        looked += 1;
    };

    // Every rank in one round in which it adds and one in which it copies. Then all are done.
    let (adding, copying) = (any(0, last), last + any(1, last));
    for rank in 0..ranks {
        sends(&mut node, rank, adding);
        sends(&mut node, rank, copying);
        node.at = 4 * last;
        assert_eq!(node.next(), Action::Done, "{ranks} ranks: rank {rank}");
    }
    // One rank in every round.
    let rank = any(2, ranks);
    (0..2 * last).for_each(|round| sends(&mut node, rank, round));

    // One part travels around once until it holds the parts of all ranks, then again until all ranks have it.
    let part = any(3, ranks);
    let (mut holder, mut word) = (part, given(part));
    for round in 0..2 * last {
        sends(&mut node, holder, round);
        holder = if holder == last { 0 } else { holder + 1 };
        node.me = holder;
        node.words.as_mut()[part as usize] = given(holder);
        node.received(&[word]);
        let got = node.words()[part as usize];
        let wanted = if round < last { word + given(holder) } else { word };
        assert_eq!(got, wanted, "{ranks} ranks: rank {holder} in round {round}");
        word = got;
    }
    assert_eq!(word, given_by_all(ranks), "{ranks} ranks: part {part}");
    assert!(node.words().iter().enumerate().all(|(at, word)| at == part as usize || *word == 0), "{ranks} ranks");

    // The parts of a vector shorter than the ring, and of a longer one.
    for words in [any(4, ranks), ranks + any(5, 3 * ranks)] {
        let ends = (0..ranks).fold(0, |start, part| {
            let part = Allreduce::part(words as usize, ranks, part);
            assert_eq!(part.start, start, "{ranks} ranks, {words} words");
            assert!(part.len().abs_diff((words / ranks) as usize) <= 1, "{ranks} ranks, {words} words");
            part.end
        });
        assert_eq!(ends, words as usize, "{ranks} ranks");
    }
    looked
}

#[test]
fn one_rank_has_the_sum_at_once() {
    for algorithm in [Algorithm::RecursiveDoubling, Algorithm::Ring] {
        assert_eq!(Allreduce::new(algorithm, 1, 0, std::iter::once(3)).next(), Action::Done);
    }
}

#[test]
fn recursive_doubling_is_right_at_every_size() {
    let powers = (11..=16).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1]);
    let others = (1..40).map(|at| 1100 + at * 1657);
    double_at((2..=1100).chain(powers).chain(others).filter(|&ranks| ranks <= 65_536));
}

#[test]
fn a_ring_is_right_at_every_size_also_when_parts_are_empty_or_uneven() {
    (2..=80).for_each(|ranks| _ = go_around(ranks, 50));
    [127, 128, 129, 500].into_iter().for_each(|ranks| _ = go_around(ranks, ranks as usize + 3));
}

#[test]
fn large_rings_treat_all_ranks_and_all_parts_alike() {
    (2..600)
        .chain((1..60).map(|at| at * 1092 + at % 17))
        .chain([65_535, 65_536])
        .for_each(|ranks| _ = look_along(ranks));
}

#[test]
#[ignore = "minutes in release mode: benchmarks/allreduce_at_every_size.py"]
#[allow(clippy::print_stdout)] // the record's figures
fn recursive_doubling_at_every_size_to_65_536() {
    let messages = double_at(2..=65_536);
    println!(r#"{{"algorithm": "recursive_doubling", "from": 2, "to": 65536, "messages": {messages}}}"#);
}

#[test]
#[ignore = "minutes in release mode: benchmarks/allreduce_at_every_size.py"]
#[allow(clippy::print_stdout)] // the record's figures
fn a_ring_at_every_size_to_65_536() {
    let messages: u64 =
        (2..=RING_IN_FULL).map(|ranks| go_around(ranks, 1 + (ranks as usize * 619) % (2 * ranks as usize + 1))).sum();
    let sends: u64 = (2..=65_536).map(look_along).sum();
    println!(
        r#"{{"algorithm": "ring", "from": 2, "to": 65536, "sends_looked_at": {sends}, "in_full_to": {RING_IN_FULL}, "messages": {messages}}}"#
    );
}
