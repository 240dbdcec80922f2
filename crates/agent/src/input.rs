//! Input from links: frames of children and of the parent, heartbeats, and the loss of a link.

use crosswind_policy::farm::Event;

use crate::account::Piece;
use crate::action::{Action, End, Heard, Peer, TaskBytes};
use crate::agent::{Agent, Processor};
use crate::frame::Frame;
use crate::phases::{AGENT_FAILED, Phase};
use crate::recall::Ran;
use crate::record::AgentEvent;
use crate::stock::Finished;

/// Number of consecutive pings with which a child first measures the root's clock.
const FIRST_PINGS: u32 = 8;
/// Memory overhead of a piece of a report, bytes.
const PIECE_BYTES: usize = size_of::<Piece>();
/// Reason for dropping a child that requests more tasks than any tree holds.
const ASKED_TOO_MUCH: &str = "it asked for more tasks than it can hold";

/// Heartbeat state of the link to the parent and of this agent.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    next_ping_ns: u64,
    pings: u32,
    last_beat_ns: u64,
    parent_heard_ns: u64,
}

impl Pulse {
    pub fn new(now_ns: u64) -> Self {
        Self { next_ping_ns: 0, pings: 0, last_beat_ns: now_ns, parent_heard_ns: now_ns }
    }
}

