//! What a slow rank was doing meanwhile: operators that took longer, nothing, or other processes on its processor.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use super::absences::{Absences, Within};
use super::series::{Series, What};
use super::shares::Estimate;
use super::steps::Step;
use crate::matching::Matched;
use crate::trace::{By, Trace};

#[derive(Clone, Debug, Serialize)]
pub struct Cause {
    pub name: String,
    pub seconds: f64,
    pub ci95: [f64; 2],
}

/// A cause with a smaller share of the cost is left out.
const LEAST: f64 = 0.05;
/// Times this many spreads of the noise apart say by themselves what they are made of.
const UNEVEN: f64 = 3.0;
/// The operation was over elsewhere, and the rank still in its call.
const IN_CALL: &str = "slow to leave calls";

/// What the recordings hold beside times of operations.
pub struct Evidence<'a> {
    pub traces: &'a [Trace],
    pub matched: &'a Matched,
    pub steps: &'a [Vec<Step>],
    pub absences: &'a Absences<'a>,
    pub suspect: &'a [&'a Series],
}

impl Evidence<'_> {
    /// Returns which share of what a rank costs is that its recording had its processor.
    #[must_use]
    pub fn of_recorder(&self, rank: u32) -> f64 {
        let away = &self.traces[rank as usize].away;
        let recorder: BTreeSet<&Arc<str>> =
            away.iter().filter(|away| away.by == By::Recorder).map(|away| &away.cause).collect();
        if recorder.is_empty() {
            return 0.0;
        }
        let parts = self.parts(&[rank]);
        let total: f64 = parts.values().sum();
        let own: f64 = parts.iter().filter(|(cause, _)| recorder.contains(cause)).map(|(_, ns)| ns).sum();
        if total > 0.0 { own / total } else { 0.0 }
    }

    /// Splits the cost of ranks by what they did longer than their peers.
    ///
    /// What kept a rank from running is known. Only the rest can be that it computed for longer, or slept.
    #[must_use]
    pub fn causes(&self, ranks: &[u32], whole: Estimate) -> Vec<Cause> {
        let parts = self.parts(ranks);
        let total: f64 = parts.values().sum();
        if total <= 0.0 {
            return Vec::new();
        }
        let cause = |(name, part): (Arc<str>, f64)| {
            let part = part / total;
            Cause { name: name.to_string(), seconds: whole.mean * part, ci95: [whole.low * part, whole.high * part] }
        };
        let mut causes: Vec<Cause> = parts.into_iter().map(cause).collect();
        causes.retain(|cause| cause.seconds > LEAST * whole.mean);
        causes.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
        causes
    }

    /// Returns how much longer ranks took than their peers, ns, by cause.
    fn parts(&self, ranks: &[u32]) -> BTreeMap<Arc<str>, f64> {
        let mut parts: BTreeMap<Arc<str>, f64> = BTreeMap::new();
        for &rank in ranks {
            self.add_known(rank, &mut parts);
        }
        let of = |one: &&&Series| ranks.contains(&one.rank) && !one.alone;
        for series in self.suspect.iter().filter(of) {
            let excess = series.values.iter().map(|value| value - series.level.center).sum::<f64>().max(0.0);
            let Some((busy, idle)) = self.words(series) else { continue };
            let longer = match series.what {
                What::Tail => 0.0,
                What::Computing => {
                    let Some(longer) = self.ran_longer(series, excess) else { continue };
                    longer.clamp(0.0, excess)
                }
            };
            *parts.entry(busy.into()).or_default() += longer;
            *parts.entry(idle.into()).or_default() += excess - longer;
        }
        parts
    }

    /// Adds what kept a rank from running for longer than its peers.
    fn add_known(&self, rank: u32, parts: &mut BTreeMap<Arc<str>, f64>) {
        let more = &self.absences.more;
        for cell in self.matched.cells[rank as usize].clone() {
            for (what, more) in [(What::Computing, more.computing[cell]), (What::Tail, more.tail[cell])] {
                if more <= 0 {
                    continue;
                }
                let here = self.absences.by_cause(rank, cell, what);
                let all: f64 = here.iter().map(|one| one.1).sum();
                for (cause, ns) in here {
                    *parts.entry(Arc::clone(cause)).or_default() += more as f64 * ns / all.max(1.0);
                }
            }
        }
        // Two meetings that wait for a rank at once lose the time once.
        let mut longest: BTreeMap<u32, &Within> = BTreeMap::new();
        for one in self.absences.within.iter().filter(|one| one.rank == rank) {
            let known = longest.entry(one.cell).or_insert(one);
            if one.ns > known.ns {
                *known = one;
            }
        }
        for one in longest.into_values() {
            for (cause, ns) in self.absences.by_cause_within(one) {
                *parts.entry(Arc::clone(cause)).or_default() += ns;
            }
        }
    }

    /// Returns how it is called that a rank was busy, and that it was not.
    fn words(&self, series: &Series) -> Option<(&'static str, &'static str)> {
        let trace = &self.traces[series.rank as usize];
        Some(match series.what {
            What::Computing if trace.beside => ("operators take longer", "nothing runs"),
            What::Computing if trace.watched => ("computing takes longer", "off the processor by itself"),
            What::Computing => ("computing takes longer", "off the processor"),
            What::Tail if trace.sized => (IN_CALL, IN_CALL),
            What::Tail => return None,
        })
    }

    /// Returns for how much longer a rank had a processor, ns; `None` where that is not recorded.
    ///
    /// Where some of its times are much longer than others, these say it: a peer may spend the same time in another way. But
    /// what all of them take longer is no computing that its peers do as well.
    fn ran_longer(&self, series: &Series, excess: f64) -> Option<f64> {
        // A mean, where more than half of the steps have it.
        let known = |ran: &[Option<f64>]| {
            let count = ran.iter().flatten().count();
            (2 * count > ran.len()).then(|| ran.iter().flatten().sum::<f64>() / count as f64)
        };
        let ran = self.ran(series.rank, &series.cells);
        let usual = known(&ran).filter(|_| ran.len() > 1)?;
        let mut peers: Vec<f64> =
            self.peers(series).iter().filter_map(|(rank, cells)| known(&self.ran(*rank, cells))).collect();
        peers.sort_unstable_by(f64::total_cmp);
        let peer = peers.len().checked_sub(1).map(|last| peers[last / 2]);
        let count = ran.len() as f64;
        let mean = series.values.iter().sum::<f64>() / count;
        let squares = series.values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        if squares <= count * (UNEVEN * series.level.spread).powi(2) {
            return Some(count * (usual - peer?));
        }
        let ran: Vec<f64> = ran.into_iter().map(|ran| ran.unwrap_or(usual)).collect();
        let both = series.values.iter().zip(&ran).map(|(value, ran)| (value - mean) * (ran - usual));
        let part = both.sum::<f64>() / squares;
        let always = (middle(series.values.clone()) - series.level.center).max(0.0);
        let in_all = peer.map_or(f64::INFINITY, |peer| (middle(ran.clone()) - peer).max(0.0));
        let took = series.cells.iter().map(|&cell| self.matched.own.computing[cell as usize] as f64);
        let longer = |((value, ran), took): ((&f64, &f64), f64)| {
            let excess = value - series.level.center;
            let here = always.min(excess.max(0.0));
            let most = excess.min(*ran).max(0.0);
            let least = (excess - (took - ran).max(0.0)).clamp(0.0, most);
            ((part * here).min(in_all) + part * (excess - here)).clamp(least, most)
        };
        Some(series.values.iter().zip(&ran).zip(took).map(longer).sum::<f64>().min(excess))
    }

    /// Returns the ranks that do the same as a series at its steps, with their cells at its place.
    fn peers(&self, series: &Series) -> Vec<(u32, Vec<u32>)> {
        let does = |rank: usize, step: u32| self.steps[rank].get(step as usize).map(|step| step.does);
        let cells = |rank: usize| {
            let alike = series.steps.iter().filter(|&&step| does(rank, step) == does(series.rank as usize, step));
            alike.map(|&step| self.steps[rank][step as usize].cells.start as u32 + series.place).collect::<Vec<_>>()
        };
        let others = (0..self.steps.len()).filter(|&rank| rank as u32 != series.rank);
        others.map(|rank| (rank as u32, cells(rank))).filter(|(_, cells)| cells.len() == series.cells.len()).collect()
    }

    /// Returns for how long a rank had a processor in each of some cells, ns.
    fn ran(&self, rank: u32, cells: &[u32]) -> Vec<Option<f64>> {
        let (trace, first) = (&self.traces[rank as usize], self.matched.cells[rank as usize].start);
        let ran = cells.iter().map(|&cell| trace.acts[cell as usize - first].ran);
        ran.map(|ran| (ran >= 0).then_some(ran as f64)).collect()
    }
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
