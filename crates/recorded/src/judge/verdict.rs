//! What is said in the end, and when nothing can be said.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use super::absences::{Absences, When};
use super::busy;
use super::causes::{Cause, Evidence};
use super::chance::{Long, explains, long_times};
use super::noise::{Shape, Threshold, level, ratio};
use super::reference::against_peers;
use super::series::{Alike, Series, What, block};
use super::shares::{Cost, Estimate, Shares, shares};
use super::steps::{FEWEST, Step, mark, steps};
use crate::graph::{Memory, Times};
use crate::matching::{Matched, Mismatch, matched};
use crate::timeline::{NONE, Replayed, Timeline};
use crate::trace::{Kind, Trace};

/// A rank is named from this share of the run on.
const MATERIAL: f64 = 0.02;
/// Waits that nothing explains refuse a verdict from this share of the run on.
const UNEXPLAINED: f64 = 0.03;
/// The replay must take as long as the run, within this share.
pub const REPLAYED: f64 = 0.05;
/// Chance that noise alone makes a rank suspect, over all ranks and places.
const CHANCE: f64 = 0.005;
/// Ranks from whose times the noise is known.
const OTHERS: usize = 3;
/// Series of fewer times are short.
const SHORT: usize = 6;
/// The same chance over the short series of ranks that are suspect already. Of those the test over all ranks would see little.
const CHANCE_OF_SHORT: f64 = 0.05;
/// Factor by which a culprit costs more than most other ranks.
const STANDS_OUT: f64 = 2.0;

#[derive(Clone, Debug, Serialize)]
pub struct Culprit {
    /// One rank, or several that hide each other: removing one alone saves little.
    pub ranks: Vec<u32>,
    pub seconds: f64,
    pub ci95: [f64; 2],
    /// Steps in which it costs something.
    pub steps: u32,
    /// Where in the step, most costly first: `before all_reduce 2 of 2`.
    #[serde(rename = "where")]
    pub places: Vec<Where>,
    pub causes: Vec<Cause>,
    /// Saved by removing each rank alone, s.
    pub alone_s: Vec<f64>,
    /// Compared with its own other steps, since no other rank does the same.
    pub against_itself: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct Where {
    pub rank: u32,
    pub place: String,
    /// Longer than at its peers, summed over the steps, s.
    pub excess_s: f64,
}

/// The efficiencies of POP, each a share of 1.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Efficiencies {
    pub parallel: f64,
    pub load_balance: f64,
    pub serialisation: f64,
    pub transfer: f64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct ClocksFound {
    /// Greatest offset between two ranks, s.
    pub apart_s: f64,
    /// Half-width of the widest interval of an offset; null: an offset is not bounded.
    pub known_to_s: Option<f64>,
    /// Greatest drift against the first rank.
    pub drift_ppm: f64,
}

/// Size of the recorded program.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Size {
    pub ranks: u32,
    /// Ranks of the program without a trace.
    pub missing: Vec<u32>,
    pub steps: u32,
    pub meetings: u32,
}

/// What the program would save, s.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Savings {
    /// If all ranks computed as the median of them.
    pub uneven_s: f64,
    /// If transfers took no time.
    pub transfers_s: f64,
    /// If transfers took as long as the same operation usually does.
    pub transfer_excess_s: f64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Verdict {
    pub verdict: String,
    pub reason: String,
    pub recorded_s: f64,
    pub replayed_s: f64,
    pub culprits: Vec<Culprit>,
    /// Time that each rank waited for others, s.
    pub waits: BTreeMap<u32, f64>,
    pub clocks: ClocksFound,
    #[serde(flatten)]
    pub size: Size,
    #[serde(flatten)]
    pub savings: Savings,
    pub efficiencies: Efficiencies,
    pub notes: Vec<String>,
    pub replays: u64,
}

impl Verdict {
    fn say(mut self, verdict: &str, reason: impl Into<String>) -> Self {
        self.verdict = verdict.into();
        self.reason = reason.into();
        self
    }

    fn refuse(self, reason: impl Into<String>) -> Self {
        self.say("unidentifiable", reason)
    }
}

fn ranks_named(ranks: &[u32]) -> String {
    let named: Vec<String> = ranks.iter().take(5).map(u32::to_string).collect();
    let more = if ranks.len() > 5 { format!(" and {} more", ranks.len() - 5) } else { String::new() };
    format!("{} {}{more}", if ranks.len() == 1 { "rank" } else { "ranks" }, named.join(", "))
}

