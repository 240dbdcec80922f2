//! How long ranks were kept from running, by the kernel's trace: lateness that is measured, so nothing has to be inferred.
//!
//! It is taken from all times before they are compared, with each other and with noise. What a rank was kept from running for
//! longer than its peers at the same step counts as its excess, to the microsecond.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::noise::Draws;
use super::series::{What, usual};
use super::steps::Step;
use crate::graph::Times;
use crate::matching::Matched;
use crate::trace::{Act, Away, By, Kind, Trace};

/// A rank that was kept from running counts as suspect from this share of the run on.
const LEAST: f64 = 0.01;
/// A step counts from this share of the rank's average step on.
const STEP: f64 = 0.2;

/// A rank is kept from running like most, up to this times as long as half of the ranks are at most.
const USUAL: f64 = 2.0;

/// When a rank was late: before an action, while all waited in it, or after it was over elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    Before,
    Within,
    After,
}

impl From<What> for When {
    fn from(what: What) -> Self {
        match what {
            What::Computing => Self::Before,
            What::Tail => Self::After,
        }
    }
}

/// A place in steps of one kind: rank, one of the steps, actions since it began, and when.
pub type Spot = (u32, u32, u32, When);

/// A meeting that took longer than usual while one of its ranks was kept from running.
#[derive(Clone, Copy, Debug)]
pub struct Within {
    pub meeting: u32,
    pub rank: u32,
    /// Action in which the rank waits.
    pub cell: u32,
    /// By how much sooner the meeting had been over, ns.
    pub ns: i64,
}

/// A rank that left a meeting late since another of its ranks was kept from running in it: an operation passes through ranks.
#[derive(Clone, Copy, Debug)]
pub struct Behind {
    pub culprit: u32,
    /// Action of the late rank, and by how much sooner it had been over, ns.
    pub cell: u32,
    pub ns: i64,
}

/// When ranks were kept from running, and what was late because of it.
pub struct Absences<'a> {
    traces: &'a [Trace],
    matched: &'a Matched,
    /// How long the rank was kept from running during each time, ns.
    pub all: Times,
    /// How much longer than its peers at the same step.
    pub more: Times,
    /// The same without absences for the sake of other ranks: these are due to the placement of a rank, not to chance.
    by_others: Times,
    pub within: Vec<Within>,
    pub behind: Vec<Behind>,
    /// For each meeting, the ranks that wait for it, and in which action.
    waiting: Vec<Vec<(u32, u32)>>,
}

/// What is known of ranks that were kept from running.
#[derive(Clone, Default)]
pub struct Known {
    /// The times without it.
    pub without: Times,
    /// Those with enough of it to be suspect.
    pub ranks: Vec<u32>,
    /// Meetings that had been over sooner without it.
    pub within: Vec<Within>,
    /// Other ranks that had left meetings sooner without it.
    pub behind: Vec<Behind>,
    /// Sum over the steps, ns.
    pub places: BTreeMap<Spot, f64>,
    /// Steps in which it matters, by rank.
    pub steps: BTreeMap<u32, Vec<u32>>,
    /// Times of these ranks at places where they, or others, were kept from running for longer than their peers.
    others: Vec<Other>,
    /// For places of steps, how much longer than their own peers the other ranks were kept from running there, ns.
    of_peers: Vec<Vec<i64>>,
}

/// A time of a rank that would be another one if the rank were healthy.
#[derive(Clone, Copy)]
struct Other {
    rank: u32,
    cell: u32,
    what: What,
    /// Excess over the peers at the same step, ns.
    ns: i64,
    /// Index of what peers show at its place, in [`Known`].
    peers: u32,
}

