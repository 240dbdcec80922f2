//! The plan of a platform, with names, as in `plan.json`.

use crosswind_schema::plan::{Method, Plan, PlanKind, PlannedNode, Ports};
use crosswind_schema::platform::Loss;
use crosswind_schema::units::Quantity;
use crosswind_schema::{Node, Platform, SCHEMA_VERSION, Warning};

use super::linear::{Solved, solved};
use super::{Columns, Task, tree};
use crate::error::ModelError;

/// Computes the steady state of a platform for one kind of task, with the bound that proves it.
///
/// # Errors
/// [`ModelError::Extreme`] if a rate in tasks/s is outside the range in which arithmetic is safe;
/// [`ModelError::Platform`] if the platform is no longer a tree because it was changed after its checks.
///
/// # Examples
/// ```
/// use crosswind_model::{Task, plan};
/// use crosswind_schema::Platform;
/// use crosswind_schema::plan::{LimitedBy, Method, Ports};
/// let text = r#"
///     schema_version = 1
///     name = "a pair"
///     [[node]]
///     name = "root"
///     compute_per_s = 10.0
///     [[node]]
///     name = "leaf"
///     parent = "root"
///     compute_per_s = 20.0
///     receive_limit_mb_per_s = 8.0
///     ir_send_s_per_mb = 0.05
/// "#;
/// let platform = Platform::from_toml(text.as_bytes(), "pair.toml").expect("a right description");
/// let plan = plan(&platform, Task::new(1.0, 1.0)?, Ports::Single, Method::Exact)?;
/// // The leaf takes 8 tasks/s; sending them costs the root 0.05 * 8 of its 10 tasks/s.
/// assert!((plan.throughput_tasks_per_s - 14.0).abs() < 1e-12);
/// assert_eq!(plan.nodes[1].limited_by, LimitedBy::ReceiveLimit);
/// # Ok::<(), crosswind_model::ModelError>(())
/// ```
///
/// If the platform has measured losses, `curved` finds the rates.
pub fn plan(platform: &Platform, task: Task, ports: Ports, method: Method) -> Result<Plan, ModelError> {
    let Solved { line, rates, constant_bound, ignores_results } = solved(platform, task, ports, method)?;
    let bent: Vec<_> =
        platform.nodes.iter().map(|n| (!n.receive_losses.is_empty(), !n.send_losses.is_empty())).collect();
    let full = stopped_by_full_links(platform, ports, task.result_mb() > 0.0)?;
    let platform = &*line;
    let nodes = &platform.nodes;
    let planned = nodes.iter().enumerate().map(|(n, node)| PlannedNode {
        name: node.name.clone(),
        parent: node.parent.clone(),
        computed_tasks_per_s: rates.computed_tasks_per_s[n],
        received_tasks_per_s: rates.received_tasks_per_s[n],
        rank: rates.rank[n],
        never_send: rates.never_send[n],
        limited_by: rates.limited_by[n],
        // The gain per MB/s of the limit, of which a sender reaches a share.
        gain_per_receive_mb_per_s: node.reached(rates.gain_per_receive_mb_per_s[n]),
        gain_per_send_mb_per_s: rates.gain_per_send_mb_per_s[n],
        gain_per_work_per_s: Some(rates.gain_per_work_per_s[n]).filter(|gain| gain.is_finite()),
        ir_receive_s_per_mb: bent[n].0.then(|| node.ir_receive_s_per_mb.get()),
        ir_send_s_per_mb: bent[n].1.then(|| node.ir_send_s_per_mb.get()),
    });
    let mut warnings = platform.warnings();
    if ignores_results {
        let message = "losses are curves, several sends run at once, and results are larger than inputs: rates and \
                       bound ignore the results";
        let hint = "plan with --ports single, or with ir_send_s_per_mb and ir_receive_s_per_mb in place of the curves";
        warnings.push(Warning::new("bound-without-results", message, hint));
    }
    if ports == Ports::Single {
        warnings.extend(past_send_limit(platform)?);
    }
    if let Some(name) = full {
        let message = format!(
            "node {name:?}: its links, all at full rate, would take more than all of its computation, and no more than all \
             can be lost: a schedule that sends in bursts may be faster than the bound"
        );
        let hint = "check the rates, or measure the links together: their interference may be less than the sum";
        warnings.push(Warning::new("bound-of-linear-losses", message, hint));
    }
    Ok(Plan {
        schema_version: SCHEMA_VERSION,
        kind: PlanKind::Plan,
        platform: platform.name.clone(),
        task_size_mb: task.size_mb(),
        task_work: task.work_units(),
        result_size_mb: task.result_mb(),
        ports,
        method,
        throughput_tasks_per_s: rates.throughput_tasks_per_s,
        bound_tasks_per_s: rates.bound_tasks_per_s,
        constant_rates_bound_tasks_per_s: constant_bound,
        gap_to_exact: rates.gap_to_exact(),
        root_only_tasks_per_s: rates.root_only_tasks_per_s,
        nodes: planned.collect(),
        warnings,
    })
}

