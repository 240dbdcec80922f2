//! The root of a live farm. It takes tasks from a user's task source, delivers results to it, and summarizes every node
//! at the end.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use crosswind_access::Access;
use crosswind_agent::Agent;
use crosswind_agent::account::Piece;
use crosswind_agent::phases::REPORT_UNREADABLE;
use crosswind_agent::printed::Printed;
use crosswind_agent::recall::News;
use crosswind_agent::record::{AgentEvent, LOG, ObservedLink, ROWS, Row, TOTALS, Totals};
use crosswind_agent::settings::{RunSettings, Work};
use crosswind_schema::run::ObservedNode;
use serde_json::{Value, json};

use crate::error::LiveError;
use crate::farm::event_loop::{EventLoop, User};
use crate::farm::executor::ExecutorFactory;
use crate::farm::payload::{Payload, Spool};
use crate::farm::runtime::{NodeRuntime, Processor};
use crate::listener::Listener;
use crate::log::Log;
use crosswind_linux::{self as linux, Waker, now_ns};

/// Descriptors of a process beside those of its nodes.
const OWN_DESCRIPTORS: usize = 512;

#[derive(Debug)]
pub struct NewTask {
    /// Task number, unique in the run.
    pub task: u64,
    pub payload: Payload,
    /// Work units; 0 if unknown.
    pub work: f64,
    /// The names of its input and of its result, separated by a 0 byte. Empty: it has none.
    pub name: Vec<u8>,
    /// Whether it is a batch of calls, whose first outcomes may come early ([`TaskSource::learn`]).
    pub is_batch: bool,
}

#[derive(Debug)]
pub enum Supply {
    Task(NewTask),
    /// No task before this time, ns since time 0.
    At(u64),
    /// No task at the moment. The waker is woken when there is one.
    Later,
    /// No more tasks will follow.
    Over,
}

/// A result for the user.
#[derive(Debug)]
pub struct Delivery {
    pub task: u64,
    /// The node that computed the result.
    pub node: Arc<str>,
    /// Whether the payload is a result; otherwise it is the text of an error.
    pub ok: bool,
    pub payload: Payload,
}

/// Source of tasks and sink of results. The root's event loop calls its methods, which must not block.
pub trait TaskSource {
    /// Returns the next task. `now_ns` is the time since time 0.
    fn next(&mut self, now_ns: u64) -> Supply;

    /// Returns whether more results are accepted. If not, no more tasks are started.
    fn room(&self) -> bool {
        true
    }

    /// Takes results. `now_ns` is the time since time 0.
    fn deliver(&mut self, results: &mut Vec<Delivery>, now_ns: u64);

    /// Returns when each task was delivered, ns since time 0, if the source keeps these times.
    fn take_done(&mut self) -> Vec<u64> {
        Vec::new()
    }

    /// Returns whether results go to files of the user.
    fn writes_files(&self) -> bool {
        false
    }

    /// Receives the new events: agents that joined, were lost or came back.
    fn events(&mut self, _events: &[AgentEvent]) {}

    /// Returns tasks that the user withdraws.
    fn recalls(&mut self) -> Vec<u64> {
        Vec::new()
    }

    /// Receives what is known of tasks: which have begun or are withdrawn, and early outcomes of batches. `unknown` are tasks of
    /// [`Self::recalls`] that have been delivered.
    fn learn(&mut self, _news: News, _unknown: &[u64]) {}

    /// Receives what a task printed, with the name of its node.
    fn printed(&mut self, _node: &Arc<str>, _printed: Printed) {}

    /// Returns why the run must end immediately: a request of the user, a full disk, a broken journal.
    fn failure(&mut self) -> Option<LiveError> {
        None
    }
}

pub struct RootConfig {
    pub run: RunSettings,
    /// HOST:PORT where children connect. Port 0 chooses a free one.
    pub listen: String,
    /// Credentials that the root and its agents use to authenticate each other.
    pub access: Access,
    /// Code that agents run for the tasks. May be empty.
    pub code: Vec<u8>,
    /// Directory for large inputs and results.
    pub spool_directory: PathBuf,
    pub log: Log,
}

