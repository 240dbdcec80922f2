//! Nonlinear losses in a plan. More cases, checked against other oracles: `tests/property/test_plan_with_curves.py`.

use std::borrow::Cow;

use crosswind_model::{Task, plan, with_planned_lines};
use crosswind_schema::Platform;
use crosswind_schema::plan::{LimitedBy, Method, Plan, Ports};
use crosswind_schema::platform::Loss;
use crosswind_schema::units::Quantity;
use proptest::prelude::*;

/// A root that loses `scale * rate^power` by sending to each of its leaves, as measured at eight rates.
fn star(leaves: &[(f64, f64, f64, f64)]) -> Platform {
    let mut text =
        String::from("schema_version = 1\nname = \"star\"\n[[node]]\nname = \"root\"\ncompute_per_s = 20.0\n");
    for (at, (compute, limit, scale, power)) in leaves.iter().enumerate() {
        let losses: Vec<String> = (1..=8)
            .map(|step| f64::from(step) / 8.0 * limit)
            .map(|rate| format!("[{rate}, {}]", scale * (rate / limit).powf(*power)))
            .collect();
        text += &format!(
            "[[node]]\nname = \"leaf{at}\"\nparent = \"root\"\ncompute_per_s = {compute}\nreceive_limit_mb_per_s = {limit}\nsend_losses = [{}]\n",
            losses.join(", ")
        );
    }
    Platform::from_toml(text.as_bytes(), "star.toml").unwrap()
}

fn planned(platform: &Platform, ports: Ports) -> Plan {
    plan(platform, Task::new(1.0, 1.0).unwrap(), ports, Method::Exact).unwrap()
}

/// Returns what the root computes when it sends at these rates, by the measured losses themselves.
fn left(platform: &Platform, sent_mb_per_s: &[f64]) -> f64 {
    let lost: f64 =
        platform.nodes[1..].iter().zip(sent_mb_per_s).map(|(n, &rate)| Loss::at(&n.send_losses, rate)).sum();
    20.0 * (1.0 - lost).max(0.0)
}

/// A leaf of 10 tasks/s that cannot receive between 1.8 and 5 tasks/s, since it loses most there.
fn with_a_gap(send: f64) -> Plan {
    let text = format!(
        "schema_version = 1\nname = \"pair\"\n[[node]]\nname = \"root\"\ncompute_per_s = 1.0\nsend_limit_mb_per_s = {send}\n\
         [[node]]\nname = \"leaf\"\nparent = \"root\"\ncompute_per_s = 10.0\nreceive_limit_mb_per_s = 10.0\n\
         receive_losses = [[2.0, 0.9], [8.0, 0.1]]\n"
    );
    planned(&Platform::from_toml(text.as_bytes(), "pair.toml").unwrap(), Ports::Multi)
}

#[test]
fn a_loss_that_falls_again_leaves_a_gap_and_rates_above_it_are_planned() {
    let first = 10.0 / 5.5; // x + 10 * 0.45 x = 10
    for (send, received) in [(1.5, 1.5), (1.9, first), (4.9, first), (5.1, 5.1), (7.9, 7.9), (9.5, 10.0 / 1.125)] {
        let plan = with_a_gap(send);
        let found = plan.nodes[1].received_tasks_per_s;
        assert!((found - received).abs() < 1e-9, "{send}: {found}, not {received}");
        assert!((plan.throughput_tasks_per_s - 1.0 - received).abs() < 1e-9);
        assert_eq!(plan.constant_rates_bound_tasks_per_s, Some(plan.throughput_tasks_per_s), "{send}");
    }
}

/// A node: its parent, compute rate, link's limit, limit of sending, and losses of receiving and of sending to it.
type Drawn = (usize, f64, f64, f64, Vec<(f64, f64)>, Vec<(f64, f64)>);

