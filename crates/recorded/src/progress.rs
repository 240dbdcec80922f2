//! Operations that move only while a rank is in a call: many MPIs move a large message, or a nonblocking collective operation,
//! only while the rank that sends, or that receives, is in a call that waits.
//!
//! Such a rank arrives where it next waits, not where the operation began, unless what it takes from the other had come by its last
//! call before. Of which operations this is true is seen in the recording: of one kind and size, none was over before the last of
//! the ranks that it needs next waited, although others waited for it. Ranks that compute beside their operations (on an
//! accelerator) have another engine for them, and are left as they are; so are scans.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::clocks::Clocks;
use crate::groups::{Group, Member};
use crate::trace::{Act, Event, Kind, Part, Trace};

/// Fewest operations of a kind that must have waited before anything is concluded.
const FEWEST: u64 = 4;
/// For each operation that should have waited and did not, there must be as many that did.
const BOUND_PER_FREE: u64 = 20;
/// Slack beside that of the clocks when it is judged whether an operation was over before a rank waited, ns.
const SLACK_NS: i64 = 5_000;

/// What is alike: the name of a collective operation, none of a message, and what is sent.
type Sort = (Option<Arc<str>>, u64);

/// Whether any rank computes between the beginning of an operation and the call that waits for it.
pub fn overlaps(traces: &[Trace]) -> bool {
    let is_later = |event: &Event| event.since.saturating_sub(event.start) > SLACK_NS;
    traces.iter().any(|trace| !trace.beside && trace.events.iter().any(is_later))
}

/// Lets ranks arrive where they next wait, in operations that move only then. Returns whether any rank does.
pub fn arrive_where_they_wait(traces: &mut [Trace], groups: &[Group], clocks: &Clocks) -> bool {
    let of = Overlaps::new(traces, groups, clocks);
    let sent = of.explained(&BTreeSet::new());
    let received = of.bound(Side::Receivers, &sent);
    let bound = [(Side::Senders, of.bound(Side::Senders, &of.explained(&received))), (Side::Receivers, received)];
    // Ranks that do the same keep doing so: each has an action there, late or not.
    let none = || traces.iter().map(|trace| vec![false; trace.events.len()]).collect::<Vec<_>>();
    let (mut entered, mut late) = (none(), none());
    for group in groups {
        for (side, _) in bound.iter().filter(|(_, bound)| bound.contains(&of.sort(group))) {
            let Sides { waiting, needed } = of.sides(group, *side);
            let first = Latest::of(&waiting, |member| -of.end(member));
            let all_wait = waiting.iter().all(|&member| of.waits(member));
            for member in needed.into_iter().filter(|&member| of.waits(member)) {
                let until = |(_, one)| of.end(one) >= of.entry(member).saturating_sub(of.slack(one, member));
                entered[member.0 as usize][member.1 as usize] = true;
                late[member.0 as usize][member.1 as usize] = all_wait && first.but(member.0).is_some_and(until);
            }
        }
    }
    let any = late.iter().flatten().any(|&late| late);
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

/// The members of an operation that wait for others, and those that they need.
#[derive(Default)]
struct Sides {
    waiting: Vec<Member>,
    needed: Vec<Member>,
}

/// The two latest members: the second is the latest for the first itself.
struct Latest([Option<(i64, Member)>; 2]);

impl Latest {
    fn of(members: &[Member], time: impl Fn(Member) -> i64) -> Self {
        let mut latest = [None; 2];
        for &member in members {
            let one = Some((time(member), member));
            if one > latest[0] {
                latest = [one, latest[0]];
            } else if one > latest[1] {
                latest[1] = one;
            }
        }
        Self(latest)
    }

    /// Returns the latest of other ranks than one, with its time.
    fn but(&self, rank: u32) -> Option<(i64, Member)> {
        self.0.into_iter().flatten().find(|(_, member)| member.0 != rank)
    }
}

/// Rank and number of a call in which several operations end -> when all that it is known to wait for was there, ns.
type Explained = BTreeMap<(u32, u32), i64>;

struct Overlaps<'a> {
    traces: &'a [Trace],
    groups: &'a [Group],
    clocks: &'a Clocks,
    /// For each rank and event: when the rank next waited after its beginning, and when its last call before that began, on its
    /// own clock; and whether it ever waited for it.
    entered: Vec<Vec<i64>>,
    last: Vec<Vec<i64>>,
    waited: Vec<Vec<bool>>,
}

impl<'a> Overlaps<'a> {
    fn new(traces: &'a [Trace], groups: &'a [Group], clocks: &'a Clocks) -> Self {
        let starts = || traces.iter().map(|trace| trace.events.iter().map(|event| event.start).collect());
        let (mut entered, mut last): (Vec<Vec<i64>>, Vec<Vec<i64>>) = (starts().collect(), starts().collect());
        let mut waited: Vec<Vec<bool>> = traces.iter().map(|trace| vec![false; trace.events.len()]).collect();
        for (rank, trace) in traces.iter().enumerate() {
            let (mut open, mut posted) = (Vec::new(), 0);
            for act in &trace.acts {
                match act.kind {
                    Kind::Post => {
                        open.push(act.event as usize);
                        posted = act.start;
                    }
                    Kind::Wait | Kind::WaitSent => {
                        waited[rank][act.event as usize] = true;
                        for event in open.drain(..) {
                            (entered[rank][event], last[rank][event]) = (act.start, posted);
                        }
                    }
                    Kind::Enter | Kind::Step => {}
                }
            }
        }
        Self { traces, groups, clocks, entered, last, waited }
    }

