//! Credits are conserved, and no more packets are in flight than the window allows, for any sequence of calls.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use crosswind_policy::window::{Credits, WindowSettings};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Take { to: u32, running: bool },
    GiveBack { to: u32, packets: u32 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0u32..6, any::<bool>()).prop_map(|(to, running)| Step::Take { to, running }),
        2 => (0u32..6, 1u32..4).prop_map(|(to, packets)| Step::GiveBack { to, packets }),
    ];
    prop::collection::vec(step, 0..200)
}

proptest! {
    #[test]
    fn credits_are_conserved_and_the_window_is_never_exceeded(
        packets in 1u32..6, away in prop::option::of(1u32..9), steps in steps()
    ) {
        let settings = WindowSettings {
            packets: NonZeroU32::new(packets),
            away_packets: away.and_then(NonZeroU32::new),
            ..WindowSettings::default()
        };
        let mut credits = Credits::new(&settings);
        let mut out: BTreeMap<u32, u32> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Take { to, running } => {
                    let before = out.get(&to).copied().unwrap_or(0);
                    let window = if running { packets } else { away.unwrap_or(packets) };
                    let taken = credits.take(to, running);
                    prop_assert_eq!(taken, before < window);
                    *out.entry(to).or_default() += u32::from(taken);
                }
                Step::GiveBack { to, packets } => {
                    let before = out.get(&to).copied().unwrap_or(0);
                    prop_assert_eq!(credits.give_back(to, packets), packets.saturating_sub(before));
                    out.insert(to, before.saturating_sub(packets));
                }
            }
            for (&to, &count) in &out {
                prop_assert_eq!(credits.under_way(to), count);
                prop_assert!(count <= packets.max(away.unwrap_or(packets)));
            }
            prop_assert_eq!(credits.is_complete(), out.values().all(|&count| count == 0));
        }
    }
}

#[test]
fn without_a_limit_the_sender_never_waits() {
    let mut credits = Credits::new(&WindowSettings::default());
    assert!((0..10_000).all(|_| credits.take(1, false)));
}