/// A tree whose losses rise and fall; each node hangs below an earlier one, or all below the root.
fn jagged(nodes: &[Drawn], is_fork: bool) -> Platform {
    let mut text = String::from(
        "schema_version = 1\nname = \"tree\"\n[[node]]\nname = \"n0\"\ncompute_per_s = 5.0\nsend_limit_mb_per_s = 15.0\n",
    );
    for (at, (parent, compute, limit, send, receives, sends)) in nodes.iter().enumerate() {
        let parent = if is_fork { 0 } else { parent % (at + 1) };
        text += &format!(
            "[[node]]\nname = \"n{}\"\nparent = \"n{parent}\"\ncompute_per_s = {compute}\nreceive_limit_mb_per_s = {limit}\n\
             send_limit_mb_per_s = {send}\n",
            at + 1
        );
        for (name, losses) in [("receive_losses", receives), ("send_losses", sends)] {
            let mut rate = 0.0;
            let points = losses.iter().map(|(step, loss)| {
                rate += step * limit / 3.0;
                format!("[{rate}, {loss}]")
            });
            text += &format!("{name} = [{}]\n", points.collect::<Vec<_>>().join(", "));
        }
    }
    Platform::from_toml(text.as_bytes(), "tree.toml").unwrap()
}

/// Returns by how much a plan breaks what its nodes can do, by the measured losses themselves.
fn excess(platform: &Platform, found: &Plan) -> f64 {
    let mut most = 0.0f64;
    for (at, (node, planned)) in platform.nodes.iter().zip(&found.nodes).enumerate() {
        let below = |n: usize| platform.nodes[n].parent.as_deref() == Some(node.name.as_str());
        let flows = (0..platform.nodes.len()).filter(|&n| below(n)).map(|n| (n, found.nodes[n].received_tasks_per_s));
        let (mut sent, mut lost) = (0.0, 0.0);
        for (n, flow) in flows {
            sent += flow;
            lost += Loss::at(&platform.nodes[n].send_losses, flow);
        }
        let received = if at == 0 { found.throughput_tasks_per_s } else { planned.received_tasks_per_s };
        if at > 0 {
            lost += Loss::at(&node.receive_losses, received);
            most = most.max(received - node.receive_limit_mb_per_s.unwrap().get());
        }
        most = most.max(sent - node.send_limit_mb_per_s.unwrap().get()).max(sent - received);
        most = most.max(received - sent - node.compute_per_s.get() * (1.0 - lost).max(0.0));
    }
    most
}

fn drawn(most: usize) -> impl Strategy<Value = Vec<Drawn>> {
    let losses = || prop::collection::vec((0.1..1.4f64, 0.0..1.2f64), 1..4);
    let node = (0..8usize, 1.0..15.0f64, 1.0..15.0f64, 1.0..15.0f64, losses(), losses());
    prop::collection::vec(node, 1..most)
}

