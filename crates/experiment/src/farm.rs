//! A farm of tasks over a platform, simulated in virtual time, with its bounds.

use std::borrow::Cow;
use std::sync::Arc;

use crosswind_model::{Task, plan, with_planned_lines};
use crosswind_policy::farm::classed::{ClassedNode, Taste, tastes};
use crosswind_policy::farm::own::{OwnNode, OwnPolicy, OwnState};
use crosswind_policy::farm::{FarmOptions, MeanTask, Settings};
use crosswind_schema::error::Problem;
use crosswind_schema::experiment::{Amount, ChangeKind, Classes, Order, Params, Tasks, change, failure};
use crosswind_schema::plan::{Method, Plan};
use crosswind_schema::run::{NodeFailures, ObservedNode, Run, RunEvent, RunNode};
use crosswind_schema::units::Quantity;
use crosswind_schema::{ComputedBy, DescriptionError, Experiment, Node, Platform, Warning};
use crosswind_sim::{Farm, Happened, NodeObserved, Options, Outcome, SimError, Trace, simulate, simulate_with};

use crate::ExperimentError;
use crate::fairness::{MOST_WINDOWS, fairness};
use crate::flow::flow;

/// One point of a farm experiment.
pub struct FarmPoint<'a> {
    /// The tree of nodes. If a loss is not linear, it includes the line that is correct at the planned rates.
    pub platform: Cow<'a, Platform>,
    /// The plan, computed in advance if a loss is not linear.
    plan: Option<Plan>,
    /// The experiment without a sweep.
    pub experiment: Experiment,
    /// Its tasks, drawn at random or read from a file.
    pub tasks: Tasks,
}

impl<'a> FarmPoint<'a> {
    /// Creates a point and its tasks. `tasks_csv` is the content of the workload's `tasks_file`, if it has one.
    ///
    /// # Errors
    /// When the tasks are invalid.
    pub fn new(
        platform: &'a Platform,
        experiment: Experiment,
        tasks_csv: Option<&[u8]>,
    ) -> Result<Self, DescriptionError> {
        let mut tasks = Tasks::draw(&experiment.workload, experiment.seed, tasks_csv)?;
        if let Some(classes) = &mut tasks.classes {
            classes.place(&experiment.workload.classes, platform)?;
            with_classes(&experiment)?;
        }
        let mut point = Self { platform: Cow::Borrowed(platform), plan: None, experiment, tasks };
        let is_bent = |node: &Node| !node.receive_losses.is_empty() || !node.send_losses.is_empty();
        if platform.nodes.iter().any(is_bent) {
            point.plan = point.plan(point.result_size_mb()).ok(); // a point that cannot be planned is refused when its bounds are computed
        }
        if let Some(plan) = &point.plan {
            point.platform = with_planned_lines(platform, plan);
        }
        Ok(point)
    }

    fn result_size_mb(&self) -> f64 {
        self.experiment.workload.result_size_mb.get()
    }

    fn plan(&self, result_size_mb: f64) -> Result<Plan, ExperimentError> {
        if let Some(plan) = self.plan.as_ref().filter(|plan| plan.result_size_mb == result_size_mb) {
            return Ok(plan.clone());
        }
        let mean = self.mean();
        let task = Task::new(mean.size_mb, mean.work)?.returning(result_size_mb)?;
        let ports = self.experiment.policy.ports.ports();
        Ok(plan(&self.platform, task, ports, Method::Exact)?)
    }

    /// Creates a point from an experiment in JSON.
    ///
    /// # Errors
    /// When the experiment or the tasks are invalid.
    pub fn from_json(
        platform: &'a Platform,
        experiment: &[u8],
        tasks_csv: Option<&[u8]>,
    ) -> Result<Self, DescriptionError> {
        Self::new(platform, Experiment::from_json(experiment, "experiment")?, tasks_csv)
    }

    /// Returns the mean of its tasks.
    #[must_use]
    pub fn mean(&self) -> MeanTask {
        let count = self.tasks.count as f64;
        MeanTask { size_mb: self.tasks.total_mb() / count, work: self.tasks.total_work() / count }
    }