/// A root whose listener is open.
pub struct Root {
    config: RootConfig,
    listener: Listener,
    waker: Arc<Waker>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct NodeSummary {
    pub name: String,
    pub number: u32,
    /// Number of delivered results that were computed there.
    pub tasks: u64,
    /// Time that its processor spent computing, s; 0 if it was lost before it could report.
    pub busy_s: f64,
    /// Bytes of tasks received from its parent; 0 if it was lost before it could report.
    pub received_bytes: u64,
    /// Its log for a replay; empty if none was recorded.
    pub log: String,
    /// Measured values of the node and its link that the platform does not give.
    pub seen: ObservedNode,
}

/// The summary of a run.
#[derive(Clone, Debug)]
pub struct RunSummary {
    /// Time from time 0 to the last result at the root, s.
    pub makespan_s: f64,
    pub tasks: u64,
    /// The nodes of the platform, then those that joined.
    pub nodes: Vec<NodeSummary>,
    /// Events in the order of time, with their times from time 0, s.
    pub events: Vec<(f64, AgentEvent)>,
    /// Recorded activities with their times from time 0, ns. Empty if recording is off.
    pub rows: Vec<Row>,
    /// Time from time 0 to each task's result at the root, s. Empty unless tasks arrive over time, or have deadlines or
    /// users.
    pub done_s: Vec<f64>,
}

impl RunSummary {
    /// Returns the summary as JSON: `{makespan_s, tasks, nodes, events, done_s}`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let nodes: Vec<_> = self.nodes.iter().map(|node| {
            json!({"name": node.name, "tasks": node.tasks, "busy_s": node.busy_s, "received_mb": node.received_bytes as f64 * 1e-6, "seen": node.seen})
        }).collect();
        let events: Vec<_> = self.events.iter().map(|(t_s, event)| {
            json!({"t_s": t_s, "code": event.code, "node": event.node, "tasks": event.tasks, "message": event.message})
        }).collect();
        json!({"makespan_s": self.makespan_s, "tasks": self.tasks, "nodes": nodes, "events": events, "done_s": self.done_s})
    }
}

impl Root {
    /// Opens the listener.
    ///
    /// # Errors
    /// When the settings are invalid, or the address cannot be bound.
    pub fn open(config: RootConfig) -> Result<Self, LiveError> {
        config.run.check()?;
        make_room_for(&config.run);
        let listener = Listener::open(&config.listen, config.access.clone())?;
        let waker = Arc::new(Waker::new().map_err(LiveError::system("creating a waker"))?);
        Ok(Self { config, listener, waker })
    }

    /// Returns the HOST:PORT in use.
    ///
    /// # Errors
    /// When the socket has failed.
    pub fn address(&self) -> Result<String, LiveError> {
        self.listener.address().map_err(LiveError::system("listening"))
    }

    /// Returns the waker to wake when the task source has something new.
    #[must_use]
    pub fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    /// Runs on this thread until all results are delivered.
    ///
    /// # Errors
    /// When the task source fails, no computing node is left, or the system fails.
    pub fn run(
        mut self,
        task_source: &mut dyn TaskSource,
        factory: Option<ExecutorFactory>,
    ) -> Result<RunSummary, LiveError> {
        let run = self.config.run.clone();
        let place = run.tree()?.root;
        let name = run.platform.nodes[place as usize].name.clone();
        let processor = Processor::start(&run, factory, &self.waker, None)?;
        // The caller takes what calls return into memory in any case.
        let is_taken = matches!(run.work, Work::Callable) && !task_source.writes_files();
        let over = if is_taken { u64::MAX } else { run.sizes.spool_over_bytes };
        let spool = Spool::below(&self.config.spool_directory, over).map_err(LiveError::system("making a spool"))?;
        let names = run.platform.nodes.iter().enumerate().map(|(at, node)| (at as u32, node.name.as_str().into()));
        let user = User {
            task_source,
            computed: HashMap::new(),
            names: names.collect(),
            last_result_ns: now_ns(),
            passed_events: 0,
        };
        let agent = Agent::new(&name, None, run, false, now_ns())?;
        let node = NodeRuntime::new(agent, None, processor, spool, &mut self.config.log);
        let code = Arc::new(std::mem::take(&mut self.config.code));
        let mut events = EventLoop::new(node, Some(&mut self.listener), self.waker, code);
        events.user = Some(user);
        let result = events.run();
        events.send_goodbye();
        result.map(|_| summary(events))
    }
}