proptest! {
    #[test]
    fn losses_that_fall_again_are_planned_as_well_as_any_rates_of_a_grid(nodes in drawn(3)) {
        let platform = jagged(&nodes, true);
        let found = planned(&platform, Ports::Multi);
        prop_assert!(excess(&platform, &found) < 1e-8, "{found:?}");
        let mut reached = vec![(0.0, 0.0)];
        for node in &platform.nodes[1..] {
            let limit = node.receive_limit_mb_per_s.unwrap().get();
            let rates = (0..=300).map(|step| f64::from(step) / 300.0 * limit);
            let takes = |&rate: &f64| {
                rate == 0.0 || rate <= node.compute_per_s.get() * (1.0 - Loss::at(&node.receive_losses, rate))
            };
            let rates: Vec<f64> = rates.filter(takes).collect();
            let with = |&(sent, lost): &(f64, f64)| {
                rates.iter().map(move |rate| (sent + rate, lost + Loss::at(&node.send_losses, *rate))).collect::<Vec<_>>()
            };
            reached = reached.iter().flat_map(with).filter(|one| one.0 <= 15.0 && one.1 <= 1.0).collect();
        }
        let best = reached.iter().map(|(sent, lost)| sent + 5.0 * (1.0 - lost)).fold(0.0, f64::max);
        prop_assert!(found.throughput_tasks_per_s >= best * (1.0 - 1e-9), "{best} {found:?}");
        let constant = found.constant_rates_bound_tasks_per_s.unwrap();
        prop_assert!(constant <= found.throughput_tasks_per_s * (1.0 + 1e-6), "no gap in a fork: {found:?}");
    }

    #[test]
    fn a_plan_of_losses_that_fall_again_is_possible(nodes in drawn(9)) {
        let platform = jagged(&nodes, false);
        let found = planned(&platform, Ports::Multi);
        prop_assert!(excess(&platform, &found) < 1e-8, "{found:?}");
        let constant = found.constant_rates_bound_tasks_per_s.unwrap();
        prop_assert!(found.throughput_tasks_per_s <= constant && constant <= found.bound_tasks_per_s);
    }

    #[test]
    fn the_root_is_planned_to_lose_what_was_measured_and_no_rates_drawn_pass_the_bound(
        leaves in prop::collection::vec((1.0..20.0f64, 1.0..20.0f64, 0.01..0.6f64, 0.3..3.0f64), 1..5),
        parts in prop::collection::vec(0.0..1.0f64, 4),
    ) {
        let platform = star(&leaves);
        let found = planned(&platform, Ports::Multi);
        let sent: Vec<f64> = found.nodes[1..].iter().map(|node| node.received_tasks_per_s).collect();
        let root = left(&platform, &sent);
        prop_assert!((found.nodes[0].computed_tasks_per_s - root).abs() < 1e-9 * 20.0, "{found:?} {root}");
        let whole: f64 = root + sent.iter().sum::<f64>();
        prop_assert!((found.throughput_tasks_per_s - whole).abs() < 1e-9 * whole);
        let constant = found.constant_rates_bound_tasks_per_s.unwrap();
        prop_assert!(found.throughput_tasks_per_s <= constant && constant <= found.bound_tasks_per_s);
        prop_assert!(found.throughput_tasks_per_s >= constant * (1.0 - 1e-6), "few leaves are solved: {found:?}");
        let other: Vec<f64> = leaves.iter().zip(&parts).map(|(leaf, part)| part * leaf.0.min(leaf.1)).collect();
        let lost: f64 = platform.nodes[1..].iter().zip(&other).map(|(n, &rate)| Loss::at(&n.send_losses, rate)).sum();
        if lost <= 1.0 {
            let reached = left(&platform, &other) + other.iter().sum::<f64>();
            prop_assert!(reached <= constant * (1.0 + 1e-12), "{reached} {found:?}");
        }
    }

    #[test]
    fn losses_on_a_line_change_nothing(
        leaves in prop::collection::vec((1.0..20.0f64, 1.0..20.0f64, 0.01..0.2f64, Just(1.0)), 1..4),
        single in any::<bool>(),
    ) {
        let bent = star(&leaves);
        let mut line = bent.clone();
        for (node, (_, limit, scale, _)) in line.nodes[1..].iter_mut().zip(&leaves) {
            node.send_losses.clear();
            node.ir_send_s_per_mb = crosswind_schema::units::SecondsPerMegabyte::new(scale / limit).unwrap();
        }
        let ports = if single { Ports::Single } else { Ports::Multi };
        let (bent, line) = (planned(&bent, ports), planned(&line, ports));
        prop_assert!((bent.throughput_tasks_per_s - line.throughput_tasks_per_s).abs() <= 1e-9 * line.throughput_tasks_per_s);
        prop_assert_eq!(bent.gap_to_exact, 0.0);
        for (a, b) in bent.nodes.iter().zip(&line.nodes) {
            prop_assert_eq!(a.limited_by, b.limited_by);
            prop_assert!((a.received_tasks_per_s - b.received_tasks_per_s).abs() <= 1e-9 * line.throughput_tasks_per_s);
            prop_assert!((a.gain_per_receive_mb_per_s - b.gain_per_receive_mb_per_s).abs() <= 1e-6);
            prop_assert!((a.gain_per_work_per_s.unwrap() - b.gain_per_work_per_s.unwrap()).abs() <= 1e-6);
        }
    }
}

