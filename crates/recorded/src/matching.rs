//! Which calls of different ranks belong together, per communicator; and the graph that follows.
//!
//! What does not fit together is refused: a rank without a collective that the others have, other operations or sizes
//! under the same number, a receive without a send, times that no clocks explain.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::clocks::{Bound, Clocks, Together, align};
use crate::graph::{After, Cells, Do, Graph, Times};
use crate::groups::{Group, groups};
use crate::prefix::{Arrived, Reach};
use crate::progress::{arrive_where_they_wait, overlaps};
use crate::trace::{Key, Kind, Part, Trace};

/// Communicators up to this size bound all pairs of clocks; larger ones bound neighbours and the first rank.
const ALL_PAIRS: usize = 24;
/// Slack beside that of the clocks when it is judged whether a send waited for its receiver, ns.
pub const SEND_SLACK_NS: i64 = 20_000;

/// Why ranks cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    Events(String),
    /// Unlike operations are compared, or times contradict each other.
    Unlike(String),
}

/// The ranks' program, with the times as recorded.
#[derive(Debug)]
pub struct Matched {
    pub graph: Graph,
    pub own: Times,
    pub cells: Cells,
    /// Time of each meeting once all have arrived, ns, and its class: operation and size.
    pub took: Vec<i64>,
    /// When all had arrived at each meeting, ns.
    pub(crate) ready: Vec<i64>,
    pub class: Vec<u32>,
    /// The first meeting of the operation of each meeting: a scan has one for each of its ranks, any other operation one.
    pub operation: Vec<u32>,
    pub clocks: Clocks,
    /// From the first beginning to the last end, ns.
    pub recorded: i64,
    /// Time that each rank waited for others, ns.
    pub waited: Vec<i64>,
    /// Messages that came from ranks without a trace.
    pub from_outside: u64,
    /// For each rank and event, the meeting at which it is over; of a message, when it has come.
    pub meeting: Vec<Vec<Option<u32>>>,
    /// For each rank and event the meeting at which the rank arrives beside: of a message whose sender waits for its receiver,
    /// that of the receiver; of a scan, that of the rank's place.
    pub received: Vec<Vec<Option<u32>>>,
}

/// A message that no rank waited for: its meeting, how long it can have taken, and how long the receiver stayed, ns.
struct Unseen {
    meeting: u32,
    most: i64,
    stay: i64,
}

fn listed(ranks: &[u32]) -> String {
    let named: Vec<String> = ranks.iter().take(4).map(u32::to_string).collect();
    let more = if ranks.len() > 4 { format!(" and {} more", ranks.len() - 4) } else { String::new() };
    format!("{} {}{more}", if ranks.len() == 1 { "rank" } else { "ranks" }, named.join(", "))
}

/// Whether sizes may differ between ranks.
fn may_differ(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["gather", "scatter", "alltoall", "all_to_all", "barrier", "split"].iter().any(|word| name.contains(word))
}

