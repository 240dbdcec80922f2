//! Whatever the bytes: an answer, never a panic; and an error always says where in a file it is about.

use crosswind_schema::experiment::{Grid, Tasks};
use crosswind_schema::{Experiment, Measurement, Plan, Platform, Runs, Trace, tasks_file};
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

fn read_all(bytes: &[u8]) {
    let errors = [
        Platform::from_toml(bytes, "f").err(),
        Platform::from_json(bytes, "f").err(),
        Experiment::from_toml(bytes, "f").err(),
        Measurement::from_json(bytes, "f").err(),
        Plan::from_json(bytes, "f").err(),
        Experiment::from_json(bytes, "f").err(),
        Runs::from_json(bytes, "f").err(),
        Trace::from_json(bytes, "f").err(),
        tasks_file::read(bytes, "f").err(),
    ];
    for error in errors.into_iter().flatten() {
        assert!(error.to_string().starts_with('f'), "{error}");
        let _ = error.hint();
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
    fn table_like_text_is_answered(text in "(size_mb,work\n)?[\"0-9.,e# \nabn-]{0,200}") {
        read_all(text.as_bytes());
    }
}
