//! Task rate that each node's subtree can use, from the platform's rates.
//!
//! From the leaves up, `T = (C + sum T_i (1 - cost_i)) / (1 + IR_r (Z + Z') C)`, capped by what the link carries in
//! either direction (interference-aware-scheduling, section 3.2, with results of size Z'). Port limits are ignored, so this is an upper bound. With a plan, the
//! rates are also capped at the planned ones. Buffer sizes follow from them. Concurrent sends are paced by what each
//! child's subtree could use, not by what the plan gives it: with a tiny planned rate, one task would take longer to
//! arrive than the run lasts.

use crosswind_schema::platform::Loss;
use crosswind_schema::units::Quantity;
use crosswind_schema::{Platform, Tree};

use super::options::FarmOptions;
use super::order;

/// Relative difference in the cost of a byte that counts as equal.
const CHEAP: f64 = 1e-9;

/// Demand of each node, in the platform's order.
#[derive(Clone, Debug)]
pub(crate) struct Demand {
    /// Tasks per second that it uses.
    pub uses: Vec<f64>,
    /// Tasks per second that it could use if they were available. Without planned rates, the same as `uses`.
    pub can: Vec<f64>,
    /// Tasks per second that it uses while it receives nothing, which is how fast its buffer empties. Capped at twice
    /// what its link carries, since the link could not refill it faster.
    pub empties: Vec<f64>,
    /// Whether its parent ever serves it.
    pub served: Vec<bool>,
    /// Tasks per second that its link carries.
    pub link: Vec<f64>,
    /// Its key in the parent's order; infinite if it is never served.
    pub key: Vec<f64>,
    /// Tasks per second that its children contribute, less what sending to them costs it.
    pub below: Vec<f64>,
}

/// A child's rates that determine the pace of concurrent sends, tasks/s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub link: f64,
    pub uses: f64,
    /// Whether it is ever served.
    pub served: bool,
}

impl Demand {
    pub fn of(platform: &Platform, tree: &Tree, options: &FarmOptions<'_>) -> Self {
        let count = platform.nodes.len();
        let (size, moved, work) = (options.task.size_mb, options.moved_mb(), options.task.work);
        let back = if options.result_mb > size { size / options.result_mb } else { 1.0 };
        let mut demand = Self {
            uses: vec![0.0; count],
            can: vec![0.0; count],
            empties: vec![0.0; count],
            served: vec![false; count],
            link: platform.nodes.iter().map(|node| node.link_mb_per_s().unwrap_or(f64::INFINITY) / size).collect(),
            key: vec![f64::INFINITY; count],
            below: vec![0.0; count],
        };
        for &node in tree.order.iter().rev() {
            let n = node as usize;
            let own = platform.nodes[n].compute_per_s.get() / work;
            let rho = platform.nodes[n].ir_receive_s_per_mb.get() * moved * own;
            demand.can[n] = ((own + demand.below[n]) / (1.0 + rho)).min(demand.link[n] * back);
            demand.uses[n] = demand.can[n];
            demand.empties[n] = (own + demand.below[n]).min(2.0 * demand.link[n]);
            if node == tree.root {
                continue;
            }
            let candidate = options.candidate(platform, tree, node);
            if let Some(planned) = options.planned_tasks_per_s {
                demand.uses[n] = demand.uses[n].min(planned[n]);
            }
            if let Some(key) = order::key(options.order, &candidate).filter(|_| demand.uses[n] > 0.0) {
                (demand.served[n], demand.key[n]) = (true, key);
                demand.below[tree.parent[n] as usize] += demand.uses[n] * (1.0 - candidate.cost()).max(0.0);
            }
        }
        demand
    }

    /// Tasks per second that the whole tree uses.
    pub fn of_all(&self, tree: &Tree, options: &FarmOptions<'_>) -> f64 {
        options.outside.map_or(self.uses[tree.root as usize], |outside| outside.uses_tasks_per_s)
    }

    /// Tasks/s that a single port can send to these children. Each gets what it can use, in order of service, until the
    /// port's time is used up.
    pub fn through_one_port(&self, children: &[u32]) -> f64 {
        let mut served: Vec<usize> = children.iter().map(|&c| c as usize).filter(|&c| self.served[c]).collect();
        served.sort_by(|&a, &b| self.key[a].total_cmp(&self.key[b]));
        let (mut sent, mut free) = (0.0, 1.0);
        for child in served {
            let tasks = self.uses[child].min(free * self.link[child]);
            sent += tasks;
            free = (free - tasks / self.link[child]).max(0.0);
        }
        sent
    }

