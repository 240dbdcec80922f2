//! Which events of different ranks are of one operation: those with the same key.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::trace::{Key, Part, Trace};

/// One rank's part: rank and event.
pub type Member = (u32, u32);

/// The parts of all ranks in an operation: by rank, in a scan by place.
pub struct Group {
    pub members: Vec<Member>,
    pub is_message: bool,
    /// Number of the communicator, in the order in which the traces name them.
    pub comm: u32,
}

/// Groups the events of all ranks by their keys.
pub fn groups(traces: &[Trace]) -> Vec<Group> {
    let mut comms: BTreeMap<&Arc<str>, u32> = BTreeMap::new();
    for trace in traces {
        let mut last: Option<&Arc<str>> = None;
        for event in &trace.events {
            let (Key::Collective { comm, .. } | Key::Message { comm, .. }) = &event.key;
            if last.is_none_or(|last| !Arc::ptr_eq(last, comm)) {
                let next = comms.len() as u32;
                comms.entry(comm).or_insert(next);
                last = Some(comm);
            }
        }
    }
    let mut keyed = Vec::new();
    for (rank, trace) in (0u32..).zip(traces) {
        for (at, event) in (0u32..).zip(&trace.events) {
            let key = match &event.key {
                Key::Collective { comm, number } => (comms[comm], false, 0, 0, 0, *number),
                Key::Message { comm, from, to, tag, number } => (comms[comm], true, *from, *to, *tag, *number),
            };
            keyed.push((key, rank, at));
        }
    }
    keyed.sort_unstable();
    let mut groups: Vec<Group> = Vec::new();
    let mut last = None;
    for (key, rank, at) in keyed {
        if last == Some(key)
            && let Some(group) = groups.last_mut()
        {
            group.members.push((rank, at));
        } else {
            groups.push(Group { members: vec![(rank, at)], is_message: key.1, comm: key.0 });
            last = Some(key);
        }
    }
    let place = |&(rank, at): &(u32, u32)| match traces[rank as usize].events[at as usize].part {
        Part::Prefix(place) => place,
        _ => rank,
    };
    groups.iter_mut().filter(|group| !group.is_message).for_each(|group| group.members.sort_by_key(place));
    groups
}
