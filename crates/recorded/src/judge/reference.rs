//! Suspect ranks against their peers alone.
//!
//! The first comparison includes every rank. With few ranks, a slow one moves what is usual at a step, and with it the times
//! of all others. Here the reference of a suspect rank holds only peers that are not suspect. Its error has two parts: the
//! noise of these peers, and how much healthy ranks differ.

use std::collections::{BTreeMap, BTreeSet};

use super::noise::{Level, level};
use super::series::{APART, Alike, Place, Series, What, common, of_median, spread_of_one, usual};

/// Peers per place that say how much healthy ranks differ.
const PEERS: usize = 16;
/// Steps that two ranks must have in common to be compared.
const FEW_STEPS: usize = 6;

type Spot = (u32, What, u32);

/// Returns the suspect series, each compared with peers only. `block`: steps that say as much as one independent step.
#[must_use]
pub fn against_peers(all: &[Series], suspect: &[&Series], alike: &Alike<'_>, block: [f64; 2]) -> Vec<Series> {
    let mut suspects: BTreeMap<Spot, BTreeSet<u32>> = BTreeMap::new();
    for one in suspect {
        suspects.entry((one.kind, one.what, one.place)).or_default().insert(one.rank);
    }
    if suspects.is_empty() {
        return Vec::new();
    }
    let uneven = unevenness(all, &suspects, alike, block[What::Computing as usize]);
    let refined = |one: &&Series| {
        let spot = (one.kind, one.what, one.place);
        let uneven = if one.what == What::Computing { uneven } else { 0.0 };
        let here = alike.place(spot.0, spot.1, spot.2);
        let block = block[one.what as usize];
        against(&here, one, |rank| suspects[&spot].contains(&rank), uneven, block)
            .or_else(|| against(&here, one, |_| false, uneven, block))
            .unwrap_or_else(|| (*one).clone())
    };
    suspect.iter().map(refined).collect()
}

fn without(here: &Place, is_out: impl Fn(u32) -> bool) -> Place {
    let peers = |(number, row): &(u32, Vec<_>)| {
        (*number, row.iter().filter(|one: &&(u32, _, _)| !is_out(one.0)).copied().collect())
    };
    Place { steps: here.steps.iter().map(peers).collect() }
}

/// Compares a series with peers; `None` with fewer than two of them.
fn against(here: &Place, one: &Series, is_suspect: impl Fn(u32) -> bool, uneven: f64, block: f64) -> Option<Series> {
    let peers = without(here, |rank| rank == one.rank || is_suspect(rank));
    let count = peers.steps.iter().map(|(_, row)| row.len()).max().unwrap_or(0);
    if count < 2 {
        return None;
    }
    let noise = spread_of_one(&peers);
    let apart = APART * noise;
    let mut sorted: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (number, row) in peers.steps.iter().filter(|(_, row)| row.len() > 1) {
        let mut times: Vec<f64> = row.iter().map(|one| one.2).collect();
        times.sort_unstable_by(f64::total_cmp);
        sorted.insert(*number, times);
    }
    let middles: BTreeMap<u32, f64> = sorted.iter().map(|(&number, times)| (number, middle(times, apart))).collect();
    let of_steps: Vec<f64> = middles.values().copied().collect();
    let share = common(of_steps.len(), &of_steps, noise, count as f64);
    let overall = level(&mut of_steps.clone()).center;
    let expected = |usual: f64| overall + share * (usual - overall);
    let (mut cells, mut steps, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for (number, row) in &here.steps {
        let Some((own, middle)) = row.iter().find(|time| time.0 == one.rank).zip(middles.get(number)) else { continue };
        cells.push(own.1);
        steps.push(*number);
        values.push(own.2 - expected(*middle));
    }
    if values.is_empty() {
        return None;
    }
    let mut rest: Vec<f64> = Vec::new();
    for (number, row) in peers.steps.iter().filter(|(_, row)| row.len() > 1) {
        rest.extend(row.iter().map(|time| time.2 - expected(usual(&sorted[number], time.2, apart))));
    }
    let found = level(&mut rest);
    // A peer is compared with one peer fewer than the suspect rank.
    let fewer = (noise * share).powi(2) * (of_median(count as f64 - 1.0) - of_median(count as f64));
    let spread = (found.spread.powi(2) - fewer).max(0.25 * found.spread.powi(2)).sqrt();
    // What is common to the ranks of a step is no error; the rest of the peers' noise is.
    let of_noise = (1.0 - share * share) * noise.powi(2) * block / found.count.max(1) as f64;
    let of_ranks = (uneven * overall).powi(2) * (1.0 + of_median(count as f64));
    Some(Series {
        cells,
        steps,
        values,
        level: Level { spread, ..found },
        error: (of_noise + of_ranks).sqrt(),
        alone: false,
        of_two: false,
        ..*one
    })
}

/// Returns the median of sorted times; where the two in the middle are far apart, the lower.
fn middle(sorted: &[f64], apart: f64) -> f64 {
    let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    if high - low > apart { low } else { f64::midpoint(low, high) }
}

/// Returns how much the usual times of healthy ranks differ, as a share of these times: the standard deviation by the method
/// of moments of DerSimonian and Laird (1986) over all places, or 0 where noise alone makes them differ as much.
fn unevenness(all: &[Series], suspects: &BTreeMap<Spot, BTreeSet<u32>>, alike: &Alike<'_>, block: f64) -> f64 {
    let spots: BTreeSet<Spot> = all
        .iter()
        .filter(|one| one.what == What::Computing && !one.alone && !one.of_two && one.values.len() >= FEW_STEPS)
        .map(|one| (one.kind, one.what, one.place))
        .collect();
    let (mut found, mut free, mut weight) = (0.0, 0.0, 0.0);
    for spot in spots {
        let here = alike.place(spot.0, spot.1, spot.2);
        let peers = without(&here, |rank| suspects.get(&spot).is_some_and(|suspects| suspects.contains(&rank)));
        let mut times: BTreeMap<u32, BTreeMap<u32, f64>> = BTreeMap::new();
        for (number, row) in &peers.steps {
            for time in row.iter().take(PEERS) {
                times.entry(time.0).or_default().insert(*number, time.2);
            }
        }
        let (mut squares, mut errors, mut pairs, mut sum, mut number) = (0.0, 0.0, 0.0, 0.0, 0.0);
        let rows: Vec<&BTreeMap<u32, f64>> = times.values().collect();
        for (at, one) in rows.iter().enumerate() {
            for other in &rows[at + 1..] {
                // What is common to a step cancels.
                let mut apart: Vec<f64> =
                    one.iter().filter_map(|(step, time)| other.get(step).map(|there| there - time)).collect();
                if apart.len() < FEW_STEPS {
                    continue;
                }
                let apart = level(&mut apart);
                squares += apart.center.powi(2);
                errors += apart.spread.powi(2) * block / apart.count as f64;
                pairs += 1.0;
            }
            sum += one.values().sum::<f64>();
            number += one.len() as f64;
        }
        if pairs > 0.0 && errors > 0.0 && number > 0.0 {
            let degrees = rows.len() as f64 - 1.0;
            found += degrees * squares / errors;
            free += degrees;
            // Twice the variance of one rank is that of the difference of two.
            weight += degrees * 2.0 * (sum / number).powi(2) / (errors / pairs);
        }
    }
    if weight > 0.0 { ((found - free).max(0.0) / weight).sqrt() } else { 0.0 }
}
