//! State of the simulated platform (processors, links, ports), and the execution of nodes' commands.

use crosswind_policy::farm::estimate::{Estimator, Revision};
use crosswind_policy::farm::{Child, Command, Commands, Event, Settings, TaskId};
use crosswind_schema::Tree;
use crosswind_schema::experiment::{Due, PlacedFailure, Tasks, Upcoming};

use crate::agenda::Agenda;
use crate::farm::Farm;
use crate::inbox::{Inbox, News};
use crate::outcome::{Happened, NodeFailures, NodeOutcome, Outcome};
use crate::port::Port;
use crate::processor::Refreshed;
use crate::results::Uplink;
use crate::site::Site;
use crate::time::{Nanos, seconds};
use crate::trace::Trace;

/// Estimators of the nodes, and pending revisions. Empty without adaptation.
pub(crate) struct Adaptation {
    pub estimators: Vec<Estimator>,
    pub revisions: Vec<Revision>,
}

impl Adaptation {
    #[inline]
    pub fn is_on(&self) -> bool {
        !self.estimators.is_empty()
    }
}

/// Ports, result links, and the chunk size.
pub(crate) struct Network {
    pub ports: Vec<Port>,
    pub uplinks: Vec<Uplink>,
    /// Whether the loss at some node is nonlinear in the rate. Each such loss then follows its curve.
    pub bends: bool,
    /// Whether any node's receive limit falls while it sends.
    pub drops: bool,
    /// Whether a send may change a processor's rate.
    pub sends_interfere: bool,
    /// Size of a chunk, MB.
    pub chunk: f64,
    /// Nodes whose send rate has changed, and with it their receive limit.
    pub resized: Vec<u32>,
    /// The shared port whose next end must be scheduled, and its position among entries at the same time.
    pub unscheduled: Option<(u32, u64)>,
}

/// Changes of a run, those of drawn failures included, and the settings with which a node rejoins.
pub(crate) struct Changing<'a> {
    pub next: Option<Due>,
    pub upcoming: Upcoming<'a>,
    pub failures: &'a [PlacedFailure],
    pub settings: Option<Vec<Settings>>,
    pub in_vain: InVain,
}

/// Drawn changes since the last task was done.
#[derive(Default)]
pub(crate) struct InVain {
    /// Tasks done by then.
    pub done: u64,
    pub changes: u64,
    /// Tasks that are done again because of them.
    pub redone: u64,
    /// Nodes that came back meanwhile; empty until there were many changes.
    pub back: Vec<bool>,
}

pub(crate) struct Progress {
    pub done: u64,
    /// Whether a task counts as done when it is computed, for the quarters: results have no size and none is lost.
    pub by_computing: bool,
    /// Number of tasks computed, and the time of the last.
    computed: u64,
    last_computed: Nanos,
    /// Times at which a quarter and three quarters of the tasks were done.
    quarters: [Nanos; 2],
    /// Number of tasks at each of these.
    quarters_at: [u64; 2],
    /// When each task was done; empty unless tasks arrive over time, or have deadlines, users or classes.
    done_at: Vec<Nanos>,
}

impl Progress {
    pub fn of(tasks: &Tasks, by_computing: bool) -> Self {
        let quarters_at = [tasks.count / 4, tasks.count - tasks.count / 4];
        let is_timed = tasks.arrivals.is_some() || tasks.users.is_some() || tasks.classes.is_some();
        let done_at = if is_timed { vec![0; tasks.count as usize] } else { Vec::new() };
        Self { done: 0, by_computing, computed: 0, last_computed: 0, quarters: [0; 2], quarters_at, done_at }
    }

    #[inline]
    pub fn count_computed(&mut self, task: TaskId, now: Nanos) {
        (self.computed, self.last_computed) = (self.computed + 1, now);
        if self.by_computing {
            self.mark(task, self.computed, now);
        }
    }

    #[inline]
    fn mark(&mut self, task: TaskId, count: u64, now: Nanos) {
        if let Some(done) = self.done_at.get_mut(task as usize) {
            *done = now;
        }
        for (quarter, at) in self.quarters.iter_mut().zip(self.quarters_at) {
            if count == at {
                *quarter = now;
            }
        }
    }
}

/// Records kept for the outcome.
pub(crate) struct Recorded {
    pub trace: Option<Trace>,
    pub events: Vec<Happened>,
    /// Tasks that each node lost by drawn failures; empty without any.
    pub redone: Vec<u64>,
}

/// Everything except the policy's nodes.
pub(crate) struct World<'a> {
    pub farm: &'a Farm<'a>,
    pub tree: &'a Tree,
    pub changing: Changing<'a>,
    pub adaptation: Adaptation,
    pub now: Nanos,
    pub agenda: Agenda,
    pub sites: Vec<Site>,
    pub network: Network,
    /// Processors whose rates may have changed, in the order in which they were first touched.
    pub dirty: Vec<u32>,
    pub inbox: Inbox,
    pub progress: Progress,
    pub recorded: Recorded,
}

/// Executes a node's commands as the policy issues them.
pub(crate) struct Executor<'w, 'a> {
    pub world: &'w mut World<'a>,
    pub node: u32,
}

impl Commands for Executor<'_, '_> {
    #[inline(always)]
    fn push(&mut self, command: Command) {
        let (world, node) = (&mut *self.world, self.node);
        match command {
            Command::Compute { task } => world.begin_compute(node, task),
            Command::Send { child, task, limit_mb_per_s } => world.begin_send(node, child, task, limit_mb_per_s),
            Command::Ask { tasks } => {
                let link = &world.sites[node as usize].link;
                world.tell_later(link.latency, link.parent, News::Requested { child: link.child, tasks });
            }
            Command::HintRemaining { child, tasks } => {
                world.message_to_child(node, child, Event::RemainingHint { tasks });
            }
            Command::Hold { child } => world.hold(node, child),
            Command::Limit { child, limit_mb_per_s } => world.limit(node, child, limit_mb_per_s),
            Command::Return { task } => world.begin_result(node, task),
            Command::HandBack { task } => {
                let link = &world.sites[node as usize].link;
                let event = Event::HandedBack { child: link.child, task };
                world.tell_later(link.latency, link.parent, News::of(event));
            }
        }
    }
}

