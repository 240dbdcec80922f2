//! Hosts and links in tasks per second: the terms of [`crate::steady`], for every pair of hosts instead of a tree's
//! edges.

use crosswind_schema::Links;
use crosswind_schema::plan::Ports;
use crosswind_schema::units::Quantity;

use crate::error::ModelError;
use crate::steady::{Bench, Offer, Station, Task, best_rate, permitted, share};

/// One direction between two hosts, for this kind of task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    /// Receive limit in tasks per second.
    pub receive: f64,
    /// Tasks that the receiver itself loses per task.
    pub rho: f64,
    /// Tasks that the sender itself loses per task.
    pub cost: f64,
}

/// The hosts of a cluster and the links between them.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    pub count: usize,
    pub ports: Ports,
    /// Tasks per second of each host alone.
    pub compute: Vec<f64>,
    /// Room of each host's port.
    pub send: Vec<f64>,
    legs: Vec<Option<Leg>>,
}

impl Graph {
    /// Converts to tasks and seconds, and checks that every rate is within the range in which arithmetic is safe.
    pub fn new(links: &Links, task: Task, ports: Ports) -> Result<Self, ModelError> {
        let ends = links.ends().map_err(|e| ModelError::Platform(Box::new(e)))?;
        let (count, size, work) = (links.hosts.len(), task.size_mb(), task.work_units());
        let fine = |field: &dyn Fn() -> String, value: f64, may_be_infinite: bool| {
            if permitted(value) || (may_be_infinite && value == f64::INFINITY) {
                return Ok(value);
            }
            let range = "it must be 0 or within 1e-100 to 1e100";
            Err(ModelError::argument(field(), format!("is {value:e} in tasks and seconds; {range}")))
        };
        let mut compute = Vec::with_capacity(count);
        let mut send = Vec::with_capacity(count);
        for (at, host) in links.hosts.iter().enumerate() {
            compute.push(fine(&|| format!("host[{at}].compute_per_s"), host.compute_per_s.get() / work, false)?);
            let limit = host.send_limit_mb_per_s.map_or(f64::INFINITY, Quantity::get) / size;
            let room = if ports == Ports::Single { 1.0 } else { limit };
            send.push(fine(&|| format!("host[{at}].send_limit_mb_per_s"), room, true)?);
        }
        let mut legs = vec![None; count * count];
        for (at, (link, &(from, to))) in links.links.iter().zip(&ends).enumerate() {
            let field = |name: &str| format!("link[{at}].{name}");
            let receive = link.receive_limit_mb_per_s.get() / size;
            let (rho, cost) = (link.ir_receive_s_per_mb.get() * size, link.ir_send_s_per_mb.get() * size);
            legs[from * count + to] = Some(Leg {
                receive: fine(&|| field("receive_limit_mb_per_s"), receive, false)?,
                rho: fine(&|| field("ir_receive_s_per_mb"), share(rho * compute[to]), false)?,
                cost: fine(&|| field("ir_send_s_per_mb"), share(cost * compute[from]), false)?,
            });
        }
        Ok(Self { count, ports, compute, send, legs })
    }

    /// Returns the link from one host to another, if known.
    pub fn leg(&self, from: usize, to: usize) -> Option<Leg> {
        self.legs[from * self.count + to]
    }

    /// Returns the terms of a host fed by another, or `None` without a link. The root is fed by itself.
    pub fn station(&self, feeder: usize, host: usize) -> Option<Station> {
        let (receive, rho) = match feeder == host {
            true => (f64::INFINITY, 0.0),
            false => self.leg(feeder, host).map(|leg| (leg.receive, leg.rho))?,
        };
        // A host's cost to its feeder is part of the feeder's offers.
        Some(Station { compute: self.compute[host], rho, receive, drop: 0.0, send: self.send[host], cost: 0.0 })
    }

    /// Returns the offer of a child that can take at most `limit`. `None` without a link, or if sending a task costs a
    /// task.
    pub fn offer(&self, from: usize, to: usize, limit: f64) -> Option<Offer> {
        let leg = self.leg(from, to)?;
        (leg.cost < 1.0).then(|| Offer::new(to as u32, leg.cost, leg.receive, limit, self.ports))
    }

    /// Returns the best rate of a station with these offers from its children. Sorts the offers into the order of
    /// service.
    pub fn rate(&self, station: &Station, offers: &mut [Offer], bench: &mut Bench) -> f64 {
        best_rate(station, offers, self.ports, bench)
    }

    /// Returns which hosts tasks can reach from `root`, including itself.
    pub fn reached(&self, root: usize) -> Vec<bool> {
        let mut reached = vec![false; self.count];
        reached[root] = true;
        let mut waiting = vec![root];
        while let Some(from) = waiting.pop() {
            for (to, is_in) in reached.iter_mut().enumerate() {
                if !*is_in && self.leg(from, to).is_some() {
                    *is_in = true;
                    waiting.push(to);
                }
            }
        }
        reached
    }
}