    /// Returns the planned rate of each node, tasks/s, for results of this size; `None` if the order does not follow a
    /// plan.
    ///
    /// # Errors
    /// When the mean task cannot be planned.
    pub fn planned_tasks_per_s(&self, result_size_mb: f64) -> Result<Option<Vec<f64>>, ExperimentError> {
        if self.experiment.policy.order != Order::Planned {
            return Ok(None);
        }
        let found = self.plan(result_size_mb)?;
        Ok(Some(found.nodes.iter().map(|node| node.received_tasks_per_s).collect()))
    }

    /// Simulates it. Returns the run with its bounds, and the trace if requested. `watch` is called periodically with
    /// the number of completed tasks; false ends the run.
    ///
    /// # Errors
    /// When the point is invalid, or its simulation does not end.
    pub fn simulate(
        &self,
        trace: bool,
        watch: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(Run, Option<Trace>), ExperimentError> {
        if let Order::Own(name) = self.experiment.policy.order {
            return Err(ExperimentError::NoPolicy(name.name()));
        }
        match &self.tasks.classes {
            None => self.simulated(trace, |farm, options| simulate(farm, options, watch)),
            Some(classes) => self.simulated(trace, |farm, options| self.run_classed(classes, farm, options, watch)),
        }
    }

    /// Simulates tasks that have classes.
    fn run_classed(
        &self,
        classes: &Classes,
        farm: &Farm<'_>,
        options: Options<'_>,
        watch: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Outcome, SimError> {
        let tree = self.platform.tree().map_err(Box::new)?;
        // Orders and buffers follow from the rates as they are on average.
        let mean = classes.mean_platform(&self.platform, |task| self.tasks.work.get(task));
        let known = Settings::of(&mean, &tree, &farm.farm_options);
        let shared = |all: Vec<Taste>| all.into_iter().map(Arc::new).collect::<Vec<_>>();
        let (own, below) = tastes(&self.platform, &tree, classes);
        let (own, below) = (shared(own), shared(below));
        let alone = self.experiment.policy.order == Order::RootOnly;
        let mut make = |n: u32, settings: Settings| {
            let (returns, recovers) = (settings.returns, settings.recovers);
            let settings = Settings { returns, recovers, ..known[n as usize].clone() };
            let children = tree.children(n).iter().map(|&child| (child, below[child as usize].clone()));
            ClassedNode::new(&settings, classes.of_task.clone(), own[n as usize].clone(), children, alone)
        };
        simulate_with(farm, options, &mut make, watch)
    }

    /// Simulates it with a policy of the user's own, one for each node.
    ///
    /// # Errors
    /// As [`Self::simulate`], and when the policy fails or chooses what is not permitted.
    pub fn simulate_own<P: OwnPolicy>(
        &self,
        trace: bool,
        policy: &mut dyn FnMut(&OwnState) -> P,
        watch: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(Run, Option<Trace>), ExperimentError> {
        let tree = self.platform.tree()?;
        let mut make = |n: u32, settings: Settings| {
            OwnNode::new(&self.platform, &tree, n, &settings, |state: &OwnState| policy(state))
        };
        self.simulated(trace, |farm, options| simulate_with(farm, options, &mut make, watch))
    }

    fn simulated(
        &self,
        trace: bool,
        run: impl FnOnce(&Farm<'_>, Options<'_>) -> Result<Outcome, SimError>,
    ) -> Result<(Run, Option<Trace>), ExperimentError> {
        let policy = &self.experiment.policy;
        let rates = self.planned_tasks_per_s(self.result_size_mb())?;
        let mut farm_options = FarmOptions::of(policy, self.mean()).with_tasks(self.tasks.count);
        if let Some(rates) = &rates {
            farm_options = farm_options.with_plan(rates);
        }
        let farm = Farm {
            platform: &self.platform,
            tasks: &self.tasks,
            farm_options,
            chunk_kib: policy.chunk_kib,
            result_size_mb: self.result_size_mb(),
        };
        let changes = change::placed(&self.experiment.changes, &self.platform)?;
        let failures = failure::placed(&self.experiment.failures, &self.platform, self.experiment.seed)?;
        let mut outcome = run(&farm, Options { changes: &changes, failures: &failures, trace })?;
        let trace = outcome.trace.take();
        let mut run = self.summary(&outcome);
        self.add_flow(&mut run, &outcome.done_s)?;
        self.complete(&mut run)?;
        Ok((run, trace))
    }

    /// Adds flow times and fairness over time to a run, simulated or live. `done_s` says when each task was done; empty if
    /// that was not recorded.
    ///
    /// # Errors
    /// When the platform is no tree.
    pub fn add_flow(&self, run: &mut Run, done_s: &[f64]) -> Result<(), ExperimentError> {
        run.flow = flow(&self.platform, &self.tasks, self.result_size_mb(), done_s)?;
        let window_s = self.experiment.workload.fairness_window_s.map(Quantity::get);
        match fairness(&self.tasks, window_s, run.makespan_s, done_s) {
            Ok(found) => run.fairness = found,
            Err(windows) => {
                let message = format!(
                    "workload.fairness_window_s makes {windows:.0} windows of this run, more than {MOST_WINDOWS}: there is no \
                     fairness over time"
                );
                run.warnings.push(Warning::new("too-many-windows", message, "make workload.fairness_window_s longer"));
            }
        }
        Ok(())
    }

    /// Whether tasks arrive at the root after the start.
    pub(crate) fn tasks_arrive(&self) -> bool {
        self.tasks.arrivals.as_ref().is_some_and(|arrivals| !arrivals.release_s.is_empty())
    }

    /// Adds to a run, simulated or live, the bounds of its point and the warnings that apply to a comparison with
    /// them.
    ///
    /// # Errors
    /// When the mean task cannot be planned.
    pub fn complete(&self, run: &mut Run) -> Result<(), ExperimentError> {
        if self.tasks.classes.is_some() {
            let message = "tasks have classes: there is no bound, since plans have one compute rate for each node";
            let hint = "compare orders with each other, or with a linear program over classes and nodes";
            run.warnings.push(Warning::new("no-bound-with-classes", message, hint));
            return Ok(());
        }
        if run.bound_tasks_per_s.is_none() {
            // Results of real work have the size that the work gives them, which no experiment says.
            let returns = matches!(run.compute, ComputedBy::Simulated | ComputedBy::Emulated);
            let plan = self.plan(if returns { self.result_size_mb() } else { 0.0 })?;
            run.bound_tasks_per_s = Some(plan.bound_tasks_per_s);
            run.root_only_tasks_per_s = Some(plan.root_only_tasks_per_s);
            run.warnings.extend(plan.warnings.into_iter().filter(|one| one.code.starts_with("bound-")));
        }
        if self.tasks_differ() {
            let message = "tasks differ: the bound is for tasks of mean size and mean work";
            let hint =
                "a schedule that suits each task to its node may pass it; compare orders with each other instead";
            run.warnings.push(Warning::new("bound-of-mean-tasks", message, hint));
        }
        if self.tasks_arrive() {
            let message = "tasks arrive over time: where they come more slowly than the bound, their rate is the limit";
            let hint = "compare flow times; for throughput, run without arrivals";
            run.warnings.push(Warning::new("bound-without-arrivals", message, hint));
        }
        if self.rates_change() {
            let message = "the platform changes in this run: the bound is that of the platform as it begins";
            run.warnings.push(Warning::new(
                "bound-before-changes",
                message,
                "compare with the same run without changes",
            ));
        }
        let joined = self.joined(run);
        if !joined.is_empty() {
            let joined = joined.join(", ");
            let message =
                format!("{joined} joined in this run: the bound is that of the platform, which has no such node");
            let hint = "a platform with all hosts has a bound for all of them";
            run.warnings.push(Warning::new("bound-before-changes", message, hint));
        }
        Ok(())
    }

    /// Adds to a live run what [`Self::add_flow`] adds if `done_s` is not empty, and what [`Self::complete`] adds.
    ///
    /// # Errors
    /// As theirs.
    pub fn complete_live(&self, run: &mut Run, done_s: &[f64]) -> Result<(), ExperimentError> {
        if !done_s.is_empty() {
            self.add_flow(run, done_s)?;
        }
        self.complete(run)
    }

    fn tasks_differ(&self) -> bool {
        let workload = &self.experiment.workload;
        !matches!((&workload.task_size_mb, &workload.task_work), (Some(Amount::Fixed(_)), Some(Amount::Fixed(_))))
    }

    fn rates_change(&self) -> bool {
        let placed = change::placed(&self.experiment.changes, &self.platform).unwrap_or_default();
        placed.iter().any(|change| matches!(change.kind, ChangeKind::Rates { .. }))
    }

    /// Returns the names of nodes that joined and are not in the platform.
    fn joined(&self, run: &Run) -> Vec<String> {
        let known = |name: &str| self.platform.nodes.iter().any(|node| node.name == name);
        let joined = run.events.iter().filter(|event| event.code == "agent-joined");
        let mut names: Vec<String> =
            joined.filter_map(|event| event.node.clone()).filter(|name| !known(name)).collect();
        names.sort();
        names.dedup();
        names
    }

    fn summary(&self, outcome: &Outcome) -> Run {
        let name = |node: u32| self.platform.nodes[node as usize].name.clone();
        let event = |happened: &Happened| {
            let (code, tasks, what) = match happened.kind {
                ChangeKind::Leaves => {
                    ("node-left", Some(happened.tasks), format!("leaves; {} tasks run again", happened.tasks))
                }
                ChangeKind::Joins => ("node-joined", None, happened.kind.to_string()),
                kind @ ChangeKind::Rates { .. } => ("rates-changed", None, kind.to_string()),
            };
            let node = name(happened.node);
            let message = format!("{node} {what}");
            RunEvent { t_s: happened.t_s, code: code.into(), node: Some(node), tasks, message }
        };
        Run {
            params: Params::default(),
            seed: self.experiment.seed,
            platform: self.platform.name.clone(),
            order: self.experiment.policy.order,
            ports: self.experiment.policy.ports.ports(),
            compute: ComputedBy::Simulated,
            tasks: outcome.tasks,
            makespan_s: outcome.makespan_s,
            throughput_tasks_per_s: outcome.throughput_tasks_per_s,
            bound_tasks_per_s: None,
            root_only_tasks_per_s: None,
            nodes: (0u32..)
                .zip(&outcome.nodes)
                .map(|(at, node)| RunNode {
                    name: name(at),
                    tasks: node.tasks,
                    busy_s: node.busy_s,
                    received_mb: node.received_mb,
                    failures: outcome.failures.get(at as usize).map(|one| NodeFailures {
                        count: one.count,
                        failed_s: one.failed_s,
                        tasks_again: one.redone,
                    }),
                    seen: outcome.seen.get(at as usize).map(|seen| beside(&self.platform.nodes[at as usize], seen)),
                })
                .collect(),
            events: outcome.events.iter().map(event).collect(),
            warnings: Vec::new(),
            flow: None,
            fairness: Vec::new(),
            resumed: None,
        }
    }
}

/// Checks that a farm whose tasks have classes asks for nothing that needs one compute rate for each node.
fn with_classes(experiment: &Experiment) -> Result<(), DescriptionError> {
    let wrong = |field: &str, sentence: &str| Err(Problem::Value(sentence.into()).at(field.into()));
    match experiment.policy.order {
        Order::Planned => wrong(
            "policy.order",
            "is \"planned\", and tasks have classes: a plan has one compute rate for each node; use another order",
        ),
        Order::Own(_) => wrong(
            "policy.order",
            "is a policy of your own, and tasks have classes, which it does not see; use another order",
        ),
        _ if experiment.policy.adapt => wrong(
            "policy.adapt",
            "is true, and tasks have classes, by which observed compute rates differ; leave it out",
        ),
        _ => Ok(()),
    }
}

/// Pairs observed values of a node with those of the platform.
fn beside(node: &Node, seen: &NodeObserved) -> ObservedNode {
    ObservedNode {
        compute_per_s: seen.compute_per_s.beside(Some(node.compute_per_s.get())),
        receive_limit_mb_per_s: seen.receive_limit_mb_per_s.and_then(|seen| seen.beside(node.link_mb_per_s())),
        ir_receive_s_per_mb: seen
            .ir_receive_s_per_mb
            .and_then(|seen| seen.beside(Some(node.ir_receive_s_per_mb.get()))),
        ir_send_s_per_mb: seen.ir_send_s_per_mb.and_then(|seen| seen.beside(Some(node.ir_send_s_per_mb.get()))),
    }
}
