//! Flow times of tasks that arrive over time: how long each was there, compared with the shortest possible time.

use crosswind_schema::experiment::Tasks;
use crosswind_schema::experiment::draw::Column;
use crosswind_schema::run::Flow;
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

/// Returns the flow times of a run, `None` if all tasks were there at the start and none has a deadline.
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
    let Some(arrivals) = &tasks.arrivals else { return Ok(None) };
    let released = |task: usize| arrivals.release_s.get(task).copied().unwrap_or(0.0);
    let nodes = alone(platform, result_size_mb)?;
    let same = matches!((&tasks.size_mb, &tasks.work), (Column::Same(_), Column::Same(_)));
    let fastest = |task: usize| {
        let (size_mb, work) = (tasks.size_mb.get(task as u64), tasks.work.get(task as u64));
        nodes.iter().map(|node| node.of(size_mb, work)).fold(f64::INFINITY, f64::min)
    };
    let first = fastest(0);
    let slowdown = |task: usize, flow_s: f64| flow_s / if same { first } else { fastest(task) };
    let mut flows: Vec<f64> = done_s.iter().enumerate().map(|(task, done)| (done - released(task)).max(0.0)).collect();
    let count = flows.len() as f64;
    let slowdowns = || flows.iter().enumerate().map(|(task, &flow_s)| slowdown(task, flow_s));
    let (mean_slowdown, most_slowdown) = (slowdowns().sum::<f64>() / count, slowdowns().fold(0.0, f64::max));
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
        mean_slowdown,
        most_slowdown,
        late: (wanted > 0).then(|| late().filter(|&late_s| late_s > 0.0).count() as u64),
        mean_tardiness_s: (wanted > 0).then(|| tardiness().sum::<f64>() / wanted as f64),
        most_tardiness_s: (wanted > 0).then(|| tardiness().fold(0.0, f64::max)),
    }))
}

/// Returns what a task costs on each node that may be the fastest for some task. Whole tasks go from node to node.
fn alone(platform: &Platform, result_size_mb: f64) -> Result<Vec<Alone>, DescriptionError> {
    let tree = platform.tree()?;
    let mut kept: Vec<Alone> = Vec::new();
    for (n, node) in platform.nodes.iter().enumerate() {
        if node.compute_per_s.get() <= 0.0 {
            continue;
        }
        let mut alone = Alone { per_mb: 0.0, per_work: 1.0 / node.compute_per_s.get(), always: 0.0 };
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
        };
        let flow = flow(&pair(), &tasks, 0.0, &[2.0, 10.0]).expect("a tree").expect("tasks arrive");
        assert_eq!((flow.mean_s, flow.median_s, flow.p95_s, flow.most_s), (4.0, 2.0, 6.0, 6.0));
        assert_eq!((flow.mean_slowdown, flow.most_slowdown), (2.0, 2.0));
        assert_eq!((flow.late, flow.mean_tardiness_s, flow.most_tardiness_s), (Some(1), Some(1.0), Some(1.0)));
    }

    #[test]
    fn without_arrivals_there_is_none() {
        let tasks = Tasks { count: 1, size_mb: Column::Same(1.0), work: Column::Same(1.0), arrivals: None };
        assert_eq!(flow(&pair(), &tasks, 0.0, &[]).expect("a tree"), None);
    }
}
