//! Whether several ranks were kept from running alike: then the host was busy, and no rank is to blame for it.

use std::collections::BTreeMap;

use crate::trace::{Away, By, Trace};

/// A rank was kept from running where that took this share of its run.
const SHARE: f64 = 0.02;

/// Returns what to say of a host whose other processes, or whose ranks themselves, took the processors of several ranks.
pub fn notes(traces: &[Trace]) -> Vec<String> {
    let others = kept(traces, |away| away.by == By::Other && away.cause.starts_with("preempted"));
    let each_other = kept(traces, |away| away.by == By::Rank);
    let mut notes = Vec::new();
    if let Some(Kept { ranks, seconds, most, most_s }) = others {
        notes.push(format!(
            "the host was busy: other processes had the processors of {ranks} of {} ranks for {seconds:.3} s, most \
             {most_s:.3} s {most}",
            traces.len()
        ));
    }
    if let Some(Kept { ranks, seconds, .. }) = each_other {
        notes.push(format!(
            "ranks shared processors: {ranks} of {} could not run for {seconds:.3} s because another rank did",
            traces.len()
        ));
    }
    let recorder = traces.iter().map(|trace| (share(trace, |away| away.by == By::Recorder), trace.number()));
    if let Some(((ns, of_run), rank)) = recorder.max_by_key(|one| one.0.0)
        && of_run >= SHARE
    {
        notes.push(format!(
            "the recording took part: it had the processor of rank {rank} for {:.3} s, {:.0} % of the run; with a processor \
             that no rank uses it would not",
            ns as f64 * 1e-9,
            100.0 * of_run
        ));
    }
    notes
}

/// Yields a rank's absences of a kind with their lengths, ns. Of several threads that are away at a time, one counts.
fn lengths(trace: &Trace, of_kind: impl Fn(&Away) -> bool) -> impl Iterator<Item = (&Away, i64)> {
    let mut over = i64::MIN;
    trace.away.iter().filter(move |away| of_kind(away)).map(move |away| {
        let length = away.end.saturating_sub(away.start.max(over)).max(0);
        over = over.max(away.end);
        (away, length)
    })
}

/// Returns how long a rank was away for reasons of a kind, ns, and which share of its run.
fn share(trace: &Trace, of_kind: impl Fn(&Away) -> bool) -> (i64, f64) {
    let sum = lengths(trace, of_kind).fold(0, |sum: i64, (_, length)| sum.saturating_add(length));
    (sum, sum as f64 / trace.ended.saturating_sub(trace.began).max(1) as f64)
}

struct Kept {
    ranks: usize,
    seconds: f64,
    most: String,
    most_s: f64,
}

/// Sums up absences of a kind; `None` where fewer than two ranks, or than half of them, had many.
fn kept(traces: &[Trace], of_kind: impl Fn(&Away) -> bool) -> Option<Kept> {
    let (mut ranks, mut total) = (0, 0);
    let mut causes: BTreeMap<&str, i64> = BTreeMap::new();
    for trace in traces {
        for (away, length) in lengths(trace, &of_kind) {
            let of = causes.entry(&away.cause).or_default();
            *of = of.saturating_add(length);
        }
        let (sum, of_run) = share(trace, &of_kind);
        if of_run >= SHARE {
            ranks += 1;
            total = i64::saturating_add(total, sum);
        }
    }
    let (most, most_ns) = causes.into_iter().max_by_key(|one| one.1)?;
    let seconds = |ns: i64| ns as f64 * 1e-9;
    (ranks >= 2 && 2 * ranks >= traces.len()).then(|| Kept {
        ranks,
        seconds: seconds(total),
        most: most.into(),
        most_s: seconds(most_ns),
    })
}
