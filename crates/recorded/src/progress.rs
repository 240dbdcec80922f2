//! Operations that move only while a rank is in a call: many MPIs move a large message, or a nonblocking collective operation,
//! only while the rank that sends, or that receives, is in a call that waits.
//!
//! Such a rank arrives where it next waits, not where the operation began, unless what it takes from the other had come by its last
//! call before. Of which operations this is true is seen in the recording: of one kind and size, none was over before the last of
//! the ranks that it needs next waited, although others waited for it. Ranks that compute beside their operations (on an
//! accelerator) have another engine for them, and are left as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::clocks::Clocks;
use crate::matching::{Group, SEND_SLACK_NS};
use crate::trace::{Act, Event, Kind, Part, Trace};

/// Fewest operations of a kind that must have waited before anything is concluded.
const FEWEST: u64 = 4;
/// For each operation that should have waited and did not, there must be as many that did.
const BOUND_PER_FREE: u64 = 20;
/// Slack beside that of the clocks when it is judged whether an operation was over before a rank waited, ns.
const SLACK_NS: i64 = 5_000;

/// What is alike: a message or not, its name if it is none, and its size.
type Sort = (bool, Option<Arc<str>>, u64);

/// Whether any rank computes between the beginning of an operation and the call that waits for it.
pub fn overlaps(traces: &[Trace]) -> bool {
    let is_later = |event: &Event| event.since.saturating_sub(event.start) > SEND_SLACK_NS;
    traces.iter().any(|trace| !trace.beside && trace.events.iter().any(is_later))
}

/// Lets ranks arrive where they next wait, in operations that move only then. Returns whether any rank does.
pub fn arrive_where_they_wait(traces: &mut [Trace], groups: &[Group], clocks: &Clocks) -> bool {
    let of = Overlaps::new(traces, groups, clocks);
    let received = of.bound(Side::Receivers, &Known::new());
    let known = of.known(&received);
    let sent = of.bound(Side::Senders, &known);
    // Ranks that do the same keep doing so: each rank has an action there, late or not.
    let none = || traces.iter().map(|trace| vec![false; trace.events.len()]).collect::<Vec<_>>();
    let (mut entered, mut late) = (none(), none());
    let mut any = false;
    for group in groups {
        let sort = of.sort(group);
        for &(rank, at) in &group.members {
            let is_giver = traces[rank as usize].events[at as usize].part != Part::Takes;
            let (side, bound) = if is_giver { (Side::Senders, &sent) } else { (Side::Receivers, &received) };
            if bound.contains(&sort) && of.overlapped(rank, at) {
                let is_late = of.waited_for(group, side, (rank, at));
                entered[rank as usize][at as usize] = true;
                late[rank as usize][at as usize] = is_late;
                any |= is_late;
            }
        }
    }
    if any {
        for ((trace, entered), late) in traces.iter_mut().zip(&entered).zip(late) {
            trace.late = late;
            enter_where_it_waits(trace, entered);
        }
    }
    any
}

/// Whose call an operation may need.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// A message is sent only once its receiver is in a call.
    Receivers,
    /// An operation is over only once those that give to it are in a call.
    Senders,
}

/// Ranks and the number of a call in which several operations end -> by when they are known to be needed, ns.
type Known = BTreeMap<(u32, u32), i64>;

struct Overlaps<'a> {
    traces: &'a [Trace],
    groups: &'a [Group],
    clocks: &'a Clocks,
    /// For each rank and event: when the rank next waited after its beginning, and when its last call before that began, on its
    /// own clock; and whether it ever waited for it.
    entered: Vec<Vec<i64>>,
    last: Vec<Vec<i64>>,
    waited: Vec<Vec<bool>>,
    posted: Known,
}

impl<'a> Overlaps<'a> {
    fn new(traces: &'a [Trace], groups: &'a [Group], clocks: &'a Clocks) -> Self {
        let mut entered = Vec::with_capacity(traces.len());
        let mut last = Vec::with_capacity(traces.len());
        let mut waited = Vec::with_capacity(traces.len());
        for trace in traces {
            let mut enters: Vec<i64> = trace.events.iter().map(|event| event.start).collect();
            let mut lasts = enters.clone();
            let mut waits = vec![false; enters.len()];
            let mut open = Vec::new();
            for act in &trace.acts {
                match act.kind {
                    Kind::Post => {
                        open.push(act.event as usize);
                        open.iter().for_each(|&event| lasts[event] = act.start);
                    }
                    Kind::Wait | Kind::WaitSent => {
                        waits[act.event as usize] = true;
                        open.drain(..).for_each(|event| enters[event] = act.start);
                    }
                    Kind::Enter | Kind::Step => {}
                }
            }
            entered.push(enters);
            last.push(lasts);
            waited.push(waits);
        }
        let mut this = Self { traces, groups, clocks, entered, last, waited, posted: Known::new() };
        this.posted = this.known(&BTreeSet::new());
        this
    }

