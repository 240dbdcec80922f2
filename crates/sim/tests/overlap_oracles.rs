//! Simulated overlap checked against closed forms, laws of any scheduler, and shares by nice level.
use crosswind_schema::SimulatedOverlap;
use crosswind_schema::simulated_overlap::OverlapTimes;
use crosswind_sim::SimError;
use crosswind_sim::overlap::simulate;
use proptest::prelude::*;

fn request(text: &str) -> SimulatedOverlap {
    SimulatedOverlap::from_json(text.as_bytes(), "asked").unwrap()
}

fn only(text: &str) -> OverlapTimes {
    simulate(&request(text), &mut |_| true).unwrap().cells[0]
}

fn near(found: f64, expected: f64, part: f64) {
    assert!((found - expected).abs() <= part * expected, "{found} is not {expected}");
}

#[test]
fn a_ping_alone_takes_its_preparation_and_two_flights_and_four_messages_a_round() {
    let ping = only(
        r#"{"cpus": 1, "burners": 0, "burn_s": 1, "network": {"mb_per_s": 100, "latency_s": 1e-5, "message_cpu_s": 2e-5,
        "cpu_s_per_mb": 0.01}, "costs": {"switch_s": 0, "wake_s": 0, "start_steps": 10, "start_cpu_s": 0.3, "start_wait_s": 0.7,
        "prepare_cpu_s_per_mb": 0.1, "prepare_wait_s_per_mb": 0.2, "prepare_steps_per_mb": 7},
        "cells": [{"wait": "poll", "burn_nice": 0, "messages": 50, "message_bytes": 2000000}]}"#,
    );
    let round_s = 2.0 * (1e-5 + 0.02) + 4.0 * (2e-5 + 0.02);
    near(ping.ping_alone_s, 1.0 + 0.6 + 50.0 * round_s, 1e-6);
    assert_eq!((ping.ping_s, ping.burn_s), (ping.ping_alone_s, 0.0), "there were no burners");
}

#[test]
fn waiting_for_an_event_costs_a_waking_a_message_more_than_polling() {
    let cell = |wait: &str| {
        let text = r#"{"cpus": 1, "burners": 0, "burn_s": 1, "costs": {"switch_s": 0, "wake_s": 7e-6},
            "cells": [{"wait": "WAIT", "burn_nice": 0, "messages": 1000, "message_bytes": 64}]}"#;
        only(&text.replace("WAIT", wait))
    };
    let [event, poll, spin] = ["event", "poll", "spin-block"].map(cell);
    near(event.ping_s - poll.ping_s, 2.0 * 1000.0 * 7e-6, 0.01);
    // Waits are longer than the spin, so the process blocks in the end, having polled for as long as a wake-up takes.
    near(spin.ping_s, event.ping_s, 1e-6);
    near(spin.ping_cpu_s - event.ping_cpu_s, 2.0 * 1000.0 * 7e-6, 0.01);
}

#[test]
fn a_spin_longer_than_the_wait_is_polling() {
    let text = r#"{"cpus": 1, "burners": 0, "burn_s": 1, "costs": {"spin_s": 1.0},
        "cells": [{"wait": "WAIT", "burn_nice": 0, "messages": 1000, "message_bytes": 64}]}"#;
    let [spin, poll] = ["spin-block", "poll"].map(|wait| only(&text.replace("WAIT", wait)).ping_alone_s);
    assert_eq!(spin, poll);
}

#[test]
fn burners_alone_take_what_they_need_and_share_when_there_are_too_many() {
    for scheduler in ["decay", "fair"] {
        for (burners, expected) in [(1, 10.0), (2, 10.0), (4, 20.0), (3, 15.0)] {
            let burn = only(&format!(
                r#"{{"scheduler": "{scheduler}", "cpus": 2, "burners": {burners}, "burn_s": 10, "costs": {{"switch_s": 0}},
                "cells": [{{"wait": "event", "burn_nice": 5, "messages": 1, "message_bytes": 1}}]}}"#
            ));
            near(burn.burn_alone_s, expected, 0.02);
        }
    }
}

