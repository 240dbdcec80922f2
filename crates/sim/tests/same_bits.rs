//! Results of seeded farms, compared to the last bit with stored digests.
//!
//! A change that only makes the simulator faster must keep them. A change of the policy or the model changes them.
//! `CROSSWIND_WRITE_GOLDEN=1 cargo test -p crosswind-sim --test all same_bits` rewrites them.
//! `CROSSWIND_FARMS=20000 CROSSWIND_DIGESTS=FILE` writes one line per farm instead, to compare two commits on many
//! farms.

#![allow(clippy::disallowed_methods)] // it writes digests and reads which farms to run

use std::fmt::Write as _;

use crate::farms::{PORTS, Spot, mean, platform, root};
use crosswind_model::{Task, plan};
use crosswind_policy::farm::FarmOptions;
use crosswind_schema::experiment::draw::{Column, Tasks};
use crosswind_schema::experiment::{ChangeKind, Order, PlacedChange, Policy};
use crosswind_schema::plan::{Method, Ports};
use crosswind_sim::{Farm, Options, simulate};

/// Farms of each order and port model in the repository's digests.
const FARMS: u64 = 25;

/// A private random generator, so that the draws do not change with a library.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * ((self.next() >> 11) as f64 / (1u64 << 53) as f64)
    }
}

/// Trees, chains and stars. Equal nodes produce ties, and strong interference produces processors that stop.
fn tree(draw: &mut Draw) -> Vec<Spot> {
    let nodes = if draw.one_in(6) { 20 + draw.below(40) } else { 1 + draw.below(13) };
    let (is_star, alike, interferes) = (nodes > 20 && draw.one_in(2), draw.one_in(3), !draw.one_in(4));
    let latency = if draw.one_in(3) { draw.between(0.0, 0.2) } else { 0.0 };
    let strength = if draw.one_in(5) { 2.0 } else { 0.4 };
    let drops = draw.one_in(3);
    let scarce = draw.between(2.0, 40.0);
    (0..nodes)
        .map(|n| {
            let rate = |draw: &mut Draw, low, high| if alike { low } else { draw.between(low, high) };
            let receive = rate(draw, 4.0, 30.0);
            let ir = if interferes { strength / receive } else { 0.0 };
            Spot {
                parent: (n > 0).then(|| if is_star { 0 } else { draw.below(n) }),
                compute: if n > 0 && draw.one_in(8) { 0.0 } else { rate(draw, 2.0, 30.0) },
                receive,
                ir_receive: ir * rate(draw, 0.5, 1.0),
                ir_send: ir * rate(draw, 0.3, 1.0),
                send: (!draw.one_in(4)).then(|| rate(draw, scarce, 40.0)),
                drop: if drops { draw.between(0.0, 0.3) } else { 0.0 },
                latency: if draw.one_in(4) { 0.0 } else { latency },
                missed: 0.0,
            }
        })
        .collect()
}

fn tasks(draw: &mut Draw) -> Tasks {
    let count = 1 + draw.next() % 250;
    let mut column = |most: f64| {
        if draw.one_in(2) {
            Column::Same(2.0)
        } else {
            Column::Each((0..count).map(|_| draw.between(0.1, most)).collect())
        }
    };
    Tasks { count, size_mb: column(5.0), work: column(9.0), ..Tasks::default() }
}

/// Returns changes in which nodes leave, rejoin or get other rates within `within_s` seconds.
fn changes(draw: &mut Draw, tree: &[Spot], within_s: f64) -> Vec<PlacedChange> {
    let mut times: Vec<f64> = (0..draw.below(6)).map(|_| draw.between(0.0, within_s)).collect();
    times.sort_by(f64::total_cmp);
    let mut gone = vec![false; tree.len()];
    let mut changes = Vec::new();
    for at_s in times.into_iter().filter(|_| tree.len() > 1) {
        let node = 1 + draw.below(tree.len() - 1);
        let is_below = |top: usize, node: usize| {
            std::iter::successors(tree[node].parent, |&above| tree[above].parent).any(|above| above == top)
        };
        if (0..tree.len()).any(|top| gone[top] && is_below(top, node)) {
            continue;
        }
        let kind = if gone[node] {
            (0..tree.len()).filter(|&other| is_below(node, other)).for_each(|other| gone[other] = false);
            gone[node] = false;
            ChangeKind::Joins
        } else if draw.one_in(3) {
            let mut some = |value: f64| draw.one_in(2).then_some(value);
            let (compute_per_s, receive_limit_mb_per_s) = (some(5.0), some(6.5));
            ChangeKind::Rates { compute_per_s: compute_per_s.or(Some(3.0)), receive_limit_mb_per_s }
        } else {
            gone[node] = true;
            ChangeKind::Leaves
        };
        changes.push(PlacedChange { at_s, node: node as u32, kind });
    }
    changes
}

