//! One clock for all ranks, from causality alone: nothing ends anywhere before all that it needs has begun.
//!
//! Each pair "i began at s on its clock, j ended at e on its own, and j needed i" bounds how far the clock of j is ahead of
//! that of i: at most e - s. Shortest paths over these bounds give the interval of each offset. Clocks that run at
//! different speeds have no constant offset; then a line is fitted between the bounds over time.

mod together;

use std::collections::BTreeMap;

pub use together::Together;
use together::{Signs, one_by_one, shortest_transfer};

/// "The clock of `later` is ahead of that of `earlier` by at most `ahead` at the time `at` (clock of `later`)."
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    pub earlier: u32,
    pub later: u32,
    pub at: i64,
    pub ahead: i64,
}

/// Offsets of all ranks' clocks against the first rank's.
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    /// Lowest and highest offset that causality permits, ns. `None`: no bound.
    pub low: Vec<Option<i64>>,
    pub high: Vec<Option<i64>>,
    /// The offset that is used for conversions, ns.
    pub shift: Vec<i64>,
    /// How much faster the clock runs than the first rank's, as a share.
    pub drift: Vec<f64>,
    /// Standard error of the offset within its bounds, ns.
    pub error: Vec<f64>,
    /// Where the drift is 0.
    origin: Vec<i64>,
}

/// How far stamps of one event may contradict each other, ns: profilers stamp ends and beginnings in different threads.
const STAMP_NS: i64 = 1_000_000;
/// Ends of operations in a third of the run from which on a drift is estimated.
const FEW_ENDS: usize = 8;
/// Fastest drift looked for; clocks of computers are within 0.1 ms per second.
const MOST_DRIFT: f64 = 5e-4;

impl Clocks {
    /// Returns a time of a rank's clock on the common one.
    #[must_use]
    pub fn common(&self, rank: usize, time: i64) -> i64 {
        let drifted = (self.drift[rank] * time.saturating_sub(self.origin[rank]) as f64) as i64;
        time.saturating_sub(self.shift[rank]).saturating_sub(drifted)
    }

    /// Returns the widest interval of an offset, ns; `None` where one has no bound.
    #[must_use]
    pub fn widest(&self) -> Option<i64> {
        (self.low.iter().zip(&self.high))
            .map(|(low, high)| Some(high.as_ref()?.saturating_sub(*low.as_ref()?)))
            .try_fold(0, |most, one| Some(most.max(one?)))
    }

    /// Returns how far the offset of a rank may be from the one used, ns.
    #[must_use]
    pub fn slack_of(&self, rank: usize) -> i64 {
        match (self.low[rank], self.high[rank]) {
            (Some(low), Some(high)) => (high.saturating_sub(low) / 2).max(0),
            _ => i64::MAX / 4,
        }
    }

    /// Returns the same of the offset between two ranks, ns.
    #[must_use]
    pub fn slack(&self, one: usize, other: usize) -> i64 {
        self.slack_of(one).saturating_add(self.slack_of(other))
    }

    fn fitted(ranks: usize) -> Self {
        Self {
            low: vec![None; ranks],
            high: vec![None; ranks],
            shift: vec![0; ranks],
            drift: vec![0.0; ranks],
            error: vec![0.0; ranks],
            origin: vec![0; ranks],
        }
    }
}

