//! The overlay tree checked against all trees, the search against the best tree, the bound against both.

use crosswind_model::overlay::{Built, How, Search, build_tree};
use crosswind_model::{Columns, Task, plan, plan_columns};
use crosswind_schema::Links;
use crosswind_schema::plan::{Method, Ports};
use proptest::prelude::*;

const PORTS: [Ports; 2] = [Ports::Single, Ports::Multi];
const TASK: (f64, f64) = (2.0, 3.0);

/// Numbers of a cluster. `None` means that the pair is not known.
#[derive(Clone, Debug)]
struct Cluster {
    compute: Vec<f64>,
    send: Vec<Option<f64>>,
    /// By sender and receiver: MB/s, ir_receive, ir_send.
    link: Vec<Vec<Option<(f64, f64, f64)>>>,
}

impl Cluster {
    fn count(&self) -> usize {
        self.compute.len()
    }

    fn links(&self) -> Links {
        let mut text = String::from("schema_version = 1\nname = \"cluster\"\n");
        for (at, (compute, send)) in self.compute.iter().zip(&self.send).enumerate() {
            text += &format!("[[host]]\nname = \"h{at}\"\ncompute_per_s = {compute:?}\n");
            if let Some(send) = send {
                text += &format!("send_limit_mb_per_s = {send:?}\n");
            }
        }
        for (from, row) in self.link.iter().enumerate() {
            for (to, link) in row.iter().enumerate().filter(|(to, _)| *to != from) {
                let Some((rate, ir_receive, ir_send)) = link else { continue };
                text += &format!("[[link]]\nfrom = \"h{from}\"\nto = \"h{to}\"\nreceive_limit_mb_per_s = {rate:?}\n");
                text += &format!("ir_receive_s_per_mb = {ir_receive:?}\nir_send_s_per_mb = {ir_send:?}\n");
            }
        }
        Links::from_toml(text.as_bytes(), "links.toml").unwrap()
    }

    fn build(&self, ports: Ports, search: &Search<'_>) -> Built {
        build_tree(&self.links(), Task::new(TASK.0, TASK.1).unwrap(), ports, search).unwrap()
    }

    /// Returns the maximum throughput over all trees from `root`, by the planner of trees.
    fn best_of_all_trees(&self, root: usize, ports: Ports) -> f64 {
        let count = self.count();
        let mut best = self.compute[root] / TASK.1; // alone
        let mut parent: Vec<usize> = vec![0; count];
        'all: loop {
            if let Some(rate) = self.worth(root, &parent, ports) {
                best = best.max(rate);
            }
            for (host, parent) in parent.iter_mut().enumerate() {
                if host != root {
                    *parent += 1;
                    if *parent < count {
                        continue 'all;
                    }
                    *parent = 0;
                }
            }
            return best;
        }
    }

    /// Returns the throughput of a tree. Hosts not connected to the root by known links are left out.
    fn worth(&self, root: usize, parent: &[usize], ports: Ports) -> Option<f64> {
        let hangs = |mut host: usize| {
            for _ in 0..=self.count() {
                if host == root {
                    return true;
                }
                if parent[host] == host || self.link[parent[host]][host].is_none() {
                    return false;
                }
                host = parent[host];
            }
            false
        };
        let hosts: Vec<usize> = (0..self.count()).filter(|&host| hangs(host)).collect();
        let place = |host: usize| hosts.iter().position(|&h| h == host).unwrap() as i32;
        let of_link = |pick: fn((f64, f64, f64)) -> f64| -> Vec<f64> {
            hosts.iter().map(|&h| if h == root { 1.0 } else { pick(self.link[parent[h]][h].unwrap()) }).collect()
        };
        let columns = Columns {
            parent: &hosts.iter().map(|&h| if h == root { -1 } else { place(parent[h]) }).collect::<Vec<i32>>(),
            compute_per_s: &hosts.iter().map(|&h| self.compute[h]).collect::<Vec<f64>>(),
            send_limit_mb_per_s: &hosts.iter().map(|&h| self.send[h].unwrap_or(f64::INFINITY)).collect::<Vec<f64>>(),
            receive_limit_mb_per_s: &of_link(|link| link.0),
            receive_limit_drop: &vec![0.0; hosts.len()],
            ir_receive_s_per_mb: &of_link(|link| link.1),
            ir_send_s_per_mb: &of_link(|link| link.2),
        };
        let task = Task::new(TASK.0, TASK.1).unwrap();
        plan_columns(&columns, task, ports, Method::Exact).ok().map(|rates| rates.throughput_tasks_per_s)
    }
}

