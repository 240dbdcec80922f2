//! Disturbances: refusals and their messages, files read back after writing, and variants without a cause.

use crosswind_schema::Disturbance;
use crosswind_schema::disturbance::{NEVER, Source, Timelines};

const HEAD: &str = "schema_version = 1\nname = \"d\"\n";

fn read(sources: &str) -> Disturbance {
    Disturbance::from_toml(format!("{HEAD}{sources}").as_bytes(), "d.toml").expect("valid")
}

fn source(kind: &str, rest: &str) -> String {
    format!("[[source]]\nkind = \"{kind}\"\n{rest}\n")
}

fn recorded(intervals: &str) -> String {
    source(
        "recorded",
        &format!("length_s = 1\ncauses = [\"a\", \"b\"]\n[[source.cpu]]\ncpu = 0\nintervals = {intervals}"),
    )
}

/// The file of the tests below: all kinds, with all their fields.
const ALL: &str = r#"
switch_cost_s = 1e-5
cache_cost_s = 2e-5
[[source]]
kind = "coscheduled"
cause = "other job"
quantum_s = 0.1
jobs = 3
skew_s = 0.01
[[source]]
kind = "local"
quantum_s = 0.5
phases = "drifting"
drift = 0.01
[[source]]
kind = "daemon"
cause = "cron"
interval_s = 60
duration_s = { distribution = "uniform", low = 0.003, high = 0.006 }
ranks = [3, 4]
polls = true
[[source]]
kind = "daemon"
cause = "update"
interval_s = { distribution = "exponential", mean = 30 }
duration_s = { distribution = "lognormal", median = 0.004, sigma = 0.5 }
aligned = true
[[source]]
kind = "job"
ranks = [17]
share = 0.5
slice_s = 0.1
migrate_after_s = 5
migrate_cost_s = 0.5
[[source]]
kind = "recorded"
length_s = 60.0
causes = ["timer", "irq:eth0"]
[[source.cpu]]
cpu = 0
intervals = [[0.000123, 0.000004, 0], [0.5, 0.001, 1]]
[[source.cpu]]
cpu = 1
intervals = []
"#;