/// Judges which of the recorded ranks is slow.
#[must_use]
pub fn judge(traces: Vec<Trace>) -> Verdict {
    judged(traces, false).0
}

/// Judges like [`judge()`], and returns what each rank did when; none where the ranks do not fit together.
#[must_use]
pub fn judge_with_timeline(traces: Vec<Trace>) -> (Verdict, Option<Timeline>) {
    judged(traces, true)
}

fn judged(mut traces: Vec<Trace>, with_timeline: bool) -> (Verdict, Option<Timeline>) {
    traces.sort_by_key(Trace::number);
    let world = traces.iter().filter_map(|trace| trace.world).max().unwrap_or(0);
    let present: Vec<u32> = traces.iter().map(Trace::number).collect();
    let mut found = Verdict {
        size: Size {
            ranks: present.len() as u32,
            missing: (0..world).filter(|rank| present.binary_search(rank).is_err()).collect(),
            ..Size::default()
        },
        ..Verdict::default()
    };
    for note in traces.iter().flat_map(|trace| &trace.notes) {
        if !found.notes.contains(note) {
            found.notes.push(note.clone());
        }
    }
    found.notes.extend(busy::notes(&traces));
    if traces.len() < 2 {
        return (found.refuse("one rank: which rank waits for which needs the traces of two or more"), None);
    }
    if let Some(refusal) = traces.iter().flat_map(|trace| &trace.refusals).next() {
        return (found.refuse(refusal.clone()), None);
    }
    mark(&mut traces);
    let matched = match matched(&mut traces) {
        Ok(matched) => matched,
        Err(Mismatch::Events(reason) | Mismatch::Unlike(reason)) => return (found.refuse(reason), None),
    };
    let mut case = Case::new(&traces, &matched);
    let found = case.decide(found);
    (found, with_timeline.then(|| case.timeline()))
}

struct Case<'a> {
    traces: &'a [Trace],
    matched: &'a Matched,
    steps: Vec<Vec<Step>>,
    memory: Memory,
}

impl<'a> Case<'a> {
    fn new(traces: &'a [Trace], matched: &'a Matched) -> Self {
        Self { traces, matched, steps: steps(traces, &matched.cells), memory: Memory::default() }
    }

    fn replay(&mut self, times: &Times, took: &[i64]) -> f64 {
        self.matched.graph.replay(|_| times, took, &mut self.memory) as f64 * 1e-9
    }

