//! What a slow rank was doing meanwhile: operators that took longer, nothing, or other processes on its processor.

use std::collections::BTreeMap;

use serde::Serialize;

use super::series::{Series, What};
use super::shares::Estimate;
use super::steps::Step;
use crate::matching::Matched;
use crate::trace::Trace;

#[derive(Clone, Debug, Serialize)]
pub struct Cause {
    pub name: String,
    pub seconds: f64,
    pub ci95: [f64; 2],
}

/// A cause with a smaller share of the cost is left out.
const LEAST: f64 = 0.05;

/// What the recordings hold beside times of operations.
pub struct Evidence<'a> {
    pub traces: &'a [Trace],
    pub matched: &'a Matched,
    pub steps: &'a [Vec<Step>],
}

/// What happened in some cells, ns.
#[derive(Default)]
struct Seen {
    /// Time in which operators ran, if that is recorded.
    ran: Option<f64>,
    away: BTreeMap<String, f64>,
}

impl Evidence<'_> {
    /// Splits the cost of ranks by what they did longer than their peers.
    #[must_use]
    pub fn causes(&self, ranks: &[u32], whole: Estimate, suspect: &[&Series]) -> Vec<Cause> {
        let mut parts: BTreeMap<String, f64> = BTreeMap::new();
        let of = |one: &&&Series| ranks.contains(&one.rank) && one.what == What::Computing && !one.alone;
        for series in suspect.iter().filter(of) {
            let excess = series.values.iter().map(|value| value - series.level.center).sum::<f64>().max(0.0);
            let own = self.seen(series.rank, &series.cells);
            let peers: Vec<Seen> = self.peers(series).iter().map(|(rank, cells)| self.seen(*rank, cells)).collect();
            let Some(ran) = own.ran else { continue };
            let mut usual: Vec<f64> = peers.iter().filter_map(|peer| peer.ran).collect();
            if usual.is_empty() {
                continue;
            }
            usual.sort_unstable_by(f64::total_cmp);
            let longer = (ran - usual[(usual.len() - 1) / 2]).clamp(0.0, excess);
            let mut left = excess - longer;
            for (cause, ns) in &own.away {
                let there = peers.iter().map(|peer| peer.away.get(cause).copied().unwrap_or(0.0)).sum::<f64>();
                let more = (ns - there / peers.len() as f64).clamp(0.0, left);
                left -= more;
                *parts.entry(format!("preempted by {cause}")).or_default() += more;
            }
            let beside = self.traces[series.rank as usize].beside;
            let (busy, idle) = if beside {
                ("operators take longer", "nothing runs")
            } else {
                ("computing takes longer", "off the processor")
            };
            *parts.entry(busy.into()).or_default() += longer;
            *parts.entry(idle.into()).or_default() += left;
        }
        let total: f64 = parts.values().sum();
        if total <= 0.0 {
            return Vec::new();
        }
        let cause = |(name, part): (String, f64)| {
            let part = part / total;
            Cause { name, seconds: whole.mean * part, ci95: [whole.low * part, whole.high * part] }
        };
        let mut causes: Vec<Cause> = parts.into_iter().map(cause).collect();
        causes.retain(|cause| cause.seconds > LEAST * whole.mean);
        causes.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
        causes
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

    fn seen(&self, rank: u32, cells: &[u32]) -> Seen {
        let (trace, first) = (&self.traces[rank as usize], self.matched.cells[rank as usize].start);
        let mut seen = Seen::default();
        let (mut ran, mut known) = (0.0, 0);
        for &cell in cells {
            let act = &trace.acts[cell as usize - first];
            known += usize::from(act.ran >= 0);
            ran += act.ran.max(0) as f64;
            let begin = act.start.saturating_sub(self.matched.own.computing[cell as usize]);
            let from = trace.away.partition_point(|away| away.end <= begin);
            for away in trace.away[from..].iter().take_while(|away| away.start < act.start) {
                let ns = away.end.min(act.start).saturating_sub(away.start.max(begin)).max(0);
                *seen.away.entry(away.cause.to_string()).or_default() += ns as f64;
            }
        }
        seen.ran = (2 * known > cells.len()).then_some(ran);
        seen
    }
}
