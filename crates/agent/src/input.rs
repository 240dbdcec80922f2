//! Input from links: frames of children and of the parent, heartbeats, and the loss of a link.

use crosswind_policy::farm::Event;

use crate::account::Piece;
use crate::action::{Action, End, Inbound, Peer, TaskBytes};
use crate::agent::{Agent, Processor};
use crate::frame::Frame;
use crate::phases::{AGENT_FAILED, Phase};
use crate::printed::Printed;
use crate::recall::Ran;
use crate::record::AgentEvent;
use crate::task_store::Finished;

/// Number of consecutive pings with which a child first measures the root's clock.
const FIRST_PINGS: u32 = 8;
/// Memory overhead of a piece of a report, bytes.
const PIECE_BYTES: usize = size_of::<Piece>();
/// Reason for dropping a child that requests more tasks than any tree holds.
const REQUESTED_TOO_MUCH: &str = "it asked for more tasks than it can hold";

/// Heartbeat state of the link to the parent and of this agent.
#[derive(Debug, Default)]
pub(crate) struct Heartbeat {
    next_ping_ns: u64,
    pings: u32,
    last_ns: u64,
    parent_received_ns: u64,
}

impl Heartbeat {
    pub fn new(now_ns: u64) -> Self {
        Self { next_ping_ns: 0, pings: 0, last_ns: now_ns, parent_received_ns: now_ns }
    }
}

impl<P: TaskBytes> Agent<P> {
    /// Records that bytes arrived over a link, whether or not they complete a frame.
    pub fn alive(&mut self, from: Peer, now_ns: u64) {
        match from {
            Peer::Parent => self.heartbeat.parent_received_ns = now_ns,
            Peer::Child(child) => {
                if let Some(child) = self.children.get_mut(child as usize) {
                    child.received_ns = now_ns;
                }
            }
        }
    }

    /// Handles a link that was closed, or that carried bytes that are not a frame.
    pub fn lost(&mut self, peer: Peer, why: &str, now_ns: u64) {
        self.now_ns = now_ns;
        match peer {
            Peer::Parent => self.end(End::ParentLost(why.into())),
            Peer::Child(child) => self.lose(child, why, now_ns),
        }
    }

    /// Handles input from a link.
    pub fn on_inbound(&mut self, from: Peer, inbound: Inbound<P>, now_ns: u64) {
        self.now_ns = now_ns;
        match from {
            Peer::Child(child) => {
                // Ignore frames of a child that was dropped for an earlier frame.
                if self.children.get(child as usize).is_some_and(|child| child.connected) {
                    if let Err(why) = self.on_child(child, inbound, now_ns) {
                        self.lose(child, why, now_ns);
                    }
                }
            }
            Peer::Parent if self.run_state.end.is_none() => self.on_parent(inbound, now_ns),
            Peer::Parent => {}
        }
    }

