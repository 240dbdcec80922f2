//! Collective operations as messages, by the usual algorithms.
//!
//! | operation | algorithm |
//! |---|---|
//! | bcast, scatter; reduce, gather | a binomial tree from the root; to it |
//! | allreduce | recursive doubling; beyond 8 KiB a ring |
//! | allgather | Bruck's: to ranks 1, 2, 4, ... further on |
//! | alltoall, reduce_scatter | each rank to each other, one after the other |
//! | scan, exscan | to ranks 1, 2, 4, ... above |
//! | barrier, and whatever else all wait for | dissemination, one byte to ranks 1, 2, 4, ... further on |

use crosswind_program::bsp::allreduce::{Action, Algorithm, Allreduce};

/// From this size on an allreduce goes around a ring, bytes.
const RING_BYTES: u64 = 8192;

/// What one rank does in a collective operation. Moves up to the next receive begin together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// `to`: place among the ranks of the operation.
    Send { to: usize, round: u32, bytes: u64 },
    /// From whichever rank sends in this round.
    Receive { round: u32 },
}

/// Which way data go along a tree.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    FromRoot,
    ToRoot,
}

/// Returns the moves of the rank at place `me`. `sizes`: bytes that each rank contributes.
pub fn moves(name: &str, me: usize, root: usize, sizes: &[u64]) -> Vec<Move> {
    let ranks = sizes.len();
    let most = sizes.iter().copied().max().unwrap_or_default();
    let total = sizes.iter().fold(0, |sum: u64, size| sum.saturating_add(*size));
    let name: String = name.chars().filter(|&letter| letter != '_').collect::<String>().to_ascii_lowercase();
    match name.as_str() {
        "bcast" | "broadcast" => tree(Way::FromRoot, me, root, ranks, |_| most),
        "scatter" | "scatterv" => {
            tree(Way::FromRoot, me, root, ranks, |below| (total / ranks as u64).saturating_mul(below.len() as u64))
        }
        "reduce" => tree(Way::ToRoot, me, root, ranks, |_| most),
        "gather" | "gatherv" => tree(Way::ToRoot, me, root, ranks, |below| {
            below.map(|place| sizes[(place + root) % ranks]).fold(0, u64::saturating_add)
        }),
        "allreduce" => allreduce(me, ranks, most),
        "allgather" | "allgatherv" => {
            let block = total / ranks as u64;
            dissemination(me, ranks, |far| block.saturating_mul(far.min(ranks - far) as u64))
        }
        "alltoall" | "alltoallv" | "alltoallw" | "reducescatter" | "reducescatterblock" => {
            pairwise(me, ranks, sizes[me] / ranks as u64)
        }
        "scan" | "exscan" => prefix(me, ranks, most),
        _ => dissemination(me, ranks, |_| 1),
    }
}

/// A binomial tree. `bytes` says what passes over the link above the ranks of a subtree, given their places from the root.
fn tree(way: Way, me: usize, root: usize, ranks: usize, bytes: impl Fn(std::ops::Range<usize>) -> u64) -> Vec<Move> {
    let from_root = (me + ranks - root) % ranks;
    let link = |place: usize, width: usize| bytes(place..(place + width).min(ranks));
    let own = if from_root == 0 { ranks.next_power_of_two() } else { 1 << from_root.trailing_zeros() };
    let widths = || (0..usize::BITS).map(|bit| 1usize << bit).take_while(|&width| width < own);
    let children: Vec<(usize, usize)> =
        widths().map(|width| (from_root + width, width)).filter(|&(child, _)| child < ranks).collect();
    let mut moves = Vec::with_capacity(children.len() + 1);
    match way {
        Way::FromRoot => {
            if from_root > 0 {
                moves.push(Move::Receive { round: 0 });
            }
            moves.extend(children.iter().rev().map(|&(child, width)| Move::Send {
                to: (child + root) % ranks,
                round: 0,
                bytes: link(child, width),
            }));
        }
        Way::ToRoot => {
            moves.extend(children.iter().map(|_| Move::Receive { round: 0 }));
            if from_root > 0 {
                let to = (from_root - own + root) % ranks;
                moves.push(Move::Send { to, round: 0, bytes: link(from_root, own) });
            }
        }
    }
    moves
}

/// Rounds, each with how far data go in it: 1, 2, 4, ... ranks.
fn distances(ranks: usize) -> impl Iterator<Item = (u32, usize)> {
    (0..usize::BITS).map(|bit| (bit, 1usize << bit)).take_while(move |&(_, far)| far < ranks)
}

fn prefix(me: usize, ranks: usize, bytes: u64) -> Vec<Move> {
    distances(ranks)
        .flat_map(|(round, far)| {
            let send = (me + far < ranks).then_some(Move::Send { to: me + far, round, bytes });
            let receive = (me >= far).then_some(Move::Receive { round });
            [send, receive]
        })
        .flatten()
        .collect()
}

