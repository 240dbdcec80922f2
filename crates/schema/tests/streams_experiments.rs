//! Experiments of kind streams: defaults, refusals and their messages, what a sweep may vary, and the drawn messages.

use crosswind_schema::experiment::Grid;
use crosswind_schema::experiment::streams::{
    Arrivals, CreditRule, Discipline, KnownLinks, Links, LinksSource, MessageDraws, QueuePolicy, Receivers, Transport,
};
use crosswind_schema::units::{MegabytesPerSecond, Quantity};
use crosswind_schema::{AnyExperiment, Class, StreamsExperiment, StreamsRuns};

const BASE: &str = "schema_version = 1\nname = \"e\"\n";
const A: &str = "[workload]\nkind = \"streams\"\nhosts = 4\n[[workload.stream]]\nname = \"A\"\nclass = \"parallel\"\n\
    from = 0\nto = 1\nmessage_bytes = 64\n";
const LOCAL: &str = "[[workload.stream]]\nname = \"local\"\nclass = \"local\"\nfrom = 0\nto = [1, 2]\n\
    message_bytes = { distribution = \"exponential\", mean = 2048 }\narrivals = \"backlogged\"\n";
const MG: &str = "[[workload.job]]\nprogram = \"mg\"\nhosts = [0, 1, 2, 3]\n";

fn read(text: &str) -> StreamsExperiment {
    StreamsExperiment::from_toml(text.as_bytes(), "e.toml").expect("valid")
}

#[test]
fn a_stream_with_defaults_only_is_a_hundred_messages_one_after_the_other_on_the_network_of_the_paper() {
    let experiment = read(&format!("{BASE}{A}"));
    assert_eq!((experiment.seed, experiment.repetitions, experiment.runs()), (1, 1, Some(1)));
    assert_eq!(experiment.network, LinksSource::Known(KnownLinks::Atm155));
    assert_eq!(experiment.policy, QueuePolicy::default());
    assert_eq!((experiment.policy.queue, experiment.policy.threshold.get()), (Discipline::Drr, 4));
    let [stream] = experiment.workload.streams.as_slice() else { panic!("one stream") };
    assert_eq!((stream.class, stream.from, &stream.to), (Class::Parallel, 0, &Receivers::One(1)));
    assert_eq!((stream.arrivals, stream.at_once(), stream.messages.get()), (Arrivals::Closed, Some(1), 100));
    assert_eq!((stream.mean_gap_s(), &stream.answer_bytes), (0.0, &None));
}

#[test]
fn every_field_survives_json() {
    let text = format!(
        "{BASE}network = {{ link_mb_per_s = 10, transport = \"slow-start\", pad = false, host_s_per_frame = 1e-5 }}\n\
         {A}answer_bytes = 8\ngap_s = {{ distribution = \"uniform\", low = 0, high = 1e-3 }}\noutstanding = 2\n{LOCAL}{MG}\
         [policy]\nqueue = \"threshold\"\nliteral = true\ncredits = \"receiver\"\nreceive_threshold = 0\n\
         [sweep]\n\"network\" = [\"atm155\", \"gigabit\"]\n"
    );
    let experiment = read(&text);
    let json = serde_json::to_string(&experiment).expect("writes");
    assert_eq!(StreamsExperiment::from_json(json.as_bytes(), "again"), Ok(experiment.clone()));
    assert!(json.contains("\"to\":1,") && json.contains("\"to\":[1,2]"), "{json}");
    let links = experiment.network.links();
    assert_eq!((links.transport, links.latency_s.get(), links.buffer_frames.get()), (Transport::SlowStart, 1e-5, 64));
    assert_eq!(experiment.policy.credits, CreditRule::Receiver);
    assert_eq!(experiment.workload.jobs[0].name(), "mg");
}