    fn decide(&mut self, mut found: Verdict) -> Verdict {
        let matched = self.matched;
        let replayed = self.replay(&matched.own, &matched.took);
        let run = matched.recorded as f64 * 1e-9;
        found.recorded_s = run;
        found.replayed_s = replayed;
        let operations = (0u32..).zip(&matched.operation).filter(|(meeting, first)| meeting == *first);
        found.size.meetings = operations.count() as u32;
        found.size.steps = self.steps.iter().map(Vec::len).max().unwrap_or(0) as u32;
        found.waits = (self.traces.iter().zip(&matched.waited))
            .map(|(trace, waited)| (trace.number(), *waited as f64 * 1e-9))
            .collect();
        found.clocks = self.clocks();
        found.savings.transfer_excess_s = replayed - self.replay(&matched.own, &self.usual_transfers());
        found.savings.transfers_s = replayed - self.replay(&matched.own, &vec![0; matched.took.len()]);
        found.savings.uneven_s = replayed - self.replay(&self.even(), &matched.took);
        found.efficiencies = self.efficiencies(replayed, replayed - found.savings.transfers_s);
        if run <= 0.0 {
            return found.refuse("the traces hold no time");
        }
        if (replayed / run - 1.0).abs() > REPLAYED {
            let reason =
                format!("the replay takes {replayed:.3} s, the run took {run:.3} s: waits or events are not seen");
            return found.refuse(reason);
        }
        if matched.graph.meetings == 0 {
            return found.refuse("the ranks have no operation in common");
        }
        if !found.size.missing.is_empty()
            && found.savings.transfer_excess_s.max(found.savings.transfers_s) > UNEXPLAINED * run
        {
            let reason = format!(
                "all recorded ranks wait up to {:.3} s together, for the network or for {}, whose {} missing",
                found.savings.transfers_s.max(found.savings.transfer_excess_s),
                ranks_named(&found.size.missing),
                if found.size.missing.len() == 1 { "trace is" } else { "traces are" },
            );
            return found.refuse(reason);
        }
        let absences = Absences::new(self.traces, matched, &self.steps);
        let rest = absences.rest();
        let alike = Alike::new(&self.steps, &rest);
        let all = alike.series(matched.recorded as f64);
        let blocks = [block(&all, What::Computing), block(&all, What::Tail)];
        // Without what an excess did to the shape of the noise.
        let times = standardised(&all);
        let first = Shape::new(&by_rank(&all, &times, |_| true), true);
        let suspected = suspects(&all, &first, blocks);
        let ranks: BTreeSet<u32> = suspected.iter().map(|one| one.rank).collect();
        let excluded: BTreeSet<(u32, What, Option<u32>)> = suspected.into_iter().map(identity).collect();
        // All of a suspect rank's times, where enough other ranks describe the noise.
        let others = self.traces.len() - ranks.len();
        let describes = |one: &Series| {
            if others >= OTHERS { !ranks.contains(&one.rank) } else { !excluded.contains(&identity(one)) }
        };
        let shape = Shape::new(&by_rank(&all, &times, describes), false);
        let known = absences.known(&self.steps, matched.recorded as f64);
        let mut slow = suspects(&all, &shape, blocks);
        // A rank that was kept from running is not healthy: that the rest of its times is as long as its peers' is open.
        let open = |one: &&Series| known.ranks.contains(&one.rank) && !one.alone && !one.of_two;
        let suspected: BTreeSet<(u32, What, Option<u32>)> = slow.iter().map(|one| identity(one)).collect();
        slow.extend(all.iter().filter(open).filter(|one| !suspected.contains(&identity(one))));
        let refined = against_peers(&all, &slow, &alike, blocks);
        let suspect: Vec<&Series> = refined.iter().collect();
        let mut costs = shares(matched, &suspect, &known, &shape, blocks);
        found.replays = costs.replays + 6;
        let unexplained = (found.replayed_s - found.recorded_s).abs();
        let evidence =
            Evidence { traces: self.traces, matched, steps: &self.steps, absences: &absences, suspect: &suspect };
        let long = long_times(&all, self.traces.len());
        let mut named = self.conspicuous(&costs, &long, &evidence, run, unexplained);
        if !named.is_empty() && named.len() < costs.costs.len() {
            // What they cost with all other ranks as recorded; if that is nothing, since others hide it, their share stays.
            let of_named: Vec<&Series> = suspect.iter().copied().filter(|one| named.contains(&one.rank)).collect();
            let alone = shares(matched, &of_named, &known.of(&named), &shape, blocks);
            found.replays += alone.replays;
            let still = self.conspicuous(&alone, &long, &evidence, run, unexplained);
            if still.len() == named.len() {
                (named, costs) = (still, alone);
            }
        }
        found.notes.extend(unknowable(&all, &rest, run, |rank| self.traces[rank as usize].number()));
        self.name(found, &evidence, &costs, &named, run)
    }

