//! Interfaces checked against closed forms: one queue, two queues, waiting lines, links.
use crate::interfaces::{FRAME_S, LATENCY_S, Log, experiment, stream, together, within};
use crosswind_model::contention::queues::{Cycle, merged_slowdown};
use crosswind_schema::Class::{Local, Parallel};
use crosswind_sim::interface::{Observed, Observer, simulate_streams};

/// The sending side of the paper: a test stream and a backlogged local one from one host to two.
fn sending_side(test_bytes: u32, local_bytes: u32, rest: &str) -> String {
    format!(
        "{rest}\n[workload]\nkind = \"streams\"\nhosts = 3\n{}{}",
        stream("test", Parallel, 0, 1, &format!("message_bytes = {test_bytes}\narrivals = \"closed\"\n")),
        stream("local", Local, 0, 2, &format!("message_bytes = {local_bytes}\narrivals = \"backlogged\"\n")),
    )
}

#[test]
fn a_message_alone_takes_its_frames_times_on_the_link_and_the_latency_once() {
    for (bytes, frames) in [(64, 1.0), (2048, 2.0), (16_384, 16.0), (16_385, 17.0)] {
        let run = simulate_streams(&experiment(&sending_side(bytes, 1024, "")), &[], &mut |_| true).unwrap();
        let expected = 100.0 * (frames * FRAME_S + LATENCY_S);
        assert!(within(run.streams[0].alone_s, expected, 1e-4), "{} of {expected}", run.streams[0].alone_s);
    }
    // Without padding a frame takes its own bytes' time.
    let links = "network = { link_mb_per_s = 19.375, pad = false }";
    let run = simulate_streams(&experiment(&sending_side(64, 1024, links)), &[], &mut |_| true).unwrap();
    assert!(within(run.streams[0].alone_s, 100.0 * (64.0 / 19.375e6 + LATENCY_S), 1e-3));
}

#[test]
fn through_one_queue_the_slowdown_is_1_plus_the_local_message_over_the_tests_time() {
    for (test_bytes, test_frames) in [(64, 1.0), (2048, 2.0)] {
        for local_frames in [2.0, 4.0, 8.0, 16.0] {
            let text = sending_side(test_bytes, (local_frames * 1024.0) as u32, "");
            let run = simulate_streams(&experiment(&text), &[], &mut |_| true).unwrap();
            let alone = test_frames * FRAME_S + LATENCY_S;
            let found = run.streams[0].slowdown_fifo;
            let closed_form = 1.0 + local_frames * FRAME_S / alone;
            assert!(within(found, closed_form, 0.07), "{found} of {closed_form} at {local_frames} frames");
            // The latency of the test stream passes while local frames are on the link.
            let exact = (local_frames + test_frames) * FRAME_S / alone;
            assert!(within(found, exact, 0.015), "{found} of {exact} at {local_frames} frames");
        }
    }
}

#[test]
fn through_two_queues_it_does_not_depend_on_the_local_messages_length() {
    for queue in ["drr", "threshold", "strict"] {
        for (test_bytes, test_frames) in [(64, 1.0), (2048, 2.0)] {
            for local_bytes in [2048, 8192, 16_384] {
                let text = sending_side(test_bytes, local_bytes, &format!("[policy]\nqueue = \"{queue}\""));
                let run = simulate_streams(&experiment(&text), &[], &mut |_| true).unwrap();
                let (alone, found) = (test_frames * FRAME_S + LATENCY_S, run.streams[0].slowdown_queued);
                // It waits at most for the rest of one local frame.
                assert!(found <= (alone + FRAME_S) / alone + 1e-3, "{queue}: {found} at {local_bytes} bytes");
                // Before each local frame at most one message of the test stream is sent.
                let local = run.streams[1].slowdown_queued;
                assert!(local <= 1.0 + test_frames, "{queue}: local {local} at {local_bytes} bytes");
            }
        }
    }
}

#[test]
fn two_backlogged_classes_share_the_link_by_the_weight() {
    for (queue, threshold, parallel_bytes, share) in
        [("drr", 4, 64 * 100, 0.8), ("drr", 1, 10_000, 0.5), ("threshold", 4, 10_240, 0.8), ("strict", 1, 10_240, 1.0)]
    {
        let backlogged = |bytes: u32| {
            format!("message_bytes = {bytes}\narrivals = \"backlogged\"\noutstanding = 4\nmessages = 2000\n")
        };
        let text = format!(
            "network = {{ link_mb_per_s = 19.375, pad = false }}\n[policy]\nqueue = \"{queue}\"\nthreshold = {threshold}\n\
             [workload]\nkind = \"streams\"\nhosts = 3\n{}{}",
            stream("p", Parallel, 0, 1, &backlogged(parallel_bytes)),
            stream("l", Local, 0, 2, &backlogged(10_240)),
        );
        let experiment = experiment(&text);
        let mut sent = [0u64; 2];
        let mut log = Log::default();
        let patience = Some(10_000_000_000);
        let present = crosswind_sim::interface::Present::All;
        crosswind_sim::interface::measure(&experiment, &[], present, true, patience, &mut log, &mut |_| true).unwrap();
        // While both wait: from the first frames until the first stream has its messages.
        let until = log.arrived[log.arrived.len() / 4].0;
        for (_, frame) in log.left.iter().take_while(|(at, _)| *at < until) {
            sent[frame.class as usize] += u64::from(frame.bytes);
        }
        let found = sent[0] as f64 / (sent[0] + sent[1]) as f64;
        assert!(within(found, share, 0.01), "{queue} {threshold}: {found} of {share}");
    }
}

