//! A recording that can be run again: undisturbed, on disturbed processors, or on another network.

use std::sync::OnceLock;

use crosswind_program::Goal;

use crate::graph::{Do, Memory};
use crate::judge::REPLAYED;
use crate::matching::{Matched, Mismatch, matched};
use crate::program::program;
use crate::trace::{Key, Part, Trace};

/// Ranks that fit together, and whose replay takes as long as the run did.
pub struct Recording {
    traces: Vec<Trace>,
    matched: Matched,
    replayed: i64,
    on_network: OnceLock<Result<Goal, String>>,
}

impl Recording {
    /// Puts the traces of all ranks together.
    ///
    /// # Errors
    /// Why the program cannot be run again.
    pub fn new(mut traces: Vec<Trace>) -> Result<Self, String> {
        traces.sort_by_key(Trace::number);
        let world = traces.iter().filter_map(|trace| trace.world).max().unwrap_or(0);
        let last = traces.last().map_or(0, |trace| trace.number() + 1);
        if last == 0 {
            return Err("there are no ranks".into());
        }
        let missing: Vec<String> = (0..world.max(last))
            .filter(|rank| traces.binary_search_by_key(rank, Trace::number).is_err())
            .map(|rank| rank.to_string())
            .collect();
        if let [first, ..] = &missing[..] {
            let more = if missing.len() > 1 { format!(" and {} more", missing.len() - 1) } else { String::new() };
            return Err(format!("the trace of rank {first}{more} is missing, and other ranks wait for it"));
        }
        if let Some(refusal) = traces.iter().flat_map(|trace| &trace.refusals).next() {
            return Err(refusal.clone());
        }
        if let Some(trace) = traces.iter().find(|trace| trace.scheduled) {
            return Err(format!(
                "{} is a schedule, which was never recorded; name it in an experiment.toml of kind program",
                trace.source
            ));
        }
        let matched = matched(&mut traces).map_err(|(Mismatch::Events(reason) | Mismatch::Unlike(reason))| reason)?;
        let replayed = matched.graph.replay(|_| &matched.own, &matched.took, &mut Memory::default());
        let (run, again) = (matched.recorded as f64 * 1e-9, replayed as f64 * 1e-9);
        if run <= 0.0 {
            return Err("the recording holds no time".into());
        }
        if (again / run - 1.0).abs() > REPLAYED {
            return Err(format!(
                "the replay takes {again:.3} s, the run took {run:.3} s: waits or events are not seen"
            ));
        }
        Ok(Self { traces, matched, replayed, on_network: OnceLock::new() })
    }

    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.traces.len() as u32
    }

    /// Returns how long the run took when it was recorded, ns.
    #[must_use]
    pub fn recorded_ns(&self) -> u64 {
        self.matched.recorded.max(0) as u64
    }

    /// Returns how long the undisturbed replay takes, ns.
    #[must_use]
    pub fn replayed_ns(&self) -> u64 {
        self.replayed.max(0) as u64
    }

    /// Returns for how long each rank could run and did not when it was recorded, ns.
    #[must_use]
    pub fn away_ns(&self) -> Vec<u64> {
        let length = |one: &crate::trace::Away| one.end.saturating_sub(one.start).max(0) as u64;
        self.traces.iter().map(|trace| trace.away.iter().map(length).sum()).collect()
    }

    /// Returns for how long each rank computes, ns.
    #[must_use]
    pub fn busy_ns(&self) -> Vec<u64> {
        let own = &self.matched.own;
        let of = |cells: &std::ops::Range<usize>| {
            own.computing[cells.clone()].iter().chain(&own.tail[cells.clone()]).map(|&ns| ns.max(0) as u64).sum()
        };
        self.matched.cells.iter().map(of).collect()
    }

    /// Returns how often all ranks wait for each other.
    #[must_use]
    pub fn meetings_of_all(&self) -> u64 {
        let mut counts = vec![(0u32, 0u32); self.matched.graph.meetings as usize];
        for node in &self.matched.graph.nodes {
            match node.does {
                Do::Arrive(meeting) => counts[meeting as usize].0 += 1,
                Do::Wait(meeting) => counts[meeting as usize].1 += 1,
                Do::Step(_) | Do::Nothing => {}
            }
        }
        let ranks = self.ranks();
        counts.iter().filter(|&&count| ranks > 1 && count == (ranks, ranks)).count() as u64
    }

    /// Returns the number of messages that the ranks sent to each other.
    #[must_use]
    pub fn messages(&self) -> u64 {
        let sent = |trace: &Trace| {
            let is_sent =
                |event: &&crate::trace::Event| event.part == Part::Gives && matches!(event.key, Key::Message { .. });
            trace.events.iter().filter(is_sent).count() as u64
        };
        self.traces.iter().map(sent).sum()
    }

    /// Returns when the program ends, ns, with transfers that take as long as recorded. `work`: as of
    /// [`crate::graph::Graph::replay_on`].
    pub fn replay_on(&self, work: &mut impl FnMut(u32, i64, i64) -> i64) -> i64 {
        let matched = &self.matched;
        matched.graph.replay_on(|_| &matched.own, &matched.took, &mut Memory::default(), work)
    }

    /// Returns the program for a simulated network.
    ///
    /// # Errors
    /// The sizes of its messages are not known, or are too large.
    pub fn on_network(&self) -> Result<&Goal, String> {
        let goal = self.on_network.get_or_init(|| {
            if let Some(trace) = self.traces.iter().find(|trace| !trace.sized && !trace.events.is_empty()) {
                return Err(format!("{}: the bytes of its messages are not recorded", trace.source));
            }
            program(&self.traces, &self.matched)
        });
        goal.as_ref().map_err(Clone::clone)
    }
}
