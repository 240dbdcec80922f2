//! Which classes of tasks suit a node, and the nodes below it.

use crosswind_schema::experiment::classes::Classes;
use crosswind_schema::units::Quantity;
use crosswind_schema::{Platform, Tree};

/// Which classes suit a node or a subtree. Each list has one entry per class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Taste {
    /// Share of the whole platform's compute rate for the class that it has; 0: it cannot run the class.
    pub advantage: Vec<f64>,
    /// Work units/s of the nodes that prefer the class: those whose advantage is largest there.
    pub prefers: Vec<f64>,
    /// Work units/s of all its nodes together, for the class.
    pub rate: Vec<f64>,
}

impl Taste {
    /// Whether it can run tasks of a class.
    #[must_use]
    pub fn runs(&self, class: usize) -> bool {
        self.advantage[class] > 0.0
    }

    fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.advantage, &other.advantage),
            (&mut self.prefers, &other.prefers),
            (&mut self.rate, &other.rate),
        ] {
            sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
    }
}

/// Returns for each node of a platform its own taste, and that of it together with all nodes below it.
#[must_use]
pub fn tastes(platform: &Platform, tree: &Tree, classes: &Classes) -> (Vec<Taste>, Vec<Taste>) {
    let count = classes.names.len();
    let rate = |class: usize, node: usize| platform.nodes[node].compute_per_s.get() * classes.factors[class][node];
    let totals: Vec<f64> =
        (0..count).map(|class| (0..platform.nodes.len()).map(|node| rate(class, node)).sum()).collect();
    let own: Vec<Taste> = (0..platform.nodes.len())
        .map(|node| {
            let rates: Vec<f64> = (0..count).map(|class| rate(class, node)).collect();
            let advantage: Vec<f64> =
                rates.iter().zip(&totals).map(|(&rate, &total)| if rate > 0.0 { rate / total } else { 0.0 }).collect();
            let mut prefers = vec![0.0; count];
            // Of equal ones the first of the file.
            let best = (0..count).rev().max_by(|&a, &b| advantage[a].total_cmp(&advantage[b]));
            if let Some(best) = best.filter(|&class| advantage[class] > 0.0) {
                // A node that is as good at all classes prefers none of them.
                let all: Vec<f64> = advantage.iter().copied().filter(|&one| one > 0.0).collect();
                let alike = all.iter().all(|&one| one >= advantage[best] * (1.0 - 1e-9));
                for class in (0..count).filter(|&class| if alike { advantage[class] > 0.0 } else { class == best }) {
                    prefers[class] = rates[class];
                }
            }
            Taste { advantage, prefers, rate: rates }
        })
        .collect();
    let mut below = own.clone();
    for &node in tree.order.iter().rev() {
        if node != tree.root {
            let one = std::mem::take(&mut below[node as usize]);
            below[tree.parent[node as usize] as usize].add(&one);
            below[node as usize] = one;
        }
    }
    (own, below)
}
