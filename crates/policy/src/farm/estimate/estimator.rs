//! What one node observes while it runs, and the revisions that follow: keys and paces of its children, buffer sizes,
//! and what its parent must know of its subtree.

use crosswind_schema::experiment::Order;
use crosswind_schema::plan::Ports;
use crosswind_schema::units::Quantity;
use crosswind_schema::{Platform, Tree};

use super::super::basis::Basis;
use super::super::buffer::{self, Asker};
use super::super::demand::{self, Demand, Part};
use super::super::event::Child;
use super::super::mean_task::MeanTask;
use super::super::options::FarmOptions;
use super::super::order::{self, Candidate, Rule};
use super::super::settings::ChildSettings;
use super::compute::{Compute, Traffic};
use super::flow::Flow;
use super::rate::{Estimate, Rate};

/// Relative difference at which an observed value replaces the one in use. Smaller differences are noise, and would
/// cause messages throughout the tree after every task.
const MOVED: f64 = 0.02;
/// A send that reached less than this fraction of the policy's limit ran at the speed of its link.
const ALLOWED: f64 = 0.95;

/// The rates of a child's subtree that its parent needs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Subtree {
    /// Compute rate of the child itself, work units/s.
    pub compute_per_s: f64,
    /// Tasks per second that its subtree can use while it receives them, ignoring its link.
    pub uses_tasks_per_s: f64,
    /// Tasks per second that its subtree uses while it receives nothing.
    pub empties_tasks_per_s: f64,
    /// Duration of the longest send to one of its own children, s.
    pub longest_send_s: f64,
}

impl Subtree {
    fn differs(&self, other: &Self) -> bool {
        apart(self.compute_per_s, other.compute_per_s)
            || apart(self.uses_tasks_per_s, other.uses_tasks_per_s)
            || apart(self.empties_tasks_per_s, other.empties_tasks_per_s)
            || apart(self.longest_send_s, other.longest_send_s)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Revision {
    /// For the node itself: [`Event::Known`](crate::farm::Event::Known).
    Child {
        /// The child whose settings change.
        child: Child,
        settings: ChildSettings,
    },
    /// A new capacity for a child; becomes [`Event::Places`](crate::farm::Event::Places).
    Places {
        child: Child,
        /// Number of tasks that it may hold.
        tasks: u64,
    },
    /// New rates of the subtree, for the parent's [`Estimator::told`].
    Subtree(Subtree),
}

/// What was observed of a node's processor and of the links to its children.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Speed without traffic, work units/s.
    pub compute_per_s: Estimate,
    /// s/MB. `None` if the node's traffic does not determine it.
    pub ir_receive_s_per_mb: Option<Estimate>,
    /// All children, including those that left.
    pub children: Vec<ObservedChild>,
}

/// What was observed of the link to a child.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObservedChild {
    /// MB/s that the child receives.
    pub receive_limit_mb_per_s: Estimate,
    /// s/MB at the sending node. `None` if its traffic does not determine it.
    pub ir_send_s_per_mb: Option<Estimate>,
}

