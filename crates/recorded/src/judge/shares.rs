//! What ranks cost, alone and together: replays with their excess taken away, shared out by Shapley's value.

use std::collections::BTreeMap;

use super::absences::{Known, Spot};
use super::excess::{Excess, Sampler};
use super::noise::{Draws, Shape};
use super::series::{Series, What};
use crate::folded::{self, Folded};
use crate::graph::{self, Do, Times};
use crate::matching::Matched;

/// Plausible worlds that are drawn, at most and at least.
const WORLDS: usize = 64;
const FEWEST: usize = 12;
/// Additions of all replays.
const BUDGET: f64 = 1.5e9;
/// With more ranks than this, orders are drawn instead of trying all sets.
const ALL_SETS: usize = 5;
const ORDERS: usize = 4;
/// Two ranks hide each other if less than this share of what they cost together is saved by removing either alone.
const HIDDEN: f64 = 0.5;

/// A mean over the worlds, with an interval of 95 %, s.
#[derive(Clone, Copy, Debug, Default)]
pub struct Estimate {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

impl Estimate {
    /// Widens the interval by an independent error, whose standard deviation is given in s.
    fn widened(self, error: f64) -> Self {
        let half = (self.mean - self.low).hypot(1.96 * error);
        Self { low: self.mean - half, high: self.mean + half, ..self }
    }

    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
        // Student's t for 11 and more degrees of freedom, within 1 %.
        let half = (1.96 + 2.6 / count) * variance.sqrt();
        Self { mean, low: mean - half, high: mean + half }
    }
}

/// What one rank costs, and at which places.
#[derive(Clone, Debug, Default)]
pub struct Cost {
    pub rank: u32,
    pub share: Estimate,
    /// Saved if only this rank were as fast as its peers, s.
    pub alone: f64,
    /// Steps in which it costs something.
    pub steps: u32,
    /// Excess at each of its places, s, summed over the steps.
    pub places: Vec<(Spot, f64)>,
}

#[derive(Clone, Debug, Default)]
pub struct Shares {
    pub costs: Vec<Cost>,
    /// Sets of ranks of which removing one alone saves little, with what they cost together.
    pub hidden: Vec<(Vec<u32>, Estimate)>,
    pub replays: u64,
}

/// Removes the excess of `ranks` from a run.
struct Removal<'a> {
    matched: &'a Matched,
    known: &'a Known,
    /// The program of these ranks alone; not where meetings would be over sooner.
    folded: Option<Folded>,
    /// Whether the excess of a rank is taken away.
    out: Vec<bool>,
    base: i64,
    of_folded: folded::Memory,
    of_whole: graph::Memory,
    replays: u64,
}

impl<'a> Removal<'a> {
    fn new(matched: &'a Matched, known: &'a Known, ranks: &[u32]) -> Self {
        let alone = known.within.is_empty() && known.behind.is_empty();
        let folded = alone.then(|| Folded::new(&matched.graph, &matched.own, &matched.took, ranks));
        let mut removal = Self {
            matched,
            known,
            folded,
            out: vec![false; matched.graph.starts.len()],
            base: 0,
            of_folded: folded::Memory::default(),
            of_whole: graph::Memory::default(),
            replays: 0,
        };
        removal.base = removal.replay(&matched.own);
        removal
    }

    /// Additions of one replay.
    fn size(&self) -> usize {
        self.folded.as_ref().map_or(self.matched.graph.nodes.len(), Folded::size).max(1)
    }

    fn replay(&mut self, world: &Times) -> i64 {
        let matched = self.matched;
        let times = |rank: u32| if self.out[rank as usize] { world } else { &matched.own };
        if let Some(folded) = &self.folded {
            return folded.replay(times, &mut self.of_folded);
        }
        let (took, tail) = self.known.in_meetings(matched, |rank| self.out[rank as usize]);
        let rest = Times { computing: matched.own.computing.clone(), tail };
        let times = |rank: u32| if self.out[rank as usize] { world } else { &rest };
        matched.graph.replay(times, &took, &mut self.of_whole)
    }

    /// Returns the length of each step in the last replay, ns.
    fn lengths(&self) -> Vec<f64> {
        let ends = if self.folded.is_some() { &self.of_folded.steps } else { &self.of_whole.steps };
        let before = std::iter::once(0).chain(ends.iter().copied());
        ends.iter().zip(before).map(|(end, before)| end.saturating_sub(before) as f64).collect()
    }

    fn saved(&mut self, world: &Times, ranks: &[u32]) -> f64 {
        if ranks.is_empty() {
            return 0.0;
        }
        self.replays += 1;
        ranks.iter().for_each(|&rank| self.out[rank as usize] = true);
        let end = self.replay(world);
        ranks.iter().for_each(|&rank| self.out[rank as usize] = false);
        self.base.saturating_sub(end) as f64 * 1e-9
    }
}