fn check(traces: &[Trace], groups: &[Group]) -> Result<(), Mismatch> {
    let mut counts: BTreeMap<&str, BTreeMap<u32, u32>> = BTreeMap::new();
    for (at, trace) in (0u32..).zip(traces) {
        for event in &trace.events {
            if let Key::Collective { comm, .. } = &event.key {
                *counts.entry(comm).or_default().entry(at).or_default() += 1;
            }
        }
    }
    for (comm, counts) in &mut counts {
        if *comm == "world" {
            for rank in 0..traces.len() as u32 {
                counts.entry(rank).or_default();
            }
        }
        let most = counts.values().copied().max().unwrap_or_default();
        let short: Vec<u32> = counts
            .iter()
            .filter(|&(_, &count)| count < most)
            .map(|(&rank, _)| traces[rank as usize].number())
            .collect();
        if !short.is_empty() {
            let least = counts.values().copied().min().unwrap_or_default();
            return Err(Mismatch::Events(format!(
                "events are missing: {} recorded {least} collective operations of {comm}, others {most}",
                listed(&short)
            )));
        }
    }
    for group in groups {
        let event = |&(rank, at): &(u32, u32)| &traces[rank as usize].events[at as usize];
        let first = event(&group.members[0]);
        if group.is_message {
            let Key::Message { from, to, tag, .. } = &first.key else { continue };
            let sender_is_here = traces.iter().any(|trace| trace.number() == *from);
            if group.members.iter().all(|member| event(member).part == Part::Takes) && sender_is_here {
                return Err(Mismatch::Events(format!(
                    "events are missing: rank {to} received a message with tag {tag} that rank {from} did not record"
                )));
            }
            continue;
        }
        let Key::Collective { comm, number } = &first.key else { continue };
        for member in &group.members[1..] {
            let other = event(member);
            let sizes = other.size != first.size && other.size != 0 && first.size != 0 && !may_differ(&first.name);
            if other.name != first.name || sizes {
                let (one, two) = (traces[group.members[0].0 as usize].number(), traces[member.0 as usize].number());
                let what = if sizes {
                    "sizes differ".to_owned()
                } else {
                    format!("{} there, {} here", first.name, other.name)
                };
                return Err(Mismatch::Unlike(format!(
                    "collective operation {number} of {comm} is not the same on ranks {one} and {two} ({what})"
                )));
            }
        }
    }
    Ok(())
}

/// Collects what must have begun before what ended.
fn bounds(traces: &[Trace], groups: &[Group]) -> Vec<Bound> {
    let mut bounds = Vec::new();
    let mut of_host: BTreeMap<&Arc<str>, u32> = BTreeMap::new();
    for (rank, trace) in (0u32..).zip(traces) {
        let Some(host) = &trace.host else { continue };
        let first = *of_host.entry(host).or_insert(rank);
        if first != rank {
            bounds.push(Bound { earlier: first, later: rank, at: trace.began, ahead: 0 });
            bounds.push(Bound { earlier: rank, later: first, at: trace.began, ahead: 0 });
        }
    }
    for group in groups {
        let event = |&(rank, at): &(u32, u32)| &traces[rank as usize].events[at as usize];
        let mut pair = |one: &(u32, u32), other: &(u32, u32)| {
            let (needed, needs) = (event(one), event(other));
            if one.0 != other.0 && needs.part.needs(needed.part) {
                bounds.push(Bound {
                    earlier: one.0,
                    later: other.0,
                    at: needs.end,
                    ahead: needs.end.saturating_sub(needed.start),
                });
            }
        };
        let members = &group.members;
        let count = members.len();
        let is_rooted = |member: &(u32, u32)| matches!(event(member).part, Part::Gives | Part::Takes);
        if count <= ALL_PAIRS || members.iter().any(is_rooted) {
            let givers = members.iter().filter(|member| event(member).part != Part::Takes);
            for one in givers {
                members.iter().for_each(|other| pair(one, other));
            }
        } else {
            for at in 0..count {
                for other in [0, (at + 1) % count] {
                    pair(&members[at], &members[other]);
                    pair(&members[other], &members[at]);
                }
            }
        }
    }
    bounds
}

/// A receiver that stays longer than this in a receive waited for its message, ns.
const WAITED_NS: i64 = 50_000;

/// Collects what happens at nearly the same time: the ends of operations that all wait for, and of receives that waited.
fn together(traces: &[Trace], groups: &[Group]) -> Vec<Together> {
    let mut found = Vec::new();
    for group in groups.iter().filter(|group| group.members.len() > 1) {
        let event = |&(rank, at): &(u32, u32)| &traces[rank as usize].events[at as usize];
        let ends: Vec<(u32, i64)> = (group.members.iter())
            .filter(|member| event(member).part == Part::All)
            .map(|member| (member.0, event(member).end))
            .collect();
        if ends.len() > 1 {
            found.push(Together::Ends(ends));
            continue;
        }
        let mut givers = group.members.iter().filter(|member| event(member).part == Part::Gives);
        let (Some(giver), None) = (givers.next(), givers.next()) else { continue };
        let (from, sent) = (giver.0, event(giver).start);
        for member in group.members.iter().filter(|member| event(member).part == Part::Takes) {
            let taken = event(member);
            if taken.together.is_none() && taken.end.saturating_sub(taken.since) > WAITED_NS && member.0 != from {
                found.push(Together::Came { from, sent, to: member.0, came: taken.end });
            }
        }
    }
    found
}