impl World<'_> {
    #[inline]
    fn begin_compute(&mut self, node: u32, task: TaskId) {
        self.touch(node);
        if self.adaptation.is_on() {
            self.estimate(node, |estimator, now_s, _| estimator.computes(now_s));
        }
        let work = self.farm.tasks.work_at(task, node);
        self.sites[node as usize].processor.begin(self.now, task, work);
    }

    #[inline(never)]
    pub fn message_to_child(&mut self, node: u32, child: Child, event: Event) {
        let port = &self.network.ports[self.sites[node as usize].link.port as usize];
        let to = port.children[child as usize];
        self.tell_later(self.sites[to as usize].link.latency, to, News::of(event));
    }

    /// Sends an event to a node, to arrive after `latency`.
    #[inline]
    pub fn tell_later(&mut self, latency: Nanos, node: u32, news: News) {
        if latency == 0 {
            self.inbox.push(node, news);
        } else {
            self.agenda.post(self.now.saturating_add(latency), node, news);
        }
    }

    /// Settles a processor's work before one of its rates changes, and marks the processor as changed.
    #[inline(always)]
    pub fn touch(&mut self, node: u32) {
        let Site { processor, link } = &mut self.sites[node as usize];
        let is_first = !std::mem::replace(&mut processor.dirty, true);
        if processor.shared.is_none() {
            processor.settle(self.now);
        } else {
            let parent = link.parent;
            self.settle_shared(node, parent);
        }
        if is_first {
            self.dirty.push(node);
        }
    }

    /// Settles the processor at one end of a send over a single port. Returns its site.
    #[inline(always)]
    pub fn touch_by_single(&mut self, node: u32) -> &mut Site {
        let site = &mut self.sites[node as usize];
        site.processor.settle(self.now);
        if self.network.sends_interfere && !site.processor.dirty {
            site.processor.dirty = true;
            self.dirty.push(node);
        }
        site
    }

    #[inline(never)]
    fn settle_shared(&mut self, node: u32, parent: u32) {
        let port = &self.network.ports[self.sites[parent as usize].link.port as usize];
        let received = port.shared.as_ref().map_or(0.0, |shared| shared.progress_at(self.now));
        self.sites[node as usize].processor.settle_shared(self.now, received);
    }

    #[inline]
    pub fn take_up_rates(&mut self) {
        while let Some(node) = self.network.resized.pop() {
            self.receiving_changed(node);
        }
        self.schedule_shared();
        while let Some(node) = self.dirty.pop() {
            match self.sites[node as usize].processor.refresh(self.now) {
                Refreshed::Same => {}
                Refreshed::Ends(time) => self.agenda.at(time, node),
                Refreshed::StandsStill => self.agenda.cancel(node),
            }
        }
    }

    #[inline]
    pub fn count_done(&mut self, task: TaskId) {
        self.progress.done += 1;
        if !self.progress.by_computing {
            self.progress.mark(task, self.progress.done, self.now);
        }
    }

    /// Drops the task that a node is computing. Requires settled work.
    pub fn cut_task(&mut self, node: u32) {
        let now = self.now;
        let Some((task, began, left)) = self.sites[node as usize].processor.drop_task(now) else { return };
        if let Some(trace) = self.recorded.trace.as_mut().filter(|_| now > began) {
            trace.compute(node, task, (began, now), self.farm.tasks.work_at(task, node) - left);
            trace.mark_cut();
        }
    }

    pub fn outcome(self, steps: u64) -> Outcome {
        let tasks = self.farm.tasks.count;
        // Without results, the notice of the last task may still be on its way to the root.
        let ended = if self.farm.result_size_mb > 0.0 { self.now } else { self.progress.last_computed };
        let makespan_s = seconds(ended);
        let [from, to] = self.progress.quarters;
        let in_between = (tasks - 2 * (tasks / 4)) as f64;
        let throughput_tasks_per_s = tasks as f64 / makespan_s;
        let seen = self.seen();
        let failures = failures_until(makespan_s, self.changing.failures, &self.recorded.redone);
        let nodes = self.sites.iter().map(|Site { processor, link }| NodeOutcome {
            tasks: processor.computed,
            busy_s: seconds(processor.busy),
            received_mb: link.received_mb,
        });
        Outcome {
            tasks,
            makespan_s,
            throughput_tasks_per_s,
            steady_tasks_per_s: if to > from { in_between / seconds(to - from) } else { throughput_tasks_per_s },
            nodes: nodes.collect(),
            seen,
            done_s: self.progress.done_at.into_iter().map(seconds).collect(),
            events: self.recorded.events,
            failures,
            steps,
            trace: self.recorded.trace,
        }
    }
}

/// Returns the failures of each node by the end of a run.
fn failures_until(end_s: f64, failures: &[PlacedFailure], redone: &[u64]) -> Vec<NodeFailures> {
    let mut found: Vec<NodeFailures> =
        redone.iter().map(|&tasks| NodeFailures { redone: tasks, ..NodeFailures::default() }).collect();
    for failure in failures {
        let (count, failed_s) = failure.until(end_s);
        let node = &mut found[failure.node as usize];
        node.count += count;
        node.failed_s += failed_s;
    }
    found
}
