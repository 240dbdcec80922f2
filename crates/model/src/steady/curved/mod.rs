//! The steady state of a tree with nonlinear losses: several ports, one rate per link.
//!
//! A nonlinear loss turns (1) of [`super::station`] into a constraint on curves. As in the linear case, the tree is
//! solved from the leaves up, since all that matters of a subtree is the rates that it can take. There are four rates per
//! subtree:
//!
//! | rate | losses | what the children take | found by |
//! |---|---|---|---|
//! | steady | never falling, so that every smaller rate is possible too | up to their steady rates | [`search`] |
//! | planned | as measured | up to their steady rates, or a range above | [`search`] |
//! | most at constant rates | as measured | up to their most at constant rates; of a leaf, only what it can take | [`search`] |
//! | most | their convex hulls up to the link's limit | most | [`local`], exact |
//!
//! A loss that falls again at a higher rate may leave gaps: a subtree takes every rate up to its steady one, none in a
//! gap, and rates above it again. Of a leaf the ranges above are exact. Of another node they are those that it can take
//! with the flows of its planned rate to its children.
//!
//! The last is a bound for all schedules: one that sends in bursts, or alternates between rates, loses no less on
//! average than the convex hull at its mean rate (Jensen). Convex losses are their own hulls, so for them all agree.
//!
//! Results, no larger than inputs, go up at the link's limit, as agents send them: each loses its chord there. The
//! bound for all schedules lets them go at the rate that loses least.
//!
//! | file | question |
//! |---|---|
//! | `curve` | what is lost at a rate? |
//! | `local` | what can one node do if its losses are replaced by hulls? |
//! | `search` | what can it do with its losses as measured? |
//! | `down` | what does each node do when the root does its best? |
//! | `gains` | what is the derivative for more of a limit? |

mod curve;
mod down;
mod gains;
mod local;
mod search;

use crosswind_schema::platform::{Loss, Node};
use crosswind_schema::units::Quantity;

use super::tree::Walk;
use curve::Curve;
use local::Local;

pub(super) use down::CurvedRates;

/// Total number of lines that a plan's searches evaluate: a second or two.
const WORK: usize = 3_000_000;

/// A tree with curves, breadth first like its walk.
pub(super) struct Curved<'a> {
    walk: &'a Walk,
    /// Fraction of the node's compute rate lost by receiving, as a function of tasks/s, up to the link's limit.
    receives: Vec<Curve>,
    /// Fraction of the parent's compute rate lost by sending to this node.
    sends: Vec<Curve>,
    /// What results at the rate that disturbs least would lose less than in these curves, per task: receiving node, and
    /// parent. 0 without results.
    spared: Vec<[f64; 2]>,
}

struct Reach {
    steady: Vec<f64>,
    planned: Vec<f64>,
    /// Ranges of rates below the planned one that the subtree cannot take.
    gaps: Vec<Vec<(f64, f64)>>,
    /// Flow to each node when its parent takes its steady rate.
    steady_flow: Vec<f64>,
    /// Flow to each node when its parent takes a rate above that; on the way down, as planned.
    flow: Vec<f64>,
    constant: Vec<f64>,
    any: Vec<f64>,
}

#[derive(Clone, Copy, PartialEq)]
enum Losses {
    Measured,
    Rising,
    Hulls,
}

impl<'a> Curved<'a> {
    /// Creates the curves. `nodes` are numbered as in the walk's platform.
    pub fn new(walk: &'a Walk, nodes: &[Node]) -> Self {
        let (size, result) = (walk.task.size_mb(), walk.task.result_mb());
        // Each task costs what its input does at the rate of inputs, and what its result does at the link's limit.
        let curve = |losses: &[Loss], line: f64, limit: f64| {
            let inputs = match losses {
                [] => Curve::line(line * size, limit),
                _ => Curve::measured(losses, size, limit),
            };
            if result == 0.0 || limit == 0.0 {
                return (inputs, 0.0);
            }
            let (at_limit, least) = match losses {
                [] => (line, line),
                _ => chords(losses, limit * size),
            };
            (inputs.combined(at_limit * result, 1.0), (at_limit - least) * result)
        };
        let (mut receives, mut sends, mut spared) = (Vec::new(), Vec::new(), Vec::new());
        for (place, &node) in walk.order.iter().enumerate() {
            let (node, limit) = (&nodes[node as usize], walk.stations[place].receive);
            let limit = if limit.is_finite() { limit } else { 0.0 }; // the root receives nothing
            let (received, here) = curve(&node.receive_losses, node.ir_receive_s_per_mb.get(), limit);
            let (sent, at_parent) = curve(&node.send_losses, node.ir_send_s_per_mb.get(), limit);
            receives.push(received);
            sends.push(sent);
            spared.push([here, at_parent]);
        }
        Self { walk, receives, sends, spared }
    }

    /// Returns the node at a place if its children can take rates up to `limits`, indexed by place.
    fn local(&self, place: usize, limits: &[f64], losses: Losses) -> Local {
        self.local_with_gaps(place, limits, &|_| Vec::new(), losses)
    }

