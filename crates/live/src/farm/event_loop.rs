//! Event loop of an agent: drives the state machine `crosswind_agent::Agent` with real sockets, timers and a computing
//! thread.
//!
//! One turn handles what is due, takes the user's tasks (at the root), writes to all links, delivers results, then waits
//! and reads. The loop runs on one thread, and only [`linux::wait`] blocks. All available input is read before anything
//! is written, so that many small tasks cost one system call in each direction. It decides nothing: the state machine
//! and its policy do.

use std::collections::HashMap;
use std::os::fd::RawFd;
use std::sync::Arc;

use crosswind_access::Transport;
use crosswind_agent::action::{End, Peer};
use crosswind_agent::frame::{Frame, Refusal};
use crosswind_agent::phases::AGENT_FAILED;
use crosswind_agent::recall::News;
use crosswind_agent::task_store::Finished;

use crate::error::LiveError;
use crate::farm::link::{Broken, Inbound, Link};
use crate::farm::payload::no_space;
use crate::farm::root::{Delivery, NewTask, Supply, TaskSource};
use crate::farm::runtime::{NodeRuntime, Processor};
use crate::farm::status_file::StatusFile;
use crate::listener::{AuthenticatedPeer, Listener, refuse};
use crosswind_linux::{self as linux, Waker, now_ns};

/// Longest sleep of the loop, ns. Below the root, it may be one heartbeat.
const NAP_NS: u64 = 200_000_000;
/// How long a failing agent tries to send the reason to its parent, and how long each wait for the socket lasts, ns.
const LAST_WORDS_NS: u64 = 2_000_000_000;
const LOOK_NS: u64 = 10_000_000;
/// Bytes of code in one frame.
const CODE_PIECE: usize = 1 << 20;
const UNKNOWN: &str = "an unknown node";

pub(crate) struct EventLoop<'a> {
    pub node: NodeRuntime<'a>,
    listener: Option<&'a mut Listener>,
    waker: Arc<Waker>,
    code: Arc<Vec<u8>>,
    /// Descriptor whose end of input ends this agent.
    pub watch_input: Option<RawFd>,
    /// Descriptor on which a byte asks this agent to leave.
    pub leave: Option<RawFd>,
    /// Writer of the status files for another process.
    pub status_file: Option<StatusFile>,
    pub user: Option<User<'a>>,
    inbound: Vec<Inbound>,
}

/// The user's side of a root.
pub(crate) struct User<'a> {
    pub task_source: &'a mut dyn TaskSource,
    /// Number of delivered tasks per computing node.
    pub computed: HashMap<u32, u64>,
    pub names: HashMap<u32, Arc<str>>,
    pub last_result_ns: u64,
    /// Number of events already passed to the user's side.
    pub passed_events: usize,
}

impl<'a> EventLoop<'a> {
    pub fn new(
        node: NodeRuntime<'a>,
        listener: Option<&'a mut Listener>,
        waker: Arc<Waker>,
        code: Arc<Vec<u8>>,
    ) -> Self {
        let (status_file, user) = (None, None);
        Self { node, listener, waker, code, watch_input: None, leave: None, status_file, user, inbound: Vec::new() }
    }

    pub fn run(&mut self) -> Result<End, LiveError> {
        linux::exact_timers();
        loop {
            if let Err(error) = self.once() {
                self.report_failure(&error);
                return Err(error);
            }
            match self.node.agent.ended() {
                Some(End::AllLost(why)) => return Err(LiveError::Lost(why.clone())),
                Some(end) => return Ok(end.clone()),
                None => {}
            }
        }
    }