#[derive(Clone, Debug)]
struct Link {
    here: bool,
    rate: Rate,
    /// Value in the file, used unless it is learnt.
    ir_send: f64,
    latency_s: f64,
    subtree: Subtree,
    /// Tasks of the whole run that the child uses, which bounds its buffer. Infinite if unknown.
    part: f64,
    flow: Flow,
    send: Send,
    settings: ChildSettings,
    places: u64,
    /// Link rate of the last revision, MB/s.
    reckoned: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Send {
    since: Option<f64>,
    limit: Option<f64>,
    seconds: f64,
    /// MB that the policy's limit allowed so far; infinite if there was a time without a limit.
    allowed_mb: f64,
    limited: bool,
}

impl Send {
    fn settle(&mut self, now_s: f64) {
        let Some(since) = self.since.take() else { return };
        let seconds = (now_s - since).max(0.0);
        self.seconds += seconds;
        match self.limit {
            Some(limit) => (self.limited, self.allowed_mb) = (true, self.allowed_mb + limit * seconds),
            None => self.allowed_mb = f64::INFINITY,
        }
    }
}

/// When the current task began, and the traffic up to then.
#[derive(Clone, Debug)]
struct Begun {
    at_s: f64,
    received_mb: f64,
    sent_mb: Vec<f64>,
    others: f64,
}

/// The estimates of one node, and the settings that follow from them.
///
/// # Examples
/// A root sends tasks of 2 MB one after another to its only child, over a link with 10 MB/s in the file:
/// ```
/// use crosswind_policy::farm::{FarmOptions, MeanTask, estimate::{Estimator, Revision}};
/// use crosswind_schema::{Platform, experiment::Policy};
///
/// let text = "schema_version = 1\nname = \"pair\"\n[[node]]\nname = \"root\"\ncompute_per_s = 0\n\
///     [[node]]\nname = \"leaf\"\nparent = \"root\"\ncompute_per_s = 50\nreceive_limit_mb_per_s = 10\n";
/// let platform = Platform::from_toml(text.as_bytes(), "pair.toml").expect("a right description");
/// let policy = Policy { adapt: true, ..Policy::default() };
/// let options = FarmOptions::of(&policy, MeanTask { size_mb: 2.0, work: 5.0 });
/// let tree = platform.tree().expect("a tree");
/// let mut root = Estimator::of(&platform, &tree, &options).swap_remove(0);
/// let mut revisions = Vec::new();
/// for task in 0..20 {
///     let now_s = f64::from(task);
///     root.sends(0, None, now_s);
///     root.sent(0, 2.0, true, now_s + 0.5, &mut revisions); // 4 MB/s
/// }
/// assert!((root.seen().children[0].receive_limit_mb_per_s.value - 4.0).abs() < 0.1);
/// assert!(revisions.iter().any(|revision| matches!(revision, Revision::Child { child: 0, .. })));
/// ```
#[derive(Clone, Debug)]
pub struct Estimator {
    /// Whether observations lead to revisions.
    adapts: bool,
    root: bool,
    order: Order,
    ports: Ports,
    task: MeanTask,
    /// Size of the result that each task sends back up, MB.
    result_mb: f64,
    send_limit_mb_per_s: f64,
    chooses_places: bool,
    compute: Compute,
    received: Flow,
    /// Rate at which the last task was received, MB/s.
    receive_rate: f64,
    receiving_since: Option<f64>,
    begun: Option<Begun>,
    /// Fraction of the processor lost to results and to sends whose interference is not learnt, integrated over time,
    /// s.
    others: f64,
    /// Fraction of the processor that current results cost, and since when, s.
    results: (f64, f64),
    links: Vec<Link>,
    /// Compute rate and receive interference of the last revision.
    reckoned: (f64, f64),
    reported: Subtree,
}

impl Estimator {
    /// Creates an estimator for every node of a platform, in the platform's order. Children are numbered as in
    /// `tree.children`.
    #[must_use]
    pub fn of(platform: &Platform, tree: &Tree, options: &FarmOptions<'_>) -> Vec<Self> {
        let basis = Basis::of(platform, tree, options);
        (0..platform.nodes.len() as u32).map(|n| Self::of_node(platform, tree, options, &basis, n)).collect()
    }

    /// Creates the estimator of the node `n`.
    #[must_use]
    pub fn of_node(platform: &Platform, tree: &Tree, options: &FarmOptions<'_>, basis: &Basis, n: u32) -> Self {
        let node = &platform.nodes[n as usize];
        let receives = node.link_mb_per_s().unwrap_or(f64::INFINITY);
        let compute = Compute::known(node.compute_per_s.get(), node.ir_receive_s_per_mb.get(), receives);
        let reckoned = (compute.per_s(), compute.ir_receive());
        let mut estimator = Self {
            adapts: options.adapt,
            root: n == tree.root,
            order: options.order,
            ports: options.ports,
            task: options.task,
            result_mb: options.result_mb,
            send_limit_mb_per_s: node.send_limit_mb_per_s.map_or(f64::INFINITY, Quantity::get),
            chooses_places: options.buffer_tasks.is_none(),
            compute,
            received: Flow::default(),
            receive_rate: receives,
            receiving_since: None,
            begun: None,
            others: 0.0,
            results: (0.0, 0.0),
            links: Vec::new(),
            reckoned,
            reported: subtree(platform, options, &basis.demand, tree, n),
        };
        for &child in tree.children(n) {
            estimator.link(platform, options, tree, basis, child);
        }
        estimator
    }

