//! The line that stands for a loss that is none, at the rates where the plan operates.
//!
//! A plan needs interference rates, s/MB. Where a measured loss bends, one rate is right at one transfer rate only: that of the
//! line from no traffic to the loss measured there. Which transfer rate a plan arrives at depends on the line, so both are
//! sought together: plan, take the lines at the rates planned, plan again, until they agree. A node that gets nothing keeps
//! the line at the rate that it would have got.
//!
//! With one port a transfer has its link for itself: it runs at the link's limit for a part of the time, whatever is planned,
//! and the line there is exact.

use std::borrow::Cow;

use crosswind_schema::Warning;
use crosswind_schema::plan::{Method, Ports};
use crosswind_schema::platform::{Loss, Node, Platform};
use crosswind_schema::units::{Quantity, SecondsPerMegabyte};

use super::{Task, named};
use crate::error::ModelError;

/// Rates that are this close, as parts of each other, agree.
const AGREE: f64 = 1e-3;
/// Plans after which the closest is taken.
const ROUNDS: u32 = 60;

/// The platform with a line in the place of each bent loss, right at the rates at which `task` is planned.
///
/// As it is where no loss bends. Else with a warning that says after how many plans the rates agreed, or that they did not.
///
/// # Errors
/// As [`crate::plan`].
///
/// # Examples
/// Sending costs the root 0.4 at 5 MB/s and 0.5 at 10: the leaf's link takes 10 MB/s, and 0.05 s/MB is right there.
/// ```
/// use crosswind_model::{Task, linearised};
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
///     send_losses = [[5.0, 0.4], [10.0, 0.5]]
/// "#;
/// let platform = Platform::from_toml(text.as_bytes(), "pair.toml").expect("a right description");
/// let line = linearised(&platform, Task::new(1.0, 1.0)?, Ports::Multi, Method::Exact)?;
/// assert!((line.nodes[1].ir_send_s_per_mb.get() - 0.05).abs() < 1e-12);
/// # Ok::<(), crosswind_model::ModelError>(())
/// ```
pub fn linearised(
    platform: &Platform,
    task: Task,
    ports: Ports,
    method: Method,
) -> Result<Cow<'_, Platform>, ModelError> {
    let is_bent = |node: &Node| !node.receive_losses.is_empty() || !node.send_losses.is_empty();
    if !platform.nodes.iter().any(is_bent) {
        return Ok(Cow::Borrowed(platform));
    }
    let mut line = platform.clone();
    for node in &mut line.nodes {
        node.receive_losses.clear();
        node.send_losses.clear();
    }
    let bent: Vec<usize> = (0..platform.nodes.len()).filter(|&n| is_bent(&platform.nodes[n])).collect();
    let limit = |n: usize| platform.nodes[n].receive_limit_mb_per_s.map_or(0.0, Quantity::get);
    let mut at: Vec<f64> = bent.iter().map(|&n| limit(n)).collect();
    let (mut rounds, mut closest) = (0, (f64::INFINITY, at.clone()));
    while closest.0 > AGREE && rounds < ROUNDS {
        lay(&mut line, platform, &bent, &at)?;
        if ports == Ports::Single {
            closest.0 = 0.0;
            break;
        }
        let rates = named::rates(&line, task, ports, method)?;
        rounds += 1;
        let planned = |n: usize| rates.received_tasks_per_s[n] * task.size_mb();
        let apart = |(&n, &at): (&usize, &f64)| if planned(n) > 0.0 { (planned(n) / at - 1.0).abs() } else { 0.0 };
        let off = bent.iter().zip(&at).map(apart).fold(0.0, f64::max);
        if off < closest.0 {
            closest = (off, at.clone());
        }
        for (&n, at) in bent.iter().zip(&mut at) {
            if planned(n) > 0.0 {
                // Half-way: where more traffic costs less per MB, whole steps go to and fro for ever. The first is whole.
                *at = if rounds == 1 { planned(n) } else { (*at + planned(n)) / 2.0 };
            }
        }
    }
    lay(&mut line, platform, &bent, &closest.1)?;
    line.warnings.push(told(&bent, platform, ports, rounds, closest.0));
    Ok(Cow::Owned(line))
}

/// Puts the lines at these rates in their place.
fn lay(line: &mut Platform, platform: &Platform, bent: &[usize], at: &[f64]) -> Result<(), ModelError> {
    let chord = |losses: &[Loss], at: f64, else_as: SecondsPerMegabyte| match losses {
        [] => Ok(else_as),
        _ => SecondsPerMegabyte::new(Loss::chord_s_per_mb(losses, at)).map_err(|e| ModelError::argument("loss", e)),
    };
    for (&n, &at) in bent.iter().zip(at) {
        let known = &platform.nodes[n];
        line.nodes[n].ir_receive_s_per_mb = chord(&known.receive_losses, at, known.ir_receive_s_per_mb)?;
        line.nodes[n].ir_send_s_per_mb = chord(&known.send_losses, at, known.ir_send_s_per_mb)?;
    }
    Ok(())
}

fn told(bent: &[usize], platform: &Platform, ports: Ports, rounds: u32, off: f64) -> Warning {
    let mut names: Vec<&str> = bent.iter().take(3).map(|&n| platform.nodes[n].name.as_str()).collect();
    let more = format!("{} more", bent.len() - names.len());
    if bent.len() > names.len() {
        names.push(&more);
    }
    let names = names.join(", ");
    let how = match ports {
        Ports::Single => "at its link's limit, at which one port sends".to_owned(),
        Ports::Multi if off <= AGREE => {
            format!("at its planned rate; plan and rates agree to {:.1} % after {rounds} plans", 100.0 * AGREE)
        }
        Ports::Multi => {
            format!("near its planned rate; after {rounds} plans these still differ by {:.1} %", 100.0 * off)
        }
    };
    Warning::new(
        "loss-at-planned-rate",
        format!("the loss of {names} is no line in the rate: it is taken as measured {how}"),
        "rates, gains and bound hold near these rates; far from them plan again",
    )
}
