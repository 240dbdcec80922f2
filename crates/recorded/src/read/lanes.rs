//! Where a rank waits for a collective: a profile says when one was issued and when it was over, not where it is waited for.
//!
//! A collective is waited for at a place of a step if, on most ranks and at most steps, the thread is silent until the
//! collective is over and then continues at once. DDP waits for all of a step's collectives before it copies the gradients.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::profile::Profile;
use crate::trace::{Event, Key, Kind, Part, Trace};

/// A collective counts as issued before a silence that begins this long before it, or a tenth of the silence: the thread
/// that performs it wakes up first.
const ISSUE_NS: i64 = 50_000;
/// Shortest silence that is looked at, ns, and how soon after the end of the collective it must end.
const SILENCE_NS: i64 = 300_000;
const PROMPT_NS: i64 = 1_000_000;
/// Operators closer than this run without a pause.
const JOINED_NS: i64 = 20_000;
/// A verdict is refused where point-to-point kernels take more than one part in this many of the run.
const UNMATCHED: i64 = 50;
/// How late the end of a collective may be stamped, ns.
const STAMPED_NS: i64 = 200_000;

struct Step {
    begin: i64,
    end: i64,
    /// Issue, end and event of each collective.
    marks: Vec<(i64, i64, u32)>,
    /// Sorted times at which operators begin or end.
    edges: Vec<i64>,
    /// DDP has copied gradients in it.
    copies: bool,
    /// Silences before it copies the last gradients. After all collectives have been issued, it waits for them in these.
    waits: Vec<(i64, i64)>,
}

struct Lane {
    trace: Trace,
    joined: Vec<(i64, i64)>,
    steps: Vec<Step>,
}

/// Makes traces of the profiles of all ranks.
#[must_use]
pub fn traces(profiles: Vec<Profile>) -> Vec<Trace> {
    let mut lanes: Vec<Lane> = profiles.into_iter().map(lane).collect();
    let waited = waited(&lanes);
    for lane in &mut lanes {
        follow(lane, &waited);
    }
    lanes.into_iter().map(|lane| lane.trace).collect()
}

fn between(times: &[i64], begin: i64, end: i64) -> &[i64] {
    let low = times.partition_point(|&time| time < begin);
    let high = times.partition_point(|&time| time <= end);
    &times[low..high.max(low)]
}

fn lane(profile: Profile) -> Lane {
    let mut trace =
        Trace { source: profile.source, rank: profile.rank, world: profile.world, beside: true, ..Trace::default() };
    let mut steps = profile.steps;
    let busy = profile.busy;
    if steps.is_empty() {
        let end = busy.iter().map(|&(_, end)| end).max().unwrap_or_default();
        let begin = busy.first().map_or(end, |&(begin, _)| begin);
        steps.push((begin, end));
        trace
            .notes
            .push("no ProfilerStep: the whole trace is one step; record with a schedule and call prof.step()".into());
    }
    if profile.on_gpu {
        trace.notes.push("times are those of the GPU's streams".into());
    }
    trace.began = steps[0].0;
    trace.ended = steps.last().map_or(trace.began, |step| step.1);
    if profile.unmatched.saturating_mul(UNMATCHED) > trace.ended - trace.began {
        let seconds = profile.unmatched as f64 * 1e-9;
        trace.refusals.push(format!(
            "point-to-point kernels ran for {seconds:.3} s and are not matched: the waits in them are not seen"
        ));
    }
    let mut edges: Vec<i64> = busy.iter().flat_map(|&(begin, end)| [begin, end]).collect();
    edges.sort_unstable();
    edges.dedup();
    let mut joined: Vec<(i64, i64)> = Vec::new();
    for (begin, end) in busy {
        match joined.last_mut() {
            Some(last) if begin <= last.1 + JOINED_NS => last.1 = last.1.max(end),
            _ => joined.push((begin, end)),
        }
    }
    let mut numbers: BTreeMap<Arc<str>, u32> = BTreeMap::new();
    let mut at = 0;
    let mut made = Vec::with_capacity(steps.len());
    for (begin, end) in steps {
        while profile.collectives.get(at).is_some_and(|one| one.start < begin) {
            at += 1;
        }
        let mut marks = Vec::new();
        while let Some(one) = profile.collectives.get(at).filter(|one| one.start < end) {
            let number = numbers.entry(Arc::clone(&one.group)).or_default();
            let key = Key::Collective { comm: Arc::clone(&one.group), number: *number };
            *number += 1;
            marks.push((one.start, one.end, trace.events.len() as u32));
            let (name, size, start, end) = (Arc::clone(&one.name), one.size, one.start, one.end);
            trace.events.push(Event { key, part: Part::All, name, size, start, since: start, end, together: None });
            at += 1;
        }
        let copies = between(&profile.after_waits, begin, end);
        let edges = between(&edges, begin, end).to_vec();
        let waits = silences_before(&edges, copies.last());
        made.push(Step { begin, end, marks, edges, copies: !copies.is_empty(), waits });
    }
    Lane { trace, joined, steps: made }
}