/// Puts the ranks together. In operations that move only while a rank is in a call, the traces arrive there afterwards.
///
/// # Errors
/// Why they cannot be compared.
pub fn matched(traces: &mut [Trace]) -> Result<Matched, Mismatch> {
    let groups = groups(traces);
    check(traces, &groups)?;
    let mut clocks = aligned(traces, &groups)?;
    if overlaps(traces) && arrive_where_they_wait(traces, &groups, &clocks) {
        clocks = aligned(traces, &groups)?;
    }
    Builder::new(traces, clocks).build(&groups)
}

fn aligned(traces: &[Trace], groups: &[Group]) -> Result<Clocks, Mismatch> {
    align(traces.len(), &bounds(traces, groups), &together(traces, groups)).ok_or_else(|| {
        Mismatch::Unlike(
            "operations end before others that they need have begun, whatever the clocks: the operations compared are not \
             the same, or events are missing"
                .into(),
        )
    })
}

struct Builder<'a> {
    traces: &'a [Trace],
    clocks: Clocks,
    /// For each rank and event: the meeting that it arrives at or waits for, and the one of its receiver.
    meeting: Vec<Vec<Option<u32>>>,
    received: Vec<Vec<Option<u32>>>,
    took: Vec<i64>,
    ready: Vec<i64>,
    class: Vec<u32>,
    /// By name, size, and place in a scan, the ranks of which it takes the longer the higher they are.
    classes: BTreeMap<(Arc<str>, u64, u32), u32>,
    operation: Vec<u32>,
    reach: Reach,
    /// For each meeting, the one before it, if a communicator works on one at a time.
    after: Vec<Option<After>>,
    from_outside: u64,
    last_ready: BTreeMap<(u32, u32), i64>,
    /// Messages that had come before their receivers waited for them.
    unseen: Vec<Unseen>,
}

impl<'a> Builder<'a> {
    fn new(traces: &'a [Trace], clocks: Clocks) -> Self {
        let none = || traces.iter().map(|trace| vec![None; trace.events.len()]).collect::<Vec<_>>();
        Self {
            traces,
            clocks,
            meeting: none(),
            received: none(),
            took: Vec::new(),
            ready: Vec::new(),
            class: Vec::new(),
            classes: BTreeMap::new(),
            operation: Vec::new(),
            reach: Reach::default(),
            after: Vec::new(),
            from_outside: 0,
            last_ready: BTreeMap::new(),
            unseen: Vec::new(),
        }
    }

    fn span(&self, member: (u32, u32)) -> (i64, i64) {
        let event = &self.traces[member.0 as usize].events[member.1 as usize];
        (self.clocks.common(member.0 as usize, event.start), self.clocks.common(member.0 as usize, event.end))
    }

    /// Returns from when to when a rank only waited for an operation. Of operations that end in one call, the last to be
    /// ready is the one that it waited for.
    fn wait(&self, member: (u32, u32)) -> (i64, i64) {
        let event = &self.traces[member.0 as usize].events[member.1 as usize];
        let since = self.clocks.common(member.0 as usize, event.since);
        let last = event.together.and_then(|together| self.last_ready.get(&(member.0, together)).copied());
        (since.max(last.unwrap_or(i64::MIN)), self.clocks.common(member.0 as usize, event.end))
    }

