//! Hosts whose processor handles messages, which delays the job on it. Also connection windows.
use crate::interfaces::{LATENCY_S, Log, experiment, stream, together, within};
use crosswind_schema::Class::{Local, Parallel};
use crosswind_sim::interface::{Job, Present, measure};

/// The links of communication-interactions, net of the ATM overhead, with whole TCP segments as frames.
fn links(rest: &str) -> String {
    format!("[network]\nlink_mb_per_s = 16.95\nframe_bytes = 9140\npad = false\nbuffer_frames = 100000\n{rest}\n")
}

/// Processor time of `each_us` for 8 KiB at each end: 30 % of it fixed, and a fifth of it per acknowledgement.
fn processor(each_us: f64) -> String {
    let (fixed_s, per_mb) = (0.3e-6 * each_us, 0.7e-6 * each_us / (8192.0 / 1e6));
    let ack_s = each_us * 0.2e-6;
    format!(
        "[network.processor]\nsend_s = {fixed_s:e}\nir_send_s_per_mb = {per_mb}\nreceive_s = {fixed_s:e}\n\
         ir_receive_s_per_mb = {per_mb}\nacknowledgement_s = {ack_s:e}"
    )
}

/// A repeated message of 8 KiB from each host to the next.
fn local_ring(hosts: u32, per_s: f64) -> String {
    let gap = format!("gap_s = {{ distribution = \"exponential\", mean = {} }}", 1.0 / per_s);
    let rest = format!("message_bytes = 8192\narrivals = \"open\"\nmessages = 1\n{gap}\n");
    (0..hosts).map(|host| stream(&format!("local {host}"), Local, host, (host + 1) % hosts, &rest)).collect()
}

#[test]
fn a_job_that_only_computes_is_slowed_by_what_its_hosts_messages_take() {
    for (per_s, each_us) in [(500.0, 50.0), (1000.0, 50.0), (2000.0, 50.0), (2000.0, 10.0), (500.0, 200.0)] {
        let text = format!(
            "{}\n[workload]\nkind = \"streams\"\nhosts = 4\n{}{}",
            links(&processor(each_us)),
            local_ring(4, per_s),
            "[[workload.job]]\nprogram = \"ep\"\nhosts = [0, 1, 2, 3]\n",
        );
        let job = Job::new(vec![0, 1, 2, 3], [(10.0, Vec::new())]).unwrap();
        let ended = together(&experiment(&text), &[job], false, &mut Log::default()).jobs[0].unwrap() as f64 * 1e-9;
        let taken = per_s * (2.2e-6 * each_us);
        // The slowest of four hosts, each with its own random draws.
        assert!(within(ended, 10.0 / (1.0 - taken), 0.02), "{per_s}/s, {each_us} us: {ended}");
    }
}

#[test]
fn a_message_takes_the_processors_at_both_ends_once() {
    let rest = "message_bytes = 8192\narrivals = \"closed\"\n";
    let text = format!(
        "{}\n[workload]\nkind = \"streams\"\nhosts = 2\n{}",
        links(&processor(50.0)),
        stream("test", Parallel, 0, 1, rest)
    );
    let run = measure(&experiment(&text), &[], Present::Stream(0), false, None, &mut Log::default(), &mut |_| true);
    let first = run.unwrap().streams[0].latencies[0] as f64 * 1e-9;
    assert!(within(first, 2.0 * 50e-6 + 8192.0 / 16.95e6 + LATENCY_S, 1e-4), "{first}");
}

