//! A node of a live farm: the agent's state machine with the links, processor and disk that execute its actions.

use std::sync::Arc;

use crosswind_agent::Agent;
use crosswind_agent::action::{Action, Peer, Rate};
use crosswind_agent::frame::Frame;
use crosswind_agent::settings::{RunSettings, Work};
use crosswind_schema::units::Quantity as _;

use crate::error::LiveError;
use crate::farm::capture::Capture;
use crate::farm::executor::{ComputeThread, Executor, ExecutorFactory, Job, Noop, Prints, work};
use crate::farm::link::Link;
use crate::farm::payload::{Payload, Spool};
use crate::farm::printer::{Lines, Printer};
use crate::farm::task_processes::memory::Groups;
use crate::farm::transfer::Pace;
use crate::log::Log;
use crosswind_linux::{Waker, now_ns};

pub(crate) enum Processor {
    /// Emulated: the agent's state machine keeps its time.
    Emulated,
    /// Runs on the event loop's own thread.
    Immediate(Box<dyn Executor>),
    /// Runs on its own thread.
    Thread(ComputeThread),
}

impl Processor {
    /// Creates the processor for the work of a run. With `capture`, what this process prints is what its tasks print.
    pub fn start(
        run: &RunSettings,
        factory: Option<ExecutorFactory>,
        waker: &Arc<Waker>,
        capture: Option<Arc<Capture>>,
    ) -> Result<Self, LiveError> {
        let printer = run.recording.printed.then(|| Arc::new(Printer::new(Arc::clone(waker))));
        if let Some(capture) = &capture {
            capture.show(printer.clone());
        }
        Ok(match (&run.work, factory) {
            (Work::Emulated { .. }, _) => Self::Emulated,
            (Work::Noop, _) => Self::Immediate(Box::new(Noop)),
            (_, Some(factory)) => {
                let starting = LiveError::system("starting the computing thread");
                let (retries, prints) = (run.task_limits.retries, Prints { printer, capture });
                Self::Thread(ComputeThread::start(factory, retries, Arc::clone(waker), prints).map_err(starting)?)
            }
            (work, None) => return Err(LiveError::Setup(format!("this agent cannot do {work:?}"))),
        })
    }
}

/// A state machine and the resources that its actions use.
pub(crate) struct NodeRuntime<'a> {
    pub agent: Agent<Payload>,
    /// Links to children, by child number.
    pub children: Vec<Option<Link>>,
    /// `None` at the root, which has no parent.
    pub parent: Option<Box<Link>>,
    pub processor: Processor,
    pub spool: Spool,
    pub log: &'a mut Log,
    actions: Vec<Action<Payload>>,
    /// Tasks for the computing thread, which gets them once the parent has been sent what is queued, and whether each is
    /// a batch of calls.
    jobs: Vec<(Job, bool)>,
    /// Bytes that tasks printed and the parent was not sent.
    unprinted_bytes: u64,
}

impl<'a> NodeRuntime<'a> {
    pub fn new(
        agent: Agent<Payload>,
        parent: Option<Box<Link>>,
        processor: Processor,
        spool: Spool,
        log: &'a mut Log,
    ) -> Self {
        let (children, actions, jobs) = (Vec::new(), Vec::new(), Vec::new());
        Self { agent, children, parent, processor, spool, log, actions, jobs, unprinted_bytes: 0 }
    }

    /// Returns a child's link, if it is connected.
    pub fn child(&mut self, child: u32) -> Option<&mut Link> {
        self.children.get_mut(child as usize)?.as_mut()
    }

    /// Stores the link of a child that was admitted.
    pub fn connect(&mut self, child: u32, link: Link) {
        let places = self.children.len().max(child as usize + 1);
        self.children.resize_with(places, || None);
        self.children[child as usize] = Some(link);
    }

    /// Executes the agent's actions until there are none left, including those that follow from them.
    pub fn perform(&mut self) {
        let mut actions = std::mem::take(&mut self.actions);
        loop {
            self.agent.take_actions(&mut actions);
            if actions.is_empty() {
                break;
            }
            for action in actions.drain(..) {
                self.act(action);
            }
        }
        self.actions = actions;
    }