/// Finds the offsets, or `None` if the bounds contradict each other, whatever the clocks.
#[must_use]
pub fn align(ranks: usize, bounds: &[Bound], together: &[Together]) -> Option<Clocks> {
    let drifting = drifts(ranks, together);
    let (mut clocks, edges) = constant(&drifting, bounds, 0).or_else(|| aligned(ranks, bounds))?;
    let transfer = shortest_transfer(together);
    let mut limits: Vec<Limits> = vec![Limits::default(); ranks];
    for (&(earlier, later), &ahead) in &edges {
        limits[later as usize].0.push((earlier, ahead));
        limits[earlier as usize].1.push((later, ahead));
    }
    let mut placed = vec![false; ranks];
    placed.iter_mut().take(1).for_each(|first| *first = true);
    one_by_one(ranks, together, &mut clocks, common, |clocks, rank, signs| {
        let bounds = between(clocks, rank, &limits[rank as usize], &placed);
        placed[rank as usize] = true;
        let (low, high) = (bounds.0.unwrap_or(i64::MIN), bounds.1.unwrap_or(i64::MAX));
        if low > high {
            return;
        }
        let half = high.saturating_sub(low) as f64 / 2.0;
        match offset(clocks, rank, &signs, transfer) {
            Some((middle, error)) => {
                clocks.shift[rank as usize] = middle.clamp(low, high);
                clocks.error[rank as usize] = error.min(half);
            }
            None => {
                // Anywhere between the bounds.
                clocks.shift[rank as usize] = match bounds {
                    (Some(low), Some(high)) => low.saturating_add(high.saturating_sub(low) / 2),
                    (Some(one), None) | (None, Some(one)) => one,
                    (None, None) => 0,
                };
                clocks.error[rank as usize] = if half < i64::MAX as f64 / 4.0 { half / 3f64.sqrt() } else { 0.0 };
            }
        }
    });
    Some(clocks)
}

fn common(clocks: &Clocks, rank: u32, time: i64) -> i64 {
    clocks.common(rank as usize, time)
}

/// Returns the bounds of a rank's offset, given those that are placed. `above`, `below`: other ranks, and by how much this
/// rank's clock is ahead of theirs at most, and theirs of its own.
fn between(clocks: &Clocks, rank: u32, (above, below): &Limits, placed: &[bool]) -> (Option<i64>, Option<i64>) {
    let (low, high) = (clocks.low[rank as usize], clocks.high[rank as usize]);
    let of_placed = |limits: &[(u32, i64)], sign: i64| {
        let placed = limits.iter().filter(|limit| placed[limit.0 as usize]);
        placed.map(|&(other, ahead)| clocks.shift[other as usize].saturating_add(sign * ahead)).collect::<Vec<_>>()
    };
    let most = of_placed(above, 1).into_iter().chain(high).min();
    let least = of_placed(below, -1).into_iter().chain(low).max();
    // What was placed before may leave no room.
    if least.zip(most).is_some_and(|(least, most)| least > most) { (low, high) } else { (least, most) }
}

/// Of one rank: its edges from others, and to others.
type Limits = (Vec<(u32, i64)>, Vec<(u32, i64)>);

/// Returns what a rank's offset probably is, and its standard error, ns.
fn offset(clocks: &Clocks, rank: u32, signs: &Signs, transfer: i64) -> Option<(i64, f64)> {
    let level = |points: &[(i64, i64)]| {
        let mut ahead: Vec<i64> = points.iter().map(|point| without_drift(clocks, rank, *point)).collect();
        ahead.sort_unstable();
        ahead
    };
    if !signs.ends.is_empty() {
        let ahead = level(&signs.ends);
        // Of a median, and of a line through it: from the quartiles of a normal distribution.
        let quartile = |part: usize| ahead[(ahead.len() - 1) * part / 4] as f64;
        let spread = (quartile(3) - quartile(1)) / 1.349;
        return Some((ahead[ahead.len() / 2], 2.0 * 1.2533 * spread / (ahead.len() as f64).sqrt()));
    }
    let (less, more) = (level(&signs.less), level(&signs.more));
    // How much longer than the shortest half of the messages take.
    let beyond = |ahead: &[i64]| (ahead[ahead.len() / 2] - ahead[0]).max(transfer) as f64;
    match (less.first(), more.last()) {
        (Some(&most), Some(&least)) => {
            Some((least.saturating_add(most.saturating_sub(least) / 2), most.saturating_sub(least).max(0) as f64 / 2.0))
        }
        (Some(&most), None) => Some((most.saturating_sub(transfer), beyond(&less))),
        (None, Some(&least)) => {
            let before: Vec<i64> = more.iter().rev().map(|ahead| -ahead).collect();
            Some((least.saturating_add(transfer), beyond(&before)))
        }
        (None, None) => None,
    }
}