/// Returns what ranks with an excess cost. `series`: times without what is known.
#[must_use]
pub fn shares(matched: &Matched, series: &[&Series], known: &Known, shape: &Shape, blocks: [f64; 2]) -> Shares {
    let mut ranks: Vec<u32> = series.iter().map(|one| one.rank).chain(known.ranks.iter().copied()).collect();
    ranks.sort_unstable();
    ranks.dedup();
    if ranks.is_empty() {
        return Shares::default();
    }
    let count = ranks.len();
    let sets = if count <= ALL_SETS { (1 << count) - 1 } else { (ORDERS + 1) * count };
    let mut removal = Removal::new(matched, known, &ranks);
    let budget = BUDGET / (removal.size() as f64 * sets as f64);
    let worlds = (budget as usize).clamp(FEWEST, WORLDS);
    let base_steps = removal.lengths();
    let mut draws = Draws(42);
    let mut share = vec![Vec::with_capacity(worlds); count];
    let mut alone = vec![0.0; count];
    let mut saved_steps = vec![vec![0.0; base_steps.len()]; count];
    let mut places: BTreeMap<Spot, f64> = BTreeMap::new();
    let mut pairs: BTreeMap<(usize, usize), (Vec<f64>, f64)> = BTreeMap::new();
    let sampler = |one: &&Series, draws: &mut Draws| {
        let block = blocks[one.what as usize];
        let excess = Excess { values: &one.values, level: one.level, error: one.error, positive: one.of_two, block };
        Sampler::new(&excess, shape, draws)
    };
    let mut samplers: Vec<Sampler<'_>> = series.iter().map(|one| sampler(one, &mut draws)).collect();
    let mut healthy = known.without.clone();
    let mut world = healthy.clone();
    for _ in 0..worlds {
        known.draw(&matched.own, &mut draws, &mut healthy);
        known.copy(&healthy, &mut world);
        for (one, sampler) in series.iter().zip(&mut samplers) {
            let excess = sampler.draw(&mut draws);
            let step = one.steps.first().copied().unwrap_or_default();
            *places.entry((one.rank, step, one.place, one.what.into())).or_default() += excess.iter().sum::<f64>();
            without(&healthy, one, &excess, &mut world);
        }
        let mut alone_here = vec![0.0; count];
        for (at, &rank) in ranks.iter().enumerate() {
            alone_here[at] = removal.saved(&world, &[rank]);
            alone[at] += alone_here[at] / worlds as f64;
            for ((sum, base), now) in saved_steps[at].iter_mut().zip(&base_steps).zip(removal.lengths()) {
                *sum += (base - now) * 1e-9 / worlds as f64;
            }
        }
        let here = shapley(&mut removal, &world, &ranks, &alone_here, &mut draws);
        for (share, here) in share.iter_mut().zip(here) {
            share.push(here);
        }
        if (2..=ALL_SETS).contains(&count) {
            for one in 0..count {
                for other in one + 1..count {
                    let both = removal.saved(&world, &[ranks[one], ranks[other]]);
                    let (all, apart) = pairs.entry((one, other)).or_default();
                    all.push(both);
                    *apart += (alone_here[one] + alone_here[other]) / worlds as f64;
                }
            }
        }
    }
    let transfers = transfers(matched, known);
    let hidden = pairs
        .into_iter()
        .map(|((one, other), (both, apart))| (vec![ranks[one], ranks[other]], Estimate::of(&both), apart))
        .filter(|(_, both, apart)| both.low > 0.0 && *apart < HIDDEN * both.mean)
        .map(|(pair, both, _)| {
            let variance: f64 = pair.iter().map(|&rank| transfers[rank as usize]).sum();
            (pair, both.widened(variance.sqrt()))
        })
        .collect();
    // An error of the clocks moves all arrivals of a rank, against those of the rank that is last without it.
    let clocks = matched.clocks.error.iter().copied().fold(0.0, f64::max) * std::f64::consts::SQRT_2 * 1e-9;
    // All is in seconds of the first rank's clock, whose own rate is off by as much as the clocks differ.
    let drifts = &matched.clocks.drift;
    let usual = drifts.iter().sum::<f64>() / drifts.len() as f64;
    let rate = (drifts.iter().map(|drift| (drift - usual).powi(2)).sum::<f64>() / drifts.len() as f64).sqrt();
    let costs = ranks.iter().enumerate().map(|(at, &rank)| {
        let inferred = places.iter().map(|(&spot, sum)| (spot, sum * 1e-9 / worlds as f64));
        let measured = known.places.iter().map(|(&spot, sum)| (spot, sum * 1e-9));
        let of: Vec<(Spot, f64)> = inferred.chain(measured).filter(|((other, ..), _)| *other == rank).collect();
        let own = Estimate::of(&share[at]);
        // A step counts from a fifth of the average on.
        let least = 0.2 * own.mean.max(alone[at]).max(0.0) / saved_steps[at].len().max(1) as f64;
        let steps = if alone[at] > HIDDEN * own.mean {
            saved_steps[at].iter().filter(|&&saved| saved > least).count() as u32
        } else {
            in_steps(series, known, rank)
        };
        let part = f64::from(steps) / saved_steps[at].len().max(1) as f64;
        let transfers = (transfers[rank as usize] * part.min(1.0)).sqrt();
        let share = own.widened((clocks * f64::from(steps)).hypot(rate * own.mean).hypot(transfers));
        Cost { rank, share, alone: alone[at], steps, places: of }
    });
    Shares { costs: costs.collect(), hidden, replays: removal.replays }
}