#[test]
fn what_arrives_goes_before_what_is_sent_and_both_before_computing() {
    // Host 1 computes for 1 ms. Meanwhile a frame arrives and takes 0.4 ms. Then the job's own message of 0.1 ms is
    // sent.
    let costs = "[network.processor]\nsend_s = 1e-4\nreceive_s = 4e-4\n";
    let other = stream("other", Local, 0, 1, "message_bytes = 9140\nmessages = 1\ngap_s = 1.0\narrivals = \"open\"\n");
    let job = "[[workload.job]]\nprogram = \"ep\"\nhosts = [1, 2]\n";
    let text = format!("{}\n[workload]\nkind = \"streams\"\nhosts = 3\n{other}{job}", links(costs));
    let job = Job::new(vec![1, 2], [(0.001, vec![(0, 1, 9140)])]).unwrap();
    let mut log = Log::default();
    let run = together(&experiment(&text), &[job], false, &mut log);
    let link = 9140.0 / 16.95e6;
    // 1 ms of computing and 0.4 ms of receiving, whichever comes first; then sending, the link, and receiving.
    let expected = 0.001 + 4e-4 + 1e-4 + link + LATENCY_S + 4e-4;
    assert!(within(run.jobs[0].unwrap() as f64 * 1e-9, expected, 1e-4), "{:?}", run.jobs);
}

#[test]
fn a_window_of_one_frame_makes_each_wait_for_the_acknowledgement_of_the_last() {
    for (bytes, frames) in [(9140, 1.0), (91_400, 10.0)] {
        let rest = format!("message_bytes = {bytes}\nmessages = 1\narrivals = \"closed\"\n");
        for (window, round_trips) in [(9140, frames - 1.0), (100_000, 0.0)] {
            let text = format!(
                "{}\n[workload]\nkind = \"streams\"\nhosts = 2\n{}",
                links(&format!("window_bytes = {window}")),
                stream("test", Parallel, 0, 1, &rest)
            );
            let run = together(&experiment(&text), &[], false, &mut Log::default());
            let found = run.streams[0].latencies[0] as f64 * 1e-9;
            let expected = frames * 9140.0 / 16.95e6 + LATENCY_S + round_trips * 2.0 * LATENCY_S;
            assert!(within(found, expected, 1e-3), "{bytes} bytes, window {window}: {found} of {expected}");
        }
    }
}

/// Host 0 sends to host 1 and receives from host 2; its processor takes longer than the link for either.
#[test]
fn one_server_for_what_is_sent_and_what_arrives_is_shared_by_both() {
    let links = "[network]\nlink_mb_per_s = 100.0\nframe_bytes = 1000\npad = false\nlatency_s = 0.0\n";
    let ways = [stream("out", Parallel, 0, 1, ""), stream("in", Parallel, 2, 0, "")];
    let rest = "message_bytes = 1000\nmessages = 2000\narrivals = \"backlogged\"\noutstanding = 8\n";
    let costs = "[network.processor]\nsend_s = 1e-4\nreceive_s = 2e-4\norder = \"queues\"\n";
    let streams: String = ways.iter().map(|way| format!("{way}{rest}")).collect();
    let text = format!("{links}{costs}\n[workload]\nkind = \"streams\"\nhosts = 3\n{streams}");
    let run = together(&experiment(&text), &[], false, &mut Log::default());
    for of in &run.streams {
        // Alternately one frame in and one out, 0.3 ms together.
        let ended = of.ended.unwrap() as f64 * 1e-9;
        assert!(within(ended, 2000.0 * 3e-4, 0.01), "{ended}");
    }
}

#[test]
fn a_description_that_contradicts_itself_is_refused() {
    for (rest, said) in [
        (
            "host_s_per_frame = 1e-5\n[network.processor]\nsend_s = 1e-5",
            "network.processor is there beside host_s_per_frame",
        ),
        ("[network.processor]\nsend_s = 100.0", "network.processor.send_s is 100; it must be at most 60"),
        (
            "[network.processor]\nnode = \"n\"",
            "network.processor.node is \"n\", but there is no network.processor.platform",
        ),
        (
            "[network.processor]\nplatform = \"p.toml\"\nir_send_s_per_mb = 0.1",
            "network.processor.platform is there beside ir_send_s_per_mb",
        ),
        ("window_bytes = 0", "network.window_bytes is 0"),
    ] {
        let streams = stream("test", Parallel, 0, 1, "message_bytes = 1\n");
        let text = format!(
            "schema_version = 1\nname = \"t\"\n{}\n[workload]\nkind = \"streams\"\nhosts = 2\n{streams}",
            links(rest)
        );
        let error = crosswind_schema::StreamsExperiment::from_toml(text.as_bytes(), "e.toml").unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}
