"""Runs by real agents: an experiment, a command over files, a Python function; and what is left after ctrl-C."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from farms import agents_of

import crosswind
from crosswind.run.calls import RemoteTraceback
from crosswind.run.command import map_command
from crosswind.run.this_machine import here

pytestmark = pytest.mark.live
ROOT = Path(__file__).parents[2]
EMULATED = ROOT / "examples" / "fork_graph_emulated.toml"


def waits_until(true, seconds=30.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def both():
    """The same experiment in virtual time and by real agents, two orders far apart, few tasks, quickly."""
    experiment = crosswind.Experiment.load(EMULATED).fixed(
        {"workload.tasks": 60, "execution.time_scale": 20, "policy.order": "interference"}
    )
    alone = experiment.fixed({"policy.order": "root-only"})
    return {
        (on, name): crosswind.run(one, on=on, trace=True)[0]
        for on in ("sim", "local")
        for name, one in (("interference", experiment), ("root-only", alone))
    }


@pytest.mark.alone
def test_a_real_run_says_the_same_things_as_a_simulated_one(both):
    sim, local = both[("sim", "interference")], both[("local", "interference")]
    assert set(sim.data) == set(local.data)
    assert local.data["compute"] == "emulated"
    assert local.bound_tasks_per_s == sim.bound_tasks_per_s
    assert [node["name"] for node in local.nodes] == [node["name"] for node in sim.nodes]
    assert sum(node["tasks"] for node in local.nodes) == 60
    assert local.of_bound < 1.02


@pytest.mark.alone
def test_orders_that_are_far_apart_come_in_the_predicted_order(both):
    for on in ("sim", "local"):
        assert both[(on, "root-only")].makespan_s > 1.15 * both[(on, "interference")].makespan_s


@pytest.mark.alone
def test_a_real_trace_holds_every_task_and_can_be_kept(both, tmp_path):
    trace = both[("local", "interference")].trace
    computed = trace.of_kind("compute")
    assert sorted(computed["task"].to_pylist()) == list(range(60))
    assert computed["work"].to_pylist() == [5.0] * 60
    sent = trace.of_kind("send")
    received = {node["name"]: node["received_mb"] for node in both[("local", "interference")].nodes}
    assert sum(sent["mb"].to_pylist()) == pytest.approx(sum(received.values()))
    trace.save(tmp_path / "trace.parquet")
    assert crosswind.Trace.load(tmp_path / "trace.parquet").activities.num_rows == trace.activities.num_rows


def test_a_function_is_called_on_every_item_in_order():
    offset = 3
    assert list(crosswind.map(lambda x: x * x + offset, range(300), platform=here(2))) == [
        x * x + offset for x in range(300)
    ]


def test_an_exception_carries_the_traceback_of_its_node():
    def unlucky(x):
        return 1 / (x - 5)

    results = crosswind.map(unlucky, range(10), platform=here(2))
    assert [next(results) for _ in range(5)] == [1 / (x - 5) for x in range(5)]
    with pytest.raises(ZeroDivisionError) as raised:
        next(results)
    assert isinstance(raised.value.__cause__, RemoteTraceback)
    assert "unlucky" in str(raised.value.__cause__)


def test_a_farm_loses_no_call_when_a_node_is_killed():
    before = set(agents_of(os.getpid()))
    with crosswind.Farm(here(2)) as farm:
        calls = [farm.submit(lambda k: time.sleep(0.02) or k, k) for k in range(60)]
        calls[0].result()
        victim = min(set(agents_of(os.getpid())) - before)
        os.kill(victim, signal.SIGKILL)
        assert [call.result(timeout=60) for call in calls] == list(range(60))
    assert "agent-lost" in {event["code"] for event in farm.run.events}


def test_a_command_runs_once_per_file_and_its_failures_are_told(tmp_path):
    for k in range(6):
        (tmp_path / f"{k}.txt").write_text("bad" if k == 4 else f"text {k}")
    line = "grep -q text {input} || { echo no text here >&2; exit 3; }; gzip -c {input} > {output}"
    done = map_command(line, [tmp_path / "*.txt"], tmp_path / "out", platform=here(2), name="{stem}.gz")
    (failure,) = [event for event in done[0].events if event["code"] == "task-failed"]
    assert "4.txt" in failure["message"]
    assert "no text here" in failure["message"]
    for k in (0, 1, 2, 3, 5):
        assert gzip.decompress((tmp_path / "out" / f"{k}.gz").read_bytes()) == f"text {k}".encode()
    assert not (tmp_path / "out" / "4.gz").exists()


def command_line(*arguments, **options):
    command = [sys.executable, "-m", "crosswind.cli", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def test_after_ctrl_c_simulations_end_and_the_runs_that_are_done_are_kept(tmp_path):
    """Two points of no time, then two that would each take a minute."""
    node = {"name": "root", "compute_per_s": 1000.0}
    platform = {"schema_version": 1, "name": "p", "node": [node]}
    (tmp_path / "p.toml").write_text(crosswind.Platform.from_dict(platform).to_toml())
    farm = '[workload]\nkind = "farm"\ntasks = 1\ntask_size_mb = 1.0\ntask_work = 1.0\n'
    sweep = '[sweep]\n"workload.tasks" = [1, 2, 999_999_999, 1_000_000_000]\n'
    head = 'schema_version = 1\nname = "long"\nplatform = "p.toml"\n[policy]\norder = "arrival"\n'
    (tmp_path / "e.toml").write_text(head + farm + sweep)
    out = tmp_path / "runs.json"
    process = command_line("run", tmp_path / "e.toml", "--workers", "2", "--out", out)
    waits_until(out.exists)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert [run["tasks"] for run in json.loads(out.read_text())["runs"]] in ([1], [2], [1, 2])


def test_after_ctrl_c_no_agent_is_left_and_the_rest_is_done_later(tmp_path):
    for k in range(30):
        (tmp_path / f"{k:02}.txt").write_text(f"text {k}")
    arguments = ["map", "sleep 0.1; cat {input}", "--inputs", tmp_path / "*.txt", "--out", tmp_path / "out"]
    process = command_line(*arguments)
    waits_until(lambda: len(list((tmp_path / "out").glob("*.txt"))) >= 3)
    agents = agents_of(process.pid)
    assert agents
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    waits_until(lambda: not [pid for pid in agents if Path(f"/proc/{pid}").exists()])
    done = {file.name for file in (tmp_path / "out").glob("*.txt")}
    assert 3 <= len(done) < 30
    process = command_line(*arguments, "--resume", "--json")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    (run,) = json.loads(out)["runs"]
    assert run["tasks"] <= 30 - len(done) + 4  # what had been written and not yet noted may be done again
    assert [(tmp_path / "out" / f"{k:02}.txt").read_text() for k in range(30)] == [f"text {k}" for k in range(30)]


def test_the_command_line_runs_an_experiment_for_real(tmp_path):
    out = tmp_path / "runs.json"
    settings = ["--set", "policy.order=planned", "--set", "workload.tasks=20", "--time-scale", "40"]
    process = command_line("run", EMULATED, "--on", "local", *settings, "--out", out, "--json")
    text, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    document = json.loads(text)
    assert document == json.loads(out.read_text())
    assert document["on"] == "local"
    assert document["runs"][0]["compute"] == "emulated"
