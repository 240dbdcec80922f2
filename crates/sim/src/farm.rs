//! Simulator of a farm: drives one instance of the policy's [`Node`] per node of the platform in virtual time.
//!
//! It executes the commands of the policies. A send takes as long as the rates of its link and port allow, and a task as
//! long as its processor needs beside the traffic. The ends of both are the next events of the policies.
//!
//! Events at the same instant, such as a task's arrival and the request it triggers, are handled in the order in which
//! they arose. New rates take effect at the end of the instant.

use crosswind_policy::farm::estimate::Estimator;
use crosswind_policy::farm::{Child, Decide, Event, FarmOptions, Node, Settings};
use crosswind_schema::experiment::failure::Effect;
use crosswind_schema::experiment::{ChangeKind, Order, PlacedChange, PlacedFailure, Tasks, Upcoming, change};
use crosswind_schema::plan::Ports;
use crosswind_schema::platform::Loss;
use crosswind_schema::units::Quantity;
use crosswind_schema::{Node as PlatformNode, Platform, Tree};

use crate::agenda::{Agenda, Next};
use crate::error::{Idle, SimError};
use crate::inbox::{Inbox, News};
use crate::outcome::Outcome;
use crate::port::{NO_NODE, Port, SingleSend};
use crate::processor::Processor;
use crate::results::Uplink;
use crate::shared::Shared;
use crate::site::{Link, Site};
use crate::time::{NEVER, nanos, seconds};
use crate::trace::Trace;
use crate::world::{Adaptation, Changing, Executor, InVain, Network, Progress, Recorded, World};

#[derive(Clone, Copy, Debug)]
pub struct Farm<'a> {
    pub platform: &'a Platform,
    /// The tasks. All are at the root at the start, unless they arrive there over time.
    pub tasks: &'a Tasks,
    /// The order of service and the other options of the policy.
    pub farm_options: FarmOptions<'a>,
    /// Chunk size, KiB. A send can be held only at the end of a chunk.
    pub chunk_kib: u64,
    /// Size of each task's result, MB. Results return to the root.
    pub result_size_mb: f64,
}

/// Changes during the run, and what to record.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// Nodes that leave, join or change their rates, in order of time.
    pub changes: &'a [PlacedChange],
    /// Failures of nodes, drawn at random.
    pub failures: &'a [PlacedFailure],
    /// Whether to record a trace.
    pub trace: bool,
}

/// Events between two calls of the caller's callback.
const STEPS_BETWEEN_LOOKS: u64 = 1 << 16;

/// Runs a farm to its end.
///
/// `watch` is called periodically with the number of tasks done. Returning `false` stops the run.
///
/// # Errors
/// The farm cannot be simulated, or the run was interrupted: see [`SimError`].
///
/// # Examples
/// ```
/// use crosswind_policy::farm::{FarmOptions, MeanTask};
/// use crosswind_schema::Platform;
/// use crosswind_schema::experiment::draw::{Column, Tasks};
/// use crosswind_schema::experiment::Policy;
/// use crosswind_sim::{Farm, Options, simulate};
///
/// let text = "schema_version = 1\nname = \"one\"\n[[node]]\nname = \"root\"\ncompute_per_s = 4.0\n";
/// let platform = Platform::from_toml(text.as_bytes(), "one.toml").expect("a right description");
/// let tasks = Tasks { count: 8, size_mb: Column::Same(1.0), work: Column::Same(3.0), ..Tasks::default() };
/// let farm_options = FarmOptions::of(&Policy::default(), MeanTask { size_mb: 1.0, work: 3.0 });
/// let farm = Farm { platform: &platform, tasks: &tasks, farm_options, chunk_kib: 512, result_size_mb: 0.0 };
/// let outcome = simulate(&farm, Options::default(), &mut |_| true)?;
/// assert_eq!((outcome.makespan_s, outcome.nodes[0].tasks), (6.0, 8));
/// # Ok::<(), crosswind_sim::SimError>(())
/// ```
pub fn simulate(
    farm: &Farm<'_>,
    options: Options<'_>,
    watch: &mut dyn FnMut(u64) -> bool,
) -> Result<Outcome, SimError> {
    let tree = farm.platform.tree().map_err(Box::new)?;
    Run::new(farm, &tree, options, &mut |_, settings| Node::new(settings))?.run(watch)
}