fn without_drift(clocks: &Clocks, rank: u32, (at, ahead): (i64, i64)) -> i64 {
    let drifted = clocks.drift[rank as usize] * at.saturating_sub(clocks.origin[rank as usize]) as f64;
    ahead.saturating_sub(drifted as i64)
}

/// Estimates drifts from when ranks leave operations: from the first third to the last.
fn drifts(ranks: usize, together: &[Together]) -> Clocks {
    let mut clocks = Clocks::fitted(ranks);
    one_by_one(ranks, together, &mut clocks, common, |clocks, rank, mut signs| {
        let points = &mut signs.ends;
        let third = points.len() / 3;
        if third >= FEW_ENDS {
            points.sort_unstable();
            let middle = |points: &[(i64, i64)]| {
                let mut ahead: Vec<i64> = points.iter().map(|point| point.1).collect();
                ahead.sort_unstable();
                (points[points.len() / 2].0, ahead[ahead.len() / 2])
            };
            let (first, last) = (middle(&points[..third]), middle(&points[points.len() - third..]));
            let drift = last.1.saturating_sub(first.1) as f64 / last.0.saturating_sub(first.0).max(1) as f64;
            if drift.abs() <= MOST_DRIFT {
                clocks.drift[rank as usize] = drift;
                clocks.origin[rank as usize] = first.0;
            }
        }
        clocks.shift[rank as usize] = offset(clocks, rank, &signs, 0).map_or(0, |(middle, _)| middle);
    });
    clocks
}

fn aligned(ranks: usize, bounds: &[Bound]) -> Option<(Clocks, Edges)> {
    let still = Clocks::fitted(ranks);
    constant(&still, bounds, 0)
        .or_else(|| constant(&drifting(ranks, bounds)?, bounds, 0))
        .or_else(|| constant(&still, bounds, STAMP_NS))
        .or_else(|| constant(&drifting(ranks, bounds)?, bounds, STAMP_NS))
}

/// By how much, at most, the clock of the second is ahead of that of the first, ns.
type Edges = BTreeMap<(u32, u32), i64>;

/// Finds constant offsets on top of the drift of `base`, and the bounds that they keep.
fn constant(base: &Clocks, bounds: &[Bound], tolerance: i64) -> Option<(Clocks, Edges)> {
    let ranks = base.shift.len();
    let mut edges = Edges::new();
    for bound in bounds {
        let drift = |rank: u32| {
            let rank = rank as usize;
            base.drift[rank] * bound.at.saturating_sub(base.origin[rank]) as f64
        };
        let drifted = (drift(bound.later) - drift(bound.earlier)) as i64;
        let ahead = bound.ahead.saturating_sub(drifted).saturating_add(tolerance);
        edges.entry((bound.earlier, bound.later)).and_modify(|least| *least = ahead.min(*least)).or_insert(ahead);
    }
    let forward: Vec<(u32, u32, i64)> = edges.iter().map(|(&(from, to), &ahead)| (from, to, ahead)).collect();
    let backward: Vec<(u32, u32, i64)> = forward.iter().map(|&(from, to, ahead)| (to, from, ahead)).collect();
    let high = shortest(ranks, &forward)?;
    let low = shortest(ranks, &backward)?;
    let mut clocks = base.clone();
    for rank in 0..ranks {
        clocks.high[rank] = high[rank];
        clocks.low[rank] = low[rank].map(|low| low.saturating_neg());
        clocks.shift[rank] = match (clocks.low[rank], clocks.high[rank]) {
            (Some(low), Some(high)) => low.saturating_add(high.saturating_sub(low) / 2),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => 0,
        };
    }
    Some((clocks, edges))
}

