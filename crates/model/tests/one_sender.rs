//! What one sender reaches of a link: a plan with shares is the plan of a platform whose limits are the shares of these.

use crosswind_model::{Task, plan};
use crosswind_schema::Platform;
use crosswind_schema::plan::{Method, Plan, Ports};
use proptest::prelude::*;

/// A root with a send limit, a relay, a leaf at each; limits, share and drop of every link.
fn tree(limits: [f64; 3], shares: [f64; 3], drops: [f64; 3]) -> Platform {
    let mut text =
        "schema_version = 1\nname = \"t\"\n[[node]]\nname = \"r\"\ncompute_per_s = 2.0\nsend_limit_mb_per_s = 9.0\n"
            .to_owned();
    for (n, parent) in ["r", "r", "n0"].into_iter().enumerate() {
        text += &format!(
            "[[node]]\nname = \"n{n}\"\nparent = \"{parent}\"\ncompute_per_s = {}\nreceive_limit_mb_per_s = {}\n\
             one_sender_share = {}\nreceive_limit_drop = {}\nir_receive_s_per_mb = 0.02\nir_send_s_per_mb = 0.03\n",
            3.0 + n as f64,
            limits[n],
            shares[n],
            drops[n]
        );
    }
    Platform::from_toml(text.as_bytes(), "t").unwrap()
}

fn planned(platform: &Platform, ports: Ports) -> Plan {
    plan(platform, Task::new(1.0, 1.0).unwrap(), ports, Method::Exact).unwrap()
}

const PORTS: [Ports; 2] = [Ports::Single, Ports::Multi];

#[test]
fn several_sends_fill_the_card_where_one_does_not() {
    // Leaves that compute without end behind links of 10 MB/s, of which one sender reaches 6; the card sends 9.
    let text =
        "schema_version = 1\nname = \"t\"\n[[node]]\nname = \"r\"\ncompute_per_s = 0.0\nsend_limit_mb_per_s = 9.0\n";
    let leaf = |name| {
        format!(
            "[[node]]\nname = \"{name}\"\nparent = \"r\"\ncompute_per_s = 1e9\nreceive_limit_mb_per_s = 10.0\none_sender_share = 0.6\n"
        )
    };
    let fork = Platform::from_toml((text.to_owned() + &leaf("a") + &leaf("b")).as_bytes(), "t").unwrap();
    for (ports, rate) in [(Ports::Single, 6.0), (Ports::Multi, 9.0)] {
        assert!((planned(&fork, ports).throughput_tasks_per_s - rate).abs() < 1e-12);
    }
}

proptest! {
    #[test]
    fn a_plan_with_shares_is_the_plan_of_the_links_that_one_sender_reaches(
        limits in prop::array::uniform3(0.5..20.0f64),
        shares in prop::array::uniform3(0.1..1.0f64),
        drops in prop::array::uniform3(0.0..0.8f64),
    ) {
        let times = |values: [f64; 3]| std::array::from_fn(|n| values[n] * shares[n]);
        let (own, reached) = (tree(limits, shares, drops), tree(times(limits), [1.0; 3], times(drops)));
        for ports in PORTS {
            let (own, reached) = (planned(&own, ports), planned(&reached, ports));
            prop_assert_eq!(own.throughput_tasks_per_s, reached.throughput_tasks_per_s);
            prop_assert_eq!(own.bound_tasks_per_s, reached.bound_tasks_per_s);
            for (n, (own, reached)) in own.nodes.iter().zip(&reached.nodes).enumerate().skip(1) {
                prop_assert_eq!(own.received_tasks_per_s, reached.received_tasks_per_s);
                // A MB/s more of the limit is its share more of the link.
                prop_assert_eq!(own.gain_per_receive_mb_per_s, reached.gain_per_receive_mb_per_s * shares[n - 1]);
            }
        }
    }
}