    /// Returns the ranks that cost enough, for sure, and more than others, the most costly first. That the recorder had
    /// their processors does not count.
    fn conspicuous(
        &self,
        shares: &Shares,
        long: &[Long],
        evidence: &Evidence<'_>,
        run: f64,
        unexplained: f64,
    ) -> Vec<u32> {
        let own = |cost: &Cost| cost.share.mean * (1.0 - evidence.of_recorder(cost.rank));
        let mut all: Vec<f64> = shares.costs.iter().map(own).collect();
        all.resize(self.traces.len(), 0.0);
        let sums: Vec<f64> = long.iter().map(|long| long.excesses.iter().sum::<f64>() * 1e-9).collect();
        let excess_of = |cost: &Cost| cost.places.iter().map(|place| place.1).sum::<f64>();
        let stands_out = |(at, cost): &(usize, &Cost)| {
            let own = all[*at];
            // Ranks that are long in turn do not stand out, whether or not each of them is suspect.
            own > MATERIAL * run
                && cost.share.low > cost.share.mean - own
                && own > STANDS_OUT * most_of_others(&all, *at)
                && excess_of(cost) > STANDS_OUT * most_of_others(&sums, cost.rank as usize)
        };
        let mut named: Vec<&Cost> = shares.costs.iter().enumerate().filter(stands_out).map(|(_, cost)| cost).collect();
        let suspect: Vec<u32> = named.iter().map(|cost| cost.rank).collect();
        let all_suspect = suspect.len() == long.len();
        let is_chance = |cost: &&Cost| {
            let own = &long[cost.rank as usize];
            let is_peer = |rank: u32| rank != cost.rank && (all_suspect || !suspect.contains(&rank));
            let peers = (0u32..).zip(long).filter(|one| is_peer(one.0)).map(|one| one.1);
            explains(excess_of(cost) * 1e9, own, peers, long.len(), CHANCE)
        };
        named.retain(|cost| !is_chance(cost));
        named.sort_by(|one, other| other.share.mean.total_cmp(&one.share.mean));
        if named.iter().map(|cost| cost.share.mean).sum::<f64>() < unexplained {
            named.clear();
        }
        named.iter().map(|cost| cost.rank).collect()
    }

    /// Names culprits, or says why there are none.
    fn name(&self, mut found: Verdict, evidence: &Evidence<'_>, shares: &Shares, named: &[u32], run: f64) -> Verdict {
        let named: Vec<&Cost> =
            named.iter().filter_map(|rank| shares.costs.iter().find(|cost| cost.rank == *rank)).collect();
        let joint: Vec<&(Vec<u32>, Estimate)> = shares
            .hidden
            .iter()
            .filter(|(pair, _)| pair.iter().all(|rank| named.iter().any(|cost| cost.rank == *rank)))
            .collect();
        let mut told: Vec<u32> = Vec::new();
        for cost in &named {
            if told.contains(&cost.rank) {
                continue;
            }
            let pair = joint
                .iter()
                .find(|(pair, _)| pair.contains(&cost.rank) && pair.iter().all(|rank| !told.contains(rank)));
            let (ranks, whole) =
                pair.map_or_else(|| (vec![cost.rank], cost.share), |(pair, both)| (pair.clone(), *both));
            told.extend(&ranks);
            let members: Vec<&&Cost> = named.iter().filter(|cost| ranks.contains(&cost.rank)).collect();
            found.culprits.push(self.culprit(&members, whole, evidence));
        }
        if !found.culprits.is_empty() {
            let reason = if told.len() == 1 { "one rank stands out" } else { "several ranks stand out" };
            return found.say("straggler", reason);
        }
        let waits = || found.waits.values().copied();
        let (least, most) = (waits().fold(f64::INFINITY, f64::min), waits().fold(0.0, f64::max));
        let beside = self.traces.iter().any(|trace| trace.beside);
        let [shortest, longest] = self.stays();
        // The rank that the others stay for waits least, unless the waits are not in the traces.
        let apart = longest - shortest;
        if beside {
            let unseen = |stay: &str, [from, to]: [f64; 2]| {
                format!(
                    "ranks {stay} {from:.3} to {to:.3} s in collectives, but where the program waits for them is not seen"
                )
            };
            if apart > 3.0 * UNEXPLAINED * run && most - least < 0.3 * apart {
                return found.refuse(unseen("stay", [shortest, longest]));
            }
            if longest - least.min(longest) > 3.0 * UNEXPLAINED * run && found.savings.uneven_s < 0.3 * (most - least) {
                return found.refuse(unseen("wait", [least, most]));
            }
        }
        if found.savings.transfer_excess_s > 2.0 * UNEXPLAINED * run
            && found.savings.transfer_excess_s > found.savings.uneven_s
        {
            let reason = format!(
                "no rank is late, but {:.3} s pass in operations in which all ranks already were: a slow link, or a rank \
                 stopped inside of them",
                found.savings.transfer_excess_s
            );
            return found.refuse(reason);
        }
        if !found.size.missing.is_empty() {
            found.notes.push(format!("the traces of {} are missing", ranks_named(&found.size.missing)));
        }
        if found.savings.uneven_s > 2.0 * UNEXPLAINED * run {
            if (found.size.steps as usize) < FEWEST {
                let steps =
                    if found.size.steps == 1 { "1 step is".into() } else { format!("{} steps are", found.size.steps) };
                let reason = format!(
                    "unevenness costs {:.3} s in all, but {steps} too few to compare ranks in: mark the end of each step \
                     (MPI_Pcontrol(2), crosswind.record_step()), or record more of them",
                    found.savings.uneven_s
                );
                return found.refuse(reason);
            }
            let reason = format!(
                "no rank stands out: unevenness costs {:.3} s in all, spread over the ranks",
                found.savings.uneven_s
            );
            return found.say("none", reason);
        }
        found.say("none", "no rank stands out")
    }

