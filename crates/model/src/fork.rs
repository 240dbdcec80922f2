//! Throughput of a fork graph under the orders of service that the paper tried.
//!
//! Closed form for a root with leaves only and a single port (interference-aware-scheduling, section 4.1). The port
//! serves the children in order, each as much as it can take, until the port is full or the root has nothing left for
//! itself. Unlike a plan, these orders ignore whether a child is worth it (IR_s Z C >= 1, E0-8). Arrival order, several
//! ports and deeper trees depend on time and need a simulation.

use crosswind_schema::Platform;
use crosswind_schema::experiment::Order;
use crosswind_schema::plan::{Method, Ports};
use crosswind_schema::units::Quantity;

use crate::error::ModelError;
use crate::steady::{Task, plan};

/// Returns the tasks per second that a fork graph reaches when its single port serves the children in `order`.
///
/// # Errors
/// [`ModelError::NoClosedForm`] for arrival order and for a platform with grandchildren; otherwise those of [`plan`].
pub fn fork_throughput(platform: &Platform, task: Task, order: Order) -> Result<f64, ModelError> {
    let greedy = plan(platform, task, Ports::Single, Method::Greedy)?;
    match order {
        Order::RootOnly => return Ok(greedy.root_only_tasks_per_s),
        Order::Interference => return Ok(greedy.throughput_tasks_per_s),
        Order::Planned => return Ok(plan(platform, task, Ports::Single, Method::Exact)?.throughput_tasks_per_s),
        Order::InterferenceRate | Order::Bandwidth | Order::Compute => {}
        _ => return Err(ModelError::NoClosedForm { order: order.described().0, where_: "on any platform" }),
    }
    let shape = platform.tree().map_err(|e| ModelError::Platform(Box::new(e)))?;
    let mut children = shape.children(shape.root).to_vec();
    if children.len() + 1 < platform.nodes.len() {
        return Err(ModelError::NoClosedForm { order: order.described().0, where_: "where children have children" });
    }
    let node = |n: u32| &platform.nodes[n as usize];
    let receive = |n: u32| node(n).link_mb_per_s().unwrap_or(0.0);
    let key = |n: u32| match order {
        Order::Bandwidth => -receive(n),
        Order::Compute => -node(n).compute_per_s.get(),
        _ => node(n).ir_send_s_per_mb.get(),
    };
    children.sort_by(|&a, &b| key(a).total_cmp(&key(b))); // stable: ties keep the order of the file
    let (size, moved, work) = (task.size_mb(), task.moved_mb(), task.work_units());
    let up = |mb_per_s: f64| if task.result_mb() > 0.0 { mb_per_s / task.result_mb() } else { f64::INFINITY };
    let compute = node(shape.root).compute_per_s.get() / work;
    let (mut port_room, mut local_room, mut throughput) = (1.0f64, compute, compute);
    for child in children {
        let link = receive(child) / size;
        let own = node(child).compute_per_s.get() / work;
        let takes = link.min(own / (1.0 + node(child).ir_receive_s_per_mb.get() * moved * own)).min(up(receive(child)));
        let cost = node(child).ir_send_s_per_mb.get() * moved * compute;
        let most = if cost > 0.0 { local_room / cost } else { f64::INFINITY };
        let amount = takes.min(port_room * link).min(most);
        port_room = (port_room - amount / link).max(0.0);
        local_room = (local_room - amount * cost).max(0.0);
        throughput += amount * (1.0 - cost);
    }
    Ok(throughput)
}