/// Returns the collectives of a step that are waited for, by their place in it, each with how many have been issued
/// before.
fn waited(lanes: &[Lane]) -> BTreeMap<usize, usize> {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    let steps = || lanes.iter().flat_map(|lane| &lane.steps);
    steps().for_each(|step| *counts.entry(step.marks.len()).or_default() += 1);
    let Some((&usual, _)) = counts.iter().max_by_key(|&(_, &count)| count) else { return BTreeMap::new() };
    if 2 * steps().filter(|step| step.copies).count() > steps().count() {
        return (0..usual).map(|index| (index, usual)).collect();
    }
    let mut waited = BTreeMap::new();
    for index in 0..usual {
        let (mut prompt, mut seen, mut total) = (0, 0, 0);
        let mut before: BTreeMap<usize, usize> = BTreeMap::new();
        for step in steps().filter(|step| step.marks.len() == usual) {
            total += 1;
            let (issue, done, _) = step.marks[index];
            let (low, high) = silence(step, done);
            let from = low + ISSUE_NS.max((high - low) / 10);
            if issue > from || high - low <= SILENCE_NS {
                continue;
            }
            seen += 1;
            if high - done < PROMPT_NS.max((high - low) / 10) {
                prompt += 1;
                let issued = step.marks.iter().filter(|mark| mark.0 <= from).count();
                *before.entry(issued).or_default() += 1;
            }
        }
        // Waited for where silence is frequent (3 of 10) and mostly ends with the collective (6 of 10).
        if 10 * seen >= 3 * total
            && 10 * prompt >= 6 * seen
            && let Some((&many, _)) = before.iter().max_by_key(|&(_, &count)| count)
        {
            waited.insert(index, many);
        }
    }
    waited
}

/// Returns the long silences before a time.
fn silences_before(edges: &[i64], time: Option<&i64>) -> Vec<(i64, i64)> {
    let ends = edges.partition_point(|edge| time.is_some_and(|time| edge <= time));
    edges[..ends].windows(2).map(|pair| (pair[0], pair[1])).filter(|(low, high)| high - low > SILENCE_NS).collect()
}

/// Returns the interval around the end of a collective in which nothing begins or ends on the thread. The thread may
/// continue a little before that end is stamped in another thread.
fn silence(step: &Step, done: i64) -> (i64, i64) {
    let at = step.edges.partition_point(|&edge| edge <= done);
    let edge = |at: usize| if at > 0 { step.edges[at - 1] } else { step.begin };
    let mut before = (1..=at).rev().map(|at| (edge(at - 1), edge(at))).take_while(|gap| done - gap.1 < STAMPED_NS);
    let around = || (edge(at), step.edges.get(at).copied().unwrap_or(step.end));
    before.find(|(low, high)| high - low > SILENCE_NS).unwrap_or_else(around)
}

/// Returns how much of an interval the joined operators cover, ns.
fn covered(joined: &[(i64, i64)], low: i64, high: i64) -> i64 {
    let from = joined.partition_point(|&(_, end)| end <= low);
    joined[from..]
        .iter()
        .take_while(|&&(begin, _)| begin < high)
        .map(|&(begin, end)| end.min(high) - begin.max(low))
        .sum()
}