    /// Returns the shortest and the longest time that a rank stayed in operations beside its computing, s.
    fn stays(&self) -> [f64; 2] {
        let of = |trace: &Trace| {
            trace.events.iter().map(|event| event.end.saturating_sub(event.start).max(0) as f64).sum::<f64>() * 1e-9
        };
        let stays = || self.traces.iter().map(of);
        [stays().fold(f64::INFINITY, f64::min), stays().fold(0.0, f64::max)]
    }

    fn culprit(&self, members: &[&&Cost], whole: Estimate, evidence: &Evidence<'_>) -> Culprit {
        let mut places: Vec<Where> = Vec::new();
        for cost in members {
            let mut of: BTreeMap<String, f64> = BTreeMap::new();
            for &((rank, step, place, when), excess) in cost.places.iter().filter(|place| place.1 > 0.0) {
                *of.entry(self.place((rank, step, place), when)).or_default() += excess;
            }
            let mut of: Vec<(String, f64)> = of.into_iter().collect();
            of.sort_by(|one, other| other.1.total_cmp(&one.1));
            let total: f64 = of.iter().map(|place| place.1).sum();
            for (place, excess_s) in of.into_iter().filter(|place| place.1 > 0.1 * total).take(3) {
                places.push(Where { rank: cost.rank, place, excess_s });
            }
        }
        places.sort_by(|one, other| other.excess_s.total_cmp(&one.excess_s));
        let ranks: Vec<u32> = members.iter().map(|cost| cost.rank).collect();
        let against_itself = evidence.suspect.iter().any(|series| ranks.contains(&series.rank) && series.alone);
        let of_number = |rank: u32| self.traces[rank as usize].number();
        for place in &mut places {
            place.rank = of_number(place.rank);
        }
        Culprit {
            ranks: ranks.iter().map(|&rank| of_number(rank)).collect(),
            seconds: whole.mean,
            ci95: [whole.low, whole.high],
            steps: members.iter().map(|cost| cost.steps).max().unwrap_or(0),
            places,
            causes: evidence.causes(&ranks, whole),
            alone_s: members.iter().map(|cost| cost.alone).collect(),
            against_itself,
        }
    }

    /// Describes a place of a step.
    fn place(&self, (rank, step, place): (u32, u32, u32), when: When) -> String {
        let Some(step) = self.steps[rank as usize].get(step as usize) else { return String::new() };
        let trace = &self.traces[rank as usize];
        let first = self.matched.cells[rank as usize].start;
        let acts = &trace.acts[step.cells.start - first..step.cells.end - first];
        let act = &acts[place as usize];
        if act.kind == Kind::Step {
            return "at the end of the step".into();
        }
        let name = &trace.events[act.event as usize].name;
        let alike =
            |other: &&crate::trace::Act| other.kind == act.kind && *trace.events[other.event as usize].name == **name;
        let total = acts.iter().filter(|act| act.kind != Kind::Step).filter(alike).count();
        let number = acts[..=place as usize].iter().filter(|act| act.kind != Kind::Step).filter(alike).count();
        let which = if total > 1 { format!("{name} {number} of {total}") } else { name.to_string() };
        match (when, act.kind) {
            (When::After, _) => format!("in {which}, after it was over elsewhere"),
            (When::Within, _) => format!("in {which}, kept from running"),
            (When::Before, Kind::Post) => format!("before {which}"),
            (When::Before, _) => format!("before it waits for {which}"),
        }
    }