    fn on_child(&mut self, child: u32, inbound: Inbound<P>, now_ns: u64) -> Result<(), &'static str> {
        let at = child as usize;
        let state = &mut self.children[at];
        match inbound {
            Inbound::Frame(Frame::Ping { child_ns }) => {
                let root_ns = self.clock.root_ns(now_ns);
                self.send_frame(Peer::Child(child), Frame::Pong { child_ns, root_ns });
            }
            Inbound::Frame(Frame::Ready { agents, tasks }) => {
                if state.ready.is_some() {
                    return Err("it reported twice that it is ready");
                }
                if !state.quota.asks(tasks) {
                    return Err(REQUESTED_TOO_MUCH);
                }
                state.ready = Some((agents, tasks));
                if self.run_state.phase == Phase::Running {
                    let root_ns = self.clock.root_ns(self.zero_ns);
                    self.send_frame(Peer::Child(child), Frame::Start { root_ns });
                    self.handle_event(Event::Requested { child, tasks }, now_ns);
                } else if self.run_state.phase == Phase::Finishing {
                    self.send_frame(Peer::Child(child), Frame::Finish);
                }
            }
            Inbound::Frame(Frame::Report { node, part, piece }) => {
                if !matches!(self.run_state.phase, Phase::Finishing | Phase::Reported) && !state.is_drained() {
                    return Err("it reported before it was told to finish");
                }
                if !state.quota.reports(piece.len() + PIECE_BYTES) {
                    return Err("its report is too long");
                }
                self.pass_on_report(node, part, piece);
            }
            Inbound::Frame(Frame::Reported) => {
                state.reported = true;
                if state.draining.is_some() && self.run_state.phase == Phase::Running {
                    self.release(child, now_ns);
                }
            }
            Inbound::Frame(Frame::Draining) => self.drain(child, now_ns),
            Inbound::Frame(Frame::OverTime { task, tried }) => {
                let note = format!("{}: task {task} is over its time", state.name);
                self.act(Action::Note(note));
                self.ends_over_time(child, task, tried, now_ns);
            }
            Inbound::Frame(Frame::Event { event }) => {
                if !state.quota.tells(event.len()) {
                    return Err("it sent too many events");
                }
                match serde_json::from_str::<AgentEvent>(&event) {
                    Ok(event) => {
                        state.failed |= event.code == AGENT_FAILED && event.node.as_ref() == Some(&state.name);
                        self.account.agent_events.push(event);
                    }
                    Err(error) => self.act(Action::NoteOnce(format!("an event that can't be read: {error}"))),
                }
            }
            Inbound::Frame(Frame::Bye) => return Err("it closed the link with a goodbye"),
            inbound => return self.on_task_frame(child, inbound, now_ns),
        }
        Ok(())
    }

    /// Handles a child's frames about tasks.
    fn on_task_frame(&mut self, child: u32, inbound: Inbound<P>, now_ns: u64) -> Result<(), &'static str> {
        let state = &mut self.children[child as usize];
        let latency = state.link.latency_ns;
        match inbound {
            Inbound::Frame(Frame::Ask { tasks }) => {
                if !state.quota.asks(tasks) {
                    return Err(REQUESTED_TOO_MUCH);
                }
                self.later(latency, Event::Requested { child, tasks }, None, now_ns);
            }
            Inbound::Frame(Frame::Computing { task }) => state.out.computing = Some(task),
            Inbound::Frame(Frame::Subtree(subtree)) => {
                self.estimate(now_ns, |estimator, _, revisions| estimator.on_subtree(child, subtree, revisions));
                self.settle();
            }
            Inbound::Frame(Frame::Sending { rate }) => {
                state.link.sends = rate;
                self.share(now_ns);
            }
            Inbound::Result { task, node, ok, payload } => {
                // Otherwise the ledger would accept it for whichever child holds the task.
                if !state.out.sent.remove(task) {
                    return Err("it sent a result of a task that it does not have");
                }
                if let Processor::Emulated(processor) = &mut self.processor {
                    processor.result_from(child as usize, 0.0, now_ns);
                }
                let finished = Finished { task, node, ok, payload };
                self.later(latency, Event::Returned { child, task }, Some(finished), now_ns);
            }
            Inbound::Frame(Frame::Recalled { task }) => self.on_recalled(child as usize, task),
            Inbound::Frame(Frame::Begun { task }) => self.on_begun(child as usize, task),
            Inbound::Frame(Frame::Partial { task, outcomes }) => self.on_partial(child as usize, task, outcomes),
            Inbound::Frame(Frame::Ran { task, began_ns, took_ns }) => {
                self.on_ran(child as usize, Ran { task, began_ns, took_ns });
            }
            Inbound::Frame(Frame::Printed { node, task, call, left_out, text }) => {
                return self.on_printed(Printed { node, task, call, left_out, text });
            }
            Inbound::Frame(Frame::HandBack { task }) => {
                if !state.out.sent.remove(task) {
                    return Err("it gave back a task that it does not have");
                }
                if let Some(draining) = &mut state.draining {
                    draining.handed_back += 1;
                }
                if self.task_store.is_recalling(task) {
                    self.withdraw(task);
                }
                self.later(latency, Event::HandedBack { child, task }, None, now_ns);
            }
            Inbound::Begun { rate } => {
                if let Processor::Emulated(processor) = &mut self.processor {
                    processor.result_from(child as usize, rate, now_ns);
                }
            }
            _ => return Err("unexpected frame from a child"),
        }
        Ok(())
    }

    fn on_parent(&mut self, inbound: Inbound<P>, now_ns: u64) {
        match inbound {
            Inbound::Frame(Frame::Pong { child_ns, root_ns }) => {
                self.clock.pong(child_ns, root_ns, now_ns);
                self.heartbeat.pings += 1;
                if self.heartbeat.pings < FIRST_PINGS {
                    self.send_frame(Peer::Parent, Frame::Ping { child_ns: now_ns });
                }
            }
            Inbound::Frame(Frame::Start { root_ns }) => self.start(self.clock.own_ns(root_ns), now_ns),
            Inbound::Frame(Frame::Finish) => self.finish(now_ns),
            Inbound::Frame(Frame::Bye) => self.end(End::Bye),
            Inbound::Begun { rate } | Inbound::Frame(Frame::Pace { rate }) => {
                let stands = rate == 0.0 && self.is_emulated();
                self.estimate(now_ns, |estimator, now_s, _| {
                    if stands { estimator.receives_no_more(now_s) } else { estimator.receives(now_s) }
                });
                if let Processor::Emulated(processor) = &mut self.processor {
                    processor.receive(rate, now_ns);
                }
            }
            Inbound::Task { task, work, payload } => {
                if let Processor::Emulated(processor) = &mut self.processor {
                    processor.receive(0.0, now_ns);
                }
                let bytes = payload.bytes();
                self.account.totals.received_bytes += bytes;
                let mb = bytes as f64 * 1e-6;
                self.estimate(now_ns, |estimator, now_s, _| estimator.received(mb, now_s));
                self.task_store.hold(task, payload, work);
                self.later(self.own_latency_ns, Event::Arrived { task }, None, now_ns);
            }
            Inbound::Frame(Frame::Name { task, name }) => self.task_store.name(task, name.into()),
            Inbound::Frame(Frame::Batch { task }) => self.task_store.mark_batch(task),
            Inbound::Frame(Frame::Recall { task }) => _ = self.recall(task, now_ns),
            Inbound::Frame(Frame::Places { tasks }) => {
                self.later(self.own_latency_ns, Event::Places { tasks }, None, now_ns);
            }
            Inbound::Frame(Frame::RemainingHint { tasks }) => {
                self.later(self.own_latency_ns, Event::RemainingHint { tasks }, None, now_ns);
            }
            Inbound::Frame(_) | Inbound::Result { .. } => {
                self.end(End::ParentLost("it sent a frame that no parent sends".into()))
            }
        }
    }

    /// Sends a heartbeat to the parent, and drops peers that have been silent for too long. Must be called at intervals
    /// of at most a quarter of `silence_s`.
    pub fn send_heartbeat(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        let silence = (self.run.patience.silence_s * 1e9) as u64;
        // After a stall of this agent itself, silence proves nothing about the others: restart their timers.
        if now_ns.saturating_sub(self.heartbeat.last_ns) > silence / 4 {
            self.heartbeat.parent_received_ns = now_ns;
            self.children.iter_mut().for_each(|child| child.received_ns = now_ns);
        }
        self.heartbeat.last_ns = now_ns;
        let why = format!("it was silent for {} s", self.run.patience.silence_s);
        for child in 0..self.children.len() {
            let state = &self.children[child];
            if state.connected && now_ns.saturating_sub(state.received_ns) > silence {
                self.lose(child as u32, &why, now_ns);
            }
        }
        if self.root {
            return;
        }
        if now_ns.saturating_sub(self.heartbeat.parent_received_ns) > silence {
            self.end(End::ParentLost(why));
        } else if now_ns >= self.heartbeat.next_ping_ns {
            self.heartbeat.next_ping_ns = now_ns + (self.run.patience.heartbeat_s * 1e9) as u64;
            self.send_frame(Peer::Parent, Frame::Ping { child_ns: now_ns });
        }
    }
}