/// Runs a farm to its end, with other decisions than those of [`Node`]: `make` creates what decides for the node of an
/// index in the platform, at the start and when a node joins again. `farm.farm_options.order` is not used.
///
/// # Errors
/// As [`simulate`], and when a decision fails.
pub fn simulate_with<P: Decide>(
    farm: &Farm<'_>,
    options: Options<'_>,
    make: &mut dyn FnMut(u32, Settings) -> P,
    watch: &mut dyn FnMut(u64) -> bool,
) -> Result<Outcome, SimError> {
    let tree = farm.platform.tree().map_err(Box::new)?;
    Run::new(farm, &tree, options, make)?.run(watch)
}

pub(crate) struct Run<'a, P> {
    pub nodes: Vec<P>,
    pub world: World<'a>,
    /// Creates what decides for a node.
    pub make: &'a mut dyn FnMut(u32, Settings) -> P,
    /// The node whose decision failed, and why.
    failed: Option<(u32, String)>,
}

impl<'a, P: Decide> Run<'a, P> {
    fn new(
        farm: &'a Farm<'a>,
        tree: &'a Tree,
        options: Options<'a>,
        make: &'a mut dyn FnMut(u32, Settings) -> P,
    ) -> Result<Self, SimError> {
        let platform = farm.platform;
        let count = platform.nodes.len();
        let planned = farm.farm_options.planned_tasks_per_s;
        if farm.farm_options.order == Order::Planned && planned.is_none_or(|rates| rates.len() != count) {
            return Err(SimError::NoPlan { nodes: count });
        }
        change::possible(options.changes, tree).map_err(|(at, field, why)| SimError::Change {
            at,
            node: options.changes[at].node,
            field,
            why,
        })?;
        let mut farm_options = farm.farm_options;
        // Returned results reveal which node has which task. Empty results cost nothing.
        farm_options.result_mb = farm.result_size_mb;
        farm_options.returns |= farm.result_size_mb > 0.0 || farm_options.levels() || P::IS_OWN;
        let elastic = options.changes.iter().any(|change| change.kind == ChangeKind::Leaves)
            || options.failures.iter().any(|failure| failure.effect == Effect::Leaves);
        let mut upcoming = Upcoming::new(options.changes, options.failures, platform, tree);
        if elastic {
            farm_options = farm_options.with_recovery();
        }
        let settings = Settings::each(platform, tree, &farm_options);
        let kept = elastic.then(|| settings.clone().collect());
        let nodes: Vec<P> = (0u32..).zip(settings).map(|(n, settings)| make(n, settings)).collect();
        let is_bent = |node: &PlatformNode| !node.receive_losses.is_empty() || !node.send_losses.is_empty();
        let bends = farm_options.ports == Ports::Multi && platform.nodes.iter().any(is_bent);
        let mut ports = Vec::new();
        let mut sites: Vec<Site> = Vec::with_capacity(count);
        for (n, node) in platform.nodes.iter().enumerate() {
            let mut port = NO_NODE;
            let children = tree.children(n as u32);
            if !children.is_empty() {
                port = ports.len() as u32;
                let limit = node.send_limit_mb_per_s.map_or(f64::INFINITY, |limit| limit.get() * 1e-9);
                let shared = (farm_options.ports == Ports::Multi).then(|| Box::new(Shared::new(limit)));
                let children = children.to_vec();
                ports.push(Port { node: n as u32, children, single: SingleSend::default(), shared });
            }
            // With nonlinear losses, the loss is computed from each rate instead of a constant slope.
            let line = |losses: &[Loss], line: f64| if bends && !losses.is_empty() { 0.0 } else { line };
            let ir_receive = line(&node.receive_losses, node.ir_receive_s_per_mb.get());
            let processor = Processor::new(node.compute_per_s.get(), ir_receive);
            let link = Link {
                parent: tree.parent[n],
                child: 0,
                receive_limit: node.link_mb_per_s().unwrap_or(0.0) * 1e-9,
                drop: node.link_drop(),
                ir_send: line(&node.send_losses, node.ir_send_s_per_mb.get()) * 1e9,
                latency: nanos(node.latency_s.get()),
                received_mb: 0.0,
                port,
                gone: false,
            };
            sites.push(Site { processor, link });
        }
        for port in &mut ports {
            for (number, &child) in port.children.iter().enumerate() {
                let link = &mut sites[child as usize].link;
                link.child = number as Child;
                if let Some(shared) = &mut port.shared {
                    shared.tells_all |= bends && !platform.nodes[child as usize].receive_losses.is_empty();
                    shared.add(link.receive_limit, link.ir_send);
                }
            }
        }
        let returns = farm_options.returns;
        // With several ports, each send of the root changes its loss, and hence when its current task ends.
        let root_port = sites[tree.root as usize].link.port;
        let apart =
            (farm_options.ports == Ports::Multi && root_port != NO_NODE).then(|| [tree.root, count as u32 + root_port]);
        let world = World {
            farm,
            changing: Changing {
                next: upcoming.next(),
                upcoming,
                failures: options.failures,
                settings: kept,
                in_vain: InVain::default(),
            },
            adaptation: Adaptation {
                estimators: if farm_options.adapt { Estimator::of(platform, tree, &farm_options) } else { Vec::new() },
                revisions: Vec::new(),
            },
            now: 0,
            agenda: Agenda::new(count + ports.len() + if returns { count } else { 0 } + 1, apart),
            tree,
            network: Network {
                uplinks: if returns { (0..count).map(|_| Uplink::default()).collect() } else { Vec::new() },
                bends,
                drops: sites.iter().any(|site| site.link.drop > 0.0),
                // When two processors start a task at the same instant, the order depends on which was touched first.
                // Without interference this happens only with a levelled end or when nodes come and go.
                sends_interfere: farm_options.ports == Ports::Multi
                    || farm_options.levels()
                    || !options.changes.is_empty()
                    || !options.failures.is_empty()
                    || sites.iter().any(Site::interferes),
                ports,
                chunk: farm.chunk_kib as f64 * 1024.0 / 1e6,
                resized: Vec::new(),
                unscheduled: None,
            },
            dirty: Vec::new(),
            sites,
            inbox: Inbox::default(),
            progress: Progress::of(farm.tasks, farm.result_size_mb <= 0.0 && !elastic),
            recorded: Recorded {
                trace: options.trace.then(Trace::default),
                events: Vec::new(),
                redone: vec![0; if options.failures.is_empty() { 0 } else { count }],
            },
        };
        Ok(Self { nodes, world, make, failed: None })
    }