#[test]
fn a_polling_process_on_one_processor_has_the_share_of_its_nice_level() {
    // The ping polls beside one burner until the burner ends: burn_s / burner's share.
    for (scheduler, nice, weight) in [
        ("fair", 0, 1.0),
        ("fair", 5, 1.25_f64.powi(-5)),
        ("fair", -5, 1.25_f64.powi(5)),
        ("decay", 0, 1.0),
        ("decay", 12, 0.5),
        ("decay", -20, 11.0 / 6.0),
    ] {
        let burn = only(&format!(
            r#"{{"scheduler": "{scheduler}", "cpus": 1, "burners": 1, "burn_s": 20, "costs": {{"switch_s": 0}},
            "network": {{"latency_s": 100}},
            "cells": [{{"wait": "poll", "burn_nice": {nice}, "messages": 1, "message_bytes": 1}}]}}"#
        ));
        near(burn.burn_s, 20.0 * (1.0 + 1.0 / weight), 0.02);
    }
}

#[test]
fn a_polling_ping_is_another_burner_on_two_processors() {
    // The ping needs both ends scheduled, so it takes 1.5 (2/3) to 2.25 (4/9) times as long. This holds if slices are
    // much longer than a round trip, 6 ms. Those of the fair share are not, so part of each flight passes while its end
    // is off its processor.
    for (scheduler, least) in [("decay", 1.5), ("fair", 1.1)] {
        let found = only(&format!(
            r#"{{"scheduler": "{scheduler}", "cpus": 2, "burners": 2, "burn_s": 63.1, "start_spread_s": 0.5, "repetitions": 3,
            "network": {{"mb_per_s": 341, "latency_s": 5e-6}},
            "cells": [{{"wait": "poll", "burn_nice": 0, "messages": 6400, "message_bytes": 1048576}}]}}"#
        ));
        let slower = found.ping_s / found.ping_alone_s;
        assert!((least..=2.25).contains(&slower), "{scheduler}: {slower}");
        // Each gets two thirds of a processor while the ping lasts.
        near(found.burn_s, 63.1 + found.ping_s / 3.0, 0.02);
    }
}

#[test]
fn raising_the_burners_priority_does_not_speed_them_up_and_polling_costs_both_more_than_waiting() {
    for scheduler in ["decay", "fair"] {
        let matrix = simulate(
            &request(&format!(
                r#"{{"scheduler": "{scheduler}", "cpus": 2, "burners": 2, "burn_s": 10, "start_spread_s": 0.1, "repetitions": 3,
                "cells": [{{"wait": "event", "burn_nice": 0, "messages": 1000, "message_bytes": 1000000}},
                {{"wait": "event", "burn_nice": -20, "messages": 1000, "message_bytes": 1000000}},
                {{"wait": "poll", "burn_nice": 0, "messages": 1000, "message_bytes": 1000000}}]}}"#
            )),
            &mut |_| true,
        )
        .unwrap();
        let [event, raised, poll] = [matrix.cells[0], matrix.cells[1], matrix.cells[2]];
        near(raised.burn_s, event.burn_s, 0.02);
        assert!(
            poll.ping_s > 1.3 * event.ping_s && poll.burn_s > 1.03 * event.burn_s,
            "{scheduler}: {poll:?} {event:?}"
        );
    }
}

#[test]
fn a_buffered_message_waits_for_the_next_slice_and_moves_in_whole_ones() {
    // 1 MB at 100 MB/s in slices of 4 ms: 2.5 slices. Posted in one slice, moved in the three that follow, in step with them.
    let ping = only(
        r#"{"cpus": 1, "burners": 0, "burn_s": 1, "network": {"mb_per_s": 100, "latency_s": 0, "message_cpu_s": 1e-5},
        "costs": {"switch_s": 0, "wake_s": 0, "slice_s": 0.004, "exchange_s": 0},
        "cells": [{"wait": "buffered", "burn_nice": 0, "messages": 100, "message_bytes": 1000000}]}"#,
    );
    near(ping.ping_alone_s, 200.0 * 4.0 * 0.004, 1e-3);
}