impl Known {
    /// Sets the times of the ranks to those that they may have had as healthy ones, which are kept from running now and then as
    /// well: what is beyond the peers at the same step is as much as one of these had beyond its own peers there, in some step.
    /// What the peers show is a sample itself, so it is drawn too (the bootstrap of Efron 1979).
    pub fn draw(&self, own: &Times, draws: &mut Draws, times: &mut Times) {
        let mut again = |peers: &Vec<i64>| peers.iter().map(|_| peers[draws.below(peers.len())]).collect::<Vec<_>>();
        let of_peers: Vec<Vec<i64>> = self.of_peers.iter().map(&mut again).collect();
        for one in &self.others {
            let peers = &of_peers[one.peers as usize];
            let kept = peers.get(draws.below(peers.len())).copied().unwrap_or(0);
            let (from, to) = match one.what {
                What::Computing => (&own.computing, &mut times.computing),
                What::Tail => (&own.tail, &mut times.tail),
            };
            let cell = one.cell as usize;
            to[cell] = (from[cell] - one.ns + kept).max(0);
        }
    }

    /// Copies the times that [`Self::draw`] sets.
    pub fn copy(&self, from: &Times, to: &mut Times) {
        for one in &self.others {
            let cell = one.cell as usize;
            match one.what {
                What::Computing => to.computing[cell] = from.computing[cell],
                What::Tail => to.tail[cell] = from.tail[cell],
            }
        }
    }

    /// Returns how long meetings take and how late ranks leave them, had some ranks not been kept from running inside.
    #[must_use]
    pub fn in_meetings(&self, matched: &Matched, is_out: impl Fn(u32) -> bool) -> (Vec<i64>, Vec<i64>) {
        let (mut took, mut tail) = (matched.took.clone(), matched.own.tail.clone());
        for one in self.within.iter().filter(|one| is_out(one.rank)) {
            let at = one.meeting as usize;
            took[at] = took[at].min(matched.took[at] - one.ns);
        }
        for one in self.behind.iter().filter(|one| is_out(one.culprit)) {
            let at = one.cell as usize;
            tail[at] = tail[at].min(matched.own.tail[at] - one.ns);
        }
        (took, tail)
    }

    /// Returns the same of some ranks only: the others stay as recorded.
    #[must_use]
    pub fn of(&self, ranks: &[u32]) -> Self {
        let mut of = self.clone();
        of.ranks.retain(|rank| ranks.contains(rank));
        of.within.retain(|one| ranks.contains(&one.rank));
        of.behind.retain(|one| ranks.contains(&one.culprit));
        of.others.retain(|one| ranks.contains(&one.rank));
        of
    }
}

impl<'a> Absences<'a> {
    #[must_use]
    pub fn new(traces: &'a [Trace], matched: &'a Matched, steps: &[Vec<Step>]) -> Self {
        let count = matched.own.computing.len();
        let none = Times { computing: vec![0; count], tail: vec![0; count] };
        let mut absences = Self {
            traces,
            matched,
            all: none.clone(),
            more: none.clone(),
            by_others: none,
            within: Vec::new(),
            behind: Vec::new(),
            waiting: Vec::new(),
        };
        if traces.iter().all(|trace| trace.away.is_empty()) {
            return absences;
        }
        absences.waiting = absences.find_waiting();
        let away = traces.iter().flat_map(|trace| &trace.away);
        let ranks: BTreeSet<&str> = away.filter(|away| away.by == By::Rank).map(|away| &*away.cause).collect();
        for rank in (0..traces.len() as u32).filter(|&rank| !traces[rank as usize].away.is_empty()) {
            for cell in matched.cells[rank as usize].clone() {
                for what in [What::Computing, What::Tail] {
                    let lost = absences.by_cause(rank, cell, what);
                    let sum = |counts: &dyn Fn(&str) -> bool| {
                        lost.iter().filter(|one| counts(one.0)).map(|one| one.1).sum::<f64>().round() as i64
                    };
                    let (all, by_others) = (sum(&|_| true), sum(&|cause| !ranks.contains(cause)));
                    *which(&mut absences.all, what, cell) = all;
                    *which(&mut absences.by_others, what, cell) = by_others;
                }
            }
        }
        absences.more = more_than_usual(&absences.all, steps);
        absences.by_others = more_than_usual(&absences.by_others, steps);
        absences.find_within();
        absences.find_behind();
        absences
    }