fn dissemination(me: usize, ranks: usize, bytes: impl Fn(usize) -> u64) -> Vec<Move> {
    distances(ranks)
        .flat_map(|(round, far)| {
            [Move::Send { to: (me + far) % ranks, round, bytes: bytes(far) }, Move::Receive { round }]
        })
        .collect()
}

fn pairwise(me: usize, ranks: usize, bytes: u64) -> Vec<Move> {
    (1..ranks)
        .flat_map(|far| {
            let round = far as u32;
            [Move::Send { to: (me + far) % ranks, round, bytes }, Move::Receive { round }]
        })
        .collect()
}

fn allreduce(me: usize, ranks: usize, bytes: u64) -> Vec<Move> {
    let (algorithm, words) =
        if bytes > RING_BYTES { (Algorithm::Ring, ranks) } else { (Algorithm::RecursiveDoubling, 1) };
    let mut state = Allreduce::new(algorithm, ranks as u32, me as u32, (0..words).map(|_| 0));
    let mut moves = Vec::new();
    loop {
        match state.next() {
            Action::Send { to, round, part } => {
                let bytes = bytes / words as u64 * part.len() as u64;
                moves.push(Move::Send { to: to as usize, round, bytes });
                state.sent();
            }
            Action::Wait { round } => {
                moves.push(Move::Receive { round });
                state.received(&[]);
            }
            Action::Done => return moves,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 11] = [
        "bcast",
        "scatter",
        "reduce",
        "gatherv",
        "allreduce",
        "all_reduce",
        "allgather",
        "alltoall",
        "reduce_scatter",
        "scan",
        "barrier",
    ];

    /// What each rank knows of the others' contributions once nothing more can happen, and bytes sent.
    fn run(name: &str, root: usize, sizes: &[u64]) -> (Vec<u128>, u64) {
        let ranks = sizes.len();
        let moves: Vec<Vec<Move>> = (0..ranks).map(|me| moves(name, me, root, sizes)).collect();
        let mut known: Vec<u128> = (0..ranks).map(|me| 1 << me).collect();
        let mut at = vec![0; ranks];
        let mut sent = Vec::new();
        let mut bytes = 0;
        let mut moved = true;
        while moved {
            moved = false;
            for me in 0..ranks {
                while let Some(&next) = moves[me].get(at[me]) {
                    match next {
                        Move::Send { to, round, bytes: more } => {
                            assert_ne!(to, me, "{name}");
                            sent.push((to, round, known[me]));
                            bytes += more;
                        }
                        Move::Receive { round } => {
                            let Some(place) = sent.iter().position(|one| (one.0, one.1) == (me, round)) else { break };
                            known[me] |= sent.swap_remove(place).2;
                        }
                    }
                    at[me] += 1;
                    moved = true;
                }
            }
        }
        assert!(sent.is_empty(), "{name}: not received: {sent:?}");
        assert!((0..ranks).all(|me| at[me] == moves[me].len()), "{name} of {ranks} waits for ever");
        (known, bytes)
    }

    #[test]
    fn every_rank_that_needs_data_has_them_and_every_message_is_received() {
        for ranks in [1usize, 2, 3, 5, 8, 13, 16] {
            let all = (1u128 << ranks) - 1;
            for root in [0, ranks / 2, ranks - 1] {
                for size in [8, 1 << 20] {
                    for name in NAMES {
                        let (known, _) = run(name, root, &vec![size; ranks]);
                        let complete = |me: usize| known[me] == all;
                        match name {
                            "bcast" | "scatter" => assert!((0..ranks).all(|me| known[me] & (1 << root) > 0)),
                            "scan" => assert!((0..ranks).all(|me| known[me] == (2 << me) - 1), "of {ranks}"),
                            "reduce" | "gatherv" => assert!(complete(root), "{name} {ranks} {root}"),
                            _ => assert!((0..ranks).all(complete), "{name} of {ranks}"),
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn as_many_bytes_are_sent_as_the_operation_moves() {
        let sizes = [1 << 20; 8];
        assert_eq!(run("bcast", 3, &sizes).1, 7 << 20);
        assert_eq!(run("allgather", 0, &sizes).1, (8 * 7) << 20);
        assert_eq!(run("alltoall", 0, &sizes).1, (8 * 7) << 17);
        assert_eq!(run("allreduce", 0, &sizes).1, (8 * 14) << 17);
        // Each rank's megabyte passes over as many links as lie between it and the root: 3 x 1, 3 x 2, 1 x 3.
        assert_eq!(run("gather", 0, &sizes).1, 12 << 20);
        // The root alone records what it scatters.
        let mut scattered = [0; 8];
        scattered[2] = 8 << 20;
        assert_eq!(run("scatter", 2, &scattered).1, 12 << 20);
    }
}