#[test]
fn a_disturbance_refuses_what_no_program_could_run_under() {
    let gang = |rest: &str| source("coscheduled", &format!("quantum_s = 0.1\n{rest}"));
    let local = |rest: &str| source("local", &format!("quantum_s = 0.1\n{rest}"));
    let daemon = |rest: &str| source("daemon", &format!("interval_s = 1\nduration_s = 0.1\n{rest}"));
    let job = |rest: &str| source("job", &format!("share = 0.5\nslice_s = 0.1\n{rest}"));
    let bad = [
        ("no name", "schema_version = 1\n".to_owned()),
        ("other version", "schema_version = 2\nname = \"d\"\n".into()),
        ("unknown top field", format!("{HEAD}sorce = 1\n")),
        ("negative cost", format!("{HEAD}switch_cost_s = -1\n")),
        ("no kind", format!("{HEAD}[[source]]\nquantum_s = 0.1\n")),
        ("unknown kind", format!("{HEAD}{}", source("demon", ""))),
        ("field of another kind", format!("{HEAD}{}", gang("duration_s = 1"))),
        ("misspelt field", format!("{HEAD}{}", gang("skew = 1"))),
        ("no quantum", format!("{HEAD}{}", source("local", ""))),
        ("quantum 0", format!("{HEAD}{}", source("local", "quantum_s = 0"))),
        ("quantum too short", format!("{HEAD}{}", source("local", "quantum_s = 1e-9"))),
        ("no jobs", format!("{HEAD}{}", gang("jobs = 0"))),
        ("skew of a quantum", format!("{HEAD}{}", gang("skew_s = 0.1"))),
        ("costs of a quantum", format!("{HEAD}switch_cost_s = 0.1\n{}", gang(""))),
        ("unknown phases", format!("{HEAD}{}", local("phases = \"spred\""))),
        ("drift without drifting", format!("{HEAD}{}", local("drift = 0.1"))),
        ("drift beyond all", format!("{HEAD}{}", local("phases = \"drifting\"\ndrift = 1"))),
        ("negative duration", format!("{HEAD}{}", source("daemon", "interval_s = 1\nduration_s = -1"))),
        (
            "negative low",
            format!(
                "{HEAD}{}",
                source("daemon", "interval_s = 1\nduration_s = { distribution = \"uniform\", low = -1, high = 1 }")
            ),
        ),
        ("busy daemon", format!("{HEAD}{}", source("daemon", "interval_s = 1\nduration_s = 1"))),
        (
            "busy together",
            format!(
                "{HEAD}{}{}",
                daemon("cause = \"a\""),
                source("daemon", "cause = \"b\"\ninterval_s = 1\nduration_s = 0.9")
            ),
        ),
        (
            "daemons beyond count",
            format!(
                "{HEAD}{}{}",
                source("local", "quantum_s = 1e3"),
                source("daemon", "interval_s = 1e-5\nduration_s = 1e-6")
            ),
        ),
        ("no ranks", format!("{HEAD}{}", daemon("ranks = []"))),
        ("a rank twice", format!("{HEAD}{}", daemon("ranks = [1, 2, 1]"))),
        ("negative rank", format!("{HEAD}{}", daemon("ranks = [-1]"))),
        ("causes alike", format!("{HEAD}{}{}", daemon(""), daemon(""))),
        ("nameless", format!("{HEAD}{}", daemon("cause = \"\""))),
        ("job nowhere", format!("{HEAD}{}", job(""))),
        ("no share", format!("{HEAD}{}", source("job", "share = 0\nslice_s = 1\nranks = [0]"))),
        ("share above 1", format!("{HEAD}{}", source("job", "share = 1.5\nslice_s = 1\nranks = [0]"))),
        ("cost of nothing", format!("{HEAD}{}", job("ranks = [0]\nmigrate_cost_s = 1"))),
        ("unsorted", format!("{HEAD}{}", recorded("[[0.5, 0.1, 0], [0.2, 0.1, 1]]"))),
        ("overlapping", format!("{HEAD}{}", recorded("[[0.2, 0.2, 0], [0.3, 0.1, 1]]"))),
        ("before the start", format!("{HEAD}{}", recorded("[[-0.2, 0.1, 0]]"))),
        ("after the end", format!("{HEAD}{}", recorded("[[0.95, 0.1, 0]]"))),
        ("of no length", format!("{HEAD}{}", recorded("[[0.5, 0, 0]]"))),
        ("of no cause", format!("{HEAD}{}", recorded("[[0.5, 0.1, 2]]"))),
        ("not a number", format!("{HEAD}{}", recorded("[[nan, 0.1, 0]]"))),
        ("nothing left", format!("{HEAD}{}", recorded("[[0, 1, 0]]"))),
        ("a pair", format!("{HEAD}{}", recorded("[[0, 1]]"))),
        ("no CPU", format!("{HEAD}{}", source("recorded", "length_s = 1\ncauses = [\"a\"]\ncpu = []"))),
    ];
    let told: Vec<String> = bad
        .iter()
        .map(|(what, text)| {
            let error = Disturbance::from_toml(text.as_bytes(), "d.toml").expect_err(what);
            let hint = error.hint().map(|hint| format!(" | {hint}")).unwrap_or_default();
            format!("{what}: {error}{hint}")
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_rank_that_does_not_exist_is_refused_with_the_ranks_that_do() {
    let disturbance = read(ALL);
    assert!(Timelines::new(&disturbance, 18, 1).is_ok());
    let refused = Timelines::new(&disturbance, 17, 1).err().expect("no rank 17");
    assert_eq!(refused.to_string(), "source[4].ranks[0] is 17, but the program has 17 ranks; it must be 0 to 16");
}

#[test]
fn what_is_written_is_read_back_the_same() {
    let disturbance = read(ALL);
    let toml = disturbance.to_toml().expect("writes");
    assert_eq!(Disturbance::from_toml(toml.as_bytes(), "again.toml"), Ok(disturbance.clone()));
    let json = serde_json::to_string(&disturbance).expect("writes");
    assert_eq!(Disturbance::from_json(json.as_bytes(), "again.json"), Ok(disturbance));
}

#[test]
fn causes_are_the_units_of_blame_in_the_order_of_the_file() {
    let disturbance = read(ALL);
    assert_eq!(disturbance.causes(), ["other job", "local", "cron", "update", "job", "timer", "irq:eth0"]);
    assert_eq!(disturbance.jobs(), 6); // three jobs of the gang, two on each node
    let without = disturbance.without("timer").without("cron");
    assert_eq!(without.sources.len(), 5);
    let Some(Source::Recorded(recorded)) = without.sources.last() else { panic!("the recording stays") };
    assert_eq!(recorded.cpu[0].intervals.len(), 1);
    assert!(without.without("irq:eth0").only("timer").sources.iter().all(|s| matches!(s, Source::Recorded(_))));
    assert!(disturbance.only("nothing").sources.is_empty());
}

#[test]
fn nothing_disturbs_where_there_is_no_source() {
    let mut rank = Timelines::new(&read(""), 2, 1).expect("valid").rank(1);
    assert_eq!((rank.interval(), rank.work(7, 5), rank.next_on(20), rank.is_polled(30)), (None, 12, 20, None));
    let mut rank = Timelines::undisturbed(2).rank(0);
    assert_eq!((rank.work(0, NEVER), rank.work(NEVER, u64::MAX), rank.interval()), (NEVER, NEVER, None));
}

#[test]
fn a_gang_runs_and_is_away_together() {
    let timelines = Timelines::new(&read(&source("coscheduled", "quantum_s = 0.1\njobs = 3")), 64, 7).expect("valid");
    for rank in [0, 63] {
        let mut timeline = timelines.rank(rank);
        let seen: Vec<_> = std::iter::from_fn(|| timeline.interval()).take(3).map(|i| (i.start, i.end)).collect();
        assert_eq!(seen, [(100_000_000, 300_000_000), (400_000_000, 600_000_000), (700_000_000, 900_000_000)]);
        let mut timeline = timelines.rank(rank);
        assert_eq!(timeline.work(0, 100_000_000), 100_000_000);
        assert_eq!(timeline.work(100_000_000, 250_000_000), 950_000_000 - 200_000_000 + 200_000_000);
        assert_eq!(timeline.next_on(1_000_000_000), 1_200_000_000);
    }
}

#[test]
fn a_job_takes_its_share_until_the_rank_is_moved_away() {
    let busy = |rest: &str| {
        let text = source("job", &format!("ranks = [1]\nslice_s = 0.1\n{rest}"));
        let timelines = Timelines::new(&read(&text), 2, 3).expect("valid");
        assert_eq!(timelines.away(0, 100_000_000_000), [0]);
        timelines.away(1, 100_000_000_000)[0] as f64 / 1e11
    };
    for share in [0.2, 0.5, 0.9] {
        let away = busy(&format!("share = {share}"));
        assert!((away - (1.0 - share)).abs() < 0.002, "{share}: {away}");
    }
    assert_eq!(busy("share = 1"), 0.0);
    let moved = busy("share = 0.5\nmigrate_after_s = 10\nmigrate_cost_s = 3");
    assert!((moved - (5.0 + 3.0) / 100.0).abs() < 0.002, "{moved}");
}

#[test]
fn daemons_take_what_they_say_and_begin_anywhere() {
    let text = source("daemon", "interval_s = 1\nduration_s = 0.02");
    let timelines = Timelines::new(&read(&text), 200, 3).expect("valid");
    let firsts: Vec<u64> = (0..200).filter_map(|rank| timelines.rank(rank).interval()).map(|i| i.start).collect();
    let mean = firsts.iter().sum::<u64>() as f64 / 200.0 / 1e9;
    assert!((mean - 0.5).abs() < 5.0 * 0.29 / 200f64.sqrt(), "{mean}");
    let away = timelines.away(0, 1_000_000_000_000)[0] as f64 / 1e12;
    assert!((away - 0.02).abs() < 2e-5, "{away}");
    let text = source("daemon", "interval_s = { distribution = \"exponential\", mean = 1 }\nduration_s = 0.02");
    let away = Timelines::new(&read(&text), 1, 3).expect("valid").away(0, 10_000_000_000_000)[0] as f64 / 1e13;
    assert!((away - 0.02).abs() < 5.0 * 0.02 / 10_000f64.sqrt(), "{away}");
}

#[test]
fn a_recording_is_replayed_shifted_and_over_and_over() {
    let text = recorded("[[0.1, 0.01, 0], [0.6, 0.02, 1]]");
    let timelines = Timelines::new(&read(&text.replace("length_s", "aligned = true\nlength_s")), 2, 1).expect("valid");
    let mut timeline = timelines.rank(1);
    let seen: Vec<_> = std::iter::from_fn(|| timeline.interval()).take(3).map(|i| (i.start, i.end, i.cause)).collect();
    assert_eq!(seen, [(100_000_000, 110_000_000, 0), (600_000_000, 620_000_000, 1), (1_100_000_000, 1_110_000_000, 0)]);
    let shifted = Timelines::new(&read(&text), 2, 1).expect("valid");
    let of = |rank: u32| {
        let mut timeline = shifted.rank(rank);
        std::iter::from_fn(move || timeline.interval()).take(50).collect::<Vec<_>>()
    };
    assert_ne!(of(0), of(1));
    for pair in of(0).windows(3) {
        assert_eq!(pair[2].start - pair[0].start, 1_000_000_000);
    }
}

#[test]
fn the_same_seed_gives_the_same_times_on_every_machine() {
    let timelines = Timelines::new(&read(ALL), 64, 1).expect("valid");
    let mut timeline = timelines.rank(3);
    let seen: Vec<String> = std::iter::from_fn(|| timeline.interval())
        .take(12)
        .map(|i| format!("{} {} {}", i.start, i.end, timelines.causes()[usize::from(i.cause)]))
        .collect();
    insta::assert_snapshot!(seen.join("\n"));
}

#[test]
fn a_processor_that_never_comes_back_is_told_not_waited_for() {
    // Two schedules of the same period, one quantum on, one away: with some phases one is always away when the other is not.
    let text = format!(
        "{}{}",
        source("coscheduled", "quantum_s = 1e-6"),
        source("job", "ranks = [0]\nshare = 0.5\nslice_s = 1e-6")
    );
    let gone = (0..20_000).filter(|seed| {
        let mut timeline = Timelines::new(&read(&text), 1, *seed).expect("valid").rank(0);
        timeline.work(0, 10) >= NEVER
    });
    assert!(gone.count() >= 1);
}
