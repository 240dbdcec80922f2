//! Experiments: refusals and their messages, the grid of a sweep, and the drawn tasks.

use crosswind_schema::experiment::{Amount, Grid, Order, Policy, Tasks};
use crosswind_schema::{Experiment, tasks_file};

const BASE: &str = "schema_version = 1\nname = \"e\"\nplatform = \"p.toml\"\n";
const FARM: &str = "[workload]\nkind = \"farm\"\ntasks = 10\ntask_size_mb = 2.0\ntask_work = 5.0\n";

fn read(text: &str) -> Experiment {
    Experiment::from_toml(text.as_bytes(), "e.toml").expect("valid")
}

fn workload(size: &str, work: &str) -> String {
    format!("{BASE}[workload]\nkind = \"farm\"\ntasks = 2000\ntask_size_mb = {size}\ntask_work = {work}\n")
}

fn told(bad: &[(&str, String)], read: impl Fn(&[u8]) -> String) -> String {
    bad.iter().map(|(what, text)| format!("{what}: {}", read(text.as_bytes()))).collect::<Vec<_>>().join("\n")
}

#[test]
fn an_experiment_refuses_what_it_could_not_run() {
    let farm = |rest: &str| format!("{BASE}{FARM}{rest}");
    let sweep = |axis: &str| format!("{BASE}{FARM}[sweep]\n{axis}\n");
    let size = |size: &str| workload(size, "1");
    let platform = |platform: &str| format!("{BASE}{FARM}").replace("\"p.toml\"", platform);
    let bad = [
        ("no workload", BASE.to_owned()),
        ("unknown kind", format!("{BASE}[workload]\nkind = \"farn\"\n")),
        ("no tasks", format!("{BASE}{}", FARM.replace("10", "0"))),
        ("negative size", format!("{BASE}{}", FARM.replace("2.0", "-2.0"))),
        ("no work", format!("{BASE}{}", FARM.replace("task_work = 5.0\n", ""))),
        ("negative result", farm("result_size_mb = -1\n")),
        ("tasks twice", farm("tasks_file = \"tasks.csv\"\n")),
        ("nameless tasks file", format!("{BASE}[workload]\nkind = \"farm\"\ntasks_file = \"\"\n")),
        ("unknown order", farm("[policy]\norder = \"interferense\"\n")),
        ("unknown policy field", farm("[policy]\nport = \"single\"\n")),
        ("no buffer", farm("[policy]\nbuffer_tasks = 0\n")),
        ("chunk beyond all", farm("[policy]\nchunk_kib = 9223372036854775807\n")),
        ("unknown compute", farm("[execution]\ncompute = \"emulate\"\n")),
        ("scaled reality", farm("[execution]\ncompute = \"burn\"\ntime_scale = 10\n")),
        ("emulated and timed", farm("[execution]\ntask_timeout_s = 10\n")),
        ("no time for a task", farm("[execution]\ncompute = \"burn\"\ntask_timeout_s = 0\n")),
        ("no time", farm("[execution]\ntime_scale = 0\n")),
        ("unknown distribution", size("{ distribution = \"normal\", mean = 1 }")),
        ("no distribution", size("{ mean = 1 }")),
        ("half a distribution", size("{ distribution = \"uniform\", low = 1 }")),
        ("wrong distribution", size("{ distribution = \"exponential\", mean = 1, sigma = 1 }")),
        ("unknown parameter", size("{ distribution = \"exponential\", man = 1 }")),
        ("negative parameter", size("{ distribution = \"exponential\", mean = -1 }")),
        ("upside down", size("{ distribution = \"uniform\", low = 2, high = 1 }")),
        ("spread beyond all", size("{ distribution = \"lognormal\", median = 2, sigma = 50 }")),
        ("size of no kind", size("\"large\"")),
        ("unknown sweep path", sweep("\"policy.ordr\" = [1]")),
        ("nothing to sweep", sweep("\"policy.order\" = []")),
        ("no list to sweep", sweep("\"policy.order\" = \"arrival\"")),
        ("bad sweep value", sweep("\"policy.order\" = [\"none\"]")),
        ("bad second value", sweep("\"workload.tasks\" = [1, 0]")),
        ("sweep below a number", sweep("\"workload.task_work.mean\" = [1, 2]")),
        ("sweep of a bad field", sweep("\"workload.task_wrk.mean\" = [1, 2]")),
        ("tasks and file by sweep", sweep("\"workload.tasks_file\" = [\"a.csv\"]")),
        ("endless sweep", format!("repetitions = 500001\n{BASE}{FARM}[sweep]\nseed = [1, 2]\n")),
        ("endless repetitions", format!("repetitions = 9223372036854775807\n{BASE}{FARM}")),
        ("a repetition too many", format!("repetitions = 1000001\n{BASE}{FARM}[sweep]\nseed = [1]\n")),
        ("no repetition", format!("repetitions = 0\n{BASE}{FARM}")),
        ("bad inline platform", platform("{schema_version = 1, name = \"x\", node = []}")),
        (
            "bad inline rate",
            platform("{schema_version = 1, name = \"x\", node = [{name = \"r\", compute_per_s = -1}]}"),
        ),
        ("bad swept platform", sweep("platform = [{schema_version = 1, name = \"x\", node = []}]")),
        ("platform of no kind", platform("7")),
    ];
    let all = told(&bad, |text| Experiment::from_toml(text, "e.toml").expect_err("must be refused").to_string());
    insta::assert_snapshot!(all);
}

