//! Simulation of how far communication and computation overlap: burners and a ping on processors shared by a scheduler.
//!
//! Burners keep the processors busy. The two ends of a ping, on two nodes or on one, send a message back and forth.
//! What this costs each side depends on how the ping waits (woken by an event, or polling), on the nice levels and on
//! the scheduler (quadrics-overlap; F3-1 to F3-5). Transfers need no processor: the network card does them.
//!
//! | question | file |
//! |---|---|
//! | what are the request and the response? | `crosswind_schema::simulated_overlap` |
//! | what does a burner do, what an end of the ping? | `process` |
//! | which process runs next? | `scheduler` (`decay`, `fair`) |
//! | which process has which processor, and until when? | `node` |
//! | which event is next, and what is in transit? | `machine` |
//! | when do buffered messages move? | `crosswind_policy::coscheduling` |
//!
//! Not modelled: caches, contention for memory, interrupts from other sources, per-processor run queues.

mod machine;
mod node;
mod process;
mod scheduler;

use std::collections::BTreeMap;

use crosswind_schema::simulated_overlap::{OverlapMatrix, OverlapTimes, RequestedCell, SimulatedOverlap};

use crate::error::SimError;
use crate::time::{Nanos, seconds};
use machine::{Machine, Times, Who};

/// Simulates each cell: the ping and the burners alone and together.
///
/// Times together are the mean of `repetitions` runs with different start times. Times alone come from one run. `watch`
/// is called periodically with the number of events of the current run. Returning `false` stops the run.
///
/// # Errors
/// [`SimError::Interrupted`], and [`SimError::Endless`] if rates are too low for the messages' sizes.
///
/// # Examples
///
/// ```
/// use crosswind_schema::SimulatedOverlap;
/// use crosswind_sim::overlap::simulate;
///
/// let asked = br#"{"cpus": 1, "burners": 1, "burn_s": 2.0, "cells": [
///     {"wait": "event", "burn_nice": 0, "messages": 640, "message_bytes": 1000000},
///     {"wait": "poll", "burn_nice": 0, "messages": 640, "message_bytes": 1000000}]}"#;
/// let asked = SimulatedOverlap::from_json(asked, "asked").unwrap();
/// let matrix = simulate(&asked, &mut |_| true).unwrap();
/// let [event, poll] = &matrix.cells[..] else { panic!("one for each that was asked") };
/// assert!(event.ping_s < 1.1 * event.ping_alone_s && event.burn_s < 1.1 * event.burn_alone_s);
/// assert!(poll.ping_s > 1.3 * poll.ping_alone_s && poll.burn_s > 1.2 * poll.burn_alone_s, "polling costs both");
/// ```
pub fn simulate(request: &SimulatedOverlap, watch: &mut dyn FnMut(u64) -> bool) -> Result<OverlapMatrix, SimError> {
    let mut alone = Alone::default();
    let cells = request.cells.iter().map(|cell| {
        let (ping, burn) = alone.of(request, cell, watch)?;
        let mut sums = Times::default();
        for turn in 0..request.repetitions {
            let times = Machine::new(request, cell, Who::Both, turn).run(watch)?;
            sums.ping += times.ping;
            sums.burn += times.burn;
            sums.ping_cpu += times.ping_cpu;
        }
        let mean = |sum: Nanos| seconds(sum) / f64::from(request.repetitions);
        Ok(OverlapTimes {
            wait: cell.wait,
            burn_nice: cell.burn_nice,
            messages: cell.messages,
            message_bytes: cell.message_bytes,
            ping_alone_s: seconds(ping.ping),
            burn_alone_s: seconds(burn),
            ping_s: mean(sums.ping),
            burn_s: mean(sums.burn),
            ping_cpu_s: seconds(ping.ping_cpu),
            ping_cpu_beside_s: mean(sums.ping_cpu),
        })
    });
    Ok(OverlapMatrix {
        on: "sim".into(),
        scheduler: request.scheduler,
        cpus: request.cpus,
        burners: request.burners,
        nodes: request.nodes,
        spin_s: request.costs.spin_s(),
        network: request.network,
        costs: request.costs,
        cells: cells.collect::<Result<_, SimError>>()?,
    })
}

/// Times alone, computed once and shared by all cells with the same settings.
#[derive(Default)]
struct Alone {
    pings: BTreeMap<(String, u64, u64), Times>,
    burns: BTreeMap<i8, Nanos>,
}

impl Alone {
    fn of(
        &mut self,
        request: &SimulatedOverlap,
        cell: &RequestedCell,
        watch: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(Times, Nanos), SimError> {
        let key = (format!("{:?}", cell.wait), cell.messages, cell.message_bytes);
        let ping = match self.pings.get(&key) {
            Some(&known) => known,
            None => Machine::new(request, cell, Who::Ping, 0).run(watch)?,
        };
        let burn = match self.burns.get(&cell.burn_nice) {
            Some(&known) => known,
            None => Machine::new(request, cell, Who::Burners, 0).run(watch)?.burn,
        };
        self.pings.insert(key, ping);
        self.burns.insert(cell.burn_nice, burn);
        Ok((ping, burn))
    }
}