    fn link(&mut self, platform: &Platform, options: &FarmOptions<'_>, tree: &Tree, basis: &Basis, child: u32) {
        let node = &platform.nodes[child as usize];
        let limit = node.link_mb_per_s().unwrap_or(f64::INFINITY);
        let ir_send = node.ir_send_s_per_mb.get();
        self.compute.child(self.links.len() as Child, ir_send, limit);
        self.links.push(Link {
            here: true,
            rate: Rate::known(limit),
            ir_send,
            latency_s: node.latency_s.get(),
            subtree: subtree(platform, options, &basis.demand, tree, child),
            part: buffer::part(tree, options, &basis.demand, child),
            flow: Flow::default(),
            send: Send::default(),
            settings: ChildSettings {
                key: None,
                receive_limit_mb_per_s: limit,
                pace_mb_per_s: limit,
                uses_tasks_per_s: 0.0,
                empties_tasks_per_s: 0.0,
                send_s: 0.0,
            },
            places: basis.places(child),
            reckoned: limit,
        });
    }

    /// Adds a child that joined, with the platform's values. It gets the next number.
    pub fn joined(&mut self, platform: &Platform, tree: &Tree, options: &FarmOptions<'_>, basis: &Basis, child: u32) {
        self.link(platform, options, tree, basis, child);
    }

    pub fn left(&mut self, child: Child, revisions: &mut Vec<Revision>) {
        let Some(link) = self.links.get_mut(child as usize) else { return };
        (link.here, link.send) = (false, Send::default());
        link.flow.end(0.0);
        self.compute.left(child);
        self.begun = None; // the unknowns are renumbered
        self.revise(revisions);
    }

    /// A send to a child starts or resumes: [`Command::Send`](crate::farm::Command::Send).
    pub fn sends(&mut self, child: Child, limit_mb_per_s: Option<f64>, now_s: f64) {
        let Some(link) = self.links.get_mut(child as usize) else { return };
        (link.send.since, link.send.limit) = (Some(now_s), limit_mb_per_s);
        let expected = link.rate.value().min(limit_mb_per_s.unwrap_or(f64::INFINITY));
        link.flow.begin(now_s, expected);
    }

    /// The limit of a send changes: [`Command::Limit`](crate::farm::Command::Limit).
    pub fn limits(&mut self, child: Child, limit_mb_per_s: Option<f64>, now_s: f64) {
        self.held(child, now_s);
        self.sends(child, limit_mb_per_s, now_s);
    }

    /// A send is held: [`Event::Held`](crate::farm::Event::Held).
    pub fn held(&mut self, child: Child, now_s: f64) {
        let Some(link) = self.links.get_mut(child as usize) else { return };
        link.send.settle(now_s);
        link.flow.pause(now_s);
    }

    /// The last byte of a task of `mb` MB has left: [`Event::Sent`](crate::farm::Event::Sent).
    ///
    /// 0 MB means that the task does not count, because it is too small or was given up. `by_link`: where the send is
    /// slower than the policy's limit, that is due to its link. Otherwise it may be due to this process, which did not
    /// get the processor in time, and says nothing about the link but that it is no slower.
    pub fn sent(&mut self, child: Child, mb: f64, by_link: bool, now_s: f64, revisions: &mut Vec<Revision>) {
        let alone = order::rule(self.order) != Rule::Arrival || self.ports == Ports::Single;
        let Some(link) = self.links.get_mut(child as usize) else { return };
        link.send.settle(now_s);
        let send = std::mem::take(&mut link.send);
        link.flow.end(mb);
        if self.compute.ir_send(child).is_none() {
            self.others += link.ir_send * mb;
        }
        let rate = mb / send.seconds;
        // If all sends share the port freely, or the policy's limit was reached, the link may be faster than observed.
        if alone && (!send.limited || (by_link && mb < ALLOWED * send.allowed_mb)) {
            link.rate.observe(rate);
        } else {
            link.rate.observe_at_least(rate);
        }
        if apart(link.rate.value(), link.reckoned) {
            self.revise(revisions);
        }
    }

