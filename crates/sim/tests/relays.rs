//! Nodes that compute nothing and only forward tasks: whatever leaves and joins below them, no task stays there.

use crate::farms::{PORTS, Spot, Way, below, comings_and_goings, platform, root, run_with, same, try_run_with, way};
use crosswind_schema::Platform;
use crosswind_schema::experiment::{ChangeKind, Order, PlacedChange};
use crosswind_schema::plan::Ports;
use crosswind_sim::Options;
use proptest::prelude::*;

/// A computing root, one to four relays below it or below each other, and computing leaves below any of them.
fn trees() -> impl Strategy<Value = Vec<Spot>> {
    let relay = (any::<prop::sample::Index>(), 1.0..20.0f64);
    let leaf = (any::<prop::sample::Index>(), 0.2..4.0f64, 1.0..20.0f64);
    let several = (prop::collection::vec(relay, 1..5), prop::collection::vec(leaf, 1..6));
    (several, prop_oneof![Just(0.0), Just(0.01), 0.0..2.0f64]).prop_map(|((relays, leaves), latency_s)| {
        let mut spots = vec![root(1.0)];
        for (above, receive) in relays {
            spots.push(below(above.index(spots.len()), 0.0, receive));
        }
        let inner = spots.len();
        for (above, compute, receive) in leaves {
            spots.push(below(1 + above.index(inner - 1), compute, receive));
        }
        spots.iter_mut().skip(1).for_each(|spot| spot.latency = latency_s);
        spots
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn all_tasks_are_computed_whatever_leaves_below_relays(
        tree in trees(), count in 1u64..40, size in 0.1..3.0f64, work in 0.2..4.0f64, buffer in prop::option::of(1u64..5),
        adapt in any::<bool>(), result in prop_oneof![Just(0.0), Just(0.3)],
        picks in prop::collection::vec((any::<prop::sample::Index>(), 0.0..1.0f64), 1..8)
    ) {
        let (platform, tasks) = (platform(&tree), same(count, size, work));
        let changes = comings_and_goings(&tree, &picks, 30.0);
        for ports in PORTS {
            for order in Order::ALL {
                let adapt = adapt && order != Order::Planned;
                let way = Way { adapt, ..way(order, ports, buffer) };
                let outcome = run_with(&platform, &tasks, way, result, Options { changes: &changes, ..Options::default() });
                let computed: u64 = outcome.nodes.iter().map(|node| node.tasks).sum();
                prop_assert!(computed >= count, "{order:?} {ports:?}: {computed} of {count}");
            }
        }
    }
}

/// The root, the middle node in the file, computes nothing. Tasks get stuck there for three reasons.
#[test]
fn tasks_that_nothing_computes_are_an_error_that_names_the_root_and_the_reason() {
    let of = |computes: f64, leaves: bool| {
        let text = format!(
            "schema_version = 1\nname = \"p\"\n[[node]]\nname = \"leaf\"\nparent = \"top\"\ncompute_per_s = {computes}\n\
             receive_limit_mb_per_s = 4.0\n[[node]]\nname = \"top\"\ncompute_per_s = 0.0\n"
        );
        let platform = Platform::from_toml(text.as_bytes(), "p.toml").unwrap();
        let changes = [PlacedChange { at_s: 2.5, node: 0, kind: ChangeKind::Leaves }];
        let options = Options { changes: if leaves { &changes } else { &[] }, ..Options::default() };
        let order = if computes > 0.0 && !leaves { Order::RootOnly } else { Order::Interference };
        try_run_with(&platform, &same(5, 1.0, 2.0), way(order, Ports::Single, None), 0.0, options)
            .unwrap_err()
            .to_string()
    };
    let left = of(1.0, true);
    assert!(
        left.contains("have left; give the root (\"top\") a compute_per_s above 0, or let one of them stay"),
        "{left}"
    );
    let unserved = of(1.0, false);
    assert!(
        unserved.contains("the root (\"top\") computes nothing, and policy.order sends no task to \"leaf\""),
        "{unserved}"
    );
    let none = of(0.0, false);
    assert!(none.contains("no node of the platform computes; give one, for example the root (\"top\")"), "{none}");
}