#[test]
fn one_port_loses_what_was_measured_at_the_links_limit_while_it_sends() {
    let found = planned(&star(&[(4.0, 10.0, 0.2, 0.5)]), Ports::Single);
    // 4 tasks/s of 1 MB are 10 MB/s for 0.4 of the time.
    assert!((found.nodes[0].computed_tasks_per_s - 20.0 * (1.0 - 0.4 * 0.2)).abs() < 1e-9);
    assert_eq!(found.warnings, []);
}

/// Concave: 5 MB/s all the time cost 0.4, bursts of 10 MB/s half of the time 0.25 on average.
#[test]
fn the_bound_holds_for_bursts_too_and_the_plan_is_the_best_of_constant_rates() {
    let mut platform = star(&[(5.0, 10.0, 0.5, 1.0)]);
    let loss = |rate: f64, lost: f64| serde_json::from_value::<Loss>(serde_json::json!([rate, lost])).unwrap();
    platform.nodes[1].send_losses = vec![loss(5.0, 0.4), loss(10.0, 0.5)];
    let mut smaller = platform.clone();
    smaller.nodes[0].compute_per_s = serde_json::from_value(serde_json::json!(10.0)).unwrap();
    let found = planned(&smaller, Ports::Multi);
    assert!((found.throughput_tasks_per_s - 11.0).abs() < 1e-12);
    assert!((found.constant_rates_bound_tasks_per_s.unwrap() - 11.0).abs() < 1e-12);
    assert!((found.bound_tasks_per_s - 12.5).abs() < 1e-12);
    // A root twice as fast loses more than the leaf brings, 8 for 5: at constant rates it computes alone.
    let found = planned(&platform, Ports::Multi);
    assert!((found.throughput_tasks_per_s - 20.0).abs() < 1e-12);
    assert_eq!((found.nodes[1].received_tasks_per_s, found.nodes[1].limited_by), (0.0, LimitedBy::NeverSend));
}

#[test]
fn a_root_that_computes_nothing_sends_all_that_its_leaves_compute() {
    let mut platform = star(&[(5.0, 10.0, 0.5, 0.5), (3.0, 10.0, 1.5, 2.0)]);
    platform.nodes[0].compute_per_s = serde_json::from_value(serde_json::json!(0.0)).unwrap();
    for ports in [Ports::Multi, Ports::Single] {
        let found = planned(&platform, ports);
        assert!((found.throughput_tasks_per_s - 8.0).abs() < 1e-12, "{found:?}");
        assert_eq!((found.root_only_tasks_per_s, found.gap_to_exact), (0.0, 0.0));
    }
}

#[test]
fn a_hundred_leaves_with_concave_losses_under_one_limit_are_planned_within_the_printed_gap() {
    let leaves: Vec<_> =
        (0..100u32).map(|n| (1.0 + f64::from(n % 7), 8.0, 0.002 + 0.0001 * f64::from(n % 13), 0.5)).collect();
    let mut platform = star(&leaves);
    platform.nodes[0].send_limit_mb_per_s = Some(serde_json::from_value(serde_json::json!(100.0)).unwrap());
    let found = planned(&platform, Ports::Multi);
    let constant = found.constant_rates_bound_tasks_per_s.unwrap();
    assert!(found.throughput_tasks_per_s > 100.0);
    assert!((1.0 - 1e-3..=1.0).contains(&(found.throughput_tasks_per_s / constant)), "{constant}");
}

#[test]
fn a_platform_without_bent_losses_is_not_copied() {
    let mut platform = star(&[(4.0, 10.0, 0.2, 0.5)]);
    platform.nodes[1].send_losses.clear();
    let found = planned(&platform, Ports::Multi);
    assert!(matches!(with_planned_lines(&platform, &found), Cow::Borrowed(_)));
    assert_eq!(found.constant_rates_bound_tasks_per_s, None);
}