    /// Returns what each rank did when, with the lateness of each against its peers.
    fn timeline(&self) -> Timeline {
        let matched = self.matched;
        let cells = matched.own.computing.len();
        let mut excess = Times { computing: vec![0; cells], tail: vec![0; cells] };
        for one in Alike::new(&self.steps, &matched.own).series(matched.recorded as f64) {
            let of = match one.what {
                What::Computing => &mut excess.computing,
                What::Tail => &mut excess.tail,
            };
            for (&cell, value) in one.cells.iter().zip(&one.values) {
                of[cell as usize] = (value - one.level.center).round() as i64;
            }
        }
        let mut of_step = vec![0; cells];
        for steps in &self.steps {
            for (number, step) in (0u32..).zip(steps) {
                of_step[step.cells.clone()].fill(number);
            }
        }
        let mut known: BTreeMap<&str, u32> = BTreeMap::new();
        let (mut names, mut operations) = (Vec::new(), Vec::with_capacity(cells));
        for trace in self.traces {
            for act in &trace.acts {
                operations.push(if act.kind == Kind::Step {
                    NONE
                } else {
                    let name = &trace.events[act.event as usize].name;
                    *known.entry(name).or_insert_with(|| {
                        names.push(Arc::clone(name));
                        names.len() as u32 - 1
                    })
                });
            }
        }
        let of = Replayed {
            graph: &matched.graph,
            own: &matched.own,
            took: &matched.took,
            excess: &excess,
            steps: &of_step,
            operations: &operations,
        };
        Timeline::new(self.traces.iter().map(Trace::number).collect(), names, &of)
    }

    fn clocks(&self) -> ClocksFound {
        let clocks = &self.matched.clocks;
        let (least, most) = (clocks.shift.iter().min(), clocks.shift.iter().max());
        ClocksFound {
            apart_s: least.zip(most).map_or(0.0, |(least, most)| most.saturating_sub(*least) as f64 * 1e-9),
            known_to_s: clocks.widest().map(|width| width as f64 * 0.5e-9),
            drift_ppm: clocks.drift.iter().map(|drift| drift.abs() * 1e6).fold(0.0, f64::max),
        }
    }

    /// Returns transfer times as they usually are: at most the lower quartile of their operation and size.
    fn usual_transfers(&self) -> Vec<i64> {
        let matched = self.matched;
        let mut of: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
        for (&class, &took) in matched.class.iter().zip(&matched.took) {
            of.entry(class).or_default().push(took);
        }
        let usual: BTreeMap<u32, i64> = of
            .into_iter()
            .map(|(class, mut took)| {
                took.sort_unstable();
                (class, took[took.len() / 4])
            })
            .collect();
        matched.class.iter().zip(&matched.took).map(|(class, &took)| took.min(usual[class])).collect()
    }

    /// Returns times in which each rank computes as the median of those that do the same at the same step.
    fn even(&self) -> Times {
        let own = &self.matched.own;
        let mut even = own.clone();
        let mut alike: BTreeMap<(u64, usize), Vec<usize>> = BTreeMap::new();
        for steps in &self.steps {
            for (number, step) in steps.iter().enumerate() {
                alike.entry((step.does, number)).or_default().push(step.cells.start);
            }
        }
        let lengths: BTreeMap<u64, usize> =
            self.steps.iter().flatten().map(|step| (step.does, step.cells.len())).collect();
        let mut times = Vec::new();
        for ((does, _), firsts) in alike.iter().filter(|(_, firsts)| firsts.len() > 1) {
            for place in 0..lengths[does] {
                for (from, to) in [(&own.computing, &mut even.computing), (&own.tail, &mut even.tail)] {
                    times.clear();
                    times.extend(firsts.iter().map(|first| from[first + place]));
                    times.sort_unstable();
                    let count = times.len();
                    let middle = match count {
                        2 => times[0],
                        _ if count % 2 == 1 => times[count / 2],
                        _ => times[count / 2 - 1] + (times[count / 2] - times[count / 2 - 1]) / 2,
                    };
                    firsts.iter().for_each(|first| to[first + place] = middle);
                }
            }
        }
        even
    }

    /// Returns the efficiencies of POP. `ideal`: the program's time with transfers of no length.
    fn efficiencies(&self, replayed: f64, ideal: f64) -> Efficiencies {
        let computing: Vec<f64> = self
            .matched
            .cells
            .iter()
            .map(|cells| self.matched.own.computing[cells.clone()].iter().map(|&ns| ns as f64).sum::<f64>() * 1e-9)
            .collect();
        let most = computing.iter().copied().fold(0.0, f64::max);
        let mean = computing.iter().sum::<f64>() / computing.len().max(1) as f64;
        let part = |one: f64, whole: f64| if whole > 0.0 { (one / whole).clamp(0.0, 1.0) } else { 1.0 };
        Efficiencies {
            parallel: part(mean, replayed),
            load_balance: part(mean, most),
            serialisation: part(most, ideal),
            transfer: part(ideal, replayed),
        }
    }
}

