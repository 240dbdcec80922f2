//! Any bytes are accepted or refused without a panic, and every error has a position in the file.

use crosswind_schema::disturbance::{NEVER, Timelines};
use crosswind_schema::experiment::streams::MessageDraws;
use crosswind_schema::experiment::{Grid, Tasks};
use crosswind_schema::{
    AnyExperiment, Disturbance, Experiment, Hosts, Links, Measurement, Overlap, Plan, Platform, Runs,
    StreamsExperiment, StreamsRuns, Trace, tasks_file,
};
use proptest::prelude::*;

const VALID: &str = "schema_version = 1\nname = \"fork\"\n[[node]]\nname = \"r\"\ncompute_per_s = 9.05\n\
    send_limit_mb_per_s = 10.7\n[[node]]\nname = \"a\"\nparent = \"r\"\ncompute_per_s = 23.86\n\
    receive_limit_mb_per_s = 10.8\nir_receive_s_per_mb = 0.0443\nir_send_s_per_mb = 0.0333\n";

const EXPERIMENT: &str = "schema_version = 1\nname = \"e\"\nplatform = \"p.toml\"\nrepetitions = 2\n[workload]\n\
    kind = \"farm\"\ntasks = 3\ntask_size_mb = { distribution = \"uniform\", low = 1, high = 2 }\n\
    task_work = { distribution = \"lognormal\", median = 5, sigma = 0.5 }\nresult_size_mb = 0.1\n[policy]\n\
    order = \"planned\"\nbuffer_tasks = 2\n[execution]\ncompute = \"emulated\"\ntime_scale = 10\n[sweep]\n\
    \"policy.order\" = [\"interference\", \"arrival\"]\n\"workload.task_size_mb.high\" = [2, 3]\n\
    \"platform\" = [\"a.toml\", \"b.toml\"]\n";

const PROGRAM: &str = "schema_version = 1\nname = \"e\"\nnetwork = { latency_s = 1e-6, overhead_s = 0, gap_s = 1e-6, \
    packet_bytes = 16 }\n[workload]\nkind = \"program\"\nprogram = \"bsp\"\nranks = 4\n[workload.parameters]\niterations = \
    3\n[policy]\nwindow_packets = 2\nwindow = \"follow\"\n[sweep]\n\"disturbance.source[0].quantum_s\" = [0.1, 0.2]\n\
    \"workload.parameters.iterations\" = [1, 2]\n[disturbance]\nschema_version = 1\nname = \"d\"\n";

const STREAMS: &str = "schema_version = 1\nname = \"e\"\nnetwork = { link_mb_per_s = 10, pad = false }\n[workload]\nkind = \
    \"streams\"\nhosts = 4\n[[workload.stream]]\nname = \"A\"\nclass = \"parallel\"\nfrom = 0\nto = [1, 2]\nmessage_bytes = \
    { distribution = \"uniform\", low = 1, high = 200 }\ngap_s = 1e-3\nanswer_bytes = 8\n[[workload.job]]\nprogram = \
    \"mg\"\nhosts = [0, 1]\n[policy]\nqueue = \"threshold\"\nthreshold = 2\ncredits = \"receiver\"\n[sweep]\n\
    \"workload.stream[0].message_bytes.high\" = [200, 300]\n\"policy.literal\" = [true, false]\n";

const SOURCES: &str = "[[source]]\nkind = \"coscheduled\"\nquantum_s = 0.1\njobs = 3\nskew_s = 0.01\n[[source]]\nkind = \
    \"local\"\nquantum_s = 0.5\nphases = \"drifting\"\ndrift = 0.01\n[[source]]\nkind = \"daemon\"\ninterval_s = 2\n\
    duration_s = { distribution = \"uniform\", low = 0.003, high = 0.006 }\nranks = [1, 0]\npolls = true\n[[source]]\nkind = \
    \"job\"\nranks = [1]\nshare = 0.5\nslice_s = 0.1\nmigrate_after_s = 5\nmigrate_cost_s = 0.5\n[[source]]\nkind = \
    \"recorded\"\nlength_s = 1.5\ncauses = [\"timer\", \"irq:eth0\"]\n[[source.cpu]]\ncpu = 0\nintervals = \
    [[0.000123, 0.000004, 0], [0.5, 0.001, 1]]\n";