    /// Finds, for operations of a rank that end in one call, when the last of them was ready.
    fn find_last_ready(&mut self, groups: &[Group]) {
        let traces = self.traces;
        for group in groups {
            let together = |&(rank, at): &(u32, u32)| traces[rank as usize].events[at as usize].together;
            if !group.members.iter().any(|member| together(member).is_some()) {
                continue;
            }
            // A receive needs its send, a send its receive, and a collective operation all others.
            let starts: Vec<(u32, i64)> = group.members.iter().map(|&member| (member.0, self.span(member).0)).collect();
            let latest = |upto: usize| starts[..=upto].iter().max_by_key(|one| one.1).copied();
            let whole = latest(group.members.len() - 1);
            let reach = self.reach_of(group).map(<[usize]>::to_vec);
            for (at, member) in group.members.iter().enumerate() {
                let last = reach.as_ref().map_or(whole, |reach| latest(reach[at]));
                let Some((together, (rank, ready))) = together(member).zip(last) else { continue };
                if group.is_message && rank == member.0 {
                    continue;
                }
                self.last_ready
                    .entry((member.0, together))
                    .and_modify(|last| *last = ready.max(*last))
                    .or_insert(ready);
            }
        }
    }

    fn add_meeting(&mut self, ready: i64, took: i64, (name, size, place): (&Arc<str>, u64, u32)) -> u32 {
        let next = self.classes.len() as u32;
        let class = *self.classes.entry((Arc::clone(name), size, place)).or_insert(next);
        self.operation.push(self.took.len() as u32);
        self.took.push(took.max(0));
        self.ready.push(ready);
        self.class.push(class);
        self.after.push(None);
        (self.took.len() - 1) as u32
    }

    fn build(mut self, groups: &[Group]) -> Result<Matched, Mismatch> {
        self.find_reach(groups);
        self.find_last_ready(groups);
        let mut last: Option<(u32, u32)> = None;
        let one_at_a_time = self.one_at_a_time(groups);
        for group in groups {
            if self.reach_of(group).is_some() {
                self.meet_in_order(group);
                continue;
            }
            let before =
                last.filter(|&(comm, _)| comm == group.comm && !group.is_message && one_at_a_time.contains(&comm));
            if let Some(meeting) = self.meet(group, before.map(|(_, meeting)| meeting)) {
                last = Some((group.comm, meeting));
            }
        }
        self.estimate_unseen();
        self.sends_that_wait(groups);
        self.finish()
    }

    /// Returns the communicators whose operations run beside the computing, one after the other: none is over before the
    /// one before it.
    fn one_at_a_time(&self, groups: &[Group]) -> BTreeSet<u32> {
        let mut comms = BTreeSet::new();
        let mut overlapping = BTreeSet::new();
        let mut last = (u32::MAX, i64::MIN);
        for group in groups.iter().filter(|group| !group.is_message) {
            let aside = group.members.iter().all(|&(rank, _)| self.traces[rank as usize].beside);
            let over = group.members.iter().map(|&member| self.span(member).1).min().unwrap_or(i64::MIN);
            if !aside || (group.comm == last.0 && over < last.1) {
                overlapping.insert(group.comm);
            }
            comms.insert(group.comm);
            last = (group.comm, over);
        }
        comms.difference(&overlapping).copied().collect()
    }

    /// Makes the meeting of a group, which begins when `before` is over.
    fn meet(&mut self, group: &Group, before: Option<u32>) -> Option<u32> {
        let traces = self.traces;
        let event = |member: (u32, u32)| &traces[member.0 as usize].events[member.1 as usize];
        let members = || group.members.iter().copied();
        let givers = || members().filter(|&member| event(member).part != Part::Takes);
        let takers = || members().filter(|&member| event(member).part != Part::Gives);
        let Some(ready) = givers().map(|member| self.span(member).0).max() else {
            self.from_outside += members().count() as u64;
            return None;
        };
        let ready = before
            .map_or(ready, |before| ready.max(self.ready[before as usize].saturating_add(self.took[before as usize])));
        let took = takers()
            .map(|member| self.wait(member))
            .map(|(since, end)| end.saturating_sub(since.max(ready)))
            .min()
            .unwrap_or(0);
        let first = event(group.members[0]);
        let meeting = self.add_meeting(ready, took, (&first.name, first.size, 0));
        if group.is_message
            && let Some((since, end)) = takers().map(|member| self.wait(member)).next()
            && since > ready
        {
            let (most, stay) = (since.saturating_sub(ready), end.saturating_sub(since));
            self.unseen.push(Unseen { meeting, most, stay });
        }
        self.after[meeting as usize] = before.map(After::Over);
        for (rank, at) in members() {
            self.meeting[rank as usize][at as usize] = Some(meeting);
        }
        Some(meeting)
    }