    /// A task starts to arrive from the parent, or continues to.
    pub fn receives(&mut self, now_s: f64) {
        self.receiving_since.get_or_insert(now_s);
        self.received.begin(now_s, self.receive_rate);
    }

    pub fn receives_no_more(&mut self, now_s: f64) {
        self.received.pause(now_s);
    }

    pub fn received(&mut self, mb: f64, now_s: f64) {
        if let Some(since) = self.receiving_since.take().filter(|&since| now_s > since) {
            self.receive_rate = mb / (now_s - since);
        }
        self.received.end(mb);
    }

    /// The link to the parent is lost, with any task in transit.
    pub fn receives_nothing(&mut self) {
        self.receiving_since = None;
        self.received.end(0.0);
    }

    /// Sets the fraction of the processor that results from children or to the parent cost from now on.
    pub fn results(&mut self, loss: f64, now_s: f64) {
        self.others = self.others(now_s);
        self.results = (loss.min(1.0), now_s);
    }

    fn others(&self, now_s: f64) -> f64 {
        let (loss, since_s) = self.results;
        self.others + loss * (now_s - since_s).max(0.0)
    }

    /// The computation of a task starts.
    pub fn computes(&mut self, now_s: f64) {
        let received_mb = self.received.mb(now_s);
        self.begun = Some(Begun { at_s: now_s, received_mb, sent_mb: self.sent_mb(now_s), others: self.others(now_s) });
    }

    /// The computation of the task has ended. Work of 0 units is unknown and ignored.
    pub fn computed(&mut self, work: f64, now_s: f64, revisions: &mut Vec<Revision>) {
        let Some(begun) = self.begun.take() else { return };
        let seconds = now_s - begun.at_s;
        if !(seconds > 0.0 && work > 0.0) {
            return;
        }
        let sent_mb = self.sent_mb(now_s);
        let traffic = Traffic {
            received: (self.received.mb(now_s) - begun.received_mb).max(0.0) / seconds,
            sent: sent_mb.iter().zip(&begun.sent_mb).map(|(now, then)| (now - then).max(0.0) / seconds).collect(),
            others: (self.others(now_s) - begun.others) / seconds,
        };
        self.compute.observe(work / seconds, &traffic);
        let (compute, ir) = (self.compute.per_s(), self.compute.ir_receive());
        if apart(compute, self.reckoned.0) || (ir - self.reckoned.1).abs() * self.receive_rate > MOVED {
            self.revise(revisions);
        }
    }

    /// A child reports what its subtree can use.
    pub fn on_subtree(&mut self, child: Child, subtree: Subtree, revisions: &mut Vec<Revision>) {
        if let Some(link) = self.links.get_mut(child as usize) {
            link.subtree = subtree;
            self.revise(revisions);
        }
    }

    #[must_use]
    pub fn seen(&self) -> Observed {
        let interference = self.compute.interference();
        let of_child = |child: Child| {
            let at = self.compute.learnt.iter().position(|&learnt| learnt == child)?;
            interference[1 + at]
        };
        let children = (0..).zip(&self.links).map(|(child, link)| ObservedChild {
            receive_limit_mb_per_s: link.rate.estimate(),
            ir_send_s_per_mb: of_child(child),
        });
        Observed {
            compute_per_s: self.compute.estimate(),
            ir_receive_s_per_mb: interference[0],
            children: children.collect(),
        }
    }

    fn sent_mb(&self, now_s: f64) -> Vec<f64> {
        self.compute.learnt.iter().map(|&child| self.links[child as usize].flow.mb(now_s)).collect()
    }