fn read_all(bytes: &[u8]) {
    let errors = [
        Platform::from_toml(bytes, "f").err(),
        Platform::from_json(bytes, "f").err(),
        Links::from_toml(bytes, "f").err(),
        Links::from_json(bytes, "f").err(),
        Experiment::from_toml(bytes, "f").err(),
        Measurement::from_json(bytes, "f").err(),
        Plan::from_json(bytes, "f").err(),
        Overlap::from_json(bytes, "f").err(),
        Experiment::from_json(bytes, "f").err(),
        Runs::from_json(bytes, "f").err(),
        StreamsRuns::from_json(bytes, "f").err(),
        Trace::from_json(bytes, "f").err(),
        tasks_file::read(bytes, "f").err(),
        AnyExperiment::from_toml(bytes, "f").err(),
        AnyExperiment::from_json(bytes, "f").err(),
        Hosts::from_toml(bytes, "f").err(),
        Hosts::from_json(bytes, "f").err(),
        Disturbance::from_toml(bytes, "f").err(),
        Disturbance::from_json(bytes, "f").err(),
    ];
    for error in errors.into_iter().flatten() {
        assert!(error.to_string().starts_with('f'), "{error}");
        let _ = error.hint();
    }
}

/// Walks through part of a disturbance's times.
fn walk(disturbance: &Disturbance) {
    let Ok(timelines) = Timelines::new(disturbance, 2, 1) else { return };
    for rank in 0..2 {
        let mut timeline = timelines.rank(rank);
        let mut last = 0;
        for interval in std::iter::from_fn(|| timeline.interval()).take(100) {
            assert!(interval.start >= last && interval.end > interval.start);
            last = interval.end;
        }
        let mut timeline = timelines.rank(rank);
        let mut at = 0;
        for ns in [0, 1, 1000, 1_000_000] {
            let done = timeline.work(at, ns);
            assert!(done >= at + ns || done >= NEVER);
            at = done;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        read_all(&bytes);
    }

    #[test]
    fn toml_like_text_is_answered(text in "[\\[\\]{}=\"'.,# \nabn0-9_-]{0,200}") {
        read_all(text.as_bytes());
    }

    #[test]
    fn a_valid_file_with_one_part_replaced_is_answered(
        from in 0usize..VALID.len(), length in 0usize..30, with in "[\\[\\]{}=\"'.,#\\PC\n]{0,12}",
    ) {
        let to = (from + length).min(VALID.len());
        let text = [&VALID[..from], &with, &VALID[to..]].concat();
        read_all(text.as_bytes());
        // Whatever is still accepted can be written and read back.
        if let Ok(platform) = Platform::from_toml(text.as_bytes(), "f") {
            let again = Platform::from_toml(platform.to_toml().expect("writes").as_bytes(), "g");
            prop_assert_eq!(Ok(platform), again);
        }
    }

    #[test]
    fn an_experiment_with_one_part_replaced_is_answered(
        from in 0usize..EXPERIMENT.len(), length in 0usize..30, with in "[\\[\\]{}=\"'.,#\\PC\n]{0,12}|-?[0-9]{1,19}|inf|nan",
    ) {
        let to = (from + length).min(EXPERIMENT.len());
        let text = [&EXPERIMENT[..from], &with, &EXPERIMENT[to..]].concat();
        read_all(text.as_bytes());
        // Whatever is accepted can be expanded, drawn, written as JSON and read back.
        if let Ok(experiment) = Experiment::from_toml(text.as_bytes(), "f") {
            for point in experiment.points().take(20).flatten() {
                if point.experiment.workload.tasks.is_some_and(|tasks| tasks < 10_000) {
                    let tasks = Tasks::draw(&point.experiment.workload, point.experiment.seed, None).expect("draws");
                    prop_assert!(tasks.total_mb() > 0.0 && tasks.total_mb().is_finite());
                    prop_assert!(tasks.total_work() > 0.0 && tasks.total_work().is_finite());
                }
            }
            let json = serde_json::to_string(&experiment).expect("writes");
            prop_assert_eq!(Ok(experiment), Experiment::from_json(json.as_bytes(), "g"));
        }
    }

    #[test]
    fn a_program_with_one_part_replaced_is_answered(
        from in 0usize..PROGRAM.len() + SOURCES.len(), length in 0usize..30,
        with in "[\\[\\]{}=\"'.,#\\PC\n]{0,12}|-?[0-9]{1,19}|inf|nan",
    ) {
        let sources = SOURCES.replace("[[source", "[[disturbance.source");
        let text = [PROGRAM, &sources].concat();
        let to = (from + length).min(text.len());
        let text = [&text[..from], &with, &text[to..]].concat();
        read_all(text.as_bytes());
        if let Ok(experiment) = AnyExperiment::from_toml(text.as_bytes(), "f") {
            for point in 0..experiment.runs().unwrap_or(0).min(20) {
                let _ = experiment.point(point).map_err(|error| (error.to_string(), error.hint()));
            }
            let json = serde_json::to_string(&experiment).expect("writes");
            prop_assert_eq!(Ok(experiment), AnyExperiment::from_json(json.as_bytes(), "g"));
        }
    }

    #[test]
    fn streams_with_one_part_replaced_are_answered(
        from in 0usize..STREAMS.len(), length in 0usize..30,
        with in "[\\[\\]{}=\"'.,#\\PC\n]{0,12}|-?[0-9]{1,19}|inf|nan|1e-?[0-9]{1,2}",
    ) {
        let to = (from + length).min(STREAMS.len());
        let text = [&STREAMS[..from], &with, &STREAMS[to..]].concat();
        read_all(text.as_bytes());
        if let Ok(experiment) = StreamsExperiment::from_toml(text.as_bytes(), "f") {
            for point in experiment.points().take(20).flatten().map(|point| point.experiment) {
                for (place, stream) in point.workload.streams.iter().enumerate() {
                    let mut draws = MessageDraws::new(stream, place, point.seed);
                    prop_assert!(draws.bytes() >= 1 && draws.answer_bytes() != Some(0) && draws.gap_ns() < u64::MAX);
                }
                prop_assert!(point.network.links().frame_ns(1) >= 1);
            }
            let json = serde_json::to_string(&experiment).expect("writes");
            prop_assert_eq!(Ok(experiment), StreamsExperiment::from_json(json.as_bytes(), "g"));
        }
    }

    #[test]
    fn a_disturbance_with_one_part_replaced_has_times_that_go_on(
        from in 0usize..SOURCES.len(), length in 0usize..30,
        with in "[\\[\\]{}=\"'.,#\\PC\n]{0,12}|-?[0-9]{1,19}|inf|nan|1e-?[0-9]{1,2}",
    ) {
        let to = (from + length).min(SOURCES.len());
        let text = ["schema_version = 1\nname = \"d\"\n", &SOURCES[..from], &with, &SOURCES[to..]].concat();
        read_all(text.as_bytes());
        if let Ok(disturbance) = Disturbance::from_toml(text.as_bytes(), "f") {
            walk(&disturbance);
            let again = disturbance.to_toml().expect("writes");
            prop_assert_eq!(Disturbance::from_toml(again.as_bytes(), "g"), Ok(disturbance));
        }
    }

    #[test]
    fn table_like_text_is_answered(text in "(size_mb,work\n)?[\"0-9.,e# \nabn-]{0,200}") {
        read_all(text.as_bytes());
    }
}

#[test]
fn a_number_in_json_is_read_as_the_same_number_in_toml() {
    let text = STREAMS.replace("answer_bytes = 8", "answer_bytes = 1e-28");
    let experiment = StreamsExperiment::from_toml(text.as_bytes(), "f").expect("reads");
    let json = serde_json::to_string(&experiment).expect("writes");
    assert_eq!(Ok(experiment), StreamsExperiment::from_json(json.as_bytes(), "g"));
}