/// Waiting time of each class before the link, and the mean number of messages at the interface.
#[derive(Default)]
struct Waiting {
    made: std::collections::BTreeMap<u32, u64>,
    waited: [f64; 2],
    gone: [f64; 2],
    stayed: f64,
    present: u32,
    integral: f64,
    last: u64,
}

impl Waiting {
    fn at(&mut self, now: u64) {
        // Arrivals are reported one latency ahead of their time.
        self.integral += f64::from(self.present) * now.saturating_sub(self.last) as f64;
        self.last = self.last.max(now);
    }
}

impl Observer for Waiting {
    fn made(&mut self, at: u64, message: Observed) {
        self.at(at);
        self.present += 1;
        self.made.insert(message.message, at);
    }
    fn leaves(&mut self, at: u64, frame: Observed) {
        self.at(at);
        self.waited[frame.class as usize] += (at - self.made[&frame.message]) as f64;
        self.gone[frame.class as usize] += 1.0;
        self.present -= 1;
        self.stayed += (at - self.made[&frame.message]) as f64;
    }
    fn arrives(&mut self, _: u64, _: Observed) {}
    fn lost(&mut self, _: u64, _: Observed) {}
}

/// Poisson arrivals, exponential lengths, one frame each: parallel 30 % of the link, local 40 %.
fn waiting_lines(queue: &str) -> (Waiting, f64) {
    let mean_ns = 50_000.0;
    let poisson = |part: f64| {
        let gap_s = mean_ns * 1e-9 / part;
        format!(
            "message_bytes = {{ distribution = \"exponential\", mean = 50000 }}\narrivals = \"open\"\n\
             gap_s = {{ distribution = \"exponential\", mean = {gap_s} }}\nmessages = 300000\n"
        )
    };
    let text = format!(
        "network = {{ link_mb_per_s = 1000.0, pad = false, frame_bytes = 16777216, buffer_frames = 1000000 }}\n\
         [policy]\nqueue = \"{queue}\"\n[workload]\nkind = \"streams\"\nhosts = 3\n{}{}",
        stream("p", Parallel, 0, 1, &poisson(0.3)),
        stream("l", Local, 0, 2, &poisson(0.4)),
    );
    let mut waiting = Waiting::default();
    together(&experiment(&text), &[], true, &mut waiting);
    (waiting, mean_ns)
}

#[test]
fn an_m_m_1_queue_with_two_priorities_waits_as_theory_says() {
    let (waiting, mean) = waiting_lines("strict");
    // Cobham, 1954: W1 = R / (1 - rho1), W2 = R / ((1 - rho1) (1 - rho)), R = rho * mean for exponential service.
    let (rho1, rho) = (0.3, 0.7);
    let residual = rho * mean;
    for (class, expected) in [(0, residual / (1.0 - rho1)), (1, residual / ((1.0 - rho1) * (1.0 - rho)))] {
        let found = waiting.waited[class] / waiting.gone[class];
        assert!(within(found, expected, 0.03), "class {class}: {found} of {expected} ns");
    }
}

#[test]
fn an_m_m_1_queue_without_priorities_waits_as_theory_says() {
    let (waiting, mean) = waiting_lines("fifo");
    for class in [0, 1] {
        let found = waiting.waited[class] / waiting.gone[class];
        let expected = 0.7 / 0.3 * mean;
        assert!(within(found, expected, 0.03), "class {class}: {found} of {expected} ns");
    }
}

#[test]
fn as_many_wait_as_come_times_how_long_they_wait() {
    for queue in ["fifo", "strict", "drr"] {
        let (waiting, mean) = waiting_lines(queue);
        // Little's law: the rate is that of the description, the rest is measured.
        let rate = 0.7 / mean;
        let stayed = waiting.stayed / (waiting.gone[0] + waiting.gone[1]);
        let present = waiting.integral / waiting.last as f64;
        assert!(within(present, rate * stayed, 0.03), "{queue}: {present} of {}", rate * stayed);
    }
}