    fn run(mut self, watch: &mut dyn FnMut(u64) -> bool) -> Result<Outcome, SimError> {
        let (count, ports) = (self.nodes.len() as u32, self.world.network.ports.len() as u32);
        let tasks = self.world.farm.tasks.count;
        for n in 0..count {
            self.tell(n, Event::Started);
        }
        self.empty_inbox();
        self.release(0);
        self.empty_inbox();
        self.world.schedule_change();
        let mut steps = 0;
        while self.world.progress.done < tasks {
            self.world.take_up_rates();
            if P::IS_OWN
                && let Some((node, why)) = self.failed.take()
            {
                return Err(self.policy_failed(node, why));
            }
            let Some((time, next)) = self.world.agenda.pop() else {
                return Err(self.stuck());
            };
            if time >= NEVER {
                return Err(SimError::Endless);
            }
            self.world.now = time;
            match next {
                Next::Slot(slot) if slot < count => self.end_compute(slot),
                Next::Slot(slot) if slot < count + ports => self.end_send(slot - count),
                Next::Slot(slot) if slot < count + ports + self.world.network.uplinks.len() as u32 => {
                    self.world.end_result(slot - count - ports);
                }
                Next::Slot(_) => self.next_change()?,
                Next::Message { node, news } => self.deliver(node, news),
            }
            self.empty_inbox();
            steps += 1;
            if steps % STEPS_BETWEEN_LOOKS == 0 {
                if self.world.agenda.is_worn_out() {
                    return Err(SimError::Endless);
                }
                if !watch(self.world.progress.done) {
                    return Err(SimError::Interrupted);
                }
            }
        }
        match self.failed.take() {
            Some((node, why)) => Err(self.policy_failed(node, why)),
            None => Ok(self.world.outcome(steps)),
        }
    }

    /// Gives the root the tasks that have arrived by now, from `first` on. Tasks that arrive later are not announced.
    pub fn release(&mut self, first: u64) {
        let (root, all) = (self.world.tree.root, self.world.farm.tasks.count);
        let mut next = all;
        if let Some(arrivals) = self.world.farm.tasks.arrivals.as_ref().filter(|one| !one.release_s.is_empty()) {
            let later = &arrivals.release_s[first as usize..];
            next = first + later.iter().take_while(|&&at_s| nanos(at_s) <= self.world.now).count() as u64;
            if let Some(&at_s) = arrivals.release_s.get(next as usize) {
                let wake = Event::Given { first: next, tasks: 0 };
                self.world.agenda.post(nanos(at_s), root, News::of(wake));
            }
        }
        if next > first {
            self.tell(root, Event::RemainingHint { tasks: next - first });
            self.tell(root, Event::Given { first, tasks: next - first });
        }
    }