#[test]
fn a_file_of_tasks_is_refused_at_its_line() {
    let bad = [
        ("empty", String::new()),
        ("header only", "size_mb,work\n".into()),
        ("misspelt header", "size_mb,wrok\n1,2\n".into()),
        ("one column", "size_mb\n1\n".into()),
        ("the same column twice", "work,work\n1,2\n".into()),
        ("three values", "size_mb,work\n1,2\n1,2,3\n".into()),
        ("a word", "# mine\nsize_mb,work\n1,2\n\n1,many\n".into()),
        ("negative", "size_mb,work\n-1,2\n".into()),
        ("nothing", "work, size_mb\n1, \n".into()),
        ("not finite", "work,size_mb\nnan,1\n".into()),
    ];
    insta::assert_snapshot!(told(&bad, |text| tasks_file::read(text, "t.csv").expect_err("refused").to_string()));
}

#[test]
fn a_file_of_tasks_may_have_its_columns_in_either_order_and_comments() {
    let tasks = tasks_file::read(b"# mine\n\"work\", size_mb\r\n5,2\r\n\n 7 ,\"0.5\"\r\n", "t.csv").expect("valid");
    assert_eq!((tasks.count, tasks.total_mb(), tasks.total_work()), (2, 2.5, 12.0));
    assert_eq!((tasks.size_mb.get(1), tasks.work.get(1)), (0.5, 7.0));
}

#[test]
fn a_sweep_is_the_product_in_the_order_of_the_file_with_the_last_path_fastest() {
    let text = format!(
        "seed = 7\nrepetitions = 2\n{BASE}{FARM}[sweep]\n\"workload.task_work\" = [1, 3]\n\
         \"policy.order\" = [\"planned\", \"arrival\"]\n"
    );
    let experiment = read(&text);
    let points: Vec<_> = experiment.points().map(|point| point.expect("valid")).collect();
    let seen: Vec<_> = points
        .iter()
        .map(|point| {
            let names: Vec<&str> = point.params.iter().map(|(path, _)| path.as_str()).collect();
            assert_eq!(names, ["workload.task_work", "policy.order"]);
            let here = &point.experiment;
            assert!(here.sweep.is_empty() && here.repetitions == 1);
            (here.workload.task_work.as_ref().expect("set").mean(), here.policy.order, here.seed)
        })
        .collect();
    let expected =
        [1.0, 3.0].map(|work| [Order::Planned, Order::Arrival].map(|order| [(work, order, 7), (work, order, 8)]));
    assert_eq!(seen, expected.as_flattened().as_flattened());
    assert_eq!(experiment.runs(), Some(8));
}

