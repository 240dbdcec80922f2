//! Failures and slowdowns of nodes that are drawn at random: an endless list of changes.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::draw::unit;
use super::listed::{OfNode, Places};
use crate::error::DescriptionError;
use crate::platform::{Node, Platform};
use crate::units::{Part, PositiveSeconds, Quantity, Share, WeibullShape};

/// Failures of a node, drawn at random: it fails, is repaired, fails again, until the end of the run. Without a factor a
/// node that fails leaves, with all nodes below it and all that they hold; with a factor it slows down. Simulated only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// Name of the node that fails; absent: every node below the root, each at times of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Mean time from the start or a repair to the next failure, s.
    pub mtbf_s: PositiveSeconds,
    /// Mean time from a failure to the repair, s, exponentially distributed.
    pub mttr_s: PositiveSeconds,
    /// Shape of the times to the next failure, a Weibull distribution: 1 is exponential, below 1 failures come in
    /// bursts, above 1 nodes wear out.
    #[serde(default = "exponential", skip_serializing_if = "is_exponential")]
    pub shape: WeibullShape,
    /// Part of its compute rate that the node keeps until the repair; 0: it stands still, then continues its task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_factor: Option<Part>,
    /// Part of its receive limit that the node keeps until the repair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_factor: Option<Share>,
}

const fn exponential() -> WeibullShape {
    WeibullShape::EXPONENTIAL
}

fn is_exponential(shape: &WeibullShape) -> bool {
    *shape == exponential()
}

impl OfNode for Failure {
    const LIST: &'static str = "failure";
    const FIELD: &'static str = "mtbf_s";
    fn node(&self) -> Option<&str> {
        self.node.as_deref()
    }
}

/// What a failure does to its node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effect {
    /// The node leaves, with all below it.
    Leaves,
    /// Its rates are multiplied by these factors.
    Slows { compute: f64, link: f64 },
}

/// Failures of one node of a platform.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlacedFailure {
    /// Index of the node in the platform.
    pub node: u32,
    pub mttr_s: f64,
    /// Scale and shape of the Weibull distribution of the times to a failure.
    pub scale_s: f64,
    pub shape: f64,
    pub effect: Effect,
    /// Seed of the run.
    pub seed: u64,
    /// Random stream of this node and this table.
    pub stream: u64,
}

/// Streams from here on belong to failures. Each node has one in each table, so other draws and other nodes' failures
/// stay as they are when a table or a node is added.
const STREAMS: u64 = 1 << 63;

impl PlacedFailure {
    /// Yields the times at which the node fails and is repaired in turn, s since the start.
    pub fn times(&self) -> impl Iterator<Item = f64> + use<> {
        let failure = *self;
        let mut random = ChaCha8Rng::seed_from_u64(failure.seed);
        random.set_stream(failure.stream);
        let (mut at_s, mut fails) = (0.0, false);
        std::iter::repeat_with(move || {
            fails = !fails;
            let exponential = -libm::log(unit(random.next_u64()));
            at_s += if fails {
                failure.scale_s * libm::pow(exponential, 1.0 / failure.shape)
            } else {
                failure.mttr_s * exponential
            };
            at_s
        })
    }

    /// Returns how often the node has failed by a time, and for how many seconds it had failed by then.
    #[must_use]
    pub fn until(&self, end_s: f64) -> (u64, f64) {
        let (mut count, mut failed_s, mut times) = (0, 0.0, self.times());
        while let Some(fails_s) = times.next().filter(|&at_s| at_s < end_s) {
            let repaired_s = times.next().unwrap_or(end_s).min(end_s);
            (count, failed_s) = (count + 1, failed_s + repaired_s - fails_s);
        }
        (count, failed_s)
    }
}

/// Returns the failures of a platform's nodes in a run with that seed.
///
/// # Errors
/// When the platform does not have the node, or it cannot fail in that way.
pub fn placed(failures: &[Failure], platform: &Platform, seed: u64) -> Result<Vec<PlacedFailure>, DescriptionError> {
    let places = (!failures.is_empty()).then(|| Places::of(platform));
    let mut found = Vec::new();
    for (at, failure) in failures.iter().enumerate() {
        let effect = match (failure.compute_factor, failure.link_factor) {
            (None, None) => Effect::Leaves,
            (compute, link) => {
                Effect::Slows { compute: compute.map_or(1.0, Part::get), link: link.map_or(1.0, Share::get) }
            }
        };
        let shape = failure.shape.get();
        let mut put = |node: usize| {
            found.push(PlacedFailure {
                node: node as u32,
                mttr_s: failure.mttr_s.get(),
                scale_s: failure.mtbf_s.get() / libm::tgamma(1.0 + 1.0 / shape),
                shape,
                effect,
                seed,
                stream: STREAMS | (at as u64) << 32 | node as u64,
            });
        };
        let below = || platform.nodes.iter().enumerate().filter(|(_, node)| node.parent.is_some());
        match (&failure.node, &places) {
            (Some(name), Some(places)) => {
                let place = places.find::<Failure>(at, name)?;
                permitted(at, failure, &platform.nodes[place])?;
                put(place);
            }
            _ if below().next().is_none() => {
                let sentence = "is absent: all nodes below the root fail, but the platform has none; name the root with \
                                a compute_factor, or leave the table out";
                return Err(Failure::wrong(at, "node", sentence.into()));
            }
            _ => below().for_each(|(place, _)| put(place)),
        }
    }
    Ok(found)
}