    #[cold]
    fn policy_failed(&self, node: u32, why: String) -> SimError {
        let node = self.world.farm.platform.nodes[node as usize].name.clone();
        SimError::Policy { node, time_s: seconds(self.world.now), why }
    }

    /// Explains why tasks remain when no event is pending.
    #[cold]
    pub fn stuck(&self) -> SimError {
        let world = &self.world;
        if world.farm.tasks.classes.is_some() {
            let left = world.farm.tasks.count - world.progress.done;
            return SimError::Classes { time_s: seconds(world.now), left };
        }
        if P::IS_OWN {
            let node = self.nodes.iter().position(|node| node.waiting() > 0).unwrap_or(0);
            let left = world.farm.tasks.count - world.progress.done;
            let why = format!(
                "leaves nothing to happen: it lets {} tasks wait, {left} are not done",
                self.nodes[node].waiting()
            );
            return self.policy_failed(node as u32, why);
        }
        let nodes = &world.farm.platform.nodes;
        let root = &nodes[world.tree.root as usize];
        if root.compute_per_s.get() > 0.0 {
            return SimError::Broken("tasks are left, and the root, which computes, has none of them");
        }
        let root = root.name.clone();
        let mut computes = nodes.iter().zip(&world.sites).filter(|(node, _)| node.compute_per_s.get() > 0.0).peekable();
        let why = if computes.peek().is_none() {
            Idle::Platform(root)
        } else if let Some((node, _)) = computes.find(|(_, site)| !site.link.gone) {
            Idle::Unserved { root, computes: node.name.clone() }
        } else {
            Idle::Left(root)
        };
        let (tasks, done, time_s) = (world.farm.tasks.count, world.progress.done, seconds(world.now));
        SimError::Stuck { done, tasks, time_s, why }
    }

    #[inline]
    fn empty_inbox(&mut self) {
        while let Some((node, news)) = self.world.inbox.pop() {
            self.tell_news(node, news);
        }
    }

    #[inline]
    pub fn tell_news(&mut self, node: u32, news: News) {
        match news {
            News::Requested { child, tasks } => self.requested(node, child, tasks),
            News::Arrived { task } => self.arrived(node, task),
            News::Returned { child, task } => self.returned(node, child, task),
            News::Other(event) => self.tell(node, *event),
        }
    }

    // A separate copy of the policy for each frequent event, kept out of the loop.
    #[inline(never)]
    fn requested(&mut self, node: u32, child: Child, tasks: u64) {
        self.tell_of(node, Event::Requested { child, tasks });
    }

    #[inline(never)]
    pub fn arrived(&mut self, node: u32, task: u64) {
        self.tell_of(node, Event::Arrived { task });
    }

    #[inline(never)]
    fn returned(&mut self, node: u32, child: Child, task: u64) {
        self.tell_of(node, Event::Returned { child, task });
    }

    /// Passes an event to a node and executes the commands it returns.
    #[inline(never)]
    pub fn tell(&mut self, node: u32, event: Event) {
        self.tell_of(node, event);
    }

    /// Like [`Self::tell`], inlined where the event is known at compile time.
    #[inline(always)]
    pub fn tell_of(&mut self, node: u32, event: Event) {
        let decides = &mut self.nodes[node as usize];
        if P::IS_OWN {
            decides.set_time(seconds(self.world.now));
        }
        decides.handle(event, &mut Executor { world: &mut self.world, node });
        if P::IS_OWN && self.failed.is_none() {
            self.failed = self.nodes[node as usize].failure().map(|why| (node, why));
        }
    }

    #[inline]
    fn end_compute(&mut self, node: u32) {
        let world = &mut self.world;
        world.touch(node);
        let Some((task, began)) = world.sites[node as usize].processor.end(world.now) else { return };
        if let Some(trace) = &mut world.recorded.trace {
            trace.compute(node, task, (began, world.now), world.farm.tasks.work_at(task, node));
        }
        world.progress.count_computed(task, world.now);
        if world.network.uplinks.is_empty() {
            world.count_done(task);
        }
        if world.adaptation.is_on() {
            let work = world.farm.tasks.work_at(task, node);
            world.estimate(node, |estimator, now_s, revisions| estimator.computed(work, now_s, revisions));
        }
        self.tell_of(node, Event::Computed { task });
    }
}