/// Says which ranks do what no other rank does, for a part of the run that matters.
fn unknowable(all: &[Series], times: &Times, run: f64, number: impl Fn(u32) -> u32) -> Option<String> {
    let mut alone: BTreeMap<u32, f64> = BTreeMap::new();
    for one in all.iter().filter(|one| one.alone && one.what == What::Computing) {
        *alone.entry(one.rank).or_default() +=
            one.cells.iter().map(|&cell| times.computing[cell as usize] as f64 * 1e-9).sum::<f64>();
    }
    let ranks: Vec<u32> =
        alone.iter().filter(|(_, sum)| **sum > MATERIAL * run).map(|(rank, _)| number(*rank)).collect();
    let (does, it) = if ranks.len() == 1 { ("does", "it is") } else { ("do", "they are") };
    let named = ranks_named(&ranks);
    (!ranks.is_empty())
        .then(|| format!("{named} {does} what no other rank does: whether {it} always slow cannot be told"))
}

fn identity(series: &Series) -> (u32, What, Option<u32>) {
    (series.rank, series.what, series.cells.first().copied())
}

/// Returns the times of each series in spreads from its own center; of short ones, none.
fn standardised(series: &[Series]) -> Vec<Vec<f64>> {
    let of = |one: &Series| {
        if one.values.len() < 6 {
            return Vec::new();
        }
        let own = level(&mut one.values.clone());
        one.values.iter().map(|value| (value - own.center) / own.spread).collect()
    };
    series.iter().map(of).collect()
}

/// Returns the times of some series, rank by rank.
fn by_rank(series: &[Series], times: &[Vec<f64>], is_in: impl Fn(&Series) -> bool) -> Vec<Vec<f64>> {
    let mut ranks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (one, times) in series.iter().zip(times).filter(|(one, _)| is_in(one)) {
        ranks.entry(one.rank).or_default().extend(times);
    }
    ranks.into_values().collect()
}

/// Returns the amount that half of the others do not exceed, 0 at least.
fn most_of_others(amounts: &[f64], own: usize) -> f64 {
    let mut others = amounts.to_vec();
    others.swap_remove(own);
    others.sort_unstable_by(f64::total_cmp);
    others[(others.len() - 1) / 2].max(0.0)
}

/// Returns the series with an excess that noise alone would seldom show in any of them. Of a rank that has one, also short
/// ones with an excess that noise would seldom show in any of its own: the first step of a program is often unlike all others.
fn suspects<'a>(all: &'a [Series], shape: &Shape, blocks: [f64; 2]) -> Vec<&'a Series> {
    let ratio_of = |one: &Series| {
        let values: Vec<f64> = one.values.iter().map(|value| (value - one.level.center) / one.level.spread).collect();
        ratio(&values, shape, blocks[one.what as usize])
    };
    let ratios: Vec<f64> = all.iter().map(ratio_of).collect();
    let mut threshold = Threshold::new(CHANCE / all.len().max(1) as f64);
    let mut is_over = |one: &Series, ratio: f64| ratio > threshold.of(one.values.len(), one.level.count, shape);
    let clear: Vec<bool> = all.iter().zip(&ratios).map(|(one, &ratio)| is_over(one, ratio)).collect();
    let ranks: BTreeSet<u32> = all.iter().zip(&clear).filter(|one| *one.1).map(|(one, _)| one.rank).collect();
    let is_short = |one: &Series| one.values.len() < SHORT && ranks.contains(&one.rank);
    let mut of_short = Threshold::new(CHANCE_OF_SHORT / all.iter().filter(|one| is_short(one)).count().max(1) as f64);
    let mut is_suspect = |at: usize| {
        let one = &all[at];
        clear[at] || (is_short(one) && ratios[at] > of_short.of(one.values.len(), one.level.count, shape))
    };
    (0..all.len()).filter(|&at| is_suspect(at)).map(|at| &all[at]).collect()
}