    fn once(&mut self) -> Result<(), LiveError> {
        let now = now_ns();
        let mut due = self.node.agent.pass_time(now);
        self.node.collect_work()?;
        due = earliest(due, self.end_if_over_time(now)?);
        if let Some(failure) = self.user.as_mut().and_then(|user| user.task_source.failure()) {
            return Err(failure);
        }
        self.recall(now);
        let mut arrives = self.supply();
        self.node.agent.progress(now);
        if let Some(status_file) = &mut self.status_file {
            status_file.look(&self.node.agent, now);
        }
        if self.node.agent.is_opening() {
            // The user's first tasks must be available before any child requests one.
            arrives = self.supply();
            self.node.agent.open(now);
        }
        if matches!(self.node.agent.ended(), Some(End::AllLost(_) | End::ParentLost(_))) {
            return Ok(());
        }
        due = earliest(earliest(due, arrives), self.flush(now)?);
        self.deliver();
        if self.node.agent.ended().is_some() {
            return Ok(());
        }
        // Events handled meanwhile may have made something due.
        due = earliest(due, self.node.agent.pass_time(now));
        if self.node.agent.has_actions() {
            due = Some(now);
        }
        self.wait_and_read(due)
    }

    /// Returns when the task being computed will exceed its time limit. If it has, and only ending this process stops it,
    /// reports that to the parent, so that the agent does not count as lost, and returns an error. The root never ends in
    /// this way.
    fn end_if_over_time(&mut self, now: u64) -> Result<Option<u64>, LiveError> {
        let NodeRuntime { agent, processor: Processor::Thread(thread), parent, .. } = &mut self.node else {
            return Ok(None);
        };
        let Some(trying) = thread.trying() else { return Ok(None) };
        let Some(due) = agent.over_time_at(trying) else { return Ok(None) };
        if due > now || parent.is_none() {
            return Ok(Some(due).filter(|due| *due > now));
        }
        agent.end_over_time(trying);
        let timeout_s = agent.run().task_limits.timeout_s.unwrap_or_default();
        self.flush_to_parent();
        Err(LiveError::OverTime { task: trying.task, timeout_s })
    }

    /// Reports to the parent the error that ends this agent. Lost agents, interrupts and exceeded time limits are skipped.
    fn report_failure(&mut self, error: &LiveError) {
        if matches!(error, LiveError::Lost(_) | LiveError::OverTime { .. } | LiveError::Interrupted) {
            return;
        }
        let agent = &mut self.node.agent;
        let message = format!("{} ended: {error}", agent.name());
        agent.record_event(AGENT_FAILED, None, message);
        agent.forward_events();
        self.flush_to_parent();
    }

    /// Flushes pending output to the parent, for at most [`LAST_WORDS_NS`].
    fn flush_to_parent(&mut self) {
        self.node.perform();
        let Some(link) = &mut self.node.parent else { return };
        let until = now_ns() + LAST_WORDS_NS;
        while now_ns() < until && link.flush(now_ns()).is_ok() && link.wants_room() {
            let mut watched = [linux::watch(link.fd(), false, true)];
            if linux::wait(&mut watched, Some(LOOK_NS)).is_err() {
                return;
            }
        }
    }

    /// Withdraws the tasks that the user no longer wants, and passes on what is known of tasks.
    fn recall(&mut self, now: u64) {
        self.show_printed();
        let Some(User { task_source, .. }) = &mut self.user else { return };
        let agent = &mut self.node.agent;
        let mut tasks = task_source.recalls();
        tasks.retain(|task| !agent.recall(*task, now));
        let news = agent.take_news();
        if !tasks.is_empty() || news != News::default() {
            task_source.learn(news, &tasks);
        }
    }

    /// Passes what tasks printed to the user.
    fn show_printed(&mut self) {
        let Some(user) = &mut self.user else { return };
        for printed in self.node.agent.take_printed() {
            let node = user.names.entry(printed.node).or_insert_with(|| UNKNOWN.into());
            user.task_source.printed(node, printed);
        }
    }