impl<P: TaskBytes> Agent<P> {
    /// Records that bytes arrived over a link, whether or not they complete a frame.
    pub fn alive(&mut self, from: Peer, now_ns: u64) {
        match from {
            Peer::Parent => self.pulse.parent_heard_ns = now_ns,
            Peer::Child(child) => {
                if let Some(child) = self.children.get_mut(child as usize) {
                    child.heard_ns = now_ns;
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
    pub fn hear(&mut self, from: Peer, heard: Heard<P>, now_ns: u64) {
        self.now_ns = now_ns;
        match from {
            Peer::Child(child) => {
                // Ignore frames of a child that was dropped for an earlier frame.
                if self.children.get(child as usize).is_some_and(|child| child.connected) {
                    if let Err(why) = self.hear_child(child, heard, now_ns) {
                        self.lose(child, why, now_ns);
                    }
                }
            }
            Peer::Parent if self.course.end.is_none() => self.hear_parent(heard, now_ns),
            Peer::Parent => {}
        }
    }

    fn hear_child(&mut self, child: u32, heard: Heard<P>, now_ns: u64) -> Result<(), &'static str> {
        let at = child as usize;
        let state = &mut self.children[at];
        match heard {
            Heard::Said(Frame::Ping { child_ns }) => {
                let root_ns = self.clock.root_ns(now_ns);
                self.say(Peer::Child(child), Frame::Pong { child_ns, root_ns });
            }
            Heard::Said(Frame::Ready { agents, tasks }) => {
                if state.ready.is_some() {
                    return Err("it said twice that it is ready");
                }
                if !state.allowance.asks(tasks) {
                    return Err(ASKED_TOO_MUCH);
                }
                state.ready = Some((agents, tasks));
                if self.course.phase == Phase::Running {
                    let root_ns = self.clock.root_ns(self.zero_ns);
                    self.say(Peer::Child(child), Frame::Start { root_ns });
                    self.tell(Event::Asked { child, tasks }, now_ns);
                } else if self.course.phase == Phase::Finishing {
                    self.say(Peer::Child(child), Frame::Finish);
                }
            }
            Heard::Said(Frame::Report { node, part, piece }) => {
                if !matches!(self.course.phase, Phase::Finishing | Phase::Reported) && !state.is_drained() {
                    return Err("it reported before it was told to finish");
                }
                if !state.allowance.reports(piece.len() + PIECE_BYTES) {
                    return Err("its report is too long");
                }
                self.pass_on_report(node, part, piece);
            }
            Heard::Said(Frame::Reported) => {
                state.reported = true;
                if state.draining.is_some() && self.course.phase == Phase::Running {
                    self.release(child, now_ns);
                }
            }
            Heard::Said(Frame::Draining) => self.drain(child, now_ns),
            Heard::Said(Frame::OverTime { task, tried }) => {
                let note = format!("{}: task {task} is over its time", state.name);
                self.act(Action::Note(note));
                self.ends_over_time(child, task, tried, now_ns);
            }
            Heard::Said(Frame::Happened { event }) => {
                if !state.allowance.tells(event.len()) {
                    return Err("it told too many events");
                }
                match serde_json::from_str::<AgentEvent>(&event) {
                    Ok(event) => {
                        state.failed |= event.code == AGENT_FAILED && event.node.as_ref() == Some(&state.name);
                        self.account.happened.push(event);
                    }
                    Err(error) => self.act(Action::NoteOnce(format!("an event that can't be read: {error}"))),
                }
            }
            Heard::Said(Frame::Bye) => return Err("it said goodbye"),
            heard => return self.hear_of_tasks(child, heard, now_ns),
        }
        Ok(())
    }

    /// Handles a child's frames about tasks.
    fn hear_of_tasks(&mut self, child: u32, heard: Heard<P>, now_ns: u64) -> Result<(), &'static str> {
        let state = &mut self.children[child as usize];
        let latency = state.link.latency_ns;
        match heard {
            Heard::Said(Frame::Ask { tasks }) => {
                if !state.allowance.asks(tasks) {
                    return Err(ASKED_TOO_MUCH);
                }
                self.later(latency, Event::Asked { child, tasks }, None, now_ns);
            }
            Heard::Said(Frame::Computing { task }) => state.out.computing = Some(task),
            Heard::Said(Frame::Subtree(subtree)) => {
                self.estimate(now_ns, |estimator, _, revisions| estimator.told(child, subtree, revisions));
                self.settle();
            }
            Heard::Said(Frame::Sending { rate }) => {
                state.link.sends = rate;
                self.share(now_ns);
            }
            Heard::Result { task, node, ok, payload } => {
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
            Heard::Said(Frame::Recalled { task }) => self.hear_recalled(child as usize, task),
            Heard::Said(Frame::Begun { task }) => self.hear_begun(child as usize, task),
            Heard::Said(Frame::Partial { task, outcomes }) => self.hear_partial(child as usize, task, outcomes),
            Heard::Said(Frame::Ran { task, began_ns, took_ns, said }) => {
                return self.hear_ran(child as usize, Ran { task, began_ns, took_ns, said });
            }
            Heard::Said(Frame::HandBack { task }) => {
                if !state.out.sent.remove(task) {
                    return Err("it gave back a task that it does not have");
                }
                if let Some(draining) = &mut state.draining {
                    draining.handed_back += 1;
                }
                if self.stock.is_recalling(task) {
                    self.withdraw(task);
                }
                self.later(latency, Event::HandedBack { child, task }, None, now_ns);
            }
            Heard::Begun { rate } => {
                if let Processor::Emulated(processor) = &mut self.processor {
                    processor.result_from(child as usize, rate, now_ns);
                }
            }
            _ => return Err("unexpected frame from a child"),
        }
        Ok(())
    }

    fn hear_parent(&mut self, heard: Heard<P>, now_ns: u64) {
        match heard {
            Heard::Said(Frame::Pong { child_ns, root_ns }) => {
                self.clock.pong(child_ns, root_ns, now_ns);
                self.pulse.pings += 1;
                if self.pulse.pings < FIRST_PINGS {
                    self.say(Peer::Parent, Frame::Ping { child_ns: now_ns });
                }
            }
            Heard::Said(Frame::Start { root_ns }) => self.start(self.clock.own_ns(root_ns), now_ns),
            Heard::Said(Frame::Finish) => self.finish(now_ns),
            Heard::Said(Frame::Bye) => self.end(End::Bye),
            Heard::Begun { rate } | Heard::Said(Frame::Pace { rate }) => {
                let stands = rate == 0.0 && self.is_emulated();
                self.estimate(now_ns, |estimator, now_s, _| {
                    if stands { estimator.receives_no_more(now_s) } else { estimator.receives(now_s) }
                });
                if let Processor::Emulated(processor) = &mut self.processor {
                    processor.receive(rate, now_ns);
                }
            }
            Heard::Task { task, work, payload } => {
                if let Processor::Emulated(processor) = &mut self.processor {
                    processor.receive(0.0, now_ns);
                }
                let bytes = payload.bytes();
                self.account.totals.received_bytes += bytes;
                let mb = bytes as f64 * 1e-6;
                self.estimate(now_ns, |estimator, now_s, _| estimator.received(mb, now_s));
                self.stock.hold(task, payload, work);
                self.later(self.own_latency_ns, Event::Arrived { task }, None, now_ns);
            }
            Heard::Said(Frame::Name { task, name }) => self.stock.name(task, name.into()),
            Heard::Said(Frame::Batch { task }) => self.stock.mark_batch(task),
            Heard::Said(Frame::Recall { task }) => _ = self.recall(task, now_ns),
            Heard::Said(Frame::Places { tasks }) => {
                self.later(self.own_latency_ns, Event::Places { tasks }, None, now_ns);
            }
            Heard::Said(Frame::RemainingHint { tasks }) => {
                self.later(self.own_latency_ns, Event::RemainingHint { tasks }, None, now_ns);
            }
            Heard::Said(_) | Heard::Result { .. } => self.end(End::ParentLost("it said what no parent says".into())),
        }
    }

    /// Sends a heartbeat to the parent, and drops peers that have been silent for too long. Must be called at intervals
    /// of at most a quarter of `silence_s`.
    pub fn beat(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        let silence = (self.run.patience.silence_s * 1e9) as u64;
        // After a stall of this agent itself, silence proves nothing about the others: restart their timers.
        if now_ns.saturating_sub(self.pulse.last_beat_ns) > silence / 4 {
            self.pulse.parent_heard_ns = now_ns;
            self.children.iter_mut().for_each(|child| child.heard_ns = now_ns);
        }
        self.pulse.last_beat_ns = now_ns;
        let why = format!("it was silent for {} s", self.run.patience.silence_s);
        for child in 0..self.children.len() {
            let state = &self.children[child];
            if state.connected && now_ns.saturating_sub(state.heard_ns) > silence {
                self.lose(child as u32, &why, now_ns);
            }
        }
        if self.root {
            return;
        }
        if now_ns.saturating_sub(self.pulse.parent_heard_ns) > silence {
            self.end(End::ParentLost(why));
        } else if now_ns >= self.pulse.next_ping_ns {
            self.pulse.next_ping_ns = now_ns + (self.run.patience.heartbeat_s * 1e9) as u64;
            self.say(Peer::Parent, Frame::Ping { child_ns: now_ns });
        }
    }
}