    /// Recomputes keys, paces and buffers by the formulas that are applied to the platform's file (`demand`, `buffer`,
    /// `order`).
    fn revise(&mut self, revisions: &mut Vec<Revision>) {
        self.reckoned = (self.compute.per_s(), self.compute.ir_receive());
        for link in &mut self.links {
            link.reckoned = link.rate.value();
        }
        if !self.adapts {
            return;
        }
        let MeanTask { size_mb, work } = self.task;
        let (moved_mb, back) =
            (size_mb + self.result_mb, if self.result_mb > size_mb { size_mb / self.result_mb } else { 1.0 });
        let mut below = 0.0;
        let mut parts = Vec::with_capacity(self.links.len());
        let mut askers = Vec::with_capacity(self.links.len());
        for (child, link) in self.links.iter().enumerate().filter(|(_, link)| link.here) {
            let candidate = Candidate {
                ports: self.ports,
                task: self.task,
                result_mb: self.result_mb,
                own_compute_per_s: self.reckoned.0,
                compute_per_s: link.subtree.compute_per_s,
                receive_limit_mb_per_s: link.reckoned,
                ir_send_s_per_mb: self.compute.ir_send(child as Child).unwrap_or(link.ir_send),
                planned_tasks_per_s: 0.0,
            };
            let key = order::key(self.order, &candidate);
            let carries = link.reckoned / size_mb;
            let uses = link.subtree.uses_tasks_per_s.min(carries * back);
            let served = key.is_some() && uses > 0.0;
            parts.push((child, key, Part { link: carries, uses, served }));
            if served {
                below += uses * (1.0 - candidate.cost()).max(0.0);
                askers.push(Asker {
                    child: child as u32,
                    key: key.unwrap_or(0.0),
                    uses,
                    empties: link.subtree.empties_tasks_per_s.min(2.0 * carries),
                    link: carries,
                    latency_s: link.latency_s,
                    own_sends_s: link.subtree.longest_send_s,
                    part: link.part,
                });
            }
        }
        let limit = self.send_limit_mb_per_s / size_mb;
        let paces = demand::paces(size_mb, limit, parts.iter().map(|(.., part)| *part));
        for ((child, key, part), pace) in parts.into_iter().zip(paces) {
            let link = &mut self.links[child];
            let receive_limit_mb_per_s = link.reckoned;
            let settings = ChildSettings {
                key,
                receive_limit_mb_per_s,
                pace_mb_per_s: receive_limit_mb_per_s,
                uses_tasks_per_s: part.uses,
                empties_tasks_per_s: link.subtree.empties_tasks_per_s.min(2.0 * part.link),
                send_s: 1.0 / part.link,
            };
            let settings = settings.paced(pace, self.ports, self.task);
            if settings != link.settings {
                link.settings = settings;
                revisions.push(Revision::Child { child: child as Child, settings });
            }
        }
        let longest_send_s = askers.iter().map(|asker| 1.0 / asker.link).fold(0.0, f64::max);
        if self.chooses_places {
            for (child, tasks) in buffer::of_line(&mut askers, self.ports, order::rule(self.order) == Rule::Fixed) {
                let link = &mut self.links[child as usize];
                if tasks != link.places {
                    link.places = tasks;
                    revisions.push(Revision::Places { child, tasks });
                }
            }
        }
        let own = self.reckoned.0 / work;
        let subtree = Subtree {
            compute_per_s: self.reckoned.0,
            uses_tasks_per_s: (own + below) / (1.0 + self.reckoned.1 * moved_mb * own),
            empties_tasks_per_s: own + below,
            longest_send_s,
        };
        if !self.root && subtree.differs(&self.reported) {
            self.reported = subtree;
            revisions.push(Revision::Subtree(subtree));
        }
    }
}

/// The rates of node `n`'s subtree, as computed from the platform's file.
fn subtree(platform: &Platform, options: &FarmOptions<'_>, demand: &Demand, tree: &Tree, n: u32) -> Subtree {
    let node = &platform.nodes[n as usize];
    let compute_per_s = node.compute_per_s.get();
    let own = compute_per_s / options.task.work;
    let all = own + demand.below[n as usize];
    Subtree {
        compute_per_s,
        uses_tasks_per_s: all / (1.0 + node.ir_receive_s_per_mb.get() * options.moved_mb() * own),
        empties_tasks_per_s: all,
        longest_send_s: buffer::longest_send(tree.children(n), demand),
    }
}

/// Whether two values differ by more than noise.
fn apart(a: f64, b: f64) -> bool {
    (a - b).abs() > MOVED * b.abs()
}