    /// Lets messages that no rank waited for take as long as others of their class, as far as that changes nothing that was
    /// recorded: without an excess, their receivers may wait for them. And lets receivers that waited stay as long after that
    /// as those stay that did not wait.
    fn estimate_unseen(&mut self) {
        let mut of: BTreeMap<u32, (Vec<i64>, Vec<i64>)> = BTreeMap::new();
        for one in &self.unseen {
            of.entry(self.class[one.meeting as usize]).or_default().1.push(one.stay);
        }
        let mut is_seen = vec![true; self.took.len()];
        self.unseen.iter().for_each(|one| is_seen[one.meeting as usize] = false);
        let seen = || (0u32..).zip(&is_seen).filter(|one| *one.1).map(|one| one.0);
        for meeting in seen() {
            if let Some((took, _)) = of.get_mut(&self.class[meeting as usize]) {
                took.push(self.took[meeting as usize]);
            }
        }
        let middle = |mut times: Vec<i64>| {
            let half = times.len() / 2;
            *times.select_nth_unstable(half).1
        };
        // Without messages that were waited for, nothing is known.
        let usual: BTreeMap<u32, (i64, i64)> = (of.into_iter().filter(|(_, (took, _))| !took.is_empty()))
            .map(|(class, (took, stay))| (class, (middle(took), middle(stay))))
            .collect();
        let changed: Vec<(u32, i64)> = seen()
            .filter_map(|meeting| {
                let (_, stay) = usual.get(&self.class[meeting as usize])?;
                Some((meeting, self.took[meeting as usize].saturating_sub(*stay).max(0)))
            })
            .collect();
        for one in &self.unseen {
            if let Some((took, stay)) = usual.get(&self.class[one.meeting as usize]) {
                self.took[one.meeting as usize] = took.saturating_sub(*stay).clamp(0, one.most.max(0));
            }
        }
        changed.into_iter().for_each(|(meeting, took)| self.took[meeting as usize] = took);
    }

    /// Finds out for which ranks of a scan those at lower places wait.
    fn find_reach(&mut self, groups: &[Group]) {
        let event = |&(rank, at): &(u32, u32)| &self.traces[rank as usize].events[at as usize];
        let is_scan = |group: &&Group| matches!(event(&group.members[0]).part, Part::Prefix(_));
        let mut scans: BTreeMap<(u32, Arc<str>, u64), Vec<Vec<Arrived>>> = BTreeMap::new();
        for group in groups.iter().filter(is_scan) {
            let first = event(&group.members[0]);
            let arrived = |&member: &(u32, u32)| {
                let (start, end) = self.span(member);
                Arrived { start, end, slack: self.clocks.slack_of(member.0 as usize) }
            };
            let of = scans.entry((group.comm, Arc::clone(&first.name), first.size)).or_default();
            of.push(group.members.iter().map(arrived).collect());
        }
        self.reach = Reach::new(&scans);
    }

    /// Returns for each rank of a scan the highest place that it waits for; `None` for other operations.
    fn reach_of(&self, group: &Group) -> Option<&[usize]> {
        let (rank, at) = group.members[0];
        let first = &self.traces[rank as usize].events[at as usize];
        if matches!(first.part, Part::Prefix(_)) { self.reach.of(group.comm, &first.name, first.size) } else { None }
    }