    fn act(&mut self, action: Action<Payload>) {
        match action {
            Action::SendFrame { to: Peer::Parent, frame: Frame::Printed { node, task, call, left_out, text } } => {
                let Some(link) = self.parent.as_deref_mut() else { return };
                let left_out = left_out + std::mem::take(&mut self.unprinted_bytes);
                // What tasks print must not fill this node's memory where its parent takes little.
                if link.is_behind() {
                    self.unprinted_bytes = left_out + text.len() as u64;
                } else {
                    link.send_frame(&Frame::Printed { node, task, call, left_out, text });
                }
            }
            Action::SendFrame { to, frame } => {
                if let Some(link) = self.link(to) {
                    link.send_frame(&frame);
                }
            }
            Action::Send { to, task, kind, payload, rate, at_ns } => {
                let pace = rate.map(|Rate { bytes_per_ns, reported }| Pace::new(bytes_per_ns, reported, at_ns));
                if let Some(link) = self.link(to) {
                    link.send(task, kind, payload, pace, at_ns);
                    self.collect(to);
                }
            }
            Action::GoOn { child, rate, at_ns } => {
                if let Some(transfer) = self.child(child).and_then(Link::current) {
                    transfer.go_on(rate.map(|rate| (rate.bytes_per_ns, rate.reported)), at_ns);
                }
            }
            Action::Hold { child, at_ns } => {
                if let Some(transfer) = self.child(child).and_then(Link::current) {
                    transfer.hold(at_ns);
                }
            }
            Action::Pace { child, rate, at_ns, tell } => {
                if let Some(link) = self.child(child) {
                    link.pace(rate.map(|rate| (rate.bytes_per_ns, rate.reported)), at_ns, tell);
                }
            }
            Action::Close { child, bye } => {
                let link = self.children.get_mut(child as usize).and_then(Option::take);
                if let (Some(mut link), true) = (link, bye) {
                    link.send_bye(now_ns());
                }
            }
            Action::Compute { task, work, input, name, is_batch } => {
                self.compute(Job { task, work, input, name, early: None, printer: None }, is_batch);
            }
            Action::Free(payload) => self.spool.recycle(payload),
            Action::Note(line) => self.log.note(&line),
            Action::NoteOnce(line) => self.log.note_once(&line),
            Action::Begun => self.record_unlimited_memory(),
        }
    }

    fn link(&mut self, to: Peer) -> Option<&mut Link> {
        match to {
            Peer::Parent => self.parent.as_deref_mut(),
            Peer::Child(child) => self.child(child),
        }
    }

    fn compute(&mut self, job: Job, is_batch: bool) {
        match &mut self.processor {
            Processor::Emulated => {}
            Processor::Thread(_) => self.jobs.push((job, is_batch)),
            Processor::Immediate(executor) => {
                let (worked, _) = work(executor.as_mut(), &job, self.agent.run().task_limits.retries, &|_| {});
                self.agent.worked(worked);
            }
        }
    }

    /// Starts the tasks that are to be computed. Call it when the parent has been sent what is queued.
    pub fn start_work(&mut self) {
        if let Processor::Thread(thread) = &self.processor {
            self.jobs.drain(..).for_each(|(job, is_batch)| thread.give(job, is_batch));
        }
    }

    /// Reports a link's finished transfers to the agent.
    pub fn collect(&mut self, peer: Peer) {
        let Some(link) = self.link(peer) else { return };
        for done in std::mem::take(&mut link.done) {
            self.agent.transferred(peer, done, now_ns());
        }
    }

    /// Reports the tasks completed since the last call to the agent.
    pub fn collect_work(&mut self) -> Result<(), LiveError> {
        if let Processor::Thread(thread) = &self.processor {
            let done = thread.take().map_err(LiveError::Setup)?;
            done.partial.into_iter().for_each(|(task, outcomes)| self.agent.pass_partial(task, outcomes));
            for Lines { task, call, left_out, text } in done.printed {
                self.agent.pass_printed(task, call, left_out, text);
            }
            let is_command = matches!(self.agent.run().work, Work::Command { .. });
            for (worked, began_ns) in done.worked {
                if is_command {
                    self.agent.pass_ran(worked.task, (began_ns, worked.ended_ns));
                }
                self.agent.worked(worked);
            }
        }
        Ok(())
    }

    /// Records an event if the run limits the memory of commands and this node cannot.
    fn record_unlimited_memory(&mut self) {
        let run = self.agent.run();
        let (Work::Command { .. }, Some(bytes)) = (&run.work, run.task_limits.memory_bytes()) else { return };
        let name = self.agent.name();
        let own = run.platform.nodes.iter().find(|node| node.name == name);
        let computes = own.is_some_and(|node| node.compute_per_s.get() > 0.0);
        if let (true, Err(why)) = (computes, Groups::find(bytes)) {
            let message = format!("the memory of tasks on {name} is not limited (--task-memory): {why}");
            self.agent.record_event("task-memory-unlimited", None, message);
        }
    }
}