    /// Pace of concurrent sends to each child of a node, MB/s: see [`paces`].
    pub fn paces(&self, platform: &Platform, tree: &Tree, options: &FarmOptions<'_>, node: u32) -> Vec<f64> {
        let size = options.task.size_mb;
        let part = |&c: &u32| {
            let c = c as usize;
            Part { link: self.link[c], uses: self.can[c], served: self.served[c] }
        };
        let limit = platform.nodes[node as usize].send_limit_mb_per_s.map_or(f64::INFINITY, Quantity::get) / size;
        let mut paces = paces(size, limit, tree.children(node).iter().map(part));
        if let Some(planned) = options.planned_tasks_per_s {
            for (&child, pace) in tree.children(node).iter().zip(&mut paces) {
                *pace = as_cheap_as_planned(platform, node, child, planned[child as usize] * size, *pace);
            }
        }
        paces
    }
}

/// Returns the fastest pace up to `most` at which a byte costs no more computation at both ends than at the planned
/// rate, MB/s. If losses grow faster than the rate, this is the planned rate or slightly more, because faster bursts
/// would lose more than planned.
fn as_cheap_as_planned(platform: &Platform, parent: u32, child: u32, planned: f64, most: f64) -> f64 {
    let (parent, child) = (&platform.nodes[parent as usize], &platform.nodes[child as usize]);
    let ends = [(parent.compute_per_s.get(), &child.send_losses), (child.compute_per_s.get(), &child.receive_losses)];
    let curves = ends.into_iter().filter(|(_, losses)| !losses.is_empty()); // linear losses cost the same per byte at every rate
    if planned <= 0.0 || curves.clone().next().is_none() {
        return most;
    }
    let cost =
        |rate: f64| curves.clone().map(|(compute, losses)| compute * Loss::chord_s_per_mb(losses, rate)).sum::<f64>();
    let permitted = cost(planned) * (1.0 + CHEAP);
    let measured = curves.clone().flat_map(|(_, losses)| losses.iter().map(|loss| loss.0.get()));
    let rates = measured.filter(|&rate| planned < rate && rate < most).chain([most]);
    rates.filter(|&rate| cost(rate) <= permitted).fold(planned, f64::max).min(most)
}

/// Pace of concurrent sends to each child, MB/s: its receive limit. If the receive limits of all children exceed the
/// send limit (tasks/s), it is what the child can use, scaled up by a common factor where the send limit leaves room.
///
/// A preferred child that gets tasks faster than it can use them fills its buffer. While it needs nothing, the others
/// may not be able to use the whole send limit, so bursts waste the port.
pub(crate) fn paces(size_mb: f64, limit: f64, children: impl Iterator<Item = Part> + Clone) -> Vec<f64> {
    let served = || children.clone().filter(|part| part.served);
    let all: f64 = served().map(|part| part.link).sum();
    let used: f64 = served().map(|part| part.uses).sum();
    let share = if all > limit { (limit / used).max(1.0) } else { f64::INFINITY };
    children.map(|part| size_mb * part.link.min(part.uses * share)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(losses: &str, planned: f64) -> f64 {
        let text = format!(
            "schema_version = 1\nname = \"pair\"\n[[node]]\nname = \"root\"\ncompute_per_s = 10.0\n[[node]]\nname = \"leaf\"\n\
             parent = \"root\"\ncompute_per_s = 20.0\nreceive_limit_mb_per_s = 10.0\n{losses}"
        );
        let platform = Platform::from_toml(text.as_bytes(), "pair.toml").expect("a right description");
        as_cheap_as_planned(&platform, 0, 1, planned, 10.0)
    }

    #[test]
    fn a_planned_child_is_sent_to_no_faster_than_a_byte_costs_at_the_planned_rate() {
        let steeper = "send_losses = [[5.0, 0.05], [10.0, 0.9]]";
        assert_eq!(pace(steeper, 6.0), 6.0);
        assert_eq!(pace(steeper, 2.0), 5.0); // up to 5 MB/s a byte costs the same
        assert_eq!(pace("send_losses = [[5.0, 0.4], [10.0, 0.5]]", 6.0), 10.0); // bursts cost less
        assert_eq!(pace("receive_losses = [[5.0, 0.1], [10.0, 0.9]]", 6.0), 6.0);
        assert_eq!(pace("ir_send_s_per_mb = 0.01", 6.0), 10.0);
        assert_eq!(pace(steeper, 0.0), 10.0); // never served
    }
}