    /// Makes the meetings of a scan, one for each rank: it is ready when the ranks up to its place have arrived.
    fn meet_in_order(&mut self, group: &Group) {
        let Some(reach) = self.reach_of(group).map(<[usize]>::to_vec) else { return };
        let traces = self.traces;
        let mut latest = i64::MIN;
        let mut ready = Vec::with_capacity(group.members.len());
        for &member in &group.members {
            latest = latest.max(self.span(member).0);
            ready.push(latest);
        }
        let mut took: Vec<Option<i64>> = vec![None; group.members.len()];
        for (&member, &upto) in group.members.iter().zip(&reach) {
            let (since, end) = self.wait(member);
            let here = end.saturating_sub(since.max(ready[upto]));
            took[upto] = Some(took[upto].map_or(here, |took| took.min(here)));
        }
        let first = self.took.len() as u32;
        let (rank, at) = group.members[0];
        let name = &traces[rank as usize].events[at as usize].name;
        let size = traces[rank as usize].events[at as usize].size;
        for (place, (ready, took)) in (0u32..).zip(ready.into_iter().zip(took)) {
            let meeting = self.add_meeting(ready, took.unwrap_or(0), (name, size, place));
            self.operation[meeting as usize] = first;
            self.after[meeting as usize] = (place > 0).then(|| After::Arrived(meeting - 1));
        }
        for (place, (&(rank, at), &upto)) in (0u32..).zip(group.members.iter().zip(&reach)) {
            self.meeting[rank as usize][at as usize] = Some(first + upto as u32);
            if upto as u32 != place {
                self.received[rank as usize][at as usize] = Some(first + place);
            }
        }
    }

    /// Finds out which sends wait for their receivers: of each size, those never over before the receiver was there.
    fn sends_that_wait(&mut self, groups: &[Group]) {
        let traces = self.traces;
        let mut over: Vec<Vec<i64>> = traces.iter().map(|trace| vec![i64::MIN; trace.events.len()]).collect();
        for (rank, trace) in traces.iter().enumerate() {
            for act in trace.acts.iter().filter(|act| act.kind == Kind::WaitSent) {
                over[rank][act.event as usize] = trace.events[act.event as usize].end;
            }
        }
        let pairs = |group: &Group| {
            let part = |part: Part| {
                group.members.iter().copied().find(|&(rank, at)| traces[rank as usize].events[at as usize].part == part)
            };
            if group.is_message { part(Part::Gives).zip(part(Part::Takes)) } else { None }
        };
        let size_of = |(rank, at): (u32, u32)| traces[rank as usize].events[at as usize].size;
        // Of each size: sends over before the receiver was there, and sends that were not although they began earlier.
        let mut seen: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for (sender, receiver) in groups.iter().filter_map(pairs) {
            let end = over[sender.0 as usize][sender.1 as usize];
            if end == i64::MIN {
                continue;
            }
            let (sent, there) = (self.span(sender).0, self.span(receiver).0);
            let end = self.clocks.common(sender.0 as usize, end);
            let slack = self.clocks.slack(sender.0 as usize, receiver.0 as usize).saturating_add(SEND_SLACK_NS);
            let (free, bound) = seen.entry(size_of(sender)).or_default();
            *free += u64::from(end < there.saturating_sub(slack));
            *bound += u64::from(there > sent.saturating_add(slack) && end >= there.saturating_sub(slack));
        }
        for (sender, receiver) in groups.iter().filter_map(pairs) {
            let end = over[sender.0 as usize][sender.1 as usize];
            let Some(&(free, bound)) = seen.get(&size_of(sender)) else { continue };
            if end == i64::MIN || bound == 0 || 20 * free > bound {
                continue;
            }
            let there = self.span(receiver).0;
            let begun = self.wait(sender).0;
            let end = self.clocks.common(sender.0 as usize, end);
            let name: Arc<str> = "send".into();
            let meeting = self.add_meeting(there, end.saturating_sub(there.max(begun)), (&name, size_of(sender), 0));
            self.received[sender.0 as usize][sender.1 as usize] = Some(meeting);
            self.received[receiver.0 as usize][receiver.1 as usize] = Some(meeting);
        }
    }