#[test]
fn a_sweep_may_vary_platforms_and_what_lies_inside_a_distribution() {
    let text = format!(
        "{}[sweep]\nplatform = [\"a.toml\", \"b.toml\"]\n\"workload.task_size_mb.sigma\" = [0.1, 1]\n",
        workload("{ distribution = \"lognormal\", median = 2, sigma = 0.5 }", "1")
    );
    let sizes: Vec<_> =
        read(&text).points().map(|point| point.expect("valid").experiment.workload.task_size_mb).collect();
    assert_eq!(sizes.len(), 4);
    assert!(sizes[0] == sizes[2] && sizes[0] != sizes[1]);
}

#[test]
fn a_field_that_is_set_is_swept_no_more() {
    let sweep = "[sweep]\n\"policy.order\" = [\"planned\", \"arrival\"]\nseed = [1, 2]\n";
    let experiment = read(&format!("{BASE}{FARM}{sweep}"));
    let fixed = experiment.fixed("policy.order", &"compute".into()).expect("permitted");
    assert_eq!((fixed.policy.order, fixed.runs()), (Order::Compute, Some(2)));
    let told = |path: &str, value: serde_json::Value| experiment.fixed(path, &value).expect_err("refused").to_string();
    insta::assert_snapshot!(
        [
            told("policy.ordr", 1.into()),
            told("policy.order", "fastest".into()),
            told("workload.tasks", 0.into()),
            told("workload.task_size_mb.mean", 1.into()),
        ]
        .join("\n")
    );
}

#[test]
fn a_field_that_is_swept_may_be_missing_elsewhere() {
    let text = format!("{BASE}{}[sweep]\n\"workload.tasks\" = [3]\n", FARM.replace("tasks = 10\n", ""));
    let point = read(&text).points().next().expect("one").expect("valid");
    assert_eq!(point.experiment.workload.tasks, Some(3));
}

#[test]
fn an_absent_buffer_is_one_to_be_chosen() {
    assert_eq!(read(&format!("{BASE}{FARM}")).policy, Policy::default());
    assert_eq!(Policy::default().buffer_tasks, None);
}

#[test]
fn the_same_seed_draws_the_same_tasks_on_every_machine() {
    let text = workload(
        "{ distribution = \"exponential\", mean = 2 }",
        "{ distribution = \"lognormal\", median = 5, sigma = 1 }",
    );
    let tasks = Tasks::draw(&read(&text).workload, 1, None).expect("draws");
    assert_eq!(tasks, Tasks::draw(&read(&text).workload, 1, None).expect("draws"));
    assert_ne!(tasks, Tasks::draw(&read(&text).workload, 2, None).expect("draws"));
    let first: Vec<(f64, f64)> = (0..3).map(|task| (tasks.size_mb.get(task), tasks.work.get(task))).collect();
    insta::assert_snapshot!(format!("{first:?}"));
}

#[test]
fn another_work_leaves_the_sizes_as_they_were() {
    let size = "{ distribution = \"uniform\", low = 1, high = 3 }";
    let draw = |work: &str| Tasks::draw(&read(&workload(size, work)).workload, 1, None).expect("draws");
    assert_eq!(draw("1").size_mb, draw("{ distribution = \"exponential\", mean = 1 }").size_mb);
}

#[test]
fn draws_have_the_mean_that_the_workload_says_and_sizes_are_whole_bytes() {
    for (size, spread) in [
        ("{ distribution = \"uniform\", low = 1, high = 3 }", 0.6),
        ("{ distribution = \"exponential\", mean = 2 }", 2.0),
        ("{ distribution = \"lognormal\", median = 2, sigma = 0.5 }", 1.3),
        ("2", 0.0),
    ] {
        let experiment = read(&workload(size, "1"));
        let tasks = Tasks::draw(&experiment.workload, 1, None).expect("draws");
        let mean = experiment.workload.task_size_mb.as_ref().map(Amount::mean).expect("given");
        let drawn = tasks.total_mb() / tasks.count as f64;
        // Five standard errors of 2000 draws.
        assert!((drawn - mean).abs() <= 5.0 * spread / (tasks.count as f64).sqrt() + 1e-9, "{size}: {drawn} {mean}");
        for task in 0..tasks.count {
            let bytes = tasks.size_mb.get(task) * 1e6;
            assert!(bytes >= 1.0 && (bytes - bytes.round()).abs() < 1e-6);
        }
    }
}
