//! Experiments of kind program: refusals and their messages, what a sweep may vary, and how the kind is selected.

use crosswind_schema::experiment::{
    AwayRule, Credit, DisturbanceSource, Grid, KnownNetwork, NetworkSource, Parameters, ProgramName, WindowPolicy,
    WindowRule,
};
use crosswind_schema::units::Quantity;
use crosswind_schema::{AnyExperiment, Experiment, ProgramExperiment};

const BASE: &str = "schema_version = 1\nname = \"e\"\n";
const EM3D: &str = "[workload]\nkind = \"program\"\nprogram = \"em3d\"\nranks = 64\n";
const INLINE: &str = "[disturbance]\nschema_version = 1\nname = \"d\"\n[[disturbance.source]]\nkind = \"coscheduled\"\n\
    quantum_s = 0.1\n[[disturbance.source]]\nkind = \"daemon\"\ninterval_s = 10\nduration_s = { distribution = \
    \"exponential\", mean = 0.005 }\nranks = [63]\n";

fn read(text: &str) -> ProgramExperiment {
    ProgramExperiment::from_toml(text.as_bytes(), "e.toml").expect("valid")
}

#[test]
fn a_program_with_defaults_only_has_the_network_of_the_paper_and_no_window() {
    let experiment = read(&format!("{BASE}{EM3D}"));
    assert_eq!((experiment.seed, experiment.repetitions, experiment.runs()), (1, 1, Some(1)));
    assert_eq!(experiment.network, NetworkSource::Known(KnownNetwork::Cm5));
    assert_eq!(experiment.policy, WindowPolicy::default());
    assert_eq!((experiment.policy.window_packets, experiment.policy.credit), (None, Credit::Handled));
    assert_eq!((experiment.policy.window, experiment.policy.away), (WindowRule::Fixed, AwayRule::Buffer));
    assert!(experiment.disturbance.is_none());
    assert!(matches!(experiment.workload.parameters(), Ok(Parameters::Em3d(_))));
}

#[test]
fn every_program_runs_with_its_defaults_and_goal_needs_a_file() {
    for program in ProgramName::ALL {
        let name = program.name();
        let mut text = format!("{BASE}[workload]\nkind = \"program\"\nprogram = \"{name}\"\n");
        text += match program {
            ProgramName::Goal => "[workload.parameters]\nfile = \"x.goal\"\n",
            ProgramName::Recorded => "[workload.parameters]\nfile = \"app.trace\"\n",
            _ => "ranks = 64\n",
        };
        let json = serde_json::to_string(&read(&text)).expect("writes");
        assert_eq!(ProgramExperiment::from_json(json.as_bytes(), "again"), Ok(read(&text)), "{name}");
    }
}