    fn finish(self) -> Result<Matched, Mismatch> {
        let traces = self.traces;
        let steps = traces
            .iter()
            .map(|trace| trace.acts.iter().filter(|act| act.kind == Kind::Step).count())
            .max()
            .unwrap_or(0);
        let mut ranks = Vec::with_capacity(traces.len());
        let mut own = Times::default();
        let mut cells = Cells::new();
        let mut waited = Vec::with_capacity(traces.len());
        let mut starts = Vec::with_capacity(traces.len());
        let mut last = i64::MIN;
        for (rank, trace) in traces.iter().enumerate() {
            let first = own.computing.len();
            let mut does = Vec::with_capacity(trace.acts.len());
            let (mut step, mut stayed, mut covered) = (0, 0, i64::MIN);
            let mut joint: Option<(u32, i64)> = None;
            let mut before = self.clocks.common(rank, trace.began);
            starts.push(before);
            for act in &trace.acts {
                let event = act.event as usize;
                let (start, end) = (self.clocks.common(rank, act.start), self.clocks.common(rank, act.end));
                own.computing.push(start.saturating_sub(before).max(0));
                before = end;
                let doing = match act.kind {
                    Kind::Post | Kind::Enter if !trace.arrives(act) => Do::Nothing,
                    Kind::Post | Kind::Enter => {
                        let (meeting, received) = (self.meeting[rank][event], self.received[rank][event]);
                        let arrives = match trace.events[event].part {
                            Part::Takes => received,
                            Part::Prefix(_) => received.or(meeting),
                            Part::All | Part::Gives => meeting,
                        };
                        arrives.map_or(Do::Nothing, Do::Arrive)
                    }
                    Kind::Wait => self.meeting[rank][event].map_or(Do::Nothing, Do::Wait),
                    Kind::WaitSent => self.received[rank][event].map_or(Do::Nothing, Do::Wait),
                    Kind::Step => {
                        step += 1;
                        Do::Step(step - 1)
                    }
                };
                let group =
                    matches!(act.kind, Kind::Wait | Kind::WaitSent).then(|| trace.events[event].together).flatten();
                if joint.is_none_or(|(together, _)| Some(together) != group) {
                    joint = group.map(|together| (together, i64::MIN));
                }
                let tail = match doing {
                    Do::Wait(meeting) => {
                        let ready = self.ready[meeting as usize];
                        let over = ready.saturating_add(self.took[meeting as usize]);
                        // Time in which it waited for several operations at once counts once.
                        let upto = ready.min(self.clocks.common(rank, trace.events[event].end));
                        stayed = i64::saturating_add(stayed, upto.saturating_sub(start.max(covered)).max(0));
                        covered = covered.max(upto);
                        // Of operations that end in one call, the last wait has what is left of it.
                        let over = joint.as_mut().map_or(over, |(_, last)| {
                            *last = over.max(*last);
                            *last
                        });
                        if trace.beside { 0 } else { end.saturating_sub(start.max(over)).max(0) }
                    }
                    Do::Nothing => end.saturating_sub(start.max(joint.map_or(i64::MIN, |(_, last)| last))).max(0),
                    Do::Arrive(_) | Do::Step(_) => 0,
                };
                own.tail.push(tail);
                does.push(doing);
            }
            last = last.max(before);
            cells.push(first..own.computing.len());
            waited.push(stayed);
            ranks.push(does);
        }
        let first = starts.iter().copied().min().unwrap_or_default();
        starts.iter_mut().for_each(|start| *start = start.saturating_sub(first));
        let graph = Graph::new(&ranks, starts, self.after, steps as u32).map_err(|stuck| {
            let names: Vec<u32> = stuck.iter().map(|&(rank, _)| traces[rank as usize].number()).collect();
            Mismatch::Events(format!("events are missing: {} wait for each other in the replay", listed(&names)))
        })?;
        Ok(Matched {
            graph,
            own,
            cells,
            took: self.took,
            ready: self.ready,
            class: self.class,
            operation: self.operation,
            clocks: self.clocks,
            recorded: last.saturating_sub(first),
            waited,
            from_outside: self.from_outside,
            meeting: self.meeting,
            received: self.received,
        })
    }
}