/// Appends the actions of a rank, step by step.
fn follow(lane: &mut Lane, waited: &BTreeMap<usize, usize>) {
    for step in &lane.steps {
        let mut acts: Vec<(i64, usize, Kind, u32, i64)> =
            step.marks.iter().map(|&(issue, _, event)| (issue, 0, Kind::Post, event, issue)).collect();
        for (&index, &many) in waited {
            let Some(&(_, done, event)) = step.marks.get(index) else { continue };
            let issued = &step.marks[..many.max(index + 1).min(step.marks.len())];
            let last = issued.iter().map(|mark| mark.0).max().unwrap_or(step.begin);
            let waits = &step.waits[..step.waits.partition_point(|wait| wait.0 <= done - STAMPED_NS)];
            let wait = waits.iter().filter(|wait| wait.1 > last).min_by_key(|wait| (wait.1 - done).abs());
            let (low, high) = wait.copied().unwrap_or_else(|| silence(step, done.max(last)));
            let low = low.max(last);
            // The thread may have continued before the end was stamped.
            acts.push((low, 1 + many, Kind::Wait, event, done.min(high).max(low)));
        }
        acts.sort_by_key(|&(time, order, _, event, _)| (time, order, event));
        let mut now = step.begin;
        for (time, _, kind, event, end) in acts {
            let time = time.max(now);
            let ran = covered(&lane.joined, now, time);
            lane.trace.push(kind, event, time, end, ran);
            now = time.max(end);
        }
        let end = step.end.max(now);
        let ran = covered(&lane.joined, now, end);
        lane.trace.push(Kind::Step, 0, end, end, ran);
    }
    // A collective that ends after the last step is none that could be waited for.
    lane.trace.ended = lane.trace.acts.last().map_or(lane.trace.began, |act| act.end);
}

#[cfg(test)]
mod tests {
    use super::super::profile::Collective;
    use super::*;

    const MS: i64 = 1_000_000;

    /// Returns the profile of a rank of DDP, step by step: `input` ms of computing, then the first bucket, 40 ms, then the
    /// second; all ranks have arrived at `ready` ms. The thread pauses now and then
    /// before it copies gradients. `stamped`: by how much too late the ends of the collectives are noted.
    fn of_ddp(rank: u32, input: i64, ready: i64, stamped: impl Fn(i64) -> i64) -> Profile {
        let mut profile = Profile { rank: Some(rank), world: Some(3), ..Profile::default() };
        for step in 0..20 {
            let begin = step * (ready + 42) * MS;
            let at = |ms: i64| begin + ms * MS;
            let (first, second) = (at(input), at(input + 40));
            let over = [at(ready + 1), at(ready + 41)];
            let mut busy = |from: i64, length: i64| profile.busy.push((from, from + length));
            busy(begin, MS / 10);
            busy(first - MS / 10, MS / 10);
            busy(second - MS / 10, MS / 10 - MS / 20);
            let pause = if step % 7 == 3 { MS / 2 } else { 0 };
            for (over, after) in over.iter().zip([second + pause, over[0].max(second) + MS]) {
                // Views are made before gradients are copied.
                let from = (*over).max(after);
                busy(from, MS / 20);
                busy(from + MS / 20, MS / 20);
                profile.after_waits.push(from + MS / 20);
            }
            let end = over[1] + MS;
            for (start, over) in [(first, over[0]), (second, over[1])] {
                let end = over + stamped(step);
                let (name, group) = ("all_reduce".into(), "world".into());
                profile.collectives.push(Collective { start, end, name, group, size: 1 });
            }
            busy(end - MS / 2, MS / 4);
            profile.steps.push((begin, end));
        }
        profile.busy.sort_unstable();
        profile
    }

    /// The ends of collectives are stamped by threads of their own, which may be late by any time.
    #[test]
    fn waits_are_found_whenever_the_ends_of_collectives_are_stamped() {
        for late in [30, 60] {
            let stamps: [fn(i64) -> i64; 3] = [|_| 0, |step| step % 4 * MS / 5, |step| step % 5 * 3 * MS / 2];
            for stamped in stamps {
                let rank = |rank, input| of_ddp(rank, input, 90 + late, stamped);
                let found = traces(vec![rank(0, 90), rank(1, 90 + late), rank(2, 90)]);
                let verdict = crate::judge(found);
                let [culprit] = &verdict.culprits[..] else { panic!("{late} ms: {verdict:?}") };
                assert_eq!((&culprit.ranks[..], culprit.steps), (&[1][..], 20), "{late} ms: {verdict:?}");
                let whole = 0.020 * late as f64;
                assert!((culprit.seconds - whole).abs() < 0.02 * whole, "{late} ms: {} s", culprit.seconds);
            }
        }
    }
}