    fn event(&self, (rank, at): Member) -> &'a Event {
        &self.traces[rank as usize].events[at as usize]
    }

    fn sort(&self, group: &Group) -> Sort {
        let events = || group.members.iter().map(|&member| self.event(member));
        // The size of a receive is that of its buffer.
        let size = events().find(|event| event.part != Part::Takes).map_or(0, |event| event.size);
        (events().next().filter(|_| !group.is_message).map(|event| Arc::clone(&event.name)), size)
    }

    fn sides(&self, group: &Group, side: Side) -> Sides {
        let of = |is: fn(Part) -> bool| group.members.iter().copied().filter(|&one| is(self.event(one).part)).collect();
        match side {
            _ if matches!(self.event(group.members[0]).part, Part::Prefix(_)) => Sides::default(),
            Side::Senders => Sides { waiting: of(|part| part != Part::Gives), needed: of(|part| part != Part::Takes) },
            Side::Receivers if group.is_message => {
                Sides { waiting: of(|part| part == Part::Gives), needed: of(|part| part == Part::Takes) }
            }
            Side::Receivers => Sides::default(),
        }
    }

    /// Whether a rank computes itself and waits for the operation at some time.
    fn waits(&self, (rank, at): Member) -> bool {
        !self.traces[rank as usize].beside && self.waited[rank as usize][at as usize]
    }

    fn began(&self, member: Member) -> i64 {
        self.clocks.common(member.0 as usize, self.event(member).start)
    }

    fn end(&self, member: Member) -> i64 {
        self.clocks.common(member.0 as usize, self.event(member).end)
    }

    /// Returns when a rank next waited after the beginning of an operation.
    fn entry(&self, (rank, at): Member) -> i64 {
        self.clocks.common(rank as usize, self.entered[rank as usize][at as usize])
    }

    /// Returns when its last call before that began.
    fn last_call(&self, (rank, at): Member) -> i64 {
        self.clocks.common(rank as usize, self.last[rank as usize][at as usize])
    }

    fn slack(&self, one: Member, other: Member) -> i64 {
        self.clocks.slack(one.0 as usize, other.0 as usize).saturating_add(SLACK_NS)
    }

    /// Returns by when calls in which several operations end had all that they are known to wait for: what was sent to them, and
    /// receivers in a call, of the sorts of messages that need them.
    fn explained(&self, received: &BTreeSet<Sort>) -> Explained {
        let mut explained = Explained::new();
        let mut learn = |Sides { waiting, needed }: Sides, time: &dyn Fn(Member) -> i64| {
            let latest = Latest::of(&needed, time);
            for member in waiting {
                if let Some((together, (time, _))) = self.event(member).together.zip(latest.but(member.0)) {
                    explained.entry((member.0, together)).and_modify(|last| *last = time.max(*last)).or_insert(time);
                }
            }
        };
        for group in self.groups {
            learn(self.sides(group, Side::Senders), &|member| self.began(member));
            if received.contains(&self.sort(group)) {
                learn(self.sides(group, Side::Receivers), &|member| self.entry(member));
            }
        }
        explained
    }

    /// Returns the sorts of operations of which none was over before the ranks on that side were in a call.
    fn bound(&self, side: Side, explained: &Explained) -> BTreeSet<Sort> {
        let mut seen: BTreeMap<Sort, (u64, u64)> = BTreeMap::new();
        for group in self.groups {
            let Sides { waiting, needed } = self.sides(group, side);
            let entries = Latest::of(&needed, |member| self.entry(member));
            let begins = Latest::of(&needed, |member| self.began(member));
            for member in waiting.into_iter().filter(|&member| self.waits(member)) {
                let Some(((entry, last), (begun, _))) = entries.but(member.0).zip(begins.but(member.0)) else {
                    continue;
                };
                let event = self.event(member);
                let slack = self.slack(member, last);
                let entry = entry.saturating_sub(slack);
                // It waited, and for nothing else.
                let since = self.clocks.common(member.0 as usize, event.since);
                let rest = event.together.and_then(|together| explained.get(&(member.0, together)).copied());
                let before = begun.max(self.began(member)).max(since).max(rest.unwrap_or(i64::MIN));
                if before.saturating_add(slack) >= entry {
                    continue;
                }
                let (free, bound) = seen.entry(self.sort(group)).or_default();
                if self.end(member) >= entry {
                    *bound += 1;
                } else {
                    // What had come by the last call of the other was over then.
                    *free += u64::from(self.began(member) > self.last_call(last).saturating_add(slack));
                }
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
