//! Burners and a ping on simulated processors: the request, and the resulting matrix.
//!
//! A *burner* only computes; a *ping* only communicates: its two ends send a message back and forth
//! (quadrics-overlap, F3-1, F3-2). Each cell of the matrix is one such pair, with the ping's way of waiting, the
//! burners' nice level, and the number and size of messages. Live, `crosswind overlap` measures the same matrix.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{DescriptionError, Problem};
use crate::overlap::Scheduler;
use crate::random::Random;
use crate::read;
use crate::units::{MegabytesPerSecond, PositiveSeconds, Quantity, Seconds};

/// How a simulated ping waits for a message: as a real one ([`crate::overlap::Waiting`]), or buffered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// Yields its processor until an event wakes it.
    Event,
    /// Polls, and keeps its processor busy.
    Poll,
    /// Polls for `spin_s`, and then yields its processor.
    SpinBlock,
    /// Yields its processor; messages are buffered and moved in slices that all nodes agree on (buffered
    /// coscheduling).
    Buffered,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestedCell {
    /// The ping's way of waiting.
    pub wait: Wait,
    /// Nice level of the burners, -20 to 19. The ping has 0.
    pub burn_nice: i8,
    /// Number of timed round trips.
    pub messages: u64,
    pub message_bytes: u64,
}

/// The network between the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PingNetwork {
    /// Rate at which a message's bytes arrive, MB/s.
    pub mb_per_s: MegabytesPerSecond,
    /// Time from sending to arrival, without the time of the message's bytes.
    pub latency_s: Seconds,
    /// Processor time that each end spends on a message.
    pub message_cpu_s: Seconds,
    /// Processor time that each end spends on a MB, for copies.
    pub cpu_s_per_mb: Seconds,
}

impl Default for PingNetwork {
    fn default() -> Self {
        Self {
            mb_per_s: MegabytesPerSecond::fixed(1000.0),
            latency_s: Seconds::fixed(20e-6),
            message_cpu_s: Seconds::fixed(10e-6),
            cpu_s_per_mb: Seconds::fixed(0.0),
        }
    }
}

/// Overheads of the machine and of the ping.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OverlapCosts {
    /// Time of a context switch.
    pub switch_s: Seconds,
    /// Processor time to wake a process that waits for an event: interrupt and kernel.
    pub wake_s: Seconds,
    /// Time that a spin-block polls, s; default: the cost of blocking, `wake_s + 2 switch_s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spin_s: Option<Seconds>,
    /// Time for which a wait for an event keeps its processor before it yields it, if only processes with a higher
    /// nice level (worse priority) want it.
    pub linger_s: Seconds,
    /// Steps of the ping's start; each computes and waits a share of `start_cpu_s` and `start_wait_s`.
    pub start_steps: u32,
    /// Processor time of the start.
    pub start_cpu_s: Seconds,
    /// Waiting time of the start.
    pub start_wait_s: Seconds,
    /// Steps of preparing a MB of the buffer (10^6 bytes).
    pub prepare_steps_per_mb: f64,
    /// Processor time for a MB of the buffer.
    pub prepare_cpu_s_per_mb: Seconds,
    /// Waiting time for a MB of the buffer.
    pub prepare_wait_s_per_mb: Seconds,
    /// Length of a slice of buffered coscheduling.
    pub slice_s: PositiveSeconds,
    /// Processor time of the exchange of a slice on each node.
    pub exchange_s: Seconds,
}

impl Default for OverlapCosts {
    fn default() -> Self {
        let nothing = Seconds::fixed(0.0);
        Self {
            switch_s: Seconds::fixed(2e-6),
            wake_s: Seconds::fixed(5e-6),
            spin_s: None,
            linger_s: nothing,
            start_steps: 0,
            start_cpu_s: nothing,
            start_wait_s: nothing,
            prepare_steps_per_mb: 0.0,
            prepare_cpu_s_per_mb: nothing,
            prepare_wait_s_per_mb: nothing,
            slice_s: PositiveSeconds::fixed(500e-6),
            exchange_s: Seconds::fixed(20e-6),
        }
    }
}

