//! Operations that move only while a rank is in a call: many MPIs move a large message, or a nonblocking collective operation,
//! only while the rank that sends, or that receives, is in a call that waits.
//!
//! Such a rank arrives where it next waits, not where the operation began. Which operations do so is seen in the recording: of
//! one kind and size, none was over before the last of the ranks that it needs was in such a call, although others waited for
//! it. Ranks that compute beside their operations (on an accelerator) have another engine for them, and are left as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::clocks::Clocks;
use crate::matching::{Group, SEND_SLACK_NS};
use crate::trace::{Act, Event, Kind, Part, Trace};

/// So many operations of a kind must have waited before anything is concluded.
const FEWEST: u64 = 4;
/// For each operation that did not wait, there must be as many that did.
const BOUND_PER_FREE: u64 = 20;

/// What is alike: a message or not, its name if it is none, and its size.
type Sort = (bool, Option<Arc<str>>, u64);

/// Whether any rank computes between the beginning of an operation and the call that waits for it.
pub fn overlaps(traces: &[Trace]) -> bool {
    let is_later = |event: &Event| event.since.saturating_sub(event.start) > SEND_SLACK_NS;
    traces.iter().any(|trace| !trace.beside && trace.events.iter().any(is_later))
}

/// Lets ranks arrive where they next wait, in operations that move only then. Returns whether there are any.
pub fn arrive_where_they_wait(traces: &mut [Trace], groups: &[Group], clocks: &Clocks) -> bool {
    let of = Overlaps::new(traces, groups, clocks);
    let received = of.bound(Side::Receivers, &Known::new());
    let known = of.known(&received);
    let sent = of.bound(Side::Senders, &known);
    let mut moved: Vec<Vec<bool>> = traces.iter().map(|trace| vec![false; trace.events.len()]).collect();
    let mut any = false;
    for group in groups {
        let sort = of.sort(group);
        for &(rank, at) in &group.members {
            let is_giver = traces[rank as usize].events[at as usize].part != Part::Takes;
            let bound = if is_giver { &sent } else { &received };
            let moves = bound.contains(&sort) && of.overlapped(rank, at);
            moved[rank as usize][at as usize] = moves;
            any |= moves;
        }
    }
    if any {
        traces.iter_mut().zip(&moved).for_each(|(trace, moved)| move_posts(trace, moved));
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
    /// For each rank and event: when the rank next waited after its beginning, on its own clock, and whether it ever waited
    /// for it.
    entered: Vec<Vec<i64>>,
    waited: Vec<Vec<bool>>,
    posted: Known,
}

impl<'a> Overlaps<'a> {
    fn new(traces: &'a [Trace], groups: &'a [Group], clocks: &'a Clocks) -> Self {
        let mut entered = Vec::with_capacity(traces.len());
        let mut waited = Vec::with_capacity(traces.len());
        for trace in traces {
            let mut enters: Vec<i64> = trace.events.iter().map(|event| event.start).collect();
            let mut waits = vec![false; enters.len()];
            let mut open = Vec::new();
            for act in &trace.acts {
                match act.kind {
                    Kind::Post => open.push(act.event as usize),
                    Kind::Wait | Kind::WaitSent => {
                        waits[act.event as usize] = true;
                        open.drain(..).for_each(|event| enters[event] = act.start);
                    }
                    Kind::Step => {}
                }
            }
            entered.push(enters);
            waited.push(waits);
        }
        let mut this = Self { traces, groups, clocks, entered, waited, posted: Known::new() };
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
        let asked = side == Side::Senders || group.is_message;
        members.iter().filter(move |_| asked).map(waits).filter(|(_, needed): &(_, Vec<_>)| !needed.is_empty())
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
                let slack = self.clocks.slack(waiting.0 as usize, last.0 as usize).saturating_add(SEND_SLACK_NS);
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
                *(if end < entry { free } else { bound }) += 1;
            }
        }
        seen.retain(|_, (free, bound)| *bound >= FEWEST && *bound >= BOUND_PER_FREE * *free);
        seen.into_keys().collect()
    }
}

/// Moves the beginning of operations to where the rank next waits.
fn move_posts(trace: &mut Trace, moved: &[bool]) {
    let acts = std::mem::take(&mut trace.acts);
    let mut kept: Vec<Act> = Vec::with_capacity(acts.len());
    let mut open: Vec<u32> = Vec::new();
    // CPU time of the computing before what is moved away; negative: unknown.
    let mut ran = 0;
    let with = |more: i64, ran: i64| if more < 0 || ran < 0 { -1 } else { more + ran };
    for mut act in acts {
        if act.kind == Kind::Post && moved[act.event as usize] {
            open.push(act.event);
            ran = with(ran, act.ran);
            continue;
        }
        act.ran = with(std::mem::take(&mut ran), act.ran);
        if matches!(act.kind, Kind::Wait | Kind::WaitSent) {
            for event in open.drain(..) {
                trace.events[event as usize].start = act.start;
                kept.push(Act { kind: Kind::Post, event, start: act.start, end: act.start, ran: act.ran });
                act.ran = 0;
            }
        }
        kept.push(act);
    }
    // Never waited for.
    kept.extend(open.into_iter().map(|event| Act { kind: Kind::Post, event, start: trace.ended, end: trace.ended, ran }));
    trace.acts = kept;
}
