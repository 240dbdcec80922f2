//! Steps of ranks: marked ones, or repetitions of what a program does; and which ranks do the same in a step.

use std::ops::Range;

use crate::trace::{Act, Kind, Trace};

/// A step of a rank.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its actions, as cells of the graph.
    pub cells: Range<usize>,
    /// Equal where ranks do the same.
    pub does: u64,
}

/// Most actions of a repetition, and fewest repetitions, where steps are not marked.
const LONGEST: usize = 4096;
pub const FEWEST: usize = 4;

fn mixed(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(23)
}

fn word(trace: &Trace, act: &Act) -> u64 {
    if act.kind == Kind::Step {
        return 1;
    }
    let event = &trace.events[act.event as usize];
    mixed(crate::read::fingerprint(event.name.as_bytes()), (act.kind as u64) << 8 | event.part.code())
}

/// Marks the steps of traces that have none: repetitions of the same actions.
pub fn mark(traces: &mut [Trace]) {
    if traces.iter().any(|trace| trace.acts.iter().filter(|act| act.kind == Kind::Step).count() > 1) {
        return;
    }
    let found: Vec<Option<(usize, usize)>> = traces.iter().map(period).collect();
    let mut counts: Vec<usize> = Vec::new();
    for (trace, found) in traces.iter().zip(&found) {
        match found {
            Some((first, length)) => counts.push((trace.acts.len() - first) / length),
            None => return,
        }
    }
    // All ranks must repeat alike: as often, but for one at the ends.
    let (least, most) = (counts.iter().min(), counts.iter().max());
    if least.zip(most).is_none_or(|(least, most)| most - least > 1) {
        return;
    }
    for (trace, found) in traces.iter_mut().zip(found) {
        let Some((first, length)) = found else { return };
        let acts = std::mem::take(&mut trace.acts);
        let mut marked = Vec::with_capacity(acts.len() + acts.len() / length + 1);
        let mut since = 0;
        for (at, act) in acts.into_iter().enumerate() {
            if act.kind == Kind::Step {
                continue;
            }
            if at > first && (at - first) % length == 0 {
                let end = marked.last().map_or(trace.began, |act: &Act| act.end);
                marked.push(Act { kind: Kind::Step, event: 0, start: end, end, ran: 0 });
                since = 0;
            }
            since += 1;
            marked.push(act);
        }
        if since > 0 {
            marked.push(Act { kind: Kind::Step, event: 0, start: trace.ended, end: trace.ended, ran: -1 });
        }
        trace.acts = marked;
        trace.notes.push(REPEATED.into());
    }
}

/// Note of a trace whose steps were found.
pub const REPEATED: &str = "no steps are marked: repetitions of the same calls are taken as steps";

/// Returns where repetition begins and its length in actions.
fn period(trace: &Trace) -> Option<(usize, usize)> {
    let words: Vec<u64> = trace.acts.iter().filter(|act| act.kind != Kind::Step).map(|act| word(trace, act)).collect();
    let count = words.len();
    let alike = |length: usize| {
        let (mut same, mut last) = (0, 0);
        for at in 0..count - length {
            if words[at] == words[at + length] {
                same += 1;
            } else if at < count / 4 {
                last = at + 1;
            }
        }
        (same, last)
    };
    (1..=LONGEST.min(count / FEWEST.max(1))).find_map(|length| {
        let (same, first) = alike(length);
        // 95 % of the actions repeat; the rest are those before the loop and behind it.
        (100 * same >= 95 * (count - length) && (count - first) / length >= FEWEST).then_some((first, length))
    })
}

/// Cuts the actions of all ranks into steps.
#[must_use]
pub fn steps(traces: &[Trace], cells: &[Range<usize>]) -> Vec<Vec<Step>> {
    let of = |(trace, cells): (&Trace, &Range<usize>)| {
        let mut found = Vec::new();
        let (mut first, mut does) = (cells.start, 0xcbf2_9ce4_8422_2325);
        for (cell, act) in (cells.start..).zip(&trace.acts) {
            does = mixed(does, word(trace, act));
            if act.kind == Kind::Step {
                found.push(Step { cells: first..cell + 1, does });
                (first, does) = (cell + 1, 0xcbf2_9ce4_8422_2325);
            }
        }
        if first < cells.end {
            found.push(Step { cells: first..cells.end, does });
        }
        found
    };
    traces.iter().zip(cells).map(of).collect()
}
