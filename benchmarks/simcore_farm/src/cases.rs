//! The farms that are compared.

use crosswind_schema::Platform;
use crosswind_schema::experiment::Order;
use crosswind_schema::experiment::draw::{Column, Tasks};
use crosswind_schema::plan::Ports;

pub struct Case {
    pub platform: Platform,
    pub tasks: Tasks,
    pub order: Order,
    pub ports: Ports,
    /// Whether the end is levelled, where order and ports allow it.
    pub levelled: bool,
    pub interference: bool,
}

struct Spot {
    parent: Option<usize>,
    compute: f64,
    receive: f64,
    ir_receive: f64,
    ir_send: f64,
    send: Option<f64>,
}

fn platform(spots: &[Spot]) -> Platform {
    use std::fmt::Write;
    let mut text = "schema_version = 1\nname = \"benchmark\"\n".to_owned();
    for (n, spot) in spots.iter().enumerate() {
        let _ = writeln!(text, "[[node]]\nname = \"n{n}\"\ncompute_per_s = {}", spot.compute);
        if let Some(parent) = spot.parent {
            let _ = writeln!(
                text,
                "parent = \"n{parent}\"\nreceive_limit_mb_per_s = {}\nir_receive_s_per_mb = {}\nir_send_s_per_mb = {}",
                spot.receive, spot.ir_receive, spot.ir_send
            );
        }
        if let Some(limit) = spot.send {
            let _ = writeln!(text, "send_limit_mb_per_s = {limit}");
        }
    }
    Platform::from_toml(text.as_bytes(), "benchmark").expect("a right description")
}

/// Table 4 with the links of row 5 and the interference of rows 7 and 9.
fn fork(on: f64) -> Vec<Spot> {
    let compute = [23.86, 3.47, 3.02, 8.27, 22.55, 13.23];
    let links = [11.1, 11.12, 11.05, 10.85, 7.7, 0.3];
    let ir_send = [0.0299, 0.0199, 0.0211, 0.0305, 0.0310, 0.0638];
    let ir_receive = [0.0443, 0.0454, 0.0621, 0.0130, 0.0425, 0.1300];
    let root = Spot { parent: None, compute: 9.05, receive: 0.0, ir_receive: 0.0, ir_send: 0.0, send: None };
    let leaf = |n: usize| Spot {
        parent: Some(0),
        compute: compute[n],
        receive: links[n],
        ir_receive: on * ir_receive[n],
        ir_send: on * ir_send[n],
        send: None,
    };
    std::iter::once(root).chain((0..6).map(leaf)).collect()
}

/// Spreads numbers evenly over 0 to 1, no two alike: equal rates would make ties, which rounding decides.
fn spread(n: usize, step: f64) -> f64 {
    (n as f64 * step).fract()
}

/// A tree whose nodes differ, with `width` children at each inner node, in the order of the levels.
fn tree(count: usize, width: usize, on: f64) -> Vec<Spot> {
    (0..count)
        .map(|n| Spot {
            parent: n.checked_sub(1).map(|n| n / width),
            compute: 1.0 + 10.0 * spread(n, 0.618_033_988_75),
            receive: 50.0 + 90.0 * spread(n, 0.414_213_562_37),
            ir_receive: on * (0.001 + 0.003 * spread(n, 0.732_050_807_57)),
            ir_send: on * (0.001 + 0.002 * spread(n, 0.236_067_977_5)),
            send: None,
        })
        .collect()
}

/// A star whose links are slower together than alone.
fn star(leaves: usize) -> Vec<Spot> {
    let mut spots = tree(leaves + 1, leaves, 1.0);
    spots[0].send = Some(20.0 * leaves as f64);
    spots
}

fn same(count: u64, size: f64, work: f64) -> Tasks {
    Tasks { count, size_mb: Column::Same(size), work: Column::Same(work), ..Tasks::default() }
}

/// A case by its name: a shape, then what is unlike the usual: `off` (no interference), `several` (several ports),
/// `ordered` (the default order) and `levelled` (that, and the end levelled).
pub fn case(name: &str, tasks: Option<u64>) -> Case {
    let (shape, how) = name.split_once('-').unwrap_or((name, ""));
    let has = |word: &str| how.split('-').any(|part| part == word);
    let (on, levelled) = (if has("off") { 0.0 } else { 1.0 }, has("levelled"));
    let order = if has("ordered") || levelled { Order::Interference } else { Order::Arrival };
    let count = |usual: u64| tasks.unwrap_or(usual);
    let (spots, tasks) = match shape {
        "fork" => (fork(on), same(count(100_000), 2.0, 5.0)),
        "tree" => (tree(9_724, 21, on), same(count(1_000_000), 2.0, 5.0)),
        "million" => (tree(1_000_000, 10, on), same(count(10_000_000), 2.0, 5.0)),
        "star" => {
            let count = count(1_000_000);
            let column = |mean: f64, by: u64| {
                Column::Each((0..count).map(|n| mean * (0.5 + (n * by % 97) as f64 / 96.0)).collect())
            };
            (star(1_000), Tasks { count, size_mb: column(2.0, 31), work: column(5.0, 57), ..Tasks::default() })
        }
        other => panic!("{other}: fork, tree, star or million, then -off, -several, -ordered or -levelled"),
    };
    let ports = if shape == "star" || has("several") { Ports::Multi } else { Ports::Single };
    Case { platform: platform(&spots), tasks, order, ports, levelled, interference: on > 0.0 }
}