    /// Returns what kept a rank from running during one of its times, and for how long, ns.
    #[must_use]
    pub fn by_cause(&self, rank: u32, cell: usize, what: What) -> Vec<(&'a Arc<str>, f64)> {
        let (act, own) = (self.act(rank, cell), &self.matched.own);
        match what {
            What::Computing => {
                let took = own.computing[cell];
                // Where the thread's own clock of CPU time says otherwise, that is right.
                let off = if act.ran >= 0 { (took - act.ran).max(0) } else { took };
                self.during(rank, (act.start.saturating_sub(took), act.start), off, |_| 0)
            }
            What::Tail => self.kept(rank, cell, (act.end.saturating_sub(own.tail[cell]), act.end), own.tail[cell]),
        }
    }

    fn act(&self, rank: u32, cell: usize) -> &'a Act {
        &self.traces[rank as usize].acts[cell - self.matched.cells[rank as usize].start]
    }

    /// Returns what kept a rank from running in a call, from one moment to another, as far as no other rank in the same
    /// meeting already was: a rank that waits for such a one loses nothing.
    fn kept(&self, rank: u32, cell: usize, during: (i64, i64), most: i64) -> Vec<(&'a Arc<str>, f64)> {
        let common = |rank: u32, at: i64| self.matched.clocks.common(rank as usize, at);
        let lost = |away: &Away| {
            let (begin, end) = (common(rank, away.start.max(during.0)), common(rank, away.end.min(during.1)));
            let order = |rank: u32, away: &Away| (away.by == By::Rank, common(rank, away.start), rank);
            let mut others: Vec<(i64, i64)> = Vec::new();
            for meeting in self.meetings(rank, self.act(rank, cell)) {
                for &(other, at) in self.waiting[meeting as usize].iter().filter(|one| one.0 != rank) {
                    let all = &self.traces[other as usize].away;
                    let left = common(other, self.act(other, at as usize).end);
                    let from = all.partition_point(|there| common(other, there.end) <= begin);
                    let here = all[from..].iter().take_while(|there| common(other, there.start) < end);
                    let before = here.filter(|there| order(other, there) < order(rank, away));
                    others.extend(before.map(|there| {
                        (common(other, there.start).max(begin), common(other, there.end).min(left).min(end))
                    }));
                }
            }
            others.sort_unstable();
            let (mut lost, mut upto) = (0i64, begin);
            for (start, end) in others {
                lost = end.saturating_sub(start.max(upto)).max(0).saturating_add(lost);
                upto = end.max(upto);
            }
            lost
        };
        self.during(rank, during, most, lost)
    }

    /// Returns for each meeting the ranks that wait for it, and in which action.
    fn find_waiting(&self) -> Vec<Vec<(u32, u32)>> {
        let mut waiting = vec![Vec::new(); self.matched.took.len()];
        for (rank, trace) in (0u32..).zip(self.traces) {
            for (cell, act) in self.matched.cells[rank as usize].clone().zip(&trace.acts) {
                for meeting in self.meetings(rank, act) {
                    waiting[meeting as usize].push((rank, cell as u32));
                }
            }
        }
        waiting
    }

    /// Returns what kept a rank from running from one moment of its clock to another, together at most `most` ns, and each
    /// without what it is said to lose nothing for.
    fn during(
        &self,
        rank: u32,
        (begin, end): (i64, i64),
        most: i64,
        nothing: impl Fn(&Away) -> i64,
    ) -> Vec<(&'a Arc<str>, f64)> {
        let away = &self.traces[rank as usize].away;
        let from = away.partition_point(|away| away.end <= begin);
        let here: Vec<(&Arc<str>, i64)> = away[from..]
            .iter()
            .take_while(|away| away.start < end)
            .map(|away| (&away.cause, away.end.min(end).saturating_sub(away.start.max(begin)), nothing(away)))
            .map(|(cause, ns, nothing)| (cause, ns.saturating_sub(nothing).max(0)))
            .collect();
        let all = here.iter().map(|one| one.1).sum::<i64>().max(1) as f64;
        let fits = (most as f64 / all).min(1.0);
        here.into_iter().map(|(cause, ns)| (cause, fits * ns as f64)).collect()
    }

    /// Returns from when to when, on its clock, a rank was in the call of a meeting at which all had arrived.
    fn inside(&self, rank: u32, act: &Act, meeting: u32) -> (i64, i64) {
        let event = &self.traces[rank as usize].events[act.event as usize];
        let ahead = event.end.saturating_sub(self.matched.clocks.common(rank as usize, event.end));
        let ready = self.matched.ready[meeting as usize].saturating_add(ahead);
        (ready.max(event.since), event.end)
    }

    /// Returns the meetings that may have to wait for a rank in an action: for its message, and for its receiving.
    fn meetings(&self, rank: u32, act: &Act) -> impl Iterator<Item = u32> + use<'a> {
        let waits = matches!(act.kind, Kind::Wait | Kind::WaitSent);
        let of = |of: &[Vec<Option<u32>>]| if waits { of[rank as usize][act.event as usize] } else { None };
        [of(&self.matched.meeting), of(&self.matched.received)].into_iter().flatten()
    }

    /// Finds the meetings that took longer than such meetings usually do while one of their ranks was kept from running.
    fn find_within(&mut self) {
        let matched = self.matched;
        let mut of: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
        for (&class, &took) in matched.class.iter().zip(&matched.took) {
            of.entry(class).or_default().push(took);
        }
        let usual: BTreeMap<u32, i64> = of.into_iter().map(|(class, took)| (class, middle(took))).collect();
        let longer = |meeting: u32| matched.took[meeting as usize] - usual[&matched.class[meeting as usize]];
        let together = self.together();
        for rank in (0..self.traces.len() as u32).filter(|&rank| !self.traces[rank as usize].away.is_empty()) {
            for (cell, act) in matched.cells[rank as usize].clone().zip(&self.traces[rank as usize].acts) {
                for meeting in self.meetings(rank, act).filter(|&meeting| longer(meeting) > 0) {
                    let here = self.kept(rank, cell, self.inside(rank, act, meeting), longer(meeting));
                    let ns = here.iter().map(|one| one.1).sum::<f64>().round() as i64;
                    if ns <= 0 {
                        continue;
                    }
                    let cell = cell as u32;
                    self.within.push(Within { meeting, rank, cell, ns });
                    // A rank that waits for it waits in the same call for others, which seem to take as long.
                    for one in self.waiting[meeting as usize].iter().filter(|one| one.0 != rank) {
                        let others = together.get(one).into_iter().flatten().filter(|&&other| other != meeting);
                        self.within.extend(
                            others
                                .map(|&meeting| Within { meeting, rank, cell, ns: ns.min(longer(meeting)) })
                                .filter(|one| one.ns > 0),
                        );
                    }
                }
            }
        }
    }

    /// Returns for each rank and action that waits for several operations in one call the meetings of all of them.
    fn together(&self) -> BTreeMap<(u32, u32), Vec<u32>> {
        let mut found = BTreeMap::new();
        for (rank, trace) in (0u32..).zip(self.traces) {
            let mut calls: BTreeMap<u32, (Vec<u32>, Vec<u32>)> = BTreeMap::new();
            for (cell, act) in self.matched.cells[rank as usize].clone().zip(&trace.acts) {
                let mut meetings = self.meetings(rank, act).peekable();
                if meetings.peek().is_none() {
                    continue;
                }
                if let Some(call) = trace.events[act.event as usize].together {
                    let (cells, all) = calls.entry(call).or_default();
                    cells.push(cell as u32);
                    all.extend(meetings);
                }
            }
            for (cells, all) in calls.into_values().filter(|(cells, _)| cells.len() > 1) {
                found.extend(cells.into_iter().map(|cell| ((rank, cell), all.clone())));
            }
        }
        found
    }

    /// Finds ranks that left a meeting later than they usually do while another of its ranks was kept from running in it.
    fn find_behind(&mut self) {
        let matched = self.matched;
        let mut waits: BTreeMap<u32, Vec<(u32, usize)>> = BTreeMap::new();
        let mut tails: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
        for (rank, trace) in (0u32..).zip(self.traces) {
            for (cell, act) in matched.cells[rank as usize].clone().zip(&trace.acts) {
                let meeting = matched.meeting[rank as usize].get(act.event as usize).copied().flatten();
                if let (Kind::Wait, Some(meeting)) = (act.kind, meeting) {
                    waits.entry(meeting).or_default().push((rank, cell));
                    tails.entry(matched.class[meeting as usize]).or_default().push(matched.own.tail[cell]);
                }
            }
        }
        let usual: BTreeMap<u32, i64> = tails.into_iter().map(|(class, tails)| (class, middle(tails))).collect();
        for (meeting, members) in waits.iter().filter(|(_, members)| members.len() > 1) {
            for &(culprit, here) in members {
                let inside = self.inside(culprit, self.act(culprit, here), *meeting);
                for &(_, cell) in members.iter().filter(|member| member.0 != culprit) {
                    let tail = matched.own.tail[cell] - self.all.tail[cell];
                    let longer = tail - usual[&matched.class[*meeting as usize]];
                    if longer <= 0 {
                        continue;
                    }
                    let kept = self.kept(culprit, here, inside, longer);
                    let ns = kept.iter().map(|one| one.1).sum::<f64>().round() as i64;
                    if ns > 0 {
                        self.behind.push(Behind { culprit, cell: cell as u32, ns });
                    }
                }
            }
        }
    }

    /// Returns what kept a rank from running inside a meeting.
    #[must_use]
    pub fn by_cause_within(&self, one: &Within) -> Vec<(&'a Arc<str>, f64)> {
        let cell = one.cell as usize;
        self.kept(one.rank, cell, self.inside(one.rank, self.act(one.rank, cell), one.meeting), one.ns)
    }

    /// Returns the times during which ranks could run, and did not wait for one that could not.
    #[must_use]
    pub fn rest(&self) -> Times {
        let mut rest = less(&self.matched.own, &self.all);
        let mut longest: BTreeMap<u32, i64> = BTreeMap::new();
        for one in &self.behind {
            longest.entry(one.cell).and_modify(|ns| *ns = one.ns.max(*ns)).or_insert(one.ns);
        }
        for (cell, ns) in longest {
            let tail = &mut rest.tail[cell as usize];
            *tail = (*tail - ns).max(0);
        }
        rest
    }

    /// Returns what is known. `run`: duration of the run, ns.
    #[must_use]
    pub fn known(&self, steps: &[Vec<Step>], run: f64) -> Known {
        let mut known = Known { without: less(&self.matched.own, &self.more), ..Known::default() };
        let mut within: BTreeMap<u32, i64> = BTreeMap::new();
        for one in &self.within {
            within.entry(one.cell).and_modify(|ns| *ns = one.ns.max(*ns)).or_insert(one.ns);
        }
        let mut wholes = vec![0.0; steps.len()];
        for (rank, steps) in (0u32..).zip(steps) {
            let mut of_steps = vec![0.0; steps.len()];
            let mut first: BTreeMap<u64, u32> = BTreeMap::new();
            for ((number, step), sum) in (0u32..).zip(steps).zip(&mut of_steps) {
                let first = *first.entry(step.does).or_insert(number);
                for (place, cell) in (0u32..).zip(step.cells.clone()) {
                    for (when, ns) in [
                        (When::Before, self.more.computing[cell]),
                        (When::Within, within.get(&(cell as u32)).copied().unwrap_or(0)),
                        (When::After, self.more.tail[cell]),
                    ] {
                        if ns > 0 {
                            *sum += ns as f64;
                            *known.places.entry((rank, first, place, when)).or_default() += ns as f64;
                        }
                    }
                }
            }
            let whole: f64 = of_steps.iter().sum();
            wholes[rank as usize] = whole;
            if whole >= LEAST * run {
                known.ranks.push(rank);
            }
            let least = STEP * whole / of_steps.len().max(1) as f64;
            let matter = (0u32..).zip(&of_steps).filter(|(_, sum)| **sum > least).map(|(step, _)| step);
            known.steps.insert(rank, matter.collect());
        }
        self.find_others(steps, &wholes, &mut known);
        known.within = self.within.iter().filter(|one| known.ranks.contains(&one.rank)).copied().collect();
        known.behind = self.behind.iter().filter(|one| known.ranks.contains(&one.culprit)).copied().collect();
        known
    }

    /// Finds the times of the known ranks that would be others if these were healthy, and what healthy ranks show at their
    /// places: those that were kept from running about as long as most. `wholes`: for how long each rank was, beyond its peers.
    fn find_others(&self, steps: &[Vec<Step>], wholes: &[f64], known: &mut Known) {
        let of =
            |times: &Times, cell: usize| [(What::Computing, times.computing[cell]), (What::Tail, times.tail[cell])];
        let (more, by_others) = (|cell| of(&self.more, cell), |cell| of(&self.by_others, cell));
        let mut sorted = wholes.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let usual = USUAL * sorted[(sorted.len() - 1) / 2];
        let mut places: BTreeMap<PlaceOf, u32> = BTreeMap::new();
        for step in steps.iter().flatten() {
            for (place, cell) in (0u32..).zip(step.cells.clone()) {
                for (what, _) in more(cell).into_iter().filter(|one| one.1 > 0) {
                    let next = places.len() as u32;
                    places.entry((step.does, place, what)).or_insert(next);
                }
            }
        }
        let (mut others, mut of_peers) = (Vec::new(), vec![Vec::new(); places.len()]);
        for (rank, steps) in (0u32..).zip(steps) {
            for step in steps {
                for (place, cell) in (0u32..).zip(step.cells.clone()) {
                    for ((what, ns), (_, by_others)) in more(cell).into_iter().zip(by_others(cell)) {
                        let Some(&peers) = places.get(&(step.does, place, what)) else { continue };
                        if known.ranks.contains(&rank) {
                            others.push(Other { rank, cell: cell as u32, what, ns, peers });
                        }
                        if wholes[rank as usize] <= usual {
                            of_peers[peers as usize].push(by_others);
                        }
                    }
                }
            }
        }
        (known.others, known.of_peers) = (others, of_peers);
    }
}