    /// Takes as many tasks from the user as the agent needs soon. Returns when the next one arrives, if that is known.
    fn supply(&mut self) -> Option<u64> {
        let Some(User { task_source, .. }) = &mut self.user else { return None };
        let agent = &mut self.node.agent;
        let now = now_ns();
        while agent.wants_task() && task_source.room() {
            let zero = agent.zero_ns();
            match task_source.next(now.saturating_sub(zero)) {
                Supply::Task(NewTask { task, payload, work, name, is_batch }) => {
                    agent.name_task(task, name);
                    if is_batch {
                        agent.mark_batch(task);
                    }
                    agent.submit(task, payload, work, now);
                }
                Supply::At(ns) => return Some(zero.saturating_add(ns)),
                Supply::Later => break,
                Supply::Over => agent.end_of_tasks(now),
            }
        }
        None
    }

    /// Passes new events and results to the user.
    fn deliver(&mut self) {
        let Some(user) = &mut self.user else { return };
        let events = self.node.agent.agent_events();
        if let Some(new @ [_, ..]) = events.get(user.passed_events..) {
            user.passed_events = events.len();
            // The name of a late joiner is in its join event.
            for (number, name) in new.iter().filter_map(|event| Some((event.number?, event.node.as_deref()?))) {
                user.names.entry(number).or_insert_with(|| name.into());
            }
            user.task_source.events(new);
        }
        let results = self.node.agent.take_results();
        if results.is_empty() {
            return;
        }
        self.show_printed(); // what a task printed is shown before its result is there
        let Some(user) = &mut self.user else { return };
        let news = self.node.agent.take_news();
        if news != News::default() {
            user.task_source.learn(news, &[]); // what is known of a command is known before its result is there
        }
        user.last_result_ns = now_ns();
        let mut deliveries = Vec::with_capacity(results.len());
        for Finished { task, node, ok, payload } in results {
            *user.computed.entry(node).or_default() += 1;
            let node = user.names.entry(node).or_insert_with(|| UNKNOWN.into());
            deliveries.push(Delivery { task, node: Arc::clone(node), ok, payload });
        }
        let now = user.last_result_ns.saturating_sub(self.node.agent.zero_ns());
        user.task_source.deliver(&mut deliveries, now);
    }

    /// Writes to all links, and again if that produced new actions. Returns when more will be due, if that depends on time.
    fn flush(&mut self, now: u64) -> Result<Option<u64>, LiveError> {
        let mut due = None;
        for _ in 0..64 {
            due = None;
            let mut more = false;
            self.node.agent.ask_parent();
            self.node.perform();
            for child in 0..self.node.children.len() {
                let peer = Peer::Child(child as u32);
                let Some(link) = &mut self.node.children[child] else { continue };
                match link.flush(now) {
                    Ok(next) => due = earliest(due, next),
                    Err(error) => {
                        // An input that changed while it was sent is not the child's fault.
                        let own = link.current().and_then(|transfer| transfer.payload.missing());
                        // Frames that it sent before the failure still count.
                        self.read_child(child as u32, now)?;
                        if own.is_some() {
                            self.node.agent.acquit(child as u32);
                        }
                        self.node.agent.lost(peer, &own.unwrap_or(error).to_string(), now);
                        more = true;
                        continue;
                    }
                }
                if !link.done.is_empty() {
                    self.node.collect(peer);
                    more = true;
                }
            }
            if let Some(link) = &mut self.node.parent {
                match link.flush(now) {
                    Ok(next) => due = earliest(due, next),
                    Err(error) => {
                        self.node.agent.lost(Peer::Parent, &error.to_string(), now);
                        return Ok(due);
                    }
                }
                if !link.done.is_empty() {
                    self.node.collect(Peer::Parent);
                    more = true;
                }
            }
            self.node.start_work();
            if !more {
                return Ok(due);
            }
        }
        Ok(Some(due.unwrap_or(now).min(now)))
    }

