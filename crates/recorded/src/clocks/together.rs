//! What happens at nearly the same time on the clocks of several ranks: it chooses among the offsets that causality permits.
//!
//! Ranks leave an operation that all wait for together. A receiver that waited for its message continues when that has come, so
//! shortly after it was sent. Ranks are placed one after the other, each against those that are placed already: first those that
//! share most operations with them, then those that only exchange messages with them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Ends of an operation that all wait for, or a message for which its receiver waited.
#[derive(Clone, Debug)]
pub enum Together {
    /// Ranks in ascending order, and when they left, on their own clocks, ns.
    Ends(Vec<(u32, i64)>),
    Came {
        from: u32,
        sent: i64,
        to: u32,
        came: i64,
    },
}

/// What says how far the clock of a rank is ahead of the common one: its own time, and by how much it is ahead, ns.
#[derive(Clone, Debug, Default)]
pub struct Signs {
    pub ends: Vec<(i64, i64)>,
    /// It is ahead by a little less, and by a little more: messages that it waited for, and that others waited for.
    pub less: Vec<(i64, i64)>,
    pub more: Vec<(i64, i64)>,
}

/// Calls `place` with each rank but the first, and with what is known of it: `common` returns a time of a rank that was placed
/// already on the common clock.
pub fn one_by_one<State>(
    ranks: usize,
    all: &[Together],
    state: &mut State,
    common: impl Fn(&State, u32, i64) -> i64,
    mut place: impl FnMut(&mut State, u32, Signs),
) {
    let mut of: Vec<Vec<u32>> = vec![Vec::new(); ranks];
    for (at, together) in (0u32..).zip(all) {
        match together {
            Together::Ends(ends) => ends.iter().for_each(|(rank, _)| of[*rank as usize].push(at)),
            Together::Came { from, to, .. } => [from, to].into_iter().for_each(|rank| of[*rank as usize].push(at)),
        }
    }
    let mut placed = vec![false; ranks];
    // Operations and messages that a rank shares with those placed.
    let mut shared = vec![(0u32, 0u32); ranks];
    let mut known = vec![false; all.len()];
    let mut next = BinaryHeap::from_iter((0..ranks).map(|rank| ((0, 0), Reverse(rank))));
    while let Some((by, Reverse(rank))) = next.pop() {
        if placed[rank] || by != shared[rank] {
            continue;
        }
        if rank > 0 {
            let signs = signs(rank as u32, &of[rank], all, &placed, |other, at| common(state, other, at));
            place(state, rank as u32, signs);
        }
        placed[rank] = true;
        let mut changed = BTreeSet::new();
        for &at in &of[rank] {
            if std::mem::replace(&mut known[at as usize], true) {
                continue;
            }
            let mut share = |other: u32, (ends, messages): (u32, u32)| {
                let of = &mut shared[other as usize];
                *of = (of.0 + ends, of.1 + messages);
                changed.insert(other as usize);
            };
            match &all[at as usize] {
                Together::Ends(ends) => ends.iter().for_each(|(other, _)| share(*other, (1, 0))),
                Together::Came { from, to, .. } => [*from, *to].into_iter().for_each(|other| share(other, (0, 1))),
            }
        }
        next.extend(changed.into_iter().filter(|&rank| !placed[rank]).map(|rank| (shared[rank], Reverse(rank))));
    }
}

fn signs(rank: u32, of: &[u32], all: &[Together], placed: &[bool], common: impl Fn(u32, i64) -> i64) -> Signs {
    let mut found = Signs::default();
    for &at in of {
        match &all[at as usize] {
            Together::Ends(ends) => {
                let other = ends.iter().find(|(other, _)| placed[*other as usize]);
                let own = ends.binary_search_by_key(&rank, |end| end.0);
                if let (Some(&(other, end)), Ok(own)) = (other, own) {
                    let own = ends[own].1;
                    found.ends.push((own, own.saturating_sub(common(other, end))));
                }
            }
            &Together::Came { from, sent, to, came } if to == rank && placed[from as usize] => {
                found.less.push((came, came.saturating_sub(common(from, sent))));
            }
            &Together::Came { from, sent, to, came } if from == rank && placed[to as usize] => {
                found.more.push((sent, sent.saturating_sub(common(to, came))));
            }
            Together::Came { .. } => {}
        }
    }
    found
}

/// Returns half of the shortest way there and back of messages that were waited for: what one takes; 0 if there is none.
pub fn shortest_transfer(all: &[Together]) -> i64 {
    let mut least: BTreeMap<(u32, u32), i64> = BTreeMap::new();
    for together in all {
        if let &Together::Came { from, sent, to, came } = together {
            let took = came.saturating_sub(sent);
            least.entry((from, to)).and_modify(|least| *least = took.min(*least)).or_insert(took);
        }
    }
    let both = least.iter().filter_map(|(&(from, to), there)| Some(there.saturating_add(*least.get(&(to, from))?) / 2));
    both.min().unwrap_or(0).max(0)
}