/// What ranks do in a step, actions since it began, and which of the times there.
type PlaceOf = (u64, u32, What);

fn which(times: &mut Times, what: What, cell: usize) -> &mut i64 {
    match what {
        What::Computing => &mut times.computing[cell],
        What::Tail => &mut times.tail[cell],
    }
}

fn middle(mut times: Vec<i64>) -> i64 {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Returns times with others taken from them.
fn less(times: &Times, by: &Times) -> Times {
    let of = |from: &[i64], by: &[i64]| from.iter().zip(by).map(|(from, by)| (from - by).max(0)).collect();
    Times { computing: of(&times.computing, &by.computing), tail: of(&times.tail, &by.tail) }
}

/// Returns how much longer each time is than the middle one of the ranks that do the same at the same step.
fn more_than_usual(all: &Times, steps: &[Vec<Step>]) -> Times {
    let mut more = all.clone();
    let mut alike: BTreeMap<(u64, usize), Vec<&Step>> = BTreeMap::new();
    for (number, step) in steps.iter().flat_map(|steps| steps.iter().enumerate()) {
        alike.entry((step.does, number)).or_default().push(step);
    }
    let mut sorted = Vec::new();
    for steps in alike.values().filter(|steps| steps.len() > 1) {
        for place in 0..steps[0].cells.len() {
            for (from, to) in [(&all.computing, &mut more.computing), (&all.tail, &mut more.tail)] {
                sorted.clear();
                sorted.extend(steps.iter().map(|step| from[step.cells.start + place] as f64));
                if sorted.iter().all(|&ns| ns == 0.0) {
                    continue;
                }
                sorted.sort_unstable_by(f64::total_cmp);
                for step in steps {
                    let cell = step.cells.start + place;
                    to[cell] = (from[cell] - usual(&sorted, from[cell] as f64, 0.0) as i64).max(0);
                }
            }
        }
    }
    more
}