    fn event(&self, (rank, at): (u32, u32)) -> &'a Event {
        &self.traces[rank as usize].events[at as usize]
    }

    fn sort(&self, group: &Group) -> Sort {
        let first = self.event(group.members[0]);
        (group.is_message, (!group.is_message).then(|| Arc::clone(&first.name)), first.size)
    }

    fn overlapped(&self, rank: u32, at: u32) -> bool {
        !self.traces[rank as usize].beside && self.waited[rank as usize][at as usize]
    }

    fn began(&self, member: (u32, u32)) -> i64 {
        self.clocks.common(member.0 as usize, self.event(member).start)
    }

    fn entry(&self, (rank, at): (u32, u32)) -> i64 {
        self.clocks.common(rank as usize, self.entered[rank as usize][at as usize])
    }

    /// Returns when a rank's last call before it next waited began.
    fn last_call(&self, (rank, at): (u32, u32)) -> i64 {
        self.clocks.common(rank as usize, self.last[rank as usize][at as usize])
    }

    fn slack(&self, one: (u32, u32), other: (u32, u32)) -> i64 {
        self.clocks.slack(one.0 as usize, other.0 as usize).saturating_add(SLACK_NS)
    }

    /// Whether all that wait for a member of an operation did so until it next waited itself.
    fn waited_for(&self, group: &'a Group, side: Side, member: (u32, u32)) -> bool {
        let mut waiting = self.pairs(group, side).filter(|(_, needed)| needed.contains(&member)).peekable();
        let until = |one: (u32, u32)| {
            let end = self.clocks.common(one.0 as usize, self.event(one).end);
            end >= self.entry(member).saturating_sub(self.slack(one, member))
        };
        waiting.peek().is_some() && waiting.all(|(one, _)| self.overlapped(one.0, one.1) && until(one))
    }

    /// Returns the pairs of ranks of which the first waits for the second.
    fn pairs(&self, group: &'a Group, side: Side) -> impl Iterator<Item = ((u32, u32), Vec<(u32, u32)>)> {
        let members = &group.members;
        let waits = move |&waiting: &(u32, u32)| {
            let part = self.event(waiting).part;
            let needed = members.iter().copied().filter(move |&other| {
                let needs = match side {
                    Side::Senders => part.needs(self.event(other).part),
                    Side::Receivers => part == Part::Gives && self.event(other).part == Part::Takes,
                };
                other.0 != waiting.0 && needs
            });
            (waiting, needed.collect())
        };
        let applies = side == Side::Senders || group.is_message;
        members.iter().filter(move |_| applies).map(waits).filter(|(_, needed): &(_, Vec<_>)| !needed.is_empty())
    }

    /// Returns for calls in which several operations end by when the rest of them explains that they were not over: when the
    /// last message to come was sent, and when those that `received` names were in a call to receive.
    fn known(&self, received: &BTreeSet<Sort>) -> Known {
        let mut known = Known::new();
        let mut learn = |member: (u32, u32), time: i64| {
            if let Some(together) = self.event(member).together {
                known.entry((member.0, together)).and_modify(|last| *last = time.max(*last)).or_insert(time);
            }
        };
        for group in self.groups {
            for (waiting, needed) in self.pairs(group, Side::Senders) {
                needed.iter().for_each(|&other| learn(waiting, self.began(other)));
            }
            if received.contains(&self.sort(group)) {
                for (waiting, needed) in self.pairs(group, Side::Receivers) {
                    needed.iter().for_each(|&other| learn(waiting, self.entry(other)));
                }
            }
        }
        known
    }

    /// Returns the sorts of operations of which none was over before the ranks on that side were in a call.
    fn bound(&self, side: Side, received: &Known) -> BTreeSet<Sort> {
        let mut seen: BTreeMap<Sort, (u64, u64)> = BTreeMap::new();
        for group in self.groups {
            for (waiting, needed) in self.pairs(group, side) {
                let last = needed.iter().copied().max_by_key(|&other| self.entry(other));
                let Some(last) = last.filter(|_| self.overlapped(waiting.0, waiting.1)) else { continue };
                let event = self.event(waiting);
                let slack = self.slack(waiting, last);
                let entry = self.entry(last).saturating_sub(slack);
                // What else it may have waited for was there before.
                let mut before = needed.iter().map(|&other| self.began(other)).max().unwrap_or(i64::MIN);
                before = before.max(self.began(waiting));
                before = before.max(self.clocks.common(waiting.0 as usize, event.since));
                if let Some(together) = event.together {
                    let of = |known: &Known| known.get(&(waiting.0, together)).copied().unwrap_or(i64::MIN);
                    before = before.max(of(&self.posted)).max(of(received));
                }
                if before.saturating_add(slack) >= entry {
                    continue;
                }
                let end = self.clocks.common(waiting.0 as usize, event.end);
                let (free, bound) = seen.entry(self.sort(group)).or_default();
                *bound += u64::from(end >= entry);
                // What had come by the last call of the other was over then.
                *free += u64::from(end < entry && self.began(waiting) > self.last_call(last).saturating_add(slack));
            }
        }
        seen.retain(|_, (free, bound)| *bound >= FEWEST && *bound >= BOUND_PER_FREE * *free);
        seen.into_keys().collect()
    }
}

/// Adds an action for each of some operations where the rank next waits.
fn enter_where_it_waits(trace: &mut Trace, entered: &[bool]) {
    let acts = std::mem::take(&mut trace.acts);
    let mut kept: Vec<Act> = Vec::with_capacity(acts.len());
    let mut open: Vec<u32> = Vec::new();
    for mut act in acts {
        match act.kind {
            Kind::Post if entered[act.event as usize] => open.push(act.event),
            Kind::Wait | Kind::WaitSent => {
                for event in open.drain(..) {
                    if trace.late[event as usize] {
                        trace.events[event as usize].start = act.start;
                    }
                    kept.push(Act { kind: Kind::Enter, event, start: act.start, end: act.start, ran: act.ran });
                    act.ran = 0;
                }
            }
            Kind::Post | Kind::Enter | Kind::Step => {}
        }
        kept.push(act);
    }
    trace.acts = kept;
}