/// Returns the name of a node whose processor could stand still: inputs, and with `results` these as well, each as fast as
/// the links carry them, lose more than its whole compute rate. There the losses are not linear, as the bound supposes.
fn stopped_by_full_links(platform: &Platform, ports: Ports, results: bool) -> Result<Option<&str>, ModelError> {
    let tree = platform.tree().map_err(|e| ModelError::Platform(Box::new(e)))?;
    let lost = |losses: &[Loss], per_mb: f64, mb_per_s: f64| match losses {
        [] => per_mb * mb_per_s,
        _ => Loss::chord_s_per_mb(losses, mb_per_s) * mb_per_s,
    };
    let stopped = |n: u32| {
        let node = &platform.nodes[n as usize];
        let own = node.link_mb_per_s().unwrap_or(0.0);
        let received = lost(&node.receive_losses, node.ir_receive_s_per_mb.get(), own);
        let mut sends: Vec<(f64, f64)> = (tree.children(n).iter().map(|&child| &platform.nodes[child as usize]))
            .map(|child| (child.link_mb_per_s().unwrap_or(0.0), child))
            .map(|(link, child)| (link, lost(&child.send_losses, child.ir_send_s_per_mb.get(), link)))
            .collect();
        let returned: f64 = sends.iter().map(|(_, lost)| lost).sum();
        let sent = match ports {
            Ports::Single => sends.iter().map(|(_, lost)| *lost).fold(0.0, f64::max),
            Ports::Multi => {
                // Those that cost most per MB first, as far as the send limit goes.
                sends.sort_by(|a, b| (b.1 * a.0).total_cmp(&(a.1 * b.0)));
                let mut room = node.send_limit_mb_per_s.map_or(f64::INFINITY, Quantity::get);
                sends.iter().fold(0.0, |sum, &(link, lost)| {
                    let used = link.min(room);
                    room -= used;
                    if link > 0.0 { sum + lost * used / link } else { sum }
                })
            }
        };
        let back = if results { received + returned } else { 0.0 };
        node.compute_per_s.get() > 0.0 && received + sent + back > 1.0
    };
    Ok((0..platform.nodes.len() as u32).find(|&n| stopped(n)).map(|n| platform.nodes[n as usize].name.as_str()))
}

/// Prepares the platform's numbers for planning, with linear interference.
pub(super) fn walk(platform: &Platform, task: Task, ports: Ports) -> Result<tree::Walk, ModelError> {
    let shape = platform.tree().map_err(|e| ModelError::Platform(Box::new(e)))?;
    let nodes = &platform.nodes;
    let parent: Vec<i32> =
        (0..nodes.len() as u32).map(|n| if n == shape.root { -1 } else { shape.parent[n as usize] as i32 }).collect();
    let send: Vec<f64> = nodes.iter().map(|n| n.send_limit_mb_per_s.map_or(f64::INFINITY, Quantity::get)).collect();
    let receive: Vec<f64> = nodes.iter().map(|n| n.link_mb_per_s().unwrap_or(0.0)).collect();
    let compute: Vec<f64> = nodes.iter().map(|n| n.compute_per_s.get()).collect();
    let drop: Vec<f64> = nodes.iter().map(Node::link_drop).collect();
    let ir_receive: Vec<f64> = nodes.iter().map(|n| n.ir_receive_s_per_mb.get()).collect();
    let ir_send: Vec<f64> = nodes.iter().map(|n| n.ir_send_s_per_mb.get()).collect();
    let columns = Columns {
        parent: &parent,
        compute_per_s: &compute,
        send_limit_mb_per_s: &send,
        receive_limit_mb_per_s: &receive,
        receive_limit_drop: &drop,
        ir_receive_s_per_mb: &ir_receive,
        ir_send_s_per_mb: &ir_send,
    };
    tree::Walk::new(&columns, shape, task, ports)
}

/// Returns a warning if one send alone would be faster than a node's send limit, which is of several sends at once.
fn past_send_limit(platform: &Platform) -> Result<Option<Warning>, ModelError> {
    /// Measured alone, one send may be a little faster than several together.
    const FASTER: f64 = 1.1;
    let nodes = &platform.nodes;
    if nodes.iter().all(|node| node.send_limit_mb_per_s.is_none()) {
        return Ok(None);
    }
    let tree = platform.tree().map_err(|e| ModelError::Platform(Box::new(e)))?;
    let fast = |at: usize| {
        let limit = nodes[at].send_limit_mb_per_s?.get();
        let children = tree.children(at as u32).iter().map(|child| &nodes[*child as usize]);
        let link = |child: &Node| child.link_mb_per_s().filter(|link| *link > FASTER * limit);
        children.into_iter().find_map(|child| Some((at, child, link(child)?, limit)))
    };
    Ok((0..nodes.len()).find_map(fast).map(|(parent, child, link, limit)| {
        let message = format!(
            "one send at a time to {:?} goes at {link:.2} MB/s, its receive limit; send_limit_mb_per_s of {:?}, {limit:.2}, is of \
             several sends at once",
            child.name, nodes[parent].name
        );
        let hint = "if one send alone is held to it as well, lower receive_limit_mb_per_s of the children to it";
        Warning::new("bound-past-send-limit", message, hint)
    }))
}