/// Returns the complete outcome of one farm as text, with numbers that parse back exactly.
fn outcome(order: Order, ports: Ports, seed: u64) -> String {
    let place = Order::ALL.iter().position(|&one| one == order).unwrap() as u64;
    let draw = &mut Draw(seed ^ place << 40 ^ (ports as u64) << 50);
    let mut spots = tree(draw);
    spots[0] = Spot { send: spots[0].send, ..root(spots[0].compute.max(0.5)) };
    let (platform, tasks) = (platform(&spots), tasks(draw));
    let task = mean(&tasks);
    let policy = Policy {
        order,
        ports: ports.into(),
        buffer_tasks: draw.one_in(2).then(|| 1 + draw.next() % 5),
        adapt: draw.one_in(5),
        level_end: draw.one_in(2),
        ..Policy::default()
    };
    let result_size_mb = if draw.one_in(4) { 0.5 } else { 0.0 };
    let changes = if draw.one_in(4) { changes(draw, &spots, tasks.count as f64 * 0.2) } else { Vec::new() };
    let options = Options { changes: &changes, trace: draw.one_in(2), ..Options::default() };
    let rates: Vec<f64> = match order {
        Order::Planned => {
            let plan = plan(&platform, Task::new(task.size_mb, task.work).unwrap(), ports, Method::Exact).unwrap();
            plan.nodes.iter().map(|node| node.received_tasks_per_s).collect()
        }
        _ => Vec::new(),
    };
    let farm_options = FarmOptions { recovers: false, ..FarmOptions::of(&policy, task) };
    let farm_options = if draw.one_in(2) { farm_options.with_tasks(tasks.count) } else { farm_options };
    let farm_options = if draw.one_in(5) { farm_options.with_recovery() } else { farm_options };
    let farm_options = if rates.is_empty() { farm_options } else { farm_options.with_plan(&rates) };
    let farm = Farm { platform: &platform, tasks: &tasks, farm_options, chunk_kib: policy.chunk_kib, result_size_mb };
    // The digests are older than what only runs with arrivals or with failures have.
    format!("{:?}", simulate(&farm, options, &mut |_| true)).replace("done_s: [], ", "").replace("failures: [], ", "")
}

/// Returns the FNV-1a digest of all texts.
fn digest(texts: impl Iterator<Item = String>) -> u64 {
    texts.fold(0xCBF2_9CE4_8422_2325, |digest, text| {
        text.bytes().fold(digest, |digest, byte| (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3))
    })
}

#[test]
fn seeded_farms_end_as_they_did_to_the_last_bit() {
    let many = std::env::var("CROSSWIND_FARMS").ok().map(|count| count.parse::<u64>().unwrap());
    let mut lines = String::new();
    for order in Order::ALL {
        for ports in PORTS {
            match many {
                None => {
                    let digest = digest((0..FARMS).map(|seed| outcome(order, ports, seed)));
                    writeln!(lines, "{order:?} {ports:?} {digest:016x}").unwrap();
                }
                Some(count) => (0..count / 14).for_each(|seed| {
                    let text = outcome(order, ports, seed);
                    let what = text.split_whitespace().next().unwrap_or_default().to_owned();
                    let digest = digest(std::iter::once(text));
                    writeln!(lines, "{order:?} {ports:?} {seed} {digest:016x} {what}").unwrap();
                }),
            }
        }
    }
    if let Ok(path) = std::env::var("CROSSWIND_DIGESTS") {
        std::fs::write(path, lines).unwrap();
        return;
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/same_bits.txt");
    if std::env::var_os("CROSSWIND_WRITE_GOLDEN").is_some() {
        std::fs::write(path, &lines).unwrap();
    }
    assert_eq!(lines, std::fs::read_to_string(path).unwrap());
}