fn clusters(hosts: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Cluster> {
    let zero_or = |range: std::ops::Range<f64>| prop_oneof![1 => Just(0.0), 3 => range];
    hosts.prop_flat_map(move |count| {
        let link = prop_oneof![1 => Just(None), 6 => ((-0.5..2.0f64).prop_map(|e| 10f64.powf(e)), zero_or(0.0..0.1), zero_or(0.0..0.2)).prop_map(Some)];
        (
            prop::collection::vec(prop_oneof![1 => Just(0.0), 5 => 0.1..60.0f64], count),
            prop::collection::vec(prop_oneof![1 => Just(None), 2 => (1.0..60.0f64).prop_map(Some)], count),
            prop::collection::vec(prop::collection::vec(link, count), count),
        )
            .prop_map(|(compute, send, link)| Cluster { compute, send, link })
    })
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (a.abs() + b.abs())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_exact_tree_is_the_best_of_all_trees(cluster in clusters(1..=5)) {
        for ports in PORTS {
            let mut best_of_any_root = 0.0f64;
            for root in 0..cluster.count() {
                let best = cluster.best_of_all_trees(root, ports);
                let name = format!("h{root}");
                let built = cluster.build(ports, &Search { root: Some(&name), random_trees: 3, ..Search::default() });
                prop_assert!(near(built.throughput_tasks_per_s, best), "{} of {best}", built.throughput_tasks_per_s);
                prop_assert_eq!((built.method, built.gap_to_bound(), &built.root), (How::Exact, 0.0, &name));
                best_of_any_root = best_of_any_root.max(best);
            }
            let built = cluster.build(ports, &Search { random_trees: 3, ..Search::default() });
            prop_assert!(near(built.throughput_tasks_per_s, best_of_any_root));
        }
    }

    #[test]
    fn the_search_lies_between_every_other_tree_and_the_bound(cluster in clusters(2..=7), free in any::<bool>()) {
        for ports in PORTS {
            let root = (!free).then_some("h0");
            let exact = cluster.build(ports, &Search { root, random_trees: 3, ..Search::default() });
            let search = Search { root, random_trees: 3, exact_hosts: 0, steps: 4_000, ..Search::default() };
            let found = cluster.build(ports, &search);
            let (reached, most) = (found.throughput_tasks_per_s, found.bound_tasks_per_s);
            prop_assert_eq!(found.method, How::Search);
            prop_assert!(reached <= exact.throughput_tasks_per_s * (1.0 + 1e-9));
            prop_assert!(exact.throughput_tasks_per_s <= most * (1.0 + 1e-9), "a tree beats the bound {most}");
            for other in exact.compared.iter().chain(&found.compared) {
                prop_assert!(other.throughput_tasks_per_s <= exact.throughput_tasks_per_s * (1.0 + 1e-9), "{}", other.tree);
            }
            for other in &found.compared {
                prop_assert!(other.throughput_tasks_per_s <= reached * (1.0 + 1e-9), "{} is better", other.tree);
            }
        }
    }

    #[test]
    fn the_tree_is_a_platform_of_the_links_and_worth_what_is_said(cluster in clusters(1..=9)) {
        let links = cluster.links();
        for ports in PORTS {
            let built = cluster.build(ports, &Search { steps: 2_000, exact_hosts: 5, random_trees: 2, ..Search::default() });
            let tree = built.platform.tree().unwrap();
            prop_assert_eq!(tree.order.len() + built.left_out.len(), cluster.count());
            prop_assert_eq!(&built.platform.nodes[0].name, &built.root);
            let planned = plan(&built.platform, Task::new(TASK.0, TASK.1).unwrap(), ports, Method::Exact).unwrap();
            prop_assert_eq!(planned.throughput_tasks_per_s, built.throughput_tasks_per_s);
            for node in built.platform.nodes.iter().filter(|node| node.parent.is_some()) {
                let parent = node.parent.clone().unwrap();
                let link = links.links.iter().find(|link| link.from == parent && link.to == node.name).unwrap();
                prop_assert_eq!(Some(link.receive_limit_mb_per_s), node.receive_limit_mb_per_s);
                prop_assert_eq!((link.ir_receive_s_per_mb, link.ir_send_s_per_mb), (node.ir_receive_s_per_mb, node.ir_send_s_per_mb));
            }
        }
    }

    #[test]
    fn the_same_seed_builds_the_same_tree(cluster in clusters(8..=9), seed in any::<u64>()) {
        let search = Search { steps: 2_000, seed, random_trees: 2, exact_hosts: 0, ..Search::default() };
        prop_assert_eq!(cluster.build(Ports::Single, &search), cluster.build(Ports::Single, &search));
    }
}

/// A cluster with evenly spread numbers, the same in every run.
fn spread(count: usize, seed: f64) -> Cluster {
    let at = |n: usize, offset: f64| (n as f64 * 0.618_033_988_749_895 + offset + seed).fract();
    Cluster {
        compute: (0..count).map(|n| 1.0 + 40.0 * at(n, 0.1)).collect(),
        send: (0..count).map(|n| Some(20.0 + 80.0 * at(n, 0.7))).collect(),
        link: (0..count)
            .map(|from| {
                let rate = |to: usize| 10f64.powf(2.0 * at(from * count + to, 0.3));
                (0..count).map(|to| Some((rate(to), 0.01 * at(to, 0.5), 0.02 * at(from + to, 0.9)))).collect()
            })
            .collect(),
    }
}

#[test]
fn the_search_finds_the_best_tree_of_most_small_clusters() {
    let (mut found, mut worst, mut cases) = (0, 1.0f64, 0);
    for case in 0..20 {
        let cluster = spread(7, f64::from(case) * 0.0137);
        for ports in PORTS {
            let exact = cluster.build(ports, &Search { root: Some("h0"), ..Search::default() });
            let search = Search { root: Some("h0"), exact_hosts: 0, steps: 20_000, ..Search::default() };
            let share = cluster.build(ports, &search).throughput_tasks_per_s / exact.throughput_tasks_per_s;
            worst = worst.min(share);
            found += u32::from(share > 1.0 - 1e-9);
            cases += 1;
        }
    }
    assert!(found >= cases * 9 / 10 && worst > 0.97, "the best of {found} in {cases}, at least {worst:.4} of it");
}

#[test]
fn a_root_that_does_not_exist_is_named_with_the_nearest() {
    let error = build_tree(
        &spread(3, 0.0).links(),
        Task::new(1.0, 1.0).unwrap(),
        Ports::Single,
        &Search { root: Some("h7"), ..Search::default() },
    );
    let said = error.unwrap_err().to_string();
    assert_eq!(said, "root is \"h7\", which is no host of \"cluster\"");
}
