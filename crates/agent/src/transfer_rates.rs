//! Rates of transfers. Emulated links share the node's send limit, and their rates are passed to the emulated
//! processor.

use crosswind_schema::plan::Ports;
use crosswind_schema::units::Quantity;

use crate::action::{Action, Peer, Rate, TaskBytes};
use crate::agent::{Agent, Processor};
use crate::frame::Frame;

impl<P: TaskBytes> Agent<P> {
    /// Applies a changed limit of a child.
    pub(crate) fn change_pace(&mut self, child: u32, at_ns: u64) {
        if self.is_emulated() {
            self.share(at_ns);
            return;
        }
        let state = &mut self.children[child as usize];
        let rate = state.link.limit.map(|limit| Rate { bytes_per_ns: limit * 1e-3, reported: 0.0 });
        if let Some(sending) = &mut state.out.sending {
            sending.reported = rate.map(|rate| rate.reported);
            self.act(Action::Pace { child, rate, at_ns, tell: false });
        }
    }

    /// Assigns a rate to every running send on emulated links. With several ports the rates are max-min fair under the
    /// send limit.
    pub(crate) fn share(&mut self, at_ns: u64) {
        let scale = self.scale();
        let send_limit = match self.run.policy.ports.ports() {
            Ports::Single => f64::INFINITY,
            Ports::Multi => self.own().send_limit_mb_per_s.map_or(f64::INFINITY, Quantity::get),
        };
        let mut wanted: Vec<(f64, usize)> = Vec::new();
        for (child, state) in self.children.iter().enumerate() {
            if state.out.sending.is_some_and(|sending| !sending.paused) {
                let cap = (state.link.receive_limit - state.link.receive_limit_drop * state.link.sends).max(0.0);
                wanted.push((state.link.limit.map_or(cap, |limit| cap.min(limit)), child));
            }
        }
        wanted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut left, mut sharers) = (send_limit, wanted.len());
        let mut rates = vec![0.0; self.children.len()];
        for (cap, child) in wanted {
            let rate = cap.min(left / sharers as f64);
            rates[child] = rate;
            left -= rate;
            sharers -= 1;
        }
        for (child, rate) in rates.into_iter().enumerate() {
            let sending = self.children[child].out.sending.as_mut().filter(|sending| !sending.paused);
            if let Some((sending, was)) =
                sending.and_then(|sending| sending.reported.map(|reported| (sending, reported)))
            {
                // Frames use 0 for links that are not emulated, so a rate of 0 is sent as a negligible one.
                let reported = rate.max(1e-12);
                if (was - reported).abs() > 1e-12 {
                    sending.reported = Some(reported);
                    let rate = Some(Rate { bytes_per_ns: rate * 1e-3 * scale, reported });
                    self.act(Action::Pace { child: child as u32, rate, at_ns, tell: true });
                }
            }
            if let Processor::Emulated(processor) = &mut self.processor {
                processor.send(child, rate, at_ns);
            }
        }
        self.announce_rate();
    }

    /// Sends the parent this node's total send rate, if that lowers its receive limit.
    fn announce_rate(&mut self) {
        if self.own().receive_limit_drop.get() > 0.0 {
            if let Processor::Emulated(processor) = &self.processor {
                let rate = processor.sends();
                self.send_frame(Peer::Parent, Frame::Sending { rate });
            }
        }
    }
}
