"""A recorded program runs again: as long as recorded, longer by what a disturbance takes, on a network of choice."""

from __future__ import annotations

import json
import pickle

import pytest
from recorded_ranks import app_trace, write_profiles
from typer.testing import CliRunner

from crosswind.cli import app
from crosswind.errors import DescriptionError
from crosswind.experiment import Experiment
from crosswind.plan.tolerance import plan_tolerance_of_recording
from crosswind.run.results import Runs

HEAD = 'schema_version = 1\nname = "d"\n[[source]]\n'
DAEMON = 'kind = "daemon"\nduration_s = 0.0005\ninterval_s = { distribution = "exponential", mean = 0.01 }\n'


@pytest.fixture
def trace(tmp_path):
    file = tmp_path / "app.trace"
    file.write_bytes(app_trace()[0])
    return file


def typed(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done


def refusal(*words):
    with pytest.raises(DescriptionError) as refused:
        app([str(word) for word in words], standalone_mode=False)
    return str(refused.value)


def run(*words):
    return json.loads(typed("run", *words, "--json").stdout)["runs"]


def stopped(tmp_path, rank, start_s, seconds):
    """Write a disturbance that stops one of four ranks once."""
    cpus = ", ".join(
        f"{{ cpu = {cpu}, intervals = [{f'[{start_s}, {seconds}, 0]' if cpu == rank else ''}] }}" for cpu in range(4)
    )
    file = tmp_path / f"stop-{rank}.toml"
    about = 'kind = "recorded"\nlength_s = 3000.0\ncauses = ["stopped"]\naligned = true\n'
    file.write_text(f"{HEAD}{about}cpu = [{cpus}]\n")
    return file


def test_undisturbed_it_takes_as_long_as_recorded(trace):
    [only] = run(trace)
    assert only["recorded"]["transfers"] == "recorded"
    assert only["recorded"]["replayed_s"] == pytest.approx(only["recorded"]["recorded_s"], rel=1e-3)
    assert only["makespan_s"] == only["dedicated_s"] == only["recorded"]["replayed_s"]
    assert (only["program"], only["ranks"], only["disturbance"]) == ("recorded", 4, None)
    assert only["messages"] == 40
    # Rank 2 could run and did not for 40 of some 75 ms, by the recording.
    assert only["recorded"]["away_s"] == pytest.approx(0.04)
    assert [warning["code"] for warning in only["warnings"]] == ["recorded-absences"]
    text = typed("run", trace).stdout
    assert text.startswith("4 ranks take 0.07")
    assert "Transfers take as long as recorded" in text


def test_what_stops_the_slow_rank_costs_all_of_it_and_what_stops_a_waiting_one_nothing(trace, tmp_path):
    [alone] = run(trace)
    for seed in (1, 7):
        slow, waiting = (
            run(trace, "--disturbance", stopped(tmp_path, rank, 0.0005, 0.003), "--set", f"seed={seed}")[0]
            for rank in (2, 0)
        )
        assert slow["makespan_s"] == pytest.approx(alone["makespan_s"] + 0.003, abs=1e-9)
        assert waiting["makespan_s"] == pytest.approx(alone["makespan_s"], abs=1e-9)
        assert slow["slowdown_dedicated"] == pytest.approx(1 + 0.003 / alone["makespan_s"])


def test_a_slowdown_that_is_drawn_has_an_interval_over_ten_runs(trace, tmp_path):
    (tmp_path / "daemons.toml").write_text(HEAD + DAEMON)
    runs = run(trace, "--disturbance", tmp_path / "daemons.toml")
    assert len(runs) == len({one["makespan_s"] for one in runs}) == 10
    assert all(one["makespan_s"] > one["dedicated_s"] for one in runs)
    first, explained, *_ = typed("run", trace, "--disturbance", tmp_path / "daemons.toml").stdout.splitlines()
    assert first.startswith("Under d the program takes 1.")
    assert "±" in first
    assert explained.startswith("Replayed 0.07")
    assert runs == run(trace, "--disturbance", tmp_path / "daemons.toml", "--workers", "1")


def test_on_a_network_the_recorded_messages_are_sent(trace):
    [cluster] = run(trace, "--network", "cluster")
    # In each of 10 steps each of 4 ranks says that it is there, a message of each, and 2 rounds of an allreduce.
    assert cluster["messages"] == 10 * (4 + 4 + 2 * 4)
    assert cluster["recorded"]["transfers"] == "network"
    assert cluster["dedicated_s"] == cluster["makespan_s"] < cluster["recorded"]["replayed_s"]
    [far] = run(trace, "--network", "cluster", "--network", "latency_s=0.001")
    # The slow rank's message and two rounds of a reduction, one after the other, each 1 ms further.
    assert far["makespan_s"] - cluster["makespan_s"] == pytest.approx(10 * 3 * 0.001, rel=0.05)
    [window] = run(trace, "--network", "cluster", "--set", "policy.window_packets=1")
    assert window["makespan_s"] >= cluster["makespan_s"]


def test_runs_are_kept_taken_up_and_reported(trace, tmp_path):
    (tmp_path / "daemons.toml").write_text(HEAD + DAEMON)
    out = tmp_path / "runs.json"
    typed("run", trace, "--disturbance", tmp_path / "daemons.toml", "-o", out)
    kept = out.read_bytes()
    assert len(Runs.load(out)) == 10
    typed("run", trace, "--disturbance", tmp_path / "daemons.toml", "-o", out, "--resume")
    assert Runs.load(out).summary() == json.loads(kept)
    typed("report", out, "--out", tmp_path / "report.html")
    assert "recorded" in (tmp_path / "report.html").read_text()
    # Another recording under the same name is another experiment.
    trace.write_bytes(app_trace(steps=11)[0])
    assert "another experiment" in refusal(
        "run", trace, "--disturbance", tmp_path / "daemons.toml", "-o", out, "--resume"
    )


def test_an_experiment_sweeps_over_a_recording(trace, tmp_path):
    (tmp_path / "e.toml").write_text(
        'schema_version = 1\nname = "e"\n[workload]\nkind = "program"\nprogram = "recorded"\n'
        '[workload.parameters]\nfile = "app.trace"\n[disturbance]\nschema_version = 1\nname = "d"\n'
        '[[disturbance.source]]\nkind = "coscheduled"\nquantum_s = 0.01\njobs = 2\n'
        '[sweep]\n"disturbance.source[0].quantum_s" = [0.001, 0.01]\n'
    )
    short, long = run(tmp_path / "e.toml")
    assert short["slowdown_dedicated"] == pytest.approx(2.0, rel=0.05)
    assert long["slowdown_dedicated"] > 1.5
    assert "has no effect on transfers" in refusal("run", tmp_path / "e.toml", "--set", "network=cluster")


def test_traces_of_a_profiler_run_again_without_a_network(tmp_path):
    (tmp_path / "traces").mkdir()
    write_profiles(tmp_path / "traces", "late")
    [only] = run(tmp_path / "traces")
    assert only["ranks"] == 3
    assert only["makespan_s"] == pytest.approx(only["recorded"]["recorded_s"], rel=0.01)
    assert "bytes of its messages are not recorded" in refusal("run", tmp_path / "traces", "--network", "cluster")


def test_what_cannot_be_run_again_is_refused(trace, tmp_path):
    (tmp_path / "torn.trace").write_bytes(app_trace(drop=1)[0])
    assert refusal("run", tmp_path / "torn.trace").endswith(
        "torn.trace cannot be run again: events are missing: the recording of rank 1 ends early"
    )
    trace.rename(tmp_path / "cut.trace").write_bytes(app_trace()[0][:-300])
    assert "cut.trace" in refusal("run", tmp_path / "cut.trace")
    write_profiles(tmp_path, "missing")
    (tmp_path / "few").mkdir()
    for file in tmp_path.glob("rank-*"):
        file.rename(tmp_path / "few" / file.name)
    assert "the trace of rank 1 is missing" in refusal("run", tmp_path / "few")


def test_a_recording_is_simulated_here_only(trace, tmp_path):
    assert "runs in virtual time" in refusal("run", trace, "--on", "local")
    workload = {"kind": "program", "program": "recorded", "parameters": {"file": "app.trace"}}
    point = Experiment.from_dict({"schema_version": 1, "name": "e", "workload": workload}, tmp_path).point(0)
    with pytest.raises(DescriptionError, match="on this machine only"):
        pickle.dumps(point)
    assert "it must be 0 to 3" in refusal("run", trace, "--disturbance", stopped_beyond(tmp_path))
    (tmp_path / "e.toml").write_text('schema_version = 1\nname = "e"\n')
    assert refusal("run", tmp_path / "e.toml", "--disturbance", "d.toml").startswith("--disturbance belongs to")


def stopped_beyond(tmp_path):
    file = tmp_path / "fifth.toml"
    file.write_text(HEAD + 'kind = "daemon"\nduration_s = 0.001\ninterval_s = 0.1\nranks = [4]\n')
    return file


def test_a_recorded_program_tolerates_what_its_waiting_ranks_have_to_spare(trace, tmp_path):
    every = plan_tolerance_of_recording(trace, seeds=2)
    assert every.data["recorded"]["replayed_s"] == pytest.approx(every.data["recorded"]["recorded_s"], rel=1e-3)
    assert {limit["field"] for limit in every.limits} == {"source[0].duration_s", "source[0].interval_s"}
    # A daemon on rank 0 has 4 of 7 ms in each step to spare; on rank 2, which all wait for, nothing.
    limits = {}
    for rank in (0, 2):
        file = tmp_path / f"on-{rank}.toml"
        file.write_text(HEAD + f'kind = "daemon"\nduration_s = 0.0001\ninterval_s = 0.0074\nranks = [{rank}]\n')
        found = plan_tolerance_of_recording(trace, file, seeds=1)
        limits[rank] = next(lim["simulated"] for lim in found.limits if lim["field"] == "source[0].duration_s")
    assert limits[0] > 3 * limits[2]
    document = json.loads(typed("plan", "tolerance", trace, "--disturbance", file, "--json").stdout)
    assert document["ranks"] == 4
    assert "the recorded program" in typed("plan", "tolerance", trace, "--disturbance", file, "--wide").stdout
    assert "--ranks does not apply to a recording" in refusal("plan", "tolerance", trace, "--ranks", "4")
    assert "belongs to a recorded program" in refusal("plan", "tolerance", file, "--disturbance", file)