#[test]
fn a_program_refuses_what_it_could_not_run() {
    let em3d = |rest: &str| format!("{BASE}{EM3D}{rest}");
    let head = |head: &str| format!("{BASE}{head}\n{EM3D}");
    let sweep = |axis: &str| format!("{BASE}{EM3D}[sweep]\n{axis}\n");
    let inline = |from: &str, to: &str| format!("{BASE}{EM3D}{INLINE}").replace(from, to);
    let program = |program: &str| format!("{BASE}[workload]\nkind = \"program\"\n{program}\n");
    let bad = [
        ("unknown kind", em3d("").replace("\"program\"", "\"progam\"")),
        ("no kind", em3d("").replace("kind = \"program\"\n", "")),
        ("other version", em3d("").replace("= 1", "= 2")),
        ("a farm's field", head("platform = \"p.toml\"")),
        ("unknown program", program("program = \"em3\"\nranks = 1")),
        ("no program", program("ranks = 1")),
        ("no ranks", program("program = \"em3d\"")),
        ("0 ranks", em3d("").replace("64", "0")),
        ("negative ranks", em3d("").replace("64", "-64")),
        ("too many ranks", em3d("").replace("64", "64000000000")),
        ("ranks of a GOAL file", program("program = \"goal\"\nranks = 2\nparameters.file = \"x.goal\"")),
        ("no GOAL file", program("program = \"goal\"")),
        ("nameless GOAL file", program("program = \"goal\"\nparameters.file = \"\"")),
        ("misspelt parameter", em3d("[workload.parameters]\nstep = 1\n")),
        ("no steps", em3d("[workload.parameters]\nsteps = 0\n")),
        ("another program's parameter", em3d("[workload.parameters]\niterations = 1\n")),
        ("columns too short", program("program = \"column\"\nranks = 64\nparameters.keys_per_rank = 64")),
        ("unknown network", head("network = \"cm-5\"")),
        ("half a network", head("network = { latency_s = 1e-6 }")),
        ("negative overhead", head("network = { latency_s = 1e-6, overhead_s = -1, gap_s = 1e-6, packet_bytes = 16 }")),
        ("packets of no size", head("network = { latency_s = 1e-6, overhead_s = 0, gap_s = 1e-6, packet_bytes = 0 }")),
        ("slow network", head("network = { latency_s = 1e6, overhead_s = 0, gap_s = 1e-6, packet_bytes = 16 }")),
        ("window 0", em3d("[policy]\nwindow_packets = 0\n")),
        ("negative window", em3d("[policy]\nwindow_packets = -2\n")),
        ("unknown credit", em3d("[policy]\ncredit = \"handle\"\n")),
        ("a farm's policy", em3d("[policy]\norder = \"arrival\"\n")),
        ("nothing to follow", em3d("[policy]\nwindow = \"follow\"\n")),
        ("away packets of a fixed window", em3d("[policy]\nwindow_packets = 2\naway_packets = 1\n")),
        ("no packets away", em3d("[policy]\nwindow_packets = 2\nwindow = \"follow\"\naway_packets = 0\n")),
        ("seed of data below 0", program("program = \"em3d\"\nranks = 64\nseed = -1")),
        ("resend without discard", em3d("[policy]\nresend_s = 1\n")),
        ("resend at once", em3d("[policy]\naway = \"discard\"\nresend_s = 1e-9\n")),
        ("nameless disturbance", head("disturbance = \"\"")),
        ("disturbance of no kind", head("disturbance = 7")),
        ("inline quantum", inline("quantum_s = 0.1", "quantum_s = -0.1")),
        ("inline rank", inline("63", "64")),
        ("inline busy", inline("0.005", "50")),
        ("unknown sweep path", sweep("\"policy.window_packet\" = [1]")),
        ("no window by sweep", sweep("\"policy.window_packets\" = [1, 0]")),
        ("bad parameter by sweep", sweep("\"workload.parameters.steps\" = [1, 0]")),
        ("unknown parameter by sweep", sweep("\"workload.parameters.stps\" = [1]")),
        ("inside a file", sweep("\"disturbance.source[0].quantum_s\" = [1]")),
        (
            "no such source",
            inline("[disturbance]", "[sweep]\n\"disturbance.source[2].quantum_s\" = [1]\n[disturbance]"),
        ),
        (
            "bad source by sweep",
            inline("[disturbance]", "[sweep]\n\"disturbance.source[0].jobs\" = [2, 0]\n[disturbance]"),
        ),
        ("ranks too few by sweep", inline("[disturbance]", "[sweep]\n\"workload.ranks\" = [64, 32]\n[disturbance]")),
        ("unknown network by sweep", sweep("\"network\" = [\"cm5\", \"cray\"]")),
        ("no repetition", head("repetitions = 0")),
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
fn a_sweep_may_vary_what_disturbs_what_a_message_costs_and_the_parameters() {
    let text = format!(
        "{BASE}{EM3D}[sweep]\n\"disturbance.source[0].quantum_s\" = [0.1, 0.5]\n\
         \"disturbance.source[1].duration_s.mean\" = [0.001]\n\"network.latency_s\" = [1e-6, 1e-5]\n\
         \"workload.parameters.steps\" = [3, 4, 5]\n\"policy.window_packets\" = [1, 2]\n{INLINE}"
    );
    let experiment = read(&text);
    assert_eq!(experiment.runs(), Some(24));
    let last = experiment.point(23).expect("valid").experiment;
    assert!(last.sweep.is_empty());
    assert_eq!(last.network.network().latency_s.get(), 1e-5);
    assert_eq!(last.network.network().gap_s, KnownNetwork::Cm5.network().gap_s);
    assert_eq!(last.policy.window_packets.map(|packets| packets.get()), Some(2));
    let Ok(Parameters::Em3d(parameters)) = last.workload.parameters() else { panic!("em3d") };
    assert_eq!(parameters.steps.get(), 5);
    let Some(DisturbanceSource::Inline(disturbance)) = last.disturbance else { panic!("inline") };
    let sources = serde_json::to_value(&disturbance.sources).expect("writes");
    assert_eq!((&sources[0]["quantum_s"], &sources[1]["duration_s"]["mean"]), (&0.5.into(), &0.001.into()));
}

#[test]
fn disturbances_and_networks_may_be_swept_whole() {
    let text = format!(
        "{BASE}{EM3D}[sweep]\n\"disturbance\" = [\"a.toml\", \"b.toml\"]\n\"network\" = [\"cm5\", \"cluster\"]\n"
    );
    let seen: Vec<_> = read(&text)
        .points()
        .map(|point| point.expect("valid").experiment)
        .map(|e| (e.disturbance, e.network))
        .collect();
    let file = |name: &str| Some(DisturbanceSource::Path(name.into()));
    assert_eq!(seen.len(), 4);
    assert_eq!(seen[1], (file("a.toml"), NetworkSource::Known(KnownNetwork::Cluster)));
    assert_eq!(seen[2], (file("b.toml"), NetworkSource::Known(KnownNetwork::Cm5)));
}

#[test]
fn the_kind_of_the_workload_tells_which_experiment_it_is() {
    let farm = "schema_version = 1\nname = \"f\"\nplatform = \"p.toml\"\n[workload]\nkind = \"farm\"\ntasks = 1\n\
        task_size_mb = 1\ntask_work = 1\n";
    let program = format!("{BASE}{EM3D}");
    for (text, is_program) in [(farm, false), (program.as_str(), true)] {
        let toml = AnyExperiment::from_toml(text.as_bytes(), "e.toml").expect("valid");
        assert_eq!(matches!(toml, AnyExperiment::Program(_)), is_program);
        let json = serde_json::to_string(&toml).expect("writes");
        assert_eq!(AnyExperiment::from_json(json.as_bytes(), "e"), Ok(toml));
    }
    assert!(Experiment::from_toml(program.as_bytes(), "e.toml").is_err());
}