#[test]
fn one_to_all_and_all_to_one_take_what_their_links_take() {
    let text = "[workload]\nkind = \"streams\"\nhosts = 4\n[[workload.stream]]\nname = \"all\"\nclass = \"parallel\"\nfrom = 0\n\
                to = [1, 2, 3]\nmessage_bytes = 64\nanswer_bytes = 64\n";
    let run = simulate_streams(&experiment(text), &[], &mut |_| true).unwrap();
    // Three frames in sequence on one link. The answer to the third queues behind the other answers.
    let expected = 100.0 * (4.0 * FRAME_S + 2.0 * LATENCY_S);
    assert!(within(run.streams[0].alone_s, expected, 1e-4), "{} of {expected}", run.streams[0].alone_s);
    assert_eq!((run.streams[0].messages, run.streams[0].bytes, run.frames), (100, 100 * 6 * 64, 600));
}

#[test]
fn two_hosts_that_send_to_one_share_its_link_and_wait_for_each_other() {
    let backlogged = "message_bytes = 102400\narrivals = \"backlogged\"\nmessages = 20\noutstanding = 2\n";
    let text = format!(
        "[workload]\nkind = \"streams\"\nhosts = 3\n{}{}",
        stream("a", Parallel, 0, 2, backlogged),
        stream("b", Local, 1, 2, backlogged)
    );
    let run = simulate_streams(&experiment(&text), &[], &mut |_| true).unwrap();
    for stream in &run.streams {
        assert!(within(stream.fifo_s, 4000.0 * FRAME_S, 0.02), "{} s", stream.fifo_s);
    }
    assert_eq!(run.dropped, 0, "they wait, and nothing is lost");
}

#[test]
fn where_streams_merge_before_a_receiver_the_slowdown_grows_with_the_root_of_the_local_message() {
    let cycle = |frames: u32| Cycle { message_s: f64::from(frames) * FRAME_S, rest_s: LATENCY_S };
    for test in [1, 2, 4, 8] {
        for local in [1, 2, 4, 8, 16, 32, 64].into_iter().filter(|&local| local >= test) {
            let rest =
                |frames| format!("message_bytes = {}\narrivals = \"backlogged\"\nmessages = 2000\n", frames * 1024);
            let text = format!(
                "[workload]\nkind = \"streams\"\nhosts = 3\n{}{}",
                stream("test", Parallel, 0, 2, &rest(test)),
                stream("local", Local, 1, 2, &rest(local))
            );
            let run = simulate_streams(&experiment(&text), &[], &mut |_| true).unwrap();
            let form = merged_slowdown(cycle(test), cycle(local), FRAME_S).unwrap();
            let found = run.streams[0].slowdown_fifo;
            assert!(within(found, form, 0.10), "{test} beside {local} frames: {found}, {form} by the form");
        }
    }
}

#[test]
fn a_receiving_program_that_is_slower_than_the_link_sets_the_pace() {
    let text = format!(
        "network = {{ link_mb_per_s = 19.375, host_s_per_frame = 200e-6, buffer_frames = 4 }}\n[workload]\nkind = \"streams\"\n\
         hosts = 3\n{}{}",
        stream("a", Parallel, 0, 2, "message_bytes = 20480\narrivals = \"backlogged\"\noutstanding = 2\n"),
        stream("b", Local, 1, 2, "message_bytes = 20480\narrivals = \"backlogged\"\noutstanding = 2\n")
    );
    let run = simulate_streams(&experiment(&text), &[], &mut |_| true).unwrap();
    // 4000 frames, 200 us each.
    assert!(within(run.streams[1].fifo_s, 0.8, 0.02), "{} s", run.streams[1].fifo_s);
    assert_eq!(run.dropped, 0);
}

#[test]
fn on_the_receiving_side_credits_keep_the_local_stream_short() {
    let text = |credits: &str| {
        format!(
            "[policy]\ncredits = \"{credits}\"\n[workload]\nkind = \"streams\"\nhosts = 3\n{}{}",
            stream("A", Parallel, 0, 2, "message_bytes = 64\narrivals = \"closed\"\n"),
            stream("local", Local, 1, 2, "message_bytes = 16384\narrivals = \"backlogged\"\noutstanding = 2\n")
        )
    };
    let without = simulate_streams(&experiment(&text("none")), &[], &mut |_| true).unwrap();
    let with = simulate_streams(&experiment(&text("receiver")), &[], &mut |_| true).unwrap();
    let (one_queue, two_queues) = (with.streams[0].slowdown_fifo, with.streams[0].slowdown_queued);
    assert!(one_queue / two_queues >= 3.0, "{one_queue} became {two_queues}");
    assert!(two_queues < 3.0);
    // Two queues at the receiver alone do not affect the queue in the switch.
    assert!(within(without.streams[0].slowdown_queued, one_queue, 0.05));
}
