//! Linear stand-ins for nonlinear losses, at the planned rates.
//!
//! Runs and reports need interference rates, s/MB. For a nonlinear measured loss, one such rate is right at one
//! transfer rate only: it is the chord, the line from no traffic to the loss at that rate. With several ports that is
//! the planned rate ([`super::curved`]). With one port, a transfer has its link to itself: it runs at the link's limit
//! for part of the time, whatever is planned, so the chord there is exact and the linear plan applies.

use std::borrow::Cow;

use crosswind_schema::plan::{Method, Plan, Ports};
use crosswind_schema::platform::{Loss, Node, Platform};
use crosswind_schema::units::{MegabytesOrNone, SecondsPerMegabyte};

use super::curved::{Curved, CurvedRates};
use super::{Rates, Task, named_plan};
use crate::error::ModelError;

/// The steady state of a platform, with names.
pub(super) struct Solved<'a> {
    /// The platform with the chords as its interference rates.
    pub line: Cow<'a, Platform>,
    pub rates: Rates,
    /// Upper bound for constant rates. Only with nonlinear losses.
    pub constant_bound: Option<f64>,
    /// Whether rates and bounds are those of tasks without results.
    pub ignores_results: bool,
}

/// Returns the platform with the interference rates that its plan used beside each nonlinear loss, right at the planned
/// rate. The losses stay.
///
/// Returns it unchanged if no loss is nonlinear.
///
/// # Examples
/// Sending costs the root 0.05 at 5 MB/s and 0.9 at 10: the plan is 5 MB/s, and 0.01 s/MB is right there.
/// ```
/// use crosswind_model::{Task, plan, with_planned_lines};
/// use crosswind_schema::Platform;
/// use crosswind_schema::plan::{Method, Ports};
/// use crosswind_schema::units::Quantity;
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
///     receive_limit_mb_per_s = 10.0
///     send_losses = [[5.0, 0.05], [10.0, 0.9]]
/// "#;
/// let platform = Platform::from_toml(text.as_bytes(), "pair.toml").expect("a right description");
/// let plan = plan(&platform, Task::new(1.0, 1.0)?, Ports::Multi, Method::Exact)?;
/// assert!((plan.throughput_tasks_per_s - 14.5).abs() < 1e-12);
/// let line = with_planned_lines(&platform, &plan);
/// assert!((line.nodes[1].ir_send_s_per_mb.get() - 0.01).abs() < 1e-12);
/// # Ok::<(), crosswind_model::ModelError>(())
/// ```
#[must_use]
pub fn with_planned_lines<'a>(platform: &'a Platform, plan: &Plan) -> Cow<'a, Platform> {
    let mut lines = Cow::Borrowed(platform);
    for (n, planned) in plan.nodes.iter().enumerate().take(platform.nodes.len()) {
        let is = |rate: Option<f64>| rate.and_then(|rate| SecondsPerMegabyte::new(rate).ok());
        if let Some(rate) = is(planned.ir_receive_s_per_mb) {
            lines.to_mut().nodes[n].ir_receive_s_per_mb = rate;
        }
        if let Some(rate) = is(planned.ir_send_s_per_mb) {
            lines.to_mut().nodes[n].ir_send_s_per_mb = rate;
        }
    }
    lines
}

/// Computes the steady state of a platform, and the matching interference rates.
pub(super) fn solved(platform: &Platform, task: Task, ports: Ports, method: Method) -> Result<Solved<'_>, ModelError> {
    if !platform.nodes.iter().any(is_bent) {
        let rates = named_plan::walk(platform, task, ports)?.rates(method);
        return Ok(Solved { line: Cow::Borrowed(platform), rates, constant_bound: None, ignores_results: false });
    }
    let line = with_chords(platform, &|_| 0.0)?;
    if ports == Ports::Single {
        let rates = named_plan::walk(&line, task, ports)?.rates(method);
        return Ok(Solved { line: Cow::Owned(line), rates, constant_bound: None, ignores_results: false });
    }
    // A subtree that a link's results limit may not take every rate below the limit: losses may fall again.
    let ignores_results = task.result_mb() > task.size_mb();
    let task = if ignores_results { Task { result: MegabytesOrNone::default(), ..task } } else { task };
    let walk = named_plan::walk(&line, task, ports)?;
    let CurvedRates { rates, constant_bound } = Curved::new(&walk, &platform.nodes).rates();
    let line = with_chords(platform, &|n| rates.received_tasks_per_s[n] * task.size_mb())?;
    Ok(Solved { line: Cow::Owned(line), rates, constant_bound: Some(constant_bound), ignores_results })
}

fn is_bent(node: &Node) -> bool {
    !node.receive_losses.is_empty() || !node.send_losses.is_empty()
}

/// Returns the platform with chords at these rates, MB/s by node. 0 means the link's limit.
fn with_chords(platform: &Platform, rate: &dyn Fn(usize) -> f64) -> Result<Platform, ModelError> {
    let mut line = platform.clone();
    for (n, node) in line.nodes.iter_mut().enumerate().filter(|(_, node)| is_bent(node)) {
        let at = match rate(n) {
            0.0 => node.link_mb_per_s().unwrap_or(0.0),
            planned => planned,
        };
        let chord = |losses: &[Loss], else_as: SecondsPerMegabyte| match losses {
            [] => Ok(else_as),
            _ => SecondsPerMegabyte::new(Loss::chord_s_per_mb(losses, at)).map_err(|e| ModelError::argument("loss", e)),
        };
        node.ir_receive_s_per_mb = chord(&node.receive_losses, node.ir_receive_s_per_mb)?;
        node.ir_send_s_per_mb = chord(&node.send_losses, node.ir_send_s_per_mb)?;
    }
    Ok(line)
}