    fn wait_and_read(&mut self, due: Option<u64>) -> Result<(), LiveError> {
        let mut watched = vec![linux::watch(self.waker.fd(), true, false)];
        let mut children = Vec::with_capacity(self.node.children.len());
        for (child, link) in self.node.children.iter().enumerate() {
            if let Some(link) = link {
                children.push(child as u32);
                watched.push(linux::watch(link.fd(), true, link.wants_room()));
            }
        }
        let parent = self.node.parent.as_ref().map(|link| {
            watched.push(linux::watch(link.fd(), true, link.wants_room()));
            watched.len() - 1
        });
        // An agent that is leaving need not stop when the process that started it ends.
        let input = self.watch_input.filter(|_| !self.node.agent.is_leaving()).map(|fd| {
            watched.push(linux::watch(fd, true, false));
            (watched.len() - 1, fd)
        });
        if let Some(fd) = self.leave {
            watched.push(linux::watch(fd, true, false));
        }
        let listener = watched.len();
        let mut patience = None;
        if let Some(open) = &self.listener {
            watched.extend(open.fds().map(|fd| linux::watch(fd, true, false)));
            patience = open.due();
        }
        let now = now_ns();
        // A TLS connection may hold decrypted bytes, which no socket event reports.
        let held = self.node.children.iter().flatten().any(Link::holds)
            || self.node.parent.as_ref().is_some_and(|link| link.holds());
        let until =
            if held { now } else { earliest(earliest(due, patience), Some(now + self.nap_ns())).unwrap_or(now) };
        linux::wait(&mut watched, Some(until.saturating_sub(now))).map_err(LiveError::system("waiting"))?;
        let now = now_ns();
        if linux::readable(&watched[0]) {
            self.waker.clear();
        }
        if input.is_some_and(|(at, fd)| linux::readable(&watched[at]) && linux::input_ended(fd)) {
            self.node.log.note("the process that started this one is gone");
            self.node.agent.stop();
            return Ok(());
        }
        let requests = self.leave.map_or(0, linux::take_waiting);
        if requests > 0 {
            self.node.agent.leave(requests, now);
            if self.node.agent.ended().is_some() {
                return Ok(());
            }
        }
        for (at, &child) in children.iter().enumerate() {
            if linux::readable(&watched[1 + at]) || self.node.child(child).is_some_and(|link| link.holds()) {
                self.read_child(child, now)?;
            }
        }
        let holds = self.node.parent.as_ref().is_some_and(|link| link.holds());
        if parent.is_some_and(|at| holds || linux::readable(&watched[at])) {
            self.read_parent(now)?;
            if self.node.agent.ended().is_some() {
                return Ok(());
            }
        }
        if watched[listener..].iter().any(linux::readable) || patience.is_some_and(|due| due <= now) {
            self.attend(now);
        }
        self.node.agent.send_heartbeat(now);
        Ok(())
    }

    fn nap_ns(&self) -> u64 {
        let patience = self.node.agent.run().patience;
        let heartbeat_ns = (patience.heartbeat_s.min(patience.silence_s / 5.0) * 1e9) as u64;
        if self.user.is_some() { NAP_NS } else { NAP_NS.max(heartbeat_ns) }
    }

    fn read_child(&mut self, child: u32, now: u64) -> Result<(), LiveError> {
        let peer = Peer::Child(child);
        let NodeRuntime { children, spool, agent, .. } = &mut self.node;
        let Some(link) = &mut children[child as usize] else { return Ok(()) };
        let mut inbound = std::mem::take(&mut self.inbound);
        let result = link.read(spool, now, &mut inbound);
        agent.alive(peer, link.received_ns);
        for inbound in inbound.drain(..) {
            if !matches!(inbound, Inbound::Frame(Frame::Ping { .. })) {
                self.node.agent.on_inbound(peer, inbound, now);
            } else if !self.node.child(child).is_some_and(|link| link.is_behind()) {
                // Behind a long output queue, a pong would report a wrong time, and pongs would pile up.
                self.node.agent.on_inbound(peer, inbound, now_ns());
                self.node.perform();
            }
        }
        self.inbound = inbound;
        match result {
            Ok(_) => Ok(()),
            Err(Broken::Peer(error)) => {
                self.node.agent.lost(peer, &error.to_string(), now);
                Ok(())
            }
            Err(Broken::Own(error)) => Err(self.cannot_keep("a result", error)),
        }
    }

