//! How fast do the links go? Emulated ones share what the node can send; what they take of the processor is told to it.

use crosswind_schema::plan::Ports;
use crosswind_schema::units::Quantity;

use super::{Processor, Station, Up};
use crate::farm::link::Link;
use crosswind_agent::frame::Frame;

impl Station {
    /// A child's limit has changed.
    pub(super) fn turn(&mut self, child: u32, at_ns: u64) {
        if self.is_emulated() {
            self.share(at_ns);
        } else {
            let limit = self.slots[child as usize].limit;
            if let Some(transfer) = self.link(child).and_then(Link::current) {
                transfer.turn(limit.map(|limit| (limit * 1e-3, 0.0)), at_ns);
            }
        }
    }

    /// Emulated links: every send that runs gets its rate, max-min fair under the send limit where there are several ports.
    pub fn share(&mut self, at_ns: u64) {
        let scale = self.scale();
        let send_limit = match self.run.policy.ports {
            Ports::Single => f64::INFINITY,
            Ports::Multi => self.own().send_limit_mb_per_s.map_or(f64::INFINITY, Quantity::get),
        };
        let mut wanted: Vec<(f64, usize)> = Vec::new();
        for (child, slot) in self.slots.iter_mut().enumerate() {
            let runs = slot.link.as_mut().and_then(Link::current).is_some_and(|transfer| !transfer.paused);
            if runs {
                let cap = (slot.receive_limit - slot.receive_limit_drop * slot.sends).max(0.0);
                wanted.push((slot.limit.map_or(cap, |limit| cap.min(limit)), child));
            }
        }
        wanted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut left, mut sharers) = (send_limit, wanted.len());
        let mut rates = vec![0.0; self.slots.len()];
        for (cap, child) in wanted {
            let rate = cap.min(left / sharers as f64);
            rates[child] = rate;
            left -= rate;
            sharers -= 1;
        }
        for (child, (slot, rate)) in self.slots.iter_mut().zip(&rates).enumerate() {
            if let Some(link) = &mut slot.link {
                if let Some(transfer) = link.current() {
                    if let (false, Some(pace)) = (transfer.paused, &transfer.pace) {
                        let was = pace.told;
                        // No rate at all is told as one too small to matter, since 0 says that nobody emulates.
                        let told = rate.max(1e-12);
                        if (was - told).abs() > 1e-12 {
                            transfer.turn(Some((rate * 1e-3 * scale, told)), at_ns);
                            if transfer.begun {
                                link.say(&Frame::Pace { rate: told });
                            }
                        }
                    }
                }
            }
            if let Processor::Emulated(processor) = &mut self.processor {
                processor.send(child, *rate, at_ns);
            }
        }
        self.tell_sends();
    }

    /// Tells the parent how much is sent, where that takes from what can be received.
    fn tell_sends(&mut self) {
        if self.own().receive_limit_drop.get() > 0.0 {
            if let (Processor::Emulated(processor), Up::Parent(link)) = (&self.processor, &mut self.up) {
                link.say(&Frame::Sending { rate: processor.sends() });
            }
        }
    }

    /// Emulated: what results to the parent take of the processor.
    pub(super) fn load_uplink(&mut self, at_ns: u64) {
        if let (Processor::Emulated(processor), Up::Parent(link)) = (&mut self.processor, &mut self.up) {
            let rate = link.current().and_then(|transfer| transfer.pace).map_or(0.0, |pace| pace.told);
            processor.result_up(rate, at_ns);
        }
    }
}
