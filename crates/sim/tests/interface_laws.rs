//! Laws of interfaces on random streams, queues, credits and links.
use std::collections::{BTreeMap, VecDeque};

use crate::interfaces::{FRAME_S, LATENCY_S, Log, experiment, stream, together, within};
use crosswind_schema::Class::{self, Local, Parallel};
use crosswind_sim::SimError;
use crosswind_sim::interface::{Job, MeasuredStream, Observed, Present, measure, simulate_streams};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Described {
    text: String,
    is_reliable: bool,
}

fn streams() -> impl Strategy<Value = String> {
    let arrivals = prop_oneof![
        Just("arrivals = \"backlogged\"".to_owned()),
        (1u32..4).prop_map(|outstanding| format!("arrivals = \"backlogged\"\noutstanding = {outstanding}")),
        (1u32..4, 0u32..300).prop_map(|(outstanding, gap)| format!(
            "arrivals = \"closed\"\noutstanding = {outstanding}\ngap_s = {{ distribution = \"exponential\", mean = {}e-6 }}",
            gap + 1
        )),
        (500u32..4000).prop_map(|gap| format!("arrivals = \"open\"\ngap_s = {gap}e-6")),
    ];
    let bytes = prop_oneof![
        (1u32..9000).prop_map(|bytes| bytes.to_string()),
        (1u32..5000).prop_map(|mean| format!("{{ distribution = \"exponential\", mean = {mean} }}")),
    ];
    let one = (any::<bool>(), 0u32..4, 1u32..4, bytes, arrivals, any::<bool>());
    prop::collection::vec(one, 1..5).prop_map(|streams| {
        let described =
            streams.into_iter().enumerate().map(|(at, (local, from, further, bytes, arrivals, answers))| {
                let class = if local { Local } else { Parallel };
                let answer = if answers { "answer_bytes = 700\n" } else { "" };
                let rest = format!("message_bytes = {bytes}\n{arrivals}\n{answer}messages = 15\n");
                stream(&format!("s{at}"), class, from, (from + further) % 4, &rest)
            });
        described.collect()
    })
}

fn described() -> impl Strategy<Value = Described> {
    let transport = prop::sample::select(vec!["reliable", "slow-start", "congestion-avoidance"]);
    let links = (any::<bool>(), 1u32..9, 0u32..3, 0u32..50, transport);
    let policy = (prop::sample::select(vec!["fifo", "threshold", "drr"]), 1u32..9, any::<bool>(), 1u32..9, 1u32..4);
    (streams(), links, policy, 1u32..1000).prop_map(|(streams, links, policy, seed)| {
        let (pad, buffer, host, latency, transport) = links;
        let (queue, threshold, credits, places, least) = policy;
        let credits = if credits { "receiver" } else { "none" };
        let text = format!(
            "seed = {seed}\nnetwork = {{ link_mb_per_s = 19.375, pad = {pad}, buffer_frames = {buffer}, latency_s = {latency}e-6, \
             host_s_per_frame = {host}e-5, transport = \"{transport}\" }}\n[policy]\nqueue = \"{queue}\"\n\
             threshold = {threshold}\ncredits = \"{credits}\"\nreceive_frames = {places}\nreceive_threshold = {}\n\
             idle_s = 0.001\n[workload]\nkind = \"streams\"\nhosts = 4\n{streams}",
            least.min(places)
        );
        Described { text, is_reliable: transport == "reliable" }
    })
}

/// Messages of one class between two hosts, in order of creation: number and bytes not yet delivered.
type Lanes = BTreeMap<(u32, u32, usize), VecDeque<(u32, u32)>>;

fn lane(of: Observed) -> (u32, u32, usize) {
    (of.from, of.to, of.class as usize)
}

/// Checks that every frame belongs to the oldest incomplete message of its lane.
fn assert_in_order(made: &[(u64, Observed)], frames: &[(u64, Observed)]) {
    let mut lanes = Lanes::new();
    for &(_, message) in made {
        lanes.entry(lane(message)).or_default().push_back((message.message, message.bytes));
    }
    for &(_, frame) in frames {
        let queue = lanes.get_mut(&lane(frame)).unwrap();
        let (message, left) = queue.front_mut().unwrap();
        assert_eq!(*message, frame.message, "a frame overtook another of its stream");
        *left -= frame.bytes;
        if *left == 0 {
            queue.pop_front();
        }
    }
}