#[test]
fn a_streams_experiment_refuses_what_it_could_not_run() {
    let one = |from: &str, to: &str| format!("{BASE}{A}").replace(from, to);
    let two = |from: &str, to: &str| format!("{BASE}{A}{LOCAL}").replace(from, to);
    let more = |rest: &str| format!("{BASE}{A}{rest}");
    let job = |from: &str, to: &str| format!("{BASE}{A}{MG}").replace(from, to);
    let network = |network: &str| format!("{BASE}network = {network}\n{A}");
    let policy = |policy: &str| format!("{BASE}{A}[policy]\n{policy}\n");
    let sweep = |axis: &str| format!("{BASE}{A}[sweep]\n{axis}\n");
    let bad = [
        ("unknown kind", one("\"streams\"", "\"stream\"")),
        ("no hosts", one("hosts = 4\n", "")),
        ("one host", one("hosts = 4", "hosts = 1")),
        ("nothing to send", format!("{BASE}[workload]\nkind = \"streams\"\nhosts = 2\n")),
        ("a program's field", one("hosts = 4", "hosts = 4\nranks = 4")),
        ("a program's network", network("\"cm5\"")),
        ("misspelt field", one("from = 0", "form = 0")),
        ("unknown class", one("\"parallel\"", "\"remote\"")),
        ("nameless", one("name = \"A\"", "name = \"\"")),
        ("two of a name", two("\"local\"\nclass", "\"A\"\nclass")),
        ("no such sender", one("from = 0", "from = 4")),
        ("no such receiver", one("to = 1", "to = [1, 4]")),
        ("negative receiver", one("to = 1", "to = -1")),
        ("receiver of no kind", one("to = 1", "to = \"1\"")),
        ("no receiver", one("to = 1", "to = []")),
        ("to itself", one("to = 1", "to = [1, 0]")),
        ("twice to one", two("[1, 2]", "[1, 1]")),
        ("empty messages", one("= 64", "= 0")),
        ("huge messages", one("= 64", "= 1e12")),
        ("huge drawn messages", two("2048", "1e10")),
        ("a gap of a backlogged stream", two("\"backlogged\"", "\"backlogged\"\ngap_s = 1")),
        ("an open stream without a gap", more("arrivals = \"open\"\n")),
        ("an open stream with no gap", more("arrivals = \"open\"\ngap_s = 0\n")),
        ("outstanding of an open stream", more("arrivals = \"open\"\ngap_s = 1\noutstanding = 2\n")),
        ("none outstanding", more("outstanding = 0\n")),
        ("negative gap", more("gap_s = -1\n")),
        ("a gap of days", more("gap_s = 1e6\n")),
        ("no messages", more("messages = 0\n")),
        ("no answer", more("answer_bytes = 0\n")),
        ("unknown program", job("\"mg\"", "\"lu\"")),
        ("a program nowhere", job("[0, 1, 2, 3]", "[]")),
        ("a program on no such host", job("[0, 1, 2, 3]", "[0, 9]")),
        ("a program twice on a host", job("[0, 1, 2, 3]", "[0, 0]")),
        ("misspelt parameter", job("\"mg\"", "\"mg\"\nparameters = { clas = \"S\" }")),
        ("nameless program", job("\"mg\"", "\"mg\"\nname = \"\"")),
        ("unknown network", network("\"atm\"")),
        ("no rate", network("{ latency_s = 1e-6 }")),
        ("rate 0", network("{ link_mb_per_s = 0 }")),
        ("rate beyond all", network("{ link_mb_per_s = 1e9 }")),
        ("latency of a day", network("{ link_mb_per_s = 10, latency_s = 86400 }")),
        ("frames of no size", network("{ link_mb_per_s = 10, frame_bytes = 0 }")),
        ("no buffer", network("{ link_mb_per_s = 10, buffer_frames = 0 }")),
        ("unknown transport", network("{ link_mb_per_s = 10, transport = \"tcp\" }")),
        ("unknown queue", policy("queue = \"treshold\"")),
        ("threshold 0", policy("threshold = 0")),
        ("negative threshold", policy("threshold = -4")),
        ("starving credits", policy("credits = \"receiver\"\nreceive_threshold = 0")),
        ("credit above the buffer", policy("credits = \"receiver\"\nreceive_threshold = 17")),
        ("nothing literal", policy("literal = true")),
        ("idle at once", policy("idle_s = 1e-9")),
        ("a program's policy", policy("window_packets = 4")),
        ("unknown sweep path", sweep("\"policy.treshold\" = [1]")),
        ("no such stream by sweep", sweep("\"workload.stream[1].message_bytes\" = [64]")),
        ("no such field by sweep", sweep("\"workload.stream[0].bytes\" = [64]")),
        ("bad value by sweep", sweep("\"workload.stream[0].message_bytes\" = [64, -1]")),
        ("bad threshold by sweep", sweep("\"policy.threshold\" = [4, 0]")),
        ("bad host by sweep", sweep("\"workload.stream[0].to\" = [1, 7]")),
    ];
    let told: Vec<String> = bad
        .iter()
        .map(|(what, text)| {
            let error = AnyExperiment::from_toml(text.as_bytes(), "e.toml").expect_err(what);
            format!("{what}: {error}")
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_sweep_may_vary_lengths_queues_links_and_single_fields_of_either() {
    let text = format!(
        "{BASE}{A}{LOCAL}[sweep]\n\"workload.stream[1].message_bytes.mean\" = [2048, 16384]\n\"policy.threshold\" = [1, 4]\n\
         \"network.pad\" = [true, false]\n\"workload.stream[0].to\" = [1, [1, 2, 3]]\n"
    );
    let experiment = read(&text);
    assert_eq!(experiment.runs(), Some(16));
    let last = experiment.point(15).expect("valid").experiment;
    assert!(last.sweep.is_empty());
    assert_eq!(last.workload.streams[1].message_bytes.mean(), 16384.0);
    assert_eq!(last.workload.streams[0].to.hosts(), [1, 2, 3]);
    assert_eq!(last.policy.threshold.get(), 4);
    assert_eq!(last.network.links(), Links { pad: false, ..KnownLinks::Atm155.links() });
}

#[test]
fn a_value_of_a_sweep_is_checked_beside_the_first_of_the_others() {
    let text = format!("{BASE}{A}[policy]\ncredits = \"receiver\"\n[sweep]\n\"policy.receive_frames\" = [16, 1]\n");
    let experiment = read(&text);
    assert_eq!(experiment.point(1).expect("valid").experiment.policy.receive_frames.get(), 1);
}

#[test]
fn messages_are_the_same_whenever_drawn_and_those_of_another_stream_are_others() {
    let experiment = read(&format!("{BASE}{A}{LOCAL}"));
    let [fixed, drawn] = experiment.workload.streams.as_slice() else { panic!("two streams") };
    let lengths = |place: usize, seed: u64| -> Vec<u64> {
        let mut draws = MessageDraws::new(drawn, place, seed);
        (0..20_000).map(|_| draws.bytes()).collect()
    };
    let first = lengths(1, 7);
    assert_eq!(first, lengths(1, 7));
    assert_ne!(first, lengths(2, 7));
    assert_ne!(first, lengths(1, 8));
    assert!(first.iter().all(|&bytes| bytes >= 1));
    let mean = first.iter().sum::<u64>() as f64 / first.len() as f64;
    assert!((mean / 2048.0 - 1.0).abs() < 0.03, "{mean}");
    let mut draws = MessageDraws::new(fixed, 0, 7);
    assert_eq!((draws.bytes(), draws.answer_bytes(), draws.gap_ns()), (64, None, 0));
}

#[test]
fn drawing_gaps_does_not_change_lengths() {
    let text = format!("{BASE}{A}{LOCAL}")
        .replace("\"backlogged\"", "\"closed\"\ngap_s = { distribution = \"exponential\", mean = 1e-3 }");
    let stream = &read(&text).workload.streams[1];
    let (mut bare, mut with_gaps) = (MessageDraws::new(stream, 1, 3), MessageDraws::new(stream, 1, 3));
    for _ in 0..100 {
        assert!(with_gaps.gap_ns() > 0);
        assert_eq!(bare.bytes(), with_gaps.bytes());
    }
}

#[test]
fn a_frame_takes_a_whole_frames_time_only_where_frames_are_padded() {
    let links = KnownLinks::Atm155.links();
    assert_eq!((links.frame_ns(64), links.frame_ns(1024)), (52_852, 52_852));
    let bare = Links { pad: false, ..links };
    assert_eq!((bare.frame_ns(64), bare.frame_ns(1024)), (3_303, 52_852));
    let fast = Links { link_mb_per_s: MegabytesPerSecond::fixed(1e6), ..bare };
    assert_eq!(fast.frame_ns(1), 1);
}

#[test]
fn the_kind_of_the_workload_tells_streams_from_the_others() {
    let any = AnyExperiment::from_toml(format!("{BASE}{A}").as_bytes(), "e.toml").expect("valid");
    assert!(matches!(any, AnyExperiment::Streams(_)));
    let json = serde_json::to_string(&any).expect("writes");
    assert_eq!(AnyExperiment::from_json(json.as_bytes(), "e"), Ok(any));
}

#[test]
fn runs_of_streams_are_read_back_as_written() {
    let text = r#"{"schema_version": 1, "kind": "streams", "experiment": "e", "on": "sim", "runs": [{"params":
        {"policy.threshold": 4}, "seed": 1, "hosts": 4, "queue": "drr", "makespan_s": 2.0, "streams": [{"name": "A", "class":
        "parallel", "messages": 100, "bytes": 6400, "alone_s": 1.0, "fifo_s": 14.0, "queued_s": 2.0, "slowdown_fifo": 14.0,
        "slowdown_queued": 2.0, "latency_s": {"alone": {"mean": 1, "p50": 1, "p99": 1}, "fifo": {"mean": 1, "p50": 1, "p99":
        1}, "queued": {"mean": 1, "p50": 1, "p99": 1}}}], "jobs": [{"name": "mg", "program": "mg", "hosts": 4, "messages":
        816, "bytes": 24500000, "alone_s": 1, "fifo_s": 2, "queued_s": 1, "eta_fifo": 1, "eta_queued": 0}], "bounds":
        {"fifo A": 17.0}, "frames": 5, "dropped": 0, "warnings": []}]}"#;
    let runs = StreamsRuns::from_json(text.as_bytes(), "runs.json").expect("valid");
    assert_eq!(runs.runs[0].streams[0].class, Class::Parallel);
    let again = serde_json::to_string(&runs).expect("writes");
    assert_eq!(StreamsRuns::from_json(again.as_bytes(), "again"), Ok(runs));
    let refused = StreamsRuns::from_json(text.replace("\"dropped\"", "\"droped\"").as_bytes(), "runs.json");
    assert!(refused.expect_err("misspelt").to_string().contains("runs.json"));
}
