//! Sends from a node to its children, and their effect on the processors at both ends.

use crosswind_policy::farm::{Child, Decide, Event, TaskId};
use crosswind_schema::platform::Loss;

use crate::farm::Run;
use crate::inbox::News;
use crate::port::{NO_NODE, Port};
use crate::shared::{Kind, Shared};
use crate::time::after;
use crate::trace::Activity;
use crate::world::World;

impl<P: Decide> Run<'_, P> {
    #[inline]
    pub fn end_send(&mut self, p: u32) {
        let world = &mut self.world;
        let port = &mut world.network.ports[p as usize];
        if port.shared.is_some() {
            self.end_shared(p);
            return;
        }
        let (node, task, began) = (port.node, port.single.task, port.single.began);
        let to = port.single.end(world.now);
        world.touch_by_single(node).processor.send_loss = 0.0;
        world.touch_by_single(to).processor.receive = 0.0;
        world.sends_changed(node);
        if let Some(trace) = &mut world.recorded.trace {
            trace.transfer(Activity::Send, node, to, task, (began, world.now), world.farm.tasks.size_mb.get(task));
        }
        self.has_left(node, to, task);
    }

    /// Handles the departure of a task's last byte.
    #[inline]
    fn has_left(&mut self, node: u32, to: u32, task: TaskId) {
        let world = &mut self.world;
        let mb = world.farm.tasks.size_mb.get(task);
        let link = &mut world.sites[to as usize].link;
        link.received_mb += mb;
        let (latency, child) = (link.latency, link.child);
        if world.adaptation.is_on() {
            world.estimate(to, |estimator, now_s, _| estimator.received(mb, now_s));
            world.estimate(node, |estimator, now_s, revisions| estimator.sent(child, mb, true, now_s, revisions));
        }
        self.tell_of(node, Event::Sent { child, task });
        if latency == 0 && self.world.inbox.is_empty() {
            self.arrived(to, task); // it would be next in any case
        } else {
            self.world.tell_later(latency, to, News::Arrived { task });
        }
    }

    #[inline(never)]
    fn end_shared(&mut self, p: u32) {
        let world = &mut self.world;
        let (node, now) = (world.network.ports[p as usize].node, world.now);
        let Some(shared) = &mut world.network.ports[p as usize].shared else { return };
        let Some((child, whole)) = shared.end(now) else {
            world.shared_changed(p); // the end was a lower bound, or rounded: reschedule
            return;
        };
        let task = shared.send(child).task;
        world.trace_part(p, child, 0.0);
        world.shared_changed(p);
        let to = world.network.ports[p as usize].children[child as usize];
        if whole {
            self.has_left(node, to, task);
        } else {
            world.estimate(to, |estimator, now_s, _| estimator.receives_no_more(now_s));
            world.estimate(node, |estimator, now_s, _| estimator.held(child, now_s));
            self.tell(node, Event::Held { child });
        }
    }
}