/// A tree with losses that are lines, once as interference rates and once as measured losses.
fn straight(nodes: &[(usize, f64, f64, f64, f64, f64)], as_losses: bool) -> Platform {
    let mut text = String::from(
        "schema_version = 1\nname = \"tree\"\n[[node]]\nname = \"n0\"\ncompute_per_s = 5.0\nsend_limit_mb_per_s = 15.0\n",
    );
    for (at, (parent, compute, limit, send, receives, sends)) in nodes.iter().enumerate() {
        text += &format!(
            "[[node]]\nname = \"n{}\"\nparent = \"n{}\"\ncompute_per_s = {compute}\nreceive_limit_mb_per_s = {limit}\n\
             send_limit_mb_per_s = {send}\n",
            at + 1,
            parent % (at + 1)
        );
        text += &match as_losses {
            false => format!("ir_receive_s_per_mb = {receives}\nir_send_s_per_mb = {sends}\n"),
            true => format!("receive_losses = [[1.0, {receives}]]\nsend_losses = [[1.0, {sends}]]\n"),
        };
    }
    Platform::from_toml(text.as_bytes(), "tree.toml").unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn straight_curves_plan_results_as_lines_do(
        nodes in prop::collection::vec(
            (0..8usize, 0.0..30.0f64, 1.0..20.0f64, 2.0..30.0f64, 0.0..0.05f64, 0.0..0.05f64), 1..8
        ),
        result in 0.0..1.0f64,
    ) {
        let task = Task::new(1.0, 1.0).unwrap().returning(result).unwrap();
        let of = |as_losses| plan(&straight(&nodes, as_losses), task, Ports::Multi, Method::Exact).unwrap();
        let (lines, curves) = (of(false), of(true));
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (1.0 + a);
        prop_assert!(near(lines.throughput_tasks_per_s, curves.throughput_tasks_per_s));
        prop_assert!(near(lines.bound_tasks_per_s, curves.bound_tasks_per_s));
    }
}

/// A result of 1 MB costs the leaf 0.02 at the link's limit and would cost 0.01 at 2 MB/s.
#[test]
fn results_lose_what_the_links_limit_costs_and_the_bound_lets_them_go_slower() {
    let text = "schema_version = 1\nname = \"pair\"\n[[node]]\nname = \"root\"\ncompute_per_s = 0.0\n\
                [[node]]\nname = \"leaf\"\nparent = \"root\"\ncompute_per_s = 5.0\nreceive_limit_mb_per_s = 10.0\n\
                receive_losses = [[2.0, 0.02], [10.0, 0.2]]\n";
    let platform = Platform::from_toml(text.as_bytes(), "pair.toml").unwrap();
    let of = |result: f64| {
        let task = Task::new(1.0, 1.0).unwrap().returning(result).unwrap();
        plan(&platform, task, Ports::Multi, Method::Exact).unwrap()
    };
    // x = 5 (1 - L(x) - 0.02 x), with L(x) = 0.02 + 0.0225 (x - 2); the bound: 0.01 x.
    let rate = |per_task: f64| 5.0 * (1.0 - 0.02 + 0.045) / (1.0 + 5.0 * (0.0225 + per_task));
    let plan = of(1.0);
    assert!((plan.throughput_tasks_per_s - rate(0.02)).abs() < 1e-9, "{}", plan.throughput_tasks_per_s);
    assert!((plan.bound_tasks_per_s - rate(0.01)).abs() < 1e-9, "{}", plan.bound_tasks_per_s);
    assert!(plan.warnings.is_empty());
    let ignored = of(1.5);
    assert_eq!(ignored.throughput_tasks_per_s, of(0.0).throughput_tasks_per_s);
    assert_eq!(ignored.warnings[0].code, "bound-without-results");
}
