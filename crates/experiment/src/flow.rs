//! Flow times of tasks that arrive over time: how long each was there, compared with the shortest possible time.

use crosswind_schema::experiment::Tasks;
use crosswind_schema::experiment::draw::{Arrivals, Column, Users};
use crosswind_schema::run::{Flow, UserFlow};
use crosswind_schema::units::Quantity;
use crosswind_schema::{DescriptionError, Platform};

/// What a task costs on one node beside nothing else: seconds per MB of input and per work unit, and seconds in any case.
#[derive(Clone, Copy, Debug)]
struct Alone {
    per_mb: f64,
    per_work: f64,
    always: f64,
}

impl Alone {
    fn is_beaten_by(self, other: Self) -> bool {
        other.per_mb <= self.per_mb && other.per_work <= self.per_work && other.always <= self.always
    }

    fn of(self, size_mb: f64, work: f64) -> f64 {
        self.always + self.per_mb * size_mb + self.per_work * work
    }
}

/// Returns the flow times of a run, `None` if all tasks were there at the start, none has a deadline and they have one
/// user.
///
/// `done_s` says when each task was done, and `result_size_mb` what each sends back.
///
/// # Errors
/// When the platform is no tree.
pub(crate) fn flow(
    platform: &Platform,
    tasks: &Tasks,
    result_size_mb: f64,
    done_s: &[f64],
) -> Result<Option<Flow>, DescriptionError> {
    let none = Arrivals::default();
    let arrivals = match (&tasks.arrivals, &tasks.users) {
        (Some(arrivals), _) => arrivals,
        (None, Some(_)) => &none,
        (None, None) => return Ok(None),
    };
    let released = |task: usize| arrivals.release_s.get(task).copied().unwrap_or(0.0);
    let fastest = Fastest::new(platform, tasks, result_size_mb)?;
    let mut flows: Vec<f64> = done_s.iter().enumerate().map(|(task, done)| (done - released(task)).max(0.0)).collect();
    let count = flows.len() as f64;
    let slowdowns: Vec<f64> =
        flows.iter().enumerate().map(|(task, &flow_s)| flow_s / fastest.of(tasks, task)).collect();
    let users = tasks.users.as_ref().map_or_else(Vec::new, |users| by_user(users, &flows, &slowdowns, done_s));
    let late =
        || done_s.iter().zip(&arrivals.deadline_s).filter(|(_, due)| due.is_finite()).map(|(done, due)| done - due);
    let wanted = late().count();
    let tardiness = || late().map(|late_s| late_s.max(0.0));
    let mean_s = flows.iter().sum::<f64>() / count;
    flows.sort_unstable_by(f64::total_cmp);
    let quantile = |part: f64| flows[((part * count).ceil() as usize).clamp(1, flows.len()) - 1];
    Ok(Some(Flow {
        mean_s,
        median_s: quantile(0.5),
        p95_s: quantile(0.95),
        p99_s: quantile(0.99),
        most_s: quantile(1.0),
        mean_slowdown: slowdowns.iter().sum::<f64>() / count,
        most_slowdown: slowdowns.iter().copied().fold(0.0, f64::max),
        late: (wanted > 0).then(|| late().filter(|&late_s| late_s > 0.0).count() as u64),
        mean_tardiness_s: (wanted > 0).then(|| tardiness().sum::<f64>() / wanted as f64),
        most_tardiness_s: (wanted > 0).then(|| tardiness().fold(0.0, f64::max)),
        jain: (!users.is_empty()).then(|| jain(users.iter().map(|user| user.mean_slowdown))),
        users,
    }))
}

/// Returns the flow times of each user's tasks.
fn by_user(users: &Users, flows: &[f64], slowdowns: &[f64], done_s: &[f64]) -> Vec<UserFlow> {
    let blank = |name: &String| UserFlow { name: name.clone(), tasks: 0, done_s: 0.0, mean_s: 0.0, mean_slowdown: 0.0 };
    let mut found: Vec<UserFlow> = users.names.iter().map(blank).collect();
    for (task, &user) in users.of_task.iter().enumerate() {
        let user = &mut found[user as usize];
        user.tasks += 1;
        user.done_s = user.done_s.max(done_s[task]);
        user.mean_s += flows[task];
        user.mean_slowdown += slowdowns[task];
    }
    for user in &mut found {
        user.mean_s /= user.tasks as f64;
        user.mean_slowdown /= user.tasks as f64;
    }
    found
}

/// Returns Jain's index of fairness: `(sum x)^2 / (n sum x^2)`.
pub(crate) fn jain(values: impl Iterator<Item = f64>) -> f64 {
    let (n, sum, squares) = values.fold((0.0, 0.0, 0.0), |(n, sum, squares), x| (n + 1.0, sum + x, squares + x * x));
    if squares > 0.0 { sum * sum / (n * squares) } else { 1.0 }
}

/// The shortest time that each task may take: alone, on the node that is fastest for it.
struct Fastest {
    /// For each class the nodes that may be the fastest; one entry if tasks have no class.
    nodes: Vec<Vec<Alone>>,
    /// The time of all tasks, if they are alike.
    same: Option<f64>,
}