impl World<'_> {
    fn slot(&self, port: u32) -> u32 {
        self.sites.len() as u32 + port
    }

    /// Returns the receive limit of a node at its current send rate, MB/ns.
    fn receive_limit(&self, node: u32) -> f64 {
        let link = &self.sites[node as usize].link;
        if link.drop == 0.0 || link.port == NO_NODE {
            return link.receive_limit;
        }
        let port = &self.network.ports[link.port as usize];
        let sends = match &port.shared {
            Some(shared) => shared.rate(),
            None if port.single.child == NO_NODE => 0.0,
            None => port.single.rate,
        };
        (link.receive_limit - link.drop * sends).max(0.0)
    }

    #[inline(never)]
    pub fn begin_send(&mut self, node: u32, child: Child, task: TaskId, limit_mb_per_s: Option<f64>) {
        let p = self.sites[node as usize].link.port;
        let size = self.farm.tasks.size_mb.get(task);
        let to = self.network.ports[p as usize].children[child as usize];
        let rate = self.receive_limit(to);
        let now = self.now;
        if self.adaptation.is_on() {
            self.estimate(node, |estimator, now_s, _| estimator.sends(child, limit_mb_per_s, now_s));
            self.estimate(to, |estimator, now_s, _| estimator.receives(now_s));
        }
        let port = &mut self.network.ports[p as usize];
        if let Some(shared) = &mut port.shared {
            shared.receive_limit(now, child, rate);
            shared.begin(now, child, task, size, limit_mb_per_s.map(|limit| limit * 1e-9));
            self.shared_changed(p);
            return;
        }
        let ends = port.single.begin(now, to, task, size, rate);
        self.single_sends(p, node, to, rate, ends);
    }

    /// Applies a new rate of a single port's send.
    fn single_changed(&mut self, p: u32, ends: Option<u64>) {
        let port = &self.network.ports[p as usize];
        let (node, to, rate) = (port.node, port.single.child, port.single.rate);
        self.single_sends(p, node, to, rate, ends);
    }

    /// Applies the rate of a single port's send to both ends and schedules its end.
    #[inline(always)]
    fn single_sends(&mut self, p: u32, node: u32, to: u32, rate: f64, ends: Option<u64>) {
        self.touch_by_single(node);
        let receiver = self.touch_by_single(to);
        receiver.processor.receive = rate;
        let loss = receiver.link.ir_send * rate;
        self.sites[node as usize].processor.send_loss = loss;
        match ends {
            Some(time) => self.agenda.at(time, self.slot(p)),
            None => self.agenda.cancel(self.slot(p)),
        }
        self.sends_changed(node);
    }

    /// Notes that a node's total send rate has changed, which may change its receive limit, and in turn those of its
    /// ancestors.
    #[inline]
    fn sends_changed(&mut self, node: u32) {
        if self.network.drops && self.sites[node as usize].link.drop > 0.0 && node != self.tree.root {
            self.network.resized.push(node);
        }
    }

    pub fn receiving_changed(&mut self, node: u32) {
        let limit = self.receive_limit(node);
        let (above, child, now) =
            (self.sites[node as usize].link.parent, self.sites[node as usize].link.child, self.now);
        let p = self.sites[above as usize].link.port;
        let port = &mut self.network.ports[p as usize];
        if let Some(shared) = &mut port.shared {
            shared.receive_limit(now, child, limit);
            self.shared_changed(p);
        } else if port.single.child == node && port.single.rate != limit {
            let ends = port.single.change(now, limit);
            self.single_changed(p, ends);
        }
    }

    /// Records a part of a task that was sent without a pause. Returns whether a row was written.
    fn trace_part(&mut self, p: u32, child: Child, left_before_stop: f64) -> bool {
        let Some(trace) = &mut self.recorded.trace else { return false };
        let port = &self.network.ports[p as usize];
        let Some(shared) = &port.shared else { return false };
        let send = shared.send(child);
        let mb = send.began_left - shared.beyond(child) - left_before_stop;
        if mb <= 0.0 {
            return false; // it was held before its first byte
        }
        let (node, to) = (port.node, port.children[child as usize]);
        trace.transfer(Activity::Send, node, to, send.task, (send.began, self.now), mb);
        true
    }

    fn mark_cut(&mut self) {
        if let Some(trace) = &mut self.recorded.trace {
            trace.mark_cut();
        }
    }

    pub fn hold(&mut self, node: u32, child: Child) {
        let p = self.sites[node as usize].link.port;
        let (now, chunk) = (self.now, self.network.chunk);
        if let Some(shared) = &mut self.network.ports[p as usize].shared {
            shared.hold(now, child, chunk);
            self.shared_changed(p);
        }
    }

    pub fn limit(&mut self, node: u32, child: Child, limit_mb_per_s: Option<f64>) {
        let p = self.sites[node as usize].link.port;
        let now = self.now;
        self.estimate(node, |estimator, now_s, _| estimator.limits(child, limit_mb_per_s, now_s));
        if let Some(shared) = &mut self.network.ports[p as usize].shared {
            shared.limit(now, child, limit_mb_per_s.map(|limit| limit * 1e-9));
            self.shared_changed(p);
        }
    }

    /// Applies a change at a shared port to the rates of the receiving nodes. The rest follows in
    /// [`Self::schedule_shared`], once for all changes of an instant.
    pub fn shared_changed(&mut self, p: u32) {
        if self.network.unscheduled.is_some_and(|(other, _)| other != p) {
            self.schedule_shared();
        }
        self.network.unscheduled = Some((p, self.agenda.turn()));
        let Port { node, shared: Some(shared), .. } = &self.network.ports[p as usize] else { return };
        let node = *node;
        if shared.leaves_band() {
            self.redraw_band(p);
        }
        // Settling a processor reads the port's progress, so the port stays in place meanwhile.
        let mut next = 0;
        while let Some(child) = self.network.ports[p as usize].shared.as_ref().and_then(|s| s.changed.get(next)) {
            self.on_rate(p, *child);
            next += 1;
        }
        if let Some(shared) = &mut self.network.ports[p as usize].shared {
            shared.changed.clear();
        }
        self.touch(node);
        self.sends_changed(node);
    }

    /// Draws a new band after the share has left the old one, and queues all receivers of fair sends behind those that
    /// changed.
    #[inline(never)]
    fn redraw_band(&mut self, p: u32) {
        let Port { children, shared: Some(shared), .. } = &mut self.network.ports[p as usize] else { return };
        shared.draw_band();
        let fair: Vec<u32> = shared.fair().collect();
        // If the loss cannot be derived from bytes, all receivers are notified of every change.
        let high = shared.share * 1.25;
        if fair.iter().any(|&c| self.sites[children[c as usize] as usize].processor.stands_still_at(high)) {
            shared.tell_all();
        }
        shared.changed.extend(fair);
    }

    /// Updates the sender's loss and the time of the next end at the shared port that changed last.
    #[inline]
    pub fn schedule_shared(&mut self) {
        let Some((p, turn)) = self.network.unscheduled.take() else { return };
        let (now, slot) = (self.now, self.slot(p));
        let port = &self.network.ports[p as usize];
        let Some(shared) = &port.shared else { return };
        let bent = if self.network.bends { self.bent_loss(port, shared) } else { 0.0 };
        self.sites[port.node as usize].processor.send_loss = shared.loss() + bent;
        match shared.next(now) {
            Some(delay) => self.agenda.at_turn(after(now, delay), turn, slot),
            None => self.agenda.cancel(slot),
        }
    }

    /// Applies the rate at which a child receives.
    fn on_rate(&mut self, p: u32, child: Child) {
        let to = self.network.ports[p as usize].children[child as usize];
        if to == NO_NODE {
            return;
        }
        self.touch(to);
        let now = self.now;
        let Some(shared) = &self.network.ports[p as usize].shared else { return };
        let processor = &mut self.sites[to as usize].processor;
        let send = shared.send(child);
        (processor.receive, processor.shared) = match send.kind {
            Kind::Capped => (send.cap, None),
            Kind::Fair if shared.exact => (shared.share, None),
            Kind::Fair => (shared.band.0, Some(shared.progress_at(now))),
            Kind::Absent | Kind::Paused => (0.0, None),
        };
        if self.network.bends {
            let losses = &self.farm.platform.nodes[to as usize].receive_losses;
            let rate = processor.receive * 1e9;
            if !losses.is_empty() && rate > 0.0 {
                processor.ir_receive_at(Loss::chord_s_per_mb(losses, rate));
            }
        }
    }

    /// Returns the loss of a node from sends with nonlinear losses, each at its own rate.
    fn bent_loss(&self, port: &Port, shared: &Shared) -> f64 {
        let losses = |to: &u32| &self.farm.platform.nodes[*to as usize].send_losses;
        let children = (0u32..).zip(&port.children).filter(|(_, to)| **to != NO_NODE && !losses(to).is_empty());
        children.map(|(child, to)| Loss::at(losses(to), shared.rate_of(child) * 1e9)).sum()
    }

    /// Abandons the send to a child that is gone.
    pub fn abandon(&mut self, node: u32, child: Child) {
        let p = self.sites[node as usize].link.port;
        let (now, slot) = (self.now, self.slot(p));
        let port = &mut self.network.ports[p as usize];
        let to = port.children[child as usize];
        if let Some(shared) = &mut port.shared {
            let (left, sent) = shared.so_far(now, child);
            let runs = matches!(shared.send(child).kind, Kind::Capped | Kind::Fair);
            self.sites[to as usize].link.received_mb += sent;
            if runs && self.trace_part(p, child, left) {
                self.mark_cut();
            }
            if let Some(shared) = &mut self.network.ports[p as usize].shared {
                shared.abandon(now, child);
            }
            self.shared_changed(p);
        } else if port.single.child == to {
            let single = port.single;
            port.single.child = NO_NODE;
            let mb = single.sent(now, self.farm.tasks.size_mb.get(single.task));
            self.sites[to as usize].link.received_mb += mb;
            if let Some(trace) = self.recorded.trace.as_mut().filter(|_| now > single.began) {
                trace.transfer(Activity::Send, node, to, single.task, (single.began, now), mb);
                trace.mark_cut();
            }
            self.agenda.cancel(slot);
            self.touch(node);
            self.touch(to);
            self.sites[to as usize].processor.receive = 0.0;
            self.sites[node as usize].processor.send_loss = 0.0;
            self.sends_changed(node);
        }
    }
}