    /// Returns the same, with ranges of rates that a child cannot take.
    fn local_with_gaps(
        &self,
        place: usize,
        limits: &[f64],
        gaps: &dyn Fn(usize) -> Vec<(f64, f64)>,
        losses: Losses,
    ) -> Local {
        let station = &self.walk.stations[place];
        let shaped = |curve: &Curve, send: f64, spared: f64| match losses {
            Losses::Measured => curve.clone(),
            Losses::Rising => curve.rising(),
            Losses::Hulls if spared > 0.0 => curve.combined(-spared, 1.0).cut(curve.end().min(send)).convex_hull(),
            Losses::Hulls => curve.cut(curve.end().min(send)).convex_hull(), // no burst is faster
        };
        let children = self.walk.children(place);
        let gaps: Vec<_> = children.clone().map(gaps).collect();
        let gain = |(child, gaps): (usize, &Vec<_>)| {
            let shaped = shaped(&self.sends[child], station.send, self.spared[child][1]);
            shaped.combined(1.0, -station.compute).cut(limits[child]).bridged(gaps)
        };
        let demand = if place > 0 {
            let send = self.walk.stations[self.walk.parent(place)].send;
            let demand = |curve: &Curve| curve.combined(1.0, station.compute);
            match losses {
                // For a leaf it is enough that the total demand of its tasks never falls.
                Losses::Rising if children.is_empty() => demand(&self.receives[place]).rising(),
                _ => demand(&shaped(&self.receives[place], send, self.spared[place][0])),
            }
        } else {
            let most = station.compute + children.clone().map(|child| limits[child]).sum::<f64>();
            Curve::line(1.0, most)
        };
        Local {
            compute: station.compute,
            receive: station.receive,
            drop: station.drop,
            send: station.send,
            demand,
            gains: children.zip(&gaps).map(gain).collect(),
            gaps,
        }
    }

    fn reach(&self) -> Reach {
        let count = self.walk.stations.len();
        let none = || vec![0.0; count];
        let mut reach = Reach {
            steady: none(),
            planned: none(),
            gaps: vec![Vec::new(); count],
            steady_flow: none(),
            flow: none(),
            constant: none(),
            any: none(),
        };
        let is_hard = |curve: &Curve| curve.convex_hull() != *curve;
        let hard = self.sends.iter().filter(|curve| is_hard(curve)).count();
        let work = WORK / hard.max(1);
        for place in (0..count).rev() {
            let children = self.walk.children(place);
            let work = work * children.len().max(1);
            let is_leaf = |child: usize| self.walk.children(child).is_empty();
            let leaf_gaps = |child: usize| if is_leaf(child) { reach.gaps[child].clone() } else { Vec::new() };
            let most = search::best(&self.local_with_gaps(place, &reach.constant, &leaf_gaps, Losses::Measured), work);
            let is_exact = |child: usize| {
                reach.planned[child] == reach.constant[child] && (is_leaf(child) || reach.gaps[child].is_empty())
            };
            let above =
                self.local_with_gaps(place, &reach.planned, &|child| reach.gaps[child].clone(), Losses::Measured);
            let planned = if children.clone().all(is_exact) { most.clone() } else { search::best(&above, work) };
            let falls = |curve: &Curve| !curve.is_rising();
            let may_fall = falls(&self.receives[place])
                || children
                    .clone()
                    .any(|child| falls(&self.sends[child]) || reach.steady[child] < reach.planned[child]);
            let steady = match place > 0 && may_fall {
                true => search::best(&self.local(place, &reach.steady, Losses::Rising), work),
                false => planned.clone(),
            };
            let hulls = self.local(place, &reach.any, Losses::Hulls);
            let relaxed = hulls.relaxed(&hulls.whole_steps()).map_or(0.0, |relaxed| relaxed.rate);
            let best = if planned.rate > steady.rate { &planned } else { &steady };
            let rate = best.rate;
            reach.gaps[place] = above.gaps_between(steady.rate, best);
            reach.steady_flow[children.clone()].copy_from_slice(&steady.flows);
            reach.flow[children].copy_from_slice(&best.flows);
            reach.steady[place] = steady.rate;
            reach.planned[place] = rate;
            // Each is a bound for the previous one, up to rounding.
            reach.constant[place] = proven(most.bound, rate);
            reach.any[place] = proven(relaxed, reach.constant[place]);
        }
        reach
    }
}

/// Returns the chord of losses at a rate, MB/s, and the least chord up to it, s/MB.
fn chords(losses: &[Loss], most: f64) -> (f64, f64) {
    let at = Loss::chord_s_per_mb(losses, most);
    // Between two measured rates the chord is monotone.
    let below = losses.iter().map(|loss| loss.0.get()).filter(|&rate| rate < most);
    (at, below.map(|rate| Loss::chord_s_per_mb(losses, rate)).fold(at, f64::min))
}

/// Returns a bound, or the rate itself if they differ only by rounding.
fn proven(bound: f64, rate: f64) -> f64 {
    if bound <= rate * (1.0 + 1e-12) { rate } else { bound }
}