    fn read_parent(&mut self, now: u64) -> Result<(), LiveError> {
        let NodeRuntime { parent: Some(link), spool, agent, .. } = &mut self.node else { return Ok(()) };
        let result = link.read(spool, now, &mut self.inbound);
        agent.alive(Peer::Parent, link.received_ns);
        for inbound in self.inbound.drain(..) {
            // The arrival time of a pong is used to synchronize clocks.
            let at = if matches!(inbound, Inbound::Frame(Frame::Pong { .. })) { now_ns() } else { now };
            agent.on_inbound(Peer::Parent, inbound, at);
        }
        match result {
            Ok(_) => Ok(()),
            Err(Broken::Peer(error)) => {
                agent.lost(Peer::Parent, &error.to_string(), now);
                Ok(())
            }
            Err(Broken::Own(error)) => Err(self.cannot_keep("a task", error)),
        }
    }

    fn cannot_keep(&self, what: &str, error: std::io::Error) -> LiveError {
        let directory = self.node.spool.directory();
        let place = no_space(directory).unwrap_or_else(|| directory.display().to_string());
        LiveError::system(format!("{place}: keeping {what}"))(error)
    }

    /// Admits connections that know the token and have a slot here.
    fn attend(&mut self, now: u64) {
        let Some(listener) = &mut self.listener else { return };
        let mut complaints = Vec::new();
        let authenticated = listener.attend(now, &mut |_, line| complaints.push(line.to_owned()));
        for line in complaints {
            self.node.log.note_once(&line);
        }
        for accepted in authenticated {
            let (peer, name) = (accepted.peer.clone(), accepted.name.clone());
            if let Err((stream, (refusal, why))) = self.register(accepted, now) {
                self.node.log.note_once(&format!("refused {name:?} from {peer}: {why}"));
                stream.into_iter().for_each(|stream| refuse(stream, refusal, &why));
            }
        }
    }

    /// Admits an authenticated peer. An error contains the reason and the connection, if it still exists.
    fn register(&mut self, peer: AuthenticatedPeer, now: u64) -> Result<(), (Option<Transport>, (Refusal, String))> {
        let last = |why: String| (Refusal::Final, why);
        let AuthenticatedPeer { stream, name, about, rest, proof, .. } = peer;
        let random = crosswind_access::token::random().map(u32::from_be_bytes).map_err(|error| error.to_string());
        let agent = &mut self.node.agent;
        let named = stream.names(&name).and(random).map_err(last);
        let slot = match named.and_then(|random| agent.reserve_slot(&name, &about, random, now)) {
            Ok(slot) => slot,
            Err(why) => return Err((Some(stream), why)),
        };
        let Ok(settings) = serde_json::to_vec(&agent.admission(&slot, !self.code.is_empty())) else {
            return Err((Some(stream), last("the run can't be described".into())));
        };
        let (chunk, limit) = (agent.run().policy.chunk_kib.saturating_mul(1024), agent.run().sizes.largest_task_bytes);
        let mut link = Link::new(stream, &rest, chunk, limit, now).map_err(|error| (None, last(error.to_string())))?;
        link.send_frame(&Frame::Welcome { proof, settings });
        let pieces = self.code.chunks(CODE_PIECE).count();
        for (at, piece) in self.code.chunks(CODE_PIECE).enumerate() {
            link.send_frame(&Frame::Code { last: at + 1 == pieces, piece: piece.to_vec() });
        }
        let child = agent.register(slot, now);
        self.node.connect(child, link);
        Ok(())
    }

    /// Sends the last frames to all children.
    pub fn send_goodbye(&mut self) {
        self.node.agent.send_goodbye();
        self.node.perform();
    }
}

fn earliest(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    [a, b].into_iter().flatten().min()
}