impl OverlapCosts {
    /// Returns the time that a spin-block polls, s. The default is the cost of blocking, so that a wait never costs
    /// more than twice the better choice for a wait of known length.
    #[must_use]
    pub fn spin_s(&self) -> f64 {
        self.spin_s.map_or(self.wake_s.get() + 2.0 * self.switch_s.get(), Quantity::get)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimulatedOverlap {
    #[serde(default = "fair")]
    pub scheduler: Scheduler,
    /// Number of processors of each node.
    pub cpus: u32,
    /// Number of burners on each node.
    pub burners: u32,
    /// Processor time of a burner.
    pub burn_s: PositiveSeconds,
    /// Number of nodes: 2, or 1 for both ends.
    #[serde(default = "two")]
    pub nodes: u32,
    pub cells: Vec<RequestedCell>,
    /// The network between the ends.
    #[serde(default)]
    pub network: PingNetwork,
    /// Times that the machine adds to each step.
    #[serde(default)]
    pub costs: OverlapCosts,
    /// Time within which all burners and the ping start, s.
    #[serde(default)]
    pub start_spread_s: Seconds,
    /// Seed of the random start times.
    #[serde(default)]
    pub seed: u64,
    /// Runs of each cell, whose mean is reported.
    #[serde(default = "one")]
    pub repetitions: u32,
}

const fn fair() -> Scheduler {
    Scheduler::Fair
}

const fn one() -> u32 {
    1
}

const fn two() -> u32 {
    2
}

const MOST: u32 = 1024;
const MOST_MESSAGES: u64 = 100_000_000;
const LONGEST_S: f64 = 1e7;

impl SimulatedOverlap {
    /// Parses and checks it from JSON.
    ///
    /// # Errors
    /// When a field is unknown, missing or out of its range.
    pub fn from_json(bytes: &[u8], file: &str) -> Result<Self, DescriptionError> {
        read::json_checked(bytes, file, Self::check)
    }

    fn check(&self) -> Result<(), DescriptionError> {
        let within = |field: &str, value: u64, least: u64, most: u64| {
            if (least..=most).contains(&value) {
                return Ok(());
            }
            Err(Problem::Value(format!("is {value}; it must be {least} to {most}")).at(field.into()))
        };
        within("cpus", self.cpus.into(), 1, MOST.into())?;
        within("burners", self.burners.into(), 0, MOST.into())?;
        within("nodes", self.nodes.into(), 1, 2)?;
        within("repetitions", self.repetitions.into(), 1, MOST.into())?;
        within("costs.start_steps", self.costs.start_steps.into(), 0, 10_000_000)?;
        if !(0.0..=1e6).contains(&self.costs.prepare_steps_per_mb) {
            let text = format!("is {}; it must be 0 to 1000000", self.costs.prepare_steps_per_mb);
            return Err(Problem::Value(text).at("costs.prepare_steps_per_mb".into()));
        }
        for (field, seconds) in [
            ("burn_s", self.burn_s.get()),
            ("start_spread_s", self.start_spread_s.get()),
            ("network.latency_s", self.network.latency_s.get()),
            ("network.message_cpu_s", self.network.message_cpu_s.get()),
            ("network.cpu_s_per_mb", self.network.cpu_s_per_mb.get()),
            ("costs.start_cpu_s", self.costs.start_cpu_s.get()),
            ("costs.start_wait_s", self.costs.start_wait_s.get()),
        ] {
            if seconds > LONGEST_S {
                return Err(
                    Problem::Value(format!("is {seconds} s; it must be at most {LONGEST_S} s")).at(field.into())
                );
            }
        }
        if self.costs.slice_s.get() < 1e-6 {
            let text = format!("is {} s; it must be at least 1e-6 s", self.costs.slice_s.get());
            return Err(Problem::Value(text).at("costs.slice_s".into()));
        }
        if self.costs.exchange_s.get() >= self.costs.slice_s.get() {
            let text = format!("is {} s; it must be below costs.slice_s", self.costs.exchange_s.get());
            return Err(Problem::Value(text).at("costs.exchange_s".into()));
        }
        for (at, cell) in self.cells.iter().enumerate() {
            within(&format!("cells[{at}].messages"), cell.messages, 1, MOST_MESSAGES)?;
            within(&format!("cells[{at}].message_bytes"), cell.message_bytes, 1, 1 << 50)?;
            if !(-20..=19).contains(&cell.burn_nice) {
                let text = format!("is {}; it must be -20 to 19", cell.burn_nice);
                return Err(Problem::Value(text).at(format!("cells[{at}].burn_nice")));
            }
        }
        Ok(())
    }

    /// Returns the start of each of `processes` processes in run `turn`, ns.
    #[must_use]
    pub fn starts(&self, turn: u32, processes: usize) -> Vec<u64> {
        let spread = (self.start_spread_s.get() * 1e9) as u64;
        let mut random = Random::named(self.seed, "start", turn.into());
        (0..processes).map(|_| random.below(spread)).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverlapTimes {
    /// The ping's way of waiting.
    pub wait: Wait,
    /// Nice level of the burners.
    pub burn_nice: i8,
    /// Number of timed round trips.
    pub messages: u64,
    pub message_bytes: u64,
    /// Time of the ping without burners, s.
    pub ping_alone_s: f64,
    /// Time of the burners without a ping, until the last of them ends, s.
    pub burn_alone_s: f64,
    /// Time of the ping beside burners, s; mean of the runs.
    pub ping_s: f64,
    /// Time of the burners beside the ping, s; mean of the runs.
    pub burn_s: f64,
    /// Processor time of both ends of the ping alone, including polling, s.
    pub ping_cpu_s: f64,
    /// The same beside burners; mean of the runs, s.
    pub ping_cpu_beside_s: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverlapMatrix {
    /// Where it was measured: sim.
    pub on: String,
    pub scheduler: Scheduler,
    /// Number of processors of each node.
    pub cpus: u32,
    /// Number of burners on each node.
    pub burners: u32,
    pub nodes: u32,
    /// Time that a spin-block polled, s.
    pub spin_s: f64,
    /// The network between the ends.
    pub network: PingNetwork,
    /// Times that the machine adds to each step.
    pub costs: OverlapCosts,
    /// The cells, in the order of the request.
    pub cells: Vec<OverlapTimes>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL: &str = r#"{"wait": "event", "burn_nice": 0, "messages": 1, "message_bytes": 64}"#;

    fn read(fields: &str, cell: &str) -> Result<SimulatedOverlap, String> {
        let text = format!(r#"{{"cpus": 2, "burners": 2, "burn_s": 1.0{fields}, "cells": [{cell}]}}"#);
        SimulatedOverlap::from_json(text.as_bytes(), "overlap").map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_left_out_has_a_default_and_is_the_same_when_written() {
        let found = read("", CELL).expect("complete");
        assert_eq!((found.scheduler, found.nodes, found.repetitions), (Scheduler::Fair, 2, 1));
        let again = serde_json::to_vec(&found).expect("serialises");
        assert_eq!(SimulatedOverlap::from_json(&again, "overlap").expect("reads"), found);
        assert!((found.costs.spin_s() - 9e-6).abs() < 1e-12);
    }

    #[test]
    fn a_wrong_field_is_named_with_its_value_and_its_range() {
        for (fields, cell, said) in [
            (r#", "nodes": 3"#, CELL, "overlap: nodes is 3; it must be 1 to 2"),
            (r#", "repetitions": 0"#, CELL, "overlap: repetitions is 0; it must be 1 to 1024"),
            (
                "",
                &CELL.replace("\"burn_nice\": 0", "\"burn_nice\": 20"),
                "cells[0].burn_nice is 20; it must be -20 to 19",
            ),
            (
                "",
                &CELL.replace("\"messages\": 1", "\"messages\": 0"),
                "cells[0].messages is 0; it must be 1 to 100000000",
            ),
            (r#", "costs": {"slice_s": 1e-9}"#, CELL, "costs.slice_s is 0.000000001 s; it must be at least 1e-6 s"),
            (r#", "costs": {"exchange_s": 1.0}"#, CELL, "costs.exchange_s is 1 s; it must be below costs.slice_s"),
        ] {
            let error = read(fields, cell).expect_err(said);
            assert!(error.contains(said), "{error}");
        }
        assert!(read("", &CELL.replace("event", "evnt")).expect_err("no such wait").contains("event"));
        assert!(read(r#", "cpu": 2"#, CELL).expect_err("no such field").contains("cpus"));
    }

    #[test]
    fn starts_lie_within_the_spread_and_hang_on_seed_and_turn() {
        let found = read(r#", "start_spread_s": 0.5, "seed": 7"#, CELL).expect("complete");
        let starts = found.starts(0, 100);
        assert!(starts.iter().all(|&ns| ns < 500_000_000));
        assert_eq!(starts, found.starts(0, 100));
        assert_ne!(starts, found.starts(1, 100));
    }
}