fn bytes(of: &[(u64, Observed)], class: Class) -> u64 {
    of.iter().filter(|(_, seen)| seen.class == class).map(|(_, seen)| u64::from(seen.bytes)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A flow that loses frames may starve: a sender that retries after a constant time may find the same full buffer for ever.
    #[test]
    fn nothing_starves_no_byte_is_lost_or_made_and_frames_stay_in_order(described in described(), queued in any::<bool>()) {
        let experiment = experiment(&described.text);
        let mut log = Log::default();
        let measured = measure(&experiment, &[], Present::All, queued, Some(60_000_000_000), &mut log, &mut |_| true).unwrap();
        let starves = |stream: &MeasuredStream| stream.ended.is_none();
        prop_assert_eq!(measured.is_complete, !measured.streams.iter().any(starves));
        prop_assert!(measured.is_complete || !described.is_reliable, "given up after {} ns", measured.ended);
        prop_assert!(!measured.streams.iter().all(starves), "all streams starve");
        for class in Class::BOTH {
            let (made, left, arrived, lost) =
                (bytes(&log.made, class), bytes(&log.left, class), bytes(&log.arrived, class), bytes(&log.lost, class));
            prop_assert!(arrived <= made && arrived + lost <= left + lost);
            // What is still in flight is at most the maximum message length for each message that has not arrived.
            prop_assert!(arrived <= left);
        }
        prop_assert_eq!(measured.frames, log.arrived.len() as u64);
        prop_assert_eq!(measured.dropped, log.lost.len() as u64);
        // Everything timed has arrived completely.
        let timed: u64 = measured.streams.iter().map(|stream| stream.bytes).sum();
        let arrived = bytes(&log.arrived, Parallel) + bytes(&log.arrived, Local);
        prop_assert!(arrived >= timed || !measured.is_complete, "{arrived} bytes arrived, {timed} were timed");
        for stream in &measured.streams {
            prop_assert!(stream.latencies.len() == 15 || starves(stream));
        }
        if described.is_reliable {
            prop_assert_eq!(measured.dropped, 0);
            assert_in_order(&log.made, &log.left);
            assert_in_order(&log.made, &log.arrived);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_run(described in described()) {
        let experiment = experiment(&described.text);
        let run = || serde_json::to_string(&simulate_streams(&experiment, &[], &mut |_| true).unwrap()).unwrap();
        prop_assert_eq!(run(), run());
    }

    /// Other streams only delay messages, unless a message's delay reduces what its own stream has in flight beside it.
    #[test]
    fn through_one_queue_no_stream_gains_by_company(streams in streams()) {
        let text = format!("[workload]\nkind = \"streams\"\nhosts = 4\n{streams}");
        let experiment = experiment(&text);
        let run = simulate_streams(&experiment, &[], &mut |_| true).unwrap();
        let one_under_way = |at: usize| experiment.workload.streams[at].outstanding.is_none_or(|most| most.get() == 1);
        for (_, stream) in run.streams.iter().enumerate().filter(|&(at, _)| one_under_way(at)) {
            // A frame's time on a link is rounded to a nanosecond, up or down by when it begins: two links, and back.
            prop_assert!(stream.latency_s.fifo.mean >= stream.latency_s.alone.mean - 4e-9, "{}", stream.name);
        }
    }
}

#[test]
fn every_byte_of_every_message_arrives_once_when_all_streams_stop() {
    // Closed streams with one operation in progress: at the end, at most one message of each stream has not arrived.
    let text = format!(
        "network = {{ link_mb_per_s = 19.375, buffer_frames = 3, transport = \"slow-start\" }}\n[workload]\nkind = \"streams\"\n\
         hosts = 3\n{}{}",
        stream("p", Parallel, 0, 2, "message_bytes = 30000\nmessages = 50\n"),
        stream("l", Local, 1, 2, "message_bytes = 50000\nmessages = 50\n")
    );
    let mut log = Log::default();
    let measured = together(&experiment(&text), &[], false, &mut log);
    assert!(measured.dropped > 0, "buffers of 3 frames overflow");
    for (class, length) in [(Parallel, 30_000), (Local, 50_000)] {
        let (made, arrived) = (bytes(&log.made, class), bytes(&log.arrived, class));
        assert!(made - arrived <= length, "{class:?}: {made} bytes made, {arrived} arrived");
        assert_eq!(made % length, 0);
    }
}

#[test]
fn strict_priority_starves_the_local_stream_and_the_run_says_so() {
    let backlogged = "message_bytes = 10240\narrivals = \"backlogged\"\noutstanding = 2\n";
    let text = format!(
        "[policy]\nqueue = \"strict\"\n[workload]\nkind = \"streams\"\nhosts = 3\n{}{}",
        stream("p", Parallel, 0, 1, backlogged),
        stream("l", Local, 0, 2, backlogged)
    );
    let run = simulate_streams(&experiment(&text), &[], &mut |_| true).unwrap();
    assert_eq!(run.warnings.len(), 1);
    assert_eq!(run.warnings[0].code, "starved");
    assert!(run.warnings[0].message.contains("stream \"l\" starves through the queues of the policy"));
    assert!(run.streams[1].slowdown_queued >= 100.0, "a lower bound: {}", run.streams[1].slowdown_queued);
}

#[test]
fn credits_as_printed_stop_the_parallel_stream_and_repaired_ones_do_not() {
    let run = |literal: bool| {
        let text = format!(
            "[policy]\nqueue = \"threshold\"\nliteral = {literal}\ncredits = \"receiver\"\n[workload]\nkind = \"streams\"\nhosts = 3\n{}",
            stream("B", Parallel, 0, 1, "message_bytes = 2048\n")
        );
        simulate_streams(&experiment(&text), &[], &mut |_| true).unwrap()
    };
    let printed = run(true);
    assert!(printed.warnings[0].message.contains("stream \"B\" starves"), "{:?}", printed.warnings);
    assert!(run(false).warnings.is_empty());
    assert!(within(run(false).streams[0].slowdown_queued, 1.0, 1e-9));
}

#[test]
fn slow_start_doubles_what_is_under_way_with_every_round_trip() {
    // 2^k - 1 frames take k - 1 round trips, then the last burst and the way.
    let latency = 0.005;
    for k in 2..7 {
        let frames = (1 << k) - 1;
        let text = format!(
            "network = {{ link_mb_per_s = 19.375, latency_s = {latency}, transport = \"slow-start\" }}\n[workload]\nkind = \"streams\"\n\
             hosts = 2\n{}",
            stream("a", Parallel, 0, 1, &format!("message_bytes = {}\nmessages = 1\n", frames * 1024))
        );
        let run = simulate_streams(&experiment(&text), &[], &mut |_| true).unwrap();
        let round_trip = FRAME_S + 2.0 * latency;
        let expected = f64::from(k - 1) * round_trip + f64::from(1 << (k - 1)) * FRAME_S + latency;
        assert!(within(run.streams[0].alone_s, expected, 1e-5), "{} of {expected} s", run.streams[0].alone_s);
    }
}

#[test]
fn flows_that_start_slowly_use_less_of_a_link_that_they_share() {
    // The pipe holds 38 frames and the buffers 8; several flows overflow them together.
    let text = |transport: &str, flows: u32| {
        let streams: String = (0..flows)
            .map(|from| {
                let rest = "message_bytes = 1024000\narrivals = \"backlogged\"\nmessages = 4\n";
                stream(&format!("s{from}"), Parallel, from, 6, rest)
            })
            .collect();
        format!(
            "network = {{ link_mb_per_s = 19.375, latency_s = 0.001, buffer_frames = 8, transport = \"{transport}\" }}\n[workload]\n\
             kind = \"streams\"\nhosts = 7\n{streams}"
        )
    };
    for flows in [2, 4] {
        let used = |transport| {
            let run = simulate_streams(&experiment(&text(transport, flows)), &[], &mut |_| true).unwrap();
            (run.frames as f64 * FRAME_S / run.makespan_s, run.dropped)
        };
        let ((reliable, none), (slow, some)) = (used("reliable"), used("slow-start"));
        assert!(reliable > 0.95 && none == 0, "{reliable} of the link, {none} lost");
        assert!(slow < 0.8 * reliable && some > 0, "{slow} of the link, {some} lost");
    }
}

#[test]
fn a_flow_that_avoids_congestion_loses_one_frame_of_three_eighths_of_its_window_squared() {
    // From half a window to a full one, the window grows by one frame per round trip. Then one frame is lost, which is
    // known a round trip later, and half a window is sent at the old rate. This holds for queues shorter than the path:
    // a longer one is still full of old frames then.
    let latency = 0.001;
    for (buffer, is_short) in [(8, true), (20, true), (32, true), (64, false)] {
        let run = |frames: u64| {
            let text = format!(
                "network = {{ link_mb_per_s = 19.375, latency_s = {latency}, buffer_frames = {buffer}, \
                 transport = \"congestion-avoidance\" }}\n[workload]\nkind = \"streams\"\nhosts = 2\n{}",
                stream("a", Parallel, 0, 1, &format!("message_bytes = {}\nmessages = 1\n", 1024 * frames))
            );
            simulate_streams(&experiment(&text), &[], &mut |_| true).unwrap()
        };
        // The slow start before the first loss loses many frames at once. It is in neither difference.
        let (short, long) = (run(20_000), run(220_000));
        // In flight when a frame finds the queue full: the queue, the frame on the link, and everything in transit,
        // including acknowledgements.
        let way = 1.0 + 2.0 * latency / FRAME_S;
        let window = f64::from(buffer) + way;
        let between = 3.0 / 8.0 * window * window + 3.0 / 4.0 * window + way + window / 2.0;
        let found = 200_000.0 / (long.dropped - short.dropped) as f64;
        let said = format!("buffers of {buffer}: a loss each {found} frames, {between} by the form");
        assert!(!is_short || within(found, between, 0.08), "{said}");
        // If half a window fills the path, the link is never idle. Otherwise it is at least as busy as with half of
        // one.
        let used = 200_000.0 * FRAME_S / (long.makespan_s - short.makespan_s);
        let filled = (window / 2.0 / way).min(1.0);
        assert!(used > 0.999 * filled && used < 1.0001, "{said}; {used} of the link, {filled} at least");
    }
}

#[test]
fn a_jobs_superstep_takes_its_computation_and_its_longest_exchange() {
    let text = "[workload]\nkind = \"streams\"\nhosts = 3\n[[workload.job]]\nprogram = \"mg\"\nhosts = [2, 0, 1]\n";
    // A ring, 4 KiB each, 50 times.
    let step = (0.001, vec![(0, 1, 4096), (1, 2, 4096), (2, 0, 4096)]);
    let job = Job::new(vec![2, 0, 1], vec![step; 50]).unwrap();
    let run = simulate_streams(&experiment(text), std::slice::from_ref(&job), &mut |_| true).unwrap();
    let expected = 50.0 * (0.001 + 4.0 * FRAME_S + LATENCY_S);
    assert!(within(run.jobs[0].alone_s, expected, 1e-4), "{} of {expected} s", run.jobs[0].alone_s);
    assert_eq!((run.jobs[0].messages, run.jobs[0].bytes), (150, 150 * 4096));
    assert!(
        run.jobs[0].eta_fifo.abs() < 1e-9 && run.jobs[0].eta_queued.abs() < 1e-9,
        "no other stream or job is present"
    );
}

#[test]
fn local_streams_delay_a_job_and_two_queues_delay_it_less() {
    let text = format!(
        "[workload]\nkind = \"streams\"\nhosts = 4\n[[workload.job]]\nprogram = \"mg\"\nhosts = [0, 1, 2, 3]\n{}",
        stream("l", Local, 0, 1, "message_bytes = 65536\narrivals = \"backlogged\"\noutstanding = 2\n")
    );
    let all_to_all: Vec<_> =
        (0..4).flat_map(|from| (0..4).filter(move |&to| to != from).map(move |to| (from, to, 512))).collect();
    let job = Job::new(vec![0, 1, 2, 3], vec![(0.0005, all_to_all); 40]).unwrap();
    let run = simulate_streams(&experiment(&text), &[job], &mut |_| true).unwrap();
    let found = &run.jobs[0];
    assert!(found.eta_fifo > 1.0, "{}", found.eta_fifo);
    assert!(found.eta_queued < found.eta_fifo / 3.0, "{} became {}", found.eta_fifo, found.eta_queued);
}

#[test]
fn a_queue_that_waits_for_one_port_is_not_woken_for_ever_by_another() {
    // The streams from host 0 share one queue in T2; the first of the two ports is full, and the other is not.
    let backlogged = "message_bytes = 1000\narrivals = \"backlogged\"\noutstanding = 8\n";
    let text = format!(
        "network = {{ link_mb_per_s = 100.0, buffer_frames = 4 }}\n[workload]\nkind = \"streams\"\nhosts = 6\n{}{}{}{}{}",
        stream("a", Parallel, 0, 1, backlogged),
        stream("b", Local, 0, 2, backlogged),
        stream("c", Local, 3, 1, backlogged),
        stream("d", Parallel, 4, 1, backlogged),
        stream("e", Parallel, 5, 2, backlogged)
    );
    let run = simulate_streams(&experiment(&text), &[], &mut |_| true).unwrap();
    assert!(run.streams.iter().all(|stream| stream.slowdown_fifo >= 1.0));
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let none = "[workload]\nkind = \"streams\"\nhosts = 2\n[[workload.job]]\nprogram = \"ep\"\nhosts = [0, 1]\n";
    let refused = |jobs: &[Job]| simulate_streams(&experiment(none), jobs, &mut |_| true).unwrap_err().to_string();
    assert_eq!(refused(&[]), "the experiment has 1 jobs, but the messages of 0 were given");
    let elsewhere = Job::new(vec![0, 7], []).unwrap();
    assert_eq!(refused(&[elsewhere]), "a job runs on host 7; the hosts are 0 to 1");
    assert!(matches!(Job::new(vec![0, 1], [(0.0, vec![(0, 2, 1)])]), Err(SimError::NoSuchRank { named: 2, .. })));
    assert!(matches!(Job::new(vec![0, 1], [(0.0, vec![(5, 1, 1)])]), Err(SimError::NoSuchRank { named: 5, .. })));
    assert!(matches!(Job::new(vec![0, 1], [(0.0, vec![(1, 1, 1)])]), Err(SimError::SendToItself { rank: 1 })));
    assert!(matches!(Job::new(vec![0, 1], [(0.0, vec![(0, 1, 1 << 31)])]), Err(SimError::LongMessage { .. })));
    let stopped = simulate_streams(
        &experiment(&none.replace(
            "[[workload.job]]\nprogram = \"ep\"\nhosts = [0, 1]\n",
            &stream("s", Local, 0, 1, "message_bytes = 10\n"),
        )),
        &[],
        &mut |_| false,
    );
    assert!(matches!(stopped, Err(SimError::Interrupted)));
}

#[test]
fn an_overload_without_end_is_an_error_and_not_a_full_memory() {
    // The local stream makes 10 times what the link carries, while the other needs a long time for its messages.
    let text = format!(
        "network = {{ link_mb_per_s = 1.0, pad = false, frame_bytes = 1000000 }}\n[workload]\nkind = \"streams\"\nhosts = 3\n{}{}",
        stream("slow", Parallel, 0, 1, "message_bytes = 10\ngap_s = 1000.0\nmessages = 1000\n"),
        stream("flood", Local, 1, 2, "message_bytes = 100\narrivals = \"open\"\ngap_s = 1e-5\nmessages = 10\n")
    );
    let error = simulate_streams(&experiment(&text), &[], &mut |_| true).unwrap_err().to_string();
    assert!(
        error.contains("messages wait: streams with arrivals = \"open\" make more than the links carry"),
        "{error}"
    );
}