/// Checks that a node that is named can fail in that way.
fn permitted(at: usize, failure: &Failure, node: &Node) -> Result<(), DescriptionError> {
    let (name, is_root) = (&node.name, node.parent.is_none());
    let wrong = |field, sentence| Err(Failure::wrong(at, field, sentence));
    match (failure.compute_factor, failure.link_factor) {
        (None, None) if is_root => {
            let hint = "it holds the tasks and cannot leave; give it a compute_factor";
            wrong("node", format!("is {name:?}, the root; {hint}"))
        }
        (_, Some(_)) if is_root => {
            wrong("link_factor", format!("is given for {name:?}, the root, which has no parent to receive from"))
        }
        (Some(_), None) if node.compute_per_s.get() == 0.0 => {
            wrong("compute_factor", format!("is given for {name:?}, which computes nothing from the start"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(mtbf_s: f64, mttr_s: f64, shape: f64) -> PlacedFailure {
        let scale_s = mtbf_s / libm::tgamma(1.0 + 1.0 / shape);
        PlacedFailure { node: 1, mttr_s, scale_s, shape, effect: Effect::Leaves, seed: 1, stream: STREAMS | 1 }
    }

    #[test]
    fn means_are_those_asked_for_whatever_the_shape() {
        for shape in [0.5, 1.0, 3.0] {
            let times: Vec<f64> = failure(50.0, 5.0, shape).times().take(200_000).collect();
            let gap = |at: usize| times[at] - if at == 0 { 0.0 } else { times[at - 1] };
            let mean = |odd: usize| (0..100_000).map(|n| gap(2 * n + odd)).sum::<f64>() / 1e5;
            // Standard deviations of the means: 50 / sqrt(1e5) x 2.24 (shape 0.5) = 0.35, and 5 / sqrt(1e5) = 0.016.
            assert!((mean(0) - 50.0).abs() < 1.5, "{shape}: {}", mean(0));
            assert!((mean(1) - 5.0).abs() < 0.07, "{shape}: {}", mean(1));
        }
    }

    #[test]
    fn a_longer_mean_stretches_the_same_draws() {
        let [short, long] = [1.0, 10.0].map(|mtbf_s| failure(mtbf_s, 1e-12, 1.0).times().nth(20).unwrap_or_default());
        assert!((long / short - 10.0).abs() < 1e-9);
    }

    #[test]
    fn what_has_failed_by_a_time_is_counted_until_then() {
        let one = failure(10.0, 1.0, 1.0);
        let times: Vec<f64> = one.times().take(4).collect();
        assert_eq!(one.until(times[0]), (0, 0.0));
        let (count, failed_s) = one.until(f64::midpoint(times[0], times[1]));
        assert_eq!((count, failed_s), (1, f64::midpoint(times[0], times[1]) - times[0]));
        assert_eq!(one.until(times[3]), (2, times[1] - times[0] + (times[3] - times[2])));
    }

    #[test]
    fn a_node_that_cannot_fail_so_is_refused() {
        let text = r#"{"schema_version": 1, "name": "p", "node": [{"name": "r", "compute_per_s": 2.0},
            {"name": "a", "parent": "r", "compute_per_s": 0.0, "receive_limit_mb_per_s": 10.0},
            {"name": "b", "parent": "a", "compute_per_s": 1.0, "receive_limit_mb_per_s": 10.0}]}"#;
        let platform = Platform::from_json(text.as_bytes(), "p.json").expect("a platform");
        let of = |fields: &str| {
            let failure = format!(r#"[{{"mtbf_s": 9, "mttr_s": 1{fields}}}]"#);
            placed(&serde_json::from_str::<Vec<Failure>>(&failure).expect(fields), &platform, 1)
        };
        assert_eq!(of("").expect("all below").iter().map(|one| one.node).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(of(r#", "node": "r", "compute_factor": 0"#).expect("the root").len(), 1);
        for (fields, said) in [
            (r#", "node": "c""#, "failure[0].node is \"c\", which is no node"),
            (r#", "node": "r""#, "failure[0].node is \"r\", the root"),
            (r#", "node": "r", "link_factor": 0.5"#, "failure[0].link_factor is given for \"r\", the root"),
            (r#", "node": "a", "compute_factor": 0.5"#, "failure[0].compute_factor is given for \"a\", which computes"),
        ] {
            let error = of(fields).expect_err(fields).to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