/// Returns the shortest path from the first rank to each, or `None` if a circle is shorter than nothing.
fn shortest(ranks: usize, edges: &[(u32, u32, i64)]) -> Option<Vec<Option<i64>>> {
    let mut length: Vec<Option<i64>> = vec![None; ranks];
    if ranks > 0 {
        length[0] = Some(0);
    }
    for _ in 0..=ranks {
        let mut changed = false;
        for &(from, to, ahead) in edges {
            let Some(path) = length[from as usize] else { continue };
            let path = path.saturating_add(ahead);
            if length[to as usize].is_none_or(|known| path < known) {
                length[to as usize] = Some(path);
                changed = true;
            }
        }
        if length.first().copied().flatten() < Some(0) {
            return None;
        }
        if !changed {
            return Some(length);
        }
    }
    None
}

/// Fits the drift of each clock along a tree of pairs with bounds in both directions.
fn drifting(ranks: usize, bounds: &[Bound]) -> Option<Clocks> {
    let mut pairs: BTreeMap<(u32, u32), (Vec<Point>, Vec<Point>)> = BTreeMap::new();
    for bound in bounds {
        let forward = bound.earlier < bound.later;
        let pair = if forward { (bound.earlier, bound.later) } else { (bound.later, bound.earlier) };
        let (above, below) = pairs.entry(pair).or_default();
        if forward {
            above.push((bound.at, bound.ahead));
        } else {
            below.push((bound.at, -bound.ahead));
        }
    }
    let mut clocks = Clocks::fitted(ranks);
    let mut known = vec![false; ranks];
    *known.first_mut()? = true;
    let mut grown = true;
    while grown {
        grown = false;
        for (&(one, other), (above, below)) in &pairs {
            let (one, other) = (one as usize, other as usize);
            if known[one] == known[other] || above.len() < 2 || below.len() < 2 {
                continue;
            }
            let origin = above[0].0;
            let drift = slope(above, below, origin);
            let (from, to, drift) = if known[one] { (one, other, drift) } else { (other, one, -drift) };
            clocks.drift[to] = clocks.drift[from] + drift;
            clocks.origin[to] = origin;
            known[to] = true;
            grown = true;
        }
    }
    Some(clocks)
}

/// A time, and a bound of the offset then, ns.
type Point = (i64, i64);