/// Makes room for the connections of a node and, at the root, for the processes of the nodes below it.
pub(crate) fn make_room_for(run: &RunSettings) {
    linux::make_room(OWN_DESCRIPTORS + 2 * run.platform.nodes.len());
}

fn summary(events: EventLoop<'_>) -> RunSummary {
    let EventLoop { node: NodeRuntime { mut agent, .. }, user, .. } = events;
    let (computed, last_result_ns, done) = user.map_or_else(Default::default, |user| {
        let done = user.task_source.take_done();
        (user.computed, user.last_result_ns, done)
    });
    let zero = agent.zero_ns();
    // Emulated runs report the platform's seconds, not wall time.
    let scale = if let Work::Emulated { time_scale, .. } = agent.run().work { time_scale } else { 1.0 };
    let seconds = |ns: u64| (ns as f64 - zero as f64) * 1e-9 * scale;
    let mut nodes: Vec<NodeSummary> = Vec::new();
    let mut place: HashMap<u32, usize> = HashMap::new();
    let (mut events, pieces) = agent.take_account();
    events.sort_by_key(|event| event.root_ns);
    let known = agent.run().platform.nodes.iter().enumerate().map(|(at, node)| (at as u32, node.name.clone()));
    let joined = events.iter().filter_map(|event| Some((event.number?, event.node.clone()?)));
    for (number, name) in known.filter(|(_, name)| !agent.is_late_joiner(name)).chain(joined) {
        place.entry(number).or_insert_with(|| {
            let tasks = computed.get(&number).copied().unwrap_or(0);
            let seen = ObservedNode::default();
            nodes.push(NodeSummary { name, number, tasks, busy_s: 0.0, received_bytes: 0, log: String::new(), seen });
            nodes.len() - 1
        });
    }
    let mut parts: HashMap<(u32, u8), Vec<u8>> = HashMap::new();
    for Piece { node, part, bytes } in pieces {
        parts.entry((node, part)).or_default().extend(bytes);
    }
    let mut rows = Vec::new();
    let mut links = Vec::new();
    for ((number, part), bytes) in parts {
        let Some(node) = place.get(&number).map(|&at| &mut nodes[at]) else { continue };
        match part {
            TOTALS => match serde_json::from_slice::<Totals>(&bytes) {
                Ok(totals) => {
                    node.busy_s += totals.busy_ns as f64 * 1e-9 * scale;
                    node.received_bytes += totals.received_bytes;
                    node.seen.compute_per_s = totals.seen.compute_per_s;
                    node.seen.ir_receive_s_per_mb = totals.seen.ir_receive_s_per_mb;
                    links.extend(totals.links);
                }
                Err(error) => events.push(AgentEvent {
                    root_ns: last_result_ns,
                    code: REPORT_UNREADABLE.into(),
                    node: Some(node.name.clone()),
                    number: None,
                    tasks: None,
                    message: format!("the totals that {} reported cannot be read: {error}", node.name),
                }),
            },
            ROWS => rows.extend(Row::decode(&bytes)),
            LOG => node.log = String::from_utf8_lossy(&bytes).into_owned(),
            _ => {}
        }
    }
    for ObservedLink { number, seen } in links {
        if let Some(node) = place.get(&number).map(|&at| &mut nodes[at].seen) {
            node.receive_limit_mb_per_s = seen.receive_limit_mb_per_s.or(node.receive_limit_mb_per_s);
            node.ir_send_s_per_mb = seen.ir_send_s_per_mb.or(node.ir_send_s_per_mb);
        }
    }
    for row in &mut rows {
        row.start_ns = (row.start_ns.saturating_sub(zero) as f64 * scale) as u64;
        row.end_ns = (row.end_ns.saturating_sub(zero) as f64 * scale) as u64;
    }
    rows.sort_by_key(|row| (row.start_ns, row.node, row.task));
    let tasks = computed.values().sum();
    let makespan_s = if tasks == 0 { 0.0 } else { seconds(last_result_ns.min(now_ns())) };
    let events = events.into_iter().map(|event| (seconds(event.root_ns), event)).collect();
    let done_s = done.into_iter().map(|ns| ns as f64 * 1e-9 * scale).collect();
    RunSummary { makespan_s, tasks, nodes, events, rows, done_s }
}