#[test]
fn the_exchange_of_buffered_coscheduling_costs_burners_its_share() {
    let burn = only(
        r#"{"cpus": 1, "burners": 1, "burn_s": 1, "costs": {"switch_s": 0, "slice_s": 0.001, "exchange_s": 0.0001},
        "network": {"mb_per_s": 1},
        "cells": [{"wait": "buffered", "burn_nice": 0, "messages": 1, "message_bytes": 5000000}]}"#,
    );
    near(burn.burn_s, 1.0 / 0.9, 0.01);
}

#[test]
fn a_run_can_be_stopped_and_one_that_never_ends_is_refused() {
    let text = |rate: &str| {
        request(&format!(
            r#"{{"cpus": 1, "burners": 1, "burn_s": 1000, "network": {{"mb_per_s": {rate}}},
            "cells": [{{"wait": "poll", "burn_nice": 0, "messages": 1000000, "message_bytes": 1000000}}]}}"#
        ))
    };
    assert!(matches!(simulate(&text("1e3"), &mut |_| false), Err(SimError::Interrupted)));
    assert!(matches!(simulate(&text("1e-12"), &mut |_| true), Err(SimError::Endless)));
}

fn any_matrix() -> impl Strategy<Value = String> {
    let wait = prop::sample::select(vec!["event", "poll", "spin-block", "buffered"]);
    let scheduler = prop::sample::select(vec!["decay", "fair"]);
    (scheduler, wait, 1..4u32, 0..5u32, 1..3u32, -20..=19i8, 1..40u64, 1..3_000_000u64, 0..100u64).prop_map(
        |(scheduler, wait, cpus, burners, nodes, nice, messages, bytes, seed)| {
            format!(
                r#"{{"scheduler": "{scheduler}", "cpus": {cpus}, "burners": {burners}, "nodes": {nodes}, "burn_s": 0.5,
                "seed": {seed}, "start_spread_s": 0.1, "costs": {{"start_steps": 3, "start_cpu_s": 0.01, "start_wait_s": 0.01,
                "linger_s": 0.001}},
                "cells": [{{"wait": "{wait}", "burn_nice": {nice}, "messages": {messages}, "message_bytes": {bytes}}}]}}"#
            )
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_process_is_faster_than_alone_and_processors_are_never_idle_while_wanted(text in any_matrix()) {
        let request = request(&text);
        let found = simulate(&request, &mut |_| true).unwrap();
        let cell = found.cells[0];
        // On one node both ends compete for its processors, and a burner may separate them to their benefit. With
        // buffering, slices are aligned differently.
        prop_assert!(request.nodes == 1 || cell.ping_s >= cell.ping_alone_s * 0.999 - 0.002, "{cell:?}");
        if request.burners > 0 {
            prop_assert!(cell.burn_s >= 0.5);
            // A burner that is ready while another runs is served before a processor idles: the bound of list
            // scheduling, including the ping's own processor time, starts, switches and exchanges.
            let work = f64::from(request.burners) * 0.5 + cell.ping_cpu_beside_s;
            let most = (work / f64::from(request.cpus) + 0.5 + 0.1) * 1.06;
            prop_assert!(cell.burn_s <= most, "{} > {most}: {cell:?}", cell.burn_s);
        }
    }

    #[test]
    fn the_same_is_asked_and_the_same_is_found(text in any_matrix()) {
        let once = simulate(&request(&text), &mut |_| true).unwrap();
        prop_assert_eq!(once, simulate(&request(&text), &mut |_| true).unwrap());
    }
}
