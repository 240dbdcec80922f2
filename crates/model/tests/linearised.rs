//! A bent loss in a plan: what is planned loses what the measured curve says at the planned rates.

use crosswind_model::{Task, linearised, plan};
use crosswind_schema::Platform;
use crosswind_schema::plan::{Method, Ports};
use crosswind_schema::platform::Loss;
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

/// What the root computes when it sends at these rates, by the measured losses themselves.
fn left(platform: &Platform, sent_mb_per_s: &[f64]) -> f64 {
    let lost: f64 = platform.nodes[1..]
        .iter()
        .zip(sent_mb_per_s)
        .map(|(node, &rate)| if rate > 0.0 { Loss::chord_s_per_mb(&node.send_losses, rate) * rate } else { 0.0 })
        .sum();
    20.0 * (1.0 - lost).max(0.0)
}

proptest! {
    #[test]
    fn the_root_is_planned_to_lose_what_was_measured_at_the_planned_rates(
        leaves in prop::collection::vec((1.0..20.0f64, 1.0..20.0f64, 0.01..0.2f64, 0.5..2.0f64), 1..4),
    ) {
        let platform = star(&leaves);
        let found = plan(&platform, Task::new(1.0, 1.0).unwrap(), Ports::Multi, Method::Exact).unwrap();
        prop_assert!(found.warnings.iter().any(|told| told.code == "loss-at-planned-rate"));
        if found.warnings.iter().any(|told| told.message.contains("still differ")) {
            return Ok(()); // it is told that they do
        }
        let sent: Vec<f64> = found.nodes[1..].iter().map(|node| node.received_tasks_per_s).collect();
        let root = left(&platform, &sent);
        prop_assert!((found.nodes[0].computed_tasks_per_s - root).abs() < 5e-3 * 20.0, "{found:?} {root}");
        let whole: f64 = root + sent.iter().sum::<f64>();
        prop_assert!((found.throughput_tasks_per_s - whole).abs() < 5e-3 * whole);
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
        let task = Task::new(1.0, 1.0).unwrap();
        let ports = if single { Ports::Single } else { Ports::Multi };
        let rate = |platform| plan(platform, task, ports, Method::Exact).unwrap().throughput_tasks_per_s;
        prop_assert!((rate(&bent) - rate(&line)).abs() <= 1e-9 * rate(&line));
    }
}

#[test]
fn one_port_loses_what_was_measured_at_the_links_limit_while_it_sends() {
    let platform = star(&[(4.0, 10.0, 0.2, 0.5)]);
    let found = plan(&platform, Task::new(1.0, 1.0).unwrap(), Ports::Single, Method::Exact).unwrap();
    // 4 tasks/s of 1 MB are 10 MB/s for 0.4 of the time.
    assert!((found.nodes[0].computed_tasks_per_s - 20.0 * (1.0 - 0.4 * 0.2)).abs() < 1e-9);
}

/// Against every rate of one leaf by a fine grid: never far below the best that the curve allows, where the loss is convex.
#[test]
fn a_convex_loss_is_planned_as_well_as_lines_from_no_traffic_can() {
    for limit in [2.0, 5.0, 10.0] {
        let platform = star(&[(8.0, limit, 0.15, 2.0)]);
        let found = plan(&platform, Task::new(1.0, 1.0).unwrap(), Ports::Multi, Method::Exact).unwrap();
        let most = f64::min(8.0, limit);
        let best = (0..=1000)
            .map(|step| f64::from(step) / 1000.0 * most)
            .map(|rate| left(&platform, &[rate]) + rate)
            .fold(0.0, f64::max);
        assert!(found.throughput_tasks_per_s >= 0.98 * best, "{} {best}", found.throughput_tasks_per_s);
    }
}

#[test]
fn a_platform_without_bent_losses_is_not_copied() {
    let mut platform = star(&[(4.0, 10.0, 0.2, 0.5)]);
    platform.nodes[1].send_losses.clear();
    let line = linearised(&platform, Task::new(1.0, 1.0).unwrap(), Ports::Multi, Method::Exact).unwrap();
    assert!(matches!(line, std::borrow::Cow::Borrowed(_)));
}

#[test]
fn plan_and_rates_agree_after_few_plans_nearly_always() {
    let mut agreed = 0;
    for number in 0..200u32 {
        let part = |of: u32| f64::from(number.wrapping_mul(2_654_435_761).wrapping_add(of * 97) % 1000) / 1000.0;
        let leaves: Vec<_> = (0..3)
            .map(|leaf| {
                (
                    1.0 + 19.0 * part(leaf),
                    1.0 + 19.0 * part(leaf + 3),
                    0.01 + 0.19 * part(leaf + 6),
                    0.5 + 1.5 * part(leaf + 9),
                )
            })
            .collect();
        let found = plan(&star(&leaves), Task::new(1.0, 1.0).unwrap(), Ports::Multi, Method::Exact).unwrap();
        agreed += u32::from(!found.warnings.iter().any(|told| told.message.contains("still differ")));
    }
    assert!(agreed >= 190, "{agreed} of 200");
}