/// Returns the variance of the time that each rank's operations take together once all have arrived, s^2. Had a rank not been
/// the last, each would have been another draw of it; the replay has those recorded.
fn transfers(matched: &Matched, known: &Known) -> Vec<f64> {
    // What is known to have kept ranks from running is no variation of the transfers.
    let (took, late) = known.in_meetings(matched, |_| true);
    let kept = |cell: usize| matched.own.tail[cell] - known.without.tail[cell];
    // Operations that end in one call are waited for together: the last of them counts.
    let mut waits: Vec<Vec<(u32, f64)>> = vec![Vec::new(); matched.graph.starts.len()];
    let mut waited = vec![false; waits.len()];
    for node in &matched.graph.nodes {
        let (rank, cell) = (node.rank as usize, node.cell as usize);
        let is_wait = matches!(node.does, Do::Wait(_));
        if let Do::Wait(meeting) = node.does {
            let took = took[meeting as usize].saturating_add((late[cell] - kept(cell)).max(0)) as f64 * 1e-9;
            let one = (matched.class[meeting as usize], took);
            if waited[rank] && matched.own.computing[cell] == 0 {
                waits[rank].pop();
            }
            waits[rank].push(one);
        }
        waited[rank] = is_wait;
    }
    let mut classes: BTreeMap<u32, (f64, f64, f64)> = BTreeMap::new();
    for &(class, took) in waits.iter().flatten() {
        let sums = classes.entry(class).or_default();
        *sums = (sums.0 + 1.0, sums.1 + took, sums.2 + took * took);
    }
    let variance = |class: u32| {
        let (count, sum, squares) = classes[&class];
        ((squares - sum * sum / count) / (count - 1.0).max(1.0)).max(0.0)
    };
    waits.iter().map(|waits| waits.iter().map(|&(class, _)| variance(class)).sum()).collect()
}

/// Returns the number of steps in which a rank has a clear excess.
fn in_steps(series: &[&Series], known: &Known, rank: u32) -> u32 {
    let mut steps: Vec<u32> = known.steps.get(&rank).cloned().unwrap_or_default();
    for one in series.iter().filter(|one| one.rank == rank) {
        let clear =
            one.values.iter().zip(&one.steps).filter(|(value, _)| **value > one.level.center + 4.0 * one.level.spread);
        steps.extend(clear.map(|(_, &step)| step));
    }
    steps.sort_unstable();
    steps.dedup();
    steps.len() as u32
}

/// Sets the times of a series to those without an excess.
fn without(own: &Times, series: &Series, excess: &[f64], times: &mut Times) {
    let (from, to) = match series.what {
        What::Computing => (&own.computing, &mut times.computing),
        What::Tail => (&own.tail, &mut times.tail),
    };
    for (&cell, excess) in series.cells.iter().zip(excess) {
        to[cell as usize] = from[cell as usize].saturating_sub(excess.round() as i64).max(0);
    }
}

/// Returns the share of each rank.
fn shapley(removal: &mut Removal, world: &Times, ranks: &[u32], alone: &[f64], draws: &mut Draws) -> Vec<f64> {
    let count = ranks.len();
    let mut share = vec![0.0; count];
    if count == 1 {
        return vec![alone[0]];
    }
    if count <= ALL_SETS {
        let mut value = vec![0.0; 1 << count];
        for set in 1usize..1 << count {
            let members: Vec<u32> = (0..count).filter(|at| set >> at & 1 == 1).map(|at| ranks[at]).collect();
            value[set] =
                if members.len() == 1 { alone[set.trailing_zeros() as usize] } else { removal.saved(world, &members) };
        }
        let factorial = |number: usize| (1..=number).product::<usize>() as f64;
        for set in 0usize..1 << count {
            let size = set.count_ones() as usize;
            for at in (0..count).filter(|at| set >> at & 1 == 0) {
                let weight = factorial(size) * factorial(count - size - 1) / factorial(count);
                share[at] += weight * (value[set | 1 << at] - value[set]);
            }
        }
        return share;
    }
    for order in 0..ORDERS {
        let mut places: Vec<usize> = (0..count).collect();
        for at in (1..count).rev() {
            places.swap(at, draws.below(at + 1));
        }
        if order % 2 == 1 {
            places.reverse();
        }
        let (mut members, mut before) = (Vec::with_capacity(count), 0.0);
        for &at in &places {
            members.push(ranks[at]);
            let now = removal.saved(world, &members);
            share[at] += (now - before) / ORDERS as f64;
            before = now;
        }
    }
    share
}