/// Returns the slope of the line that keeps the greatest distance from the bounds above and below.
fn slope(above: &[Point], below: &[Point], origin: i64) -> f64 {
    let room = |slope: f64| {
        let level = |&(at, bound): &Point| bound as f64 - slope * at.saturating_sub(origin) as f64;
        above.iter().map(level).fold(f64::INFINITY, f64::min)
            - below.iter().map(level).fold(f64::NEG_INFINITY, f64::max)
    };
    let (mut low, mut high) = (-MOST_DRIFT, MOST_DRIFT);
    for _ in 0..60 {
        let (left, right) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if room(left) < room(right) { low = left } else { high = right }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two ranks meet `count` times, 1 s apart; the second's clock is ahead by `offset`, and runs faster by `drift`.
    fn meetings(count: i64, offset: i64, drift: f64) -> Vec<Bound> {
        let mut bounds = Vec::new();
        for number in 0..count {
            let time = number * 1_000_000_000;
            let ahead = offset + (drift * time as f64) as i64;
            // Rank 0 arrives 2 us before the end, rank 1 5 us before it.
            bounds.push(Bound { earlier: 0, later: 1, at: time, ahead: ahead + 2_000 });
            bounds.push(Bound { earlier: 1, later: 0, at: time, ahead: -ahead + 5_000 });
        }
        bounds
    }

    #[test]
    fn an_offset_is_found_within_its_bounds() {
        for offset in [0, 250_000_000, -7_000_000_000] {
            let clocks = align(2, &meetings(10, offset, 0.0), &[]).unwrap();
            assert_eq!((clocks.low[1], clocks.high[1]), (Some(offset - 5_000), Some(offset + 2_000)));
            assert_eq!(clocks.widest(), Some(7_000));
            assert!(clocks.common(1, offset).abs() < 4_000);
        }
    }

    #[test]
    fn a_drifting_clock_is_followed() {
        let clocks = align(2, &meetings(100, 1_000_000, 2e-5), &[]).unwrap();
        assert!((clocks.drift[1] - 2e-5).abs() < 2e-7, "{}", clocks.drift[1]);
        for second in [0, 50, 99] {
            let time: i64 = second * 1_000_000_000;
            let there = time + 1_000_000 + (2e-5 * time as f64) as i64;
            assert!((clocks.common(1, there) - time).abs() < 10_000, "{}", clocks.common(1, there) - time);
        }
    }

    #[test]
    fn a_contradiction_is_none() {
        let mut bounds = meetings(10, 0, 0.0);
        bounds.push(Bound { earlier: 0, later: 1, at: 5_000_000_000, ahead: -30_000_000 });
        bounds.push(Bound { earlier: 1, later: 0, at: 5_100_000_000, ahead: -30_000_000 });
        assert!(align(2, &bounds, &[]).is_none());
    }

    #[test]
    fn a_rank_without_bounds_has_none() {
        let clocks = align(3, &meetings(10, 5, 0.0), &[]).unwrap();
        assert_eq!((clocks.low[2], clocks.high[2], clocks.shift[2]), (None, None, 0));
        assert_eq!(clocks.widest(), None);
    }

    /// Two operations of ranks `one` and `other` in turn, the first of which each arrives later at; `ahead` of the second.
    fn pair(one: u32, other: u32, ahead: i64, bounds: &mut Vec<Bound>, together: &mut Vec<Together>) {
        for number in 0..20 {
            let time = number * 1_000_000_000;
            // They leave together; `other` always waits 5 ms for `one`, so this bound is loose.
            bounds.push(Bound { earlier: one, later: other, at: time, ahead: ahead + 2_000 });
            bounds.push(Bound { earlier: other, later: one, at: time, ahead: -ahead + 5_000_000 });
            together.push(Together::Ends(vec![(one, time), (other, time + ahead)]));
        }
    }

    #[test]
    fn ranks_that_never_meet_the_first_are_placed_against_others() {
        let (mut bounds, mut together) = (Vec::new(), Vec::new());
        pair(0, 1, 7_000_000, &mut bounds, &mut together);
        pair(1, 2, -3_000_000, &mut bounds, &mut together);
        let clocks = align(3, &bounds, &together).unwrap();
        assert_eq!(clocks.shift, [0, 7_000_000, 4_000_000]);
        assert!(clocks.error.iter().all(|error| *error < 1_000.0), "{:?}", clocks.error);
    }

    #[test]
    fn messages_that_were_waited_for_bound_more_than_those_that_were_not() {
        // Rank 1 waits for messages of rank 0, which take 40 us; its own had come 5 ms before rank 0 looked.
        let (mut bounds, mut together) = (Vec::new(), Vec::new());
        for number in 0..20 {
            let time = number * 1_000_000_000;
            bounds.push(Bound { earlier: 0, later: 1, at: time, ahead: 9_000_000 + 40_000 });
            bounds.push(Bound { earlier: 1, later: 0, at: time, ahead: -9_000_000 + 5_000_000 });
            together.push(Together::Came { from: 0, sent: time, to: 1, came: time + 9_000_000 + 40_000 });
        }
        let clocks = align(2, &bounds, &together).unwrap();
        assert!((clocks.shift[1] - 9_000_000).abs() <= 40_000, "{:?}", clocks.shift);
        let between = align(2, &bounds, &[]).unwrap();
        assert!(between.error[1] > 1e6, "anywhere between the bounds: {:?}", between.error);
    }
}