impl Fastest {
    fn new(platform: &Platform, tasks: &Tasks, result_size_mb: f64) -> Result<Self, DescriptionError> {
        let nodes = match &tasks.classes {
            None => vec![alone(platform, result_size_mb, |_| 1.0)?],
            Some(classes) => {
                let of = |factors: &Vec<f64>| alone(platform, result_size_mb, |node| factors[node]);
                classes.factors.iter().map(of).collect::<Result<_, _>>()?
            }
        };
        let alike = matches!((&tasks.size_mb, &tasks.work), (Column::Same(_), Column::Same(_)));
        let mut found = Self { nodes, same: None };
        if alike && tasks.classes.is_none() {
            found.same = Some(found.of(tasks, 0));
        }
        Ok(found)
    }

    fn of(&self, tasks: &Tasks, task: usize) -> f64 {
        if let Some(same) = self.same {
            return same;
        }
        let class = tasks.classes.as_ref().map_or(0, |classes| usize::from(classes.of_task[task]));
        let (size_mb, work) = (tasks.size_mb.get(task as u64), tasks.work.get(task as u64));
        self.nodes[class].iter().map(|node| node.of(size_mb, work)).fold(f64::INFINITY, f64::min)
    }
}

/// Returns what a task costs on each node that may be the fastest for some task, with compute rates times a factor. Whole
/// tasks go from node to node.
fn alone(
    platform: &Platform,
    result_size_mb: f64,
    factor: impl Fn(usize) -> f64,
) -> Result<Vec<Alone>, DescriptionError> {
    let tree = platform.tree()?;
    let mut kept: Vec<Alone> = Vec::new();
    for (n, node) in platform.nodes.iter().enumerate() {
        let compute_per_s = node.compute_per_s.get() * factor(n);
        if compute_per_s <= 0.0 {
            continue;
        }
        let mut alone = Alone { per_mb: 0.0, per_work: 1.0 / compute_per_s, always: 0.0 };
        let mut at = n;
        while at as u32 != tree.root {
            let (here, parent) = (&platform.nodes[at], tree.parent[at] as usize);
            let link = here.link_mb_per_s().unwrap_or(f64::INFINITY);
            let limit = platform.nodes[parent].send_limit_mb_per_s.map_or(f64::INFINITY, Quantity::get);
            alone.per_mb += 1.0 / link.min(limit);
            alone.always += here.latency_s.get();
            if result_size_mb > 0.0 {
                alone.always += here.latency_s.get() + result_size_mb / link;
            }
            at = parent;
        }
        if !kept.iter().any(|&other| alone.is_beaten_by(other)) {
            kept.retain(|other| !other.is_beaten_by(alone));
            kept.push(alone);
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use crosswind_schema::experiment::draw::Arrivals;

    use super::*;

    fn pair() -> Platform {
        let text = r#"
schema_version = 1
name = "pair"
[[node]]
name = "root"
compute_per_s = 1.0
[[node]]
name = "leaf"
parent = "root"
compute_per_s = 10.0
receive_limit_mb_per_s = 2.0
latency_s = 0.5
"#;
        Platform::from_toml(text.as_bytes(), "pair.toml").expect("a right platform")
    }

    #[test]
    fn each_task_is_compared_with_the_node_that_is_fastest_for_it() {
        // Alone: the first takes 1 s at the root, the second 0.5 + 1 / 2 + 20 / 10 = 3 s at the leaf.
        let tasks = Tasks {
            count: 2,
            size_mb: Column::Same(1.0),
            work: Column::Each(vec![1.0, 20.0]),
            arrivals: Some(Arrivals { release_s: vec![0.0, 4.0], deadline_s: vec![f64::INFINITY, 9.0] }),
            ..Tasks::default()
        };
        let flow = flow(&pair(), &tasks, 0.0, &[2.0, 10.0]).expect("a tree").expect("tasks arrive");
        assert_eq!((flow.mean_s, flow.median_s, flow.p95_s, flow.most_s), (4.0, 2.0, 6.0, 6.0));
        assert_eq!((flow.mean_slowdown, flow.most_slowdown), (2.0, 2.0));
        assert_eq!((flow.late, flow.mean_tardiness_s, flow.most_tardiness_s), (Some(1), Some(1.0), Some(1.0)));
    }

    #[test]
    fn without_arrivals_there_is_none() {
        let tasks = Tasks { count: 1, size_mb: Column::Same(1.0), work: Column::Same(1.0), ..Tasks::default() };
        assert_eq!(flow(&pair(), &tasks, 0.0, &[]).expect("a tree"), None);
    }

    #[test]
    fn each_user_has_flow_times_of_its_own() {
        let users = Users { names: vec!["a".into(), "b".into()], of_task: vec![0, 1, 0] };
        let tasks = Tasks {
            count: 3,
            size_mb: Column::Same(1.0),
            work: Column::Same(1.0),
            users: Some(users),
            ..Tasks::default()
        };
        let flow = flow(&pair(), &tasks, 0.0, &[1.0, 2.0, 3.0]).expect("a tree").expect("flow times");
        let of = |user: &UserFlow| (user.name.clone(), user.tasks, user.done_s, user.mean_s);
        assert_eq!(
            flow.users.iter().map(of).collect::<Vec<_>>(),
            [("a".into(), 2, 3.0, 2.0), ("b".into(), 1, 2.0, 2.0)]
        );
        assert_eq!(flow.jain, Some(1.0));
        assert!((jain([1.0, 3.0].into_iter()) - 16.0 / 20.0).abs() < 1e-15);
        assert!((jain([0.0, 5.0].into_iter()) - 0.5).abs() < 1e-15);
    }
}
