"""Tasks that arrive over time at the root of a farm of agents."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

import crosswind
from crosswind.experiment import Experiment

NODES = [
    {"name": "r", "compute_per_s": 0.0},
    *({"name": name, "parent": "r", "compute_per_s": 4.0, "receive_limit_mb_per_s": 100.0} for name in ("a", "b")),
]
PLATFORM = {"schema_version": 1, "name": "three", "node": NODES}


def described(workload, compute="emulated", **more):
    execution = {"compute": compute} | ({"time_scale": 10.0} if compute == "emulated" else {})
    return {
        "schema_version": 1,
        "name": "arriving",
        "platform": PLATFORM,
        "workload": {"kind": "farm", **workload},
        "execution": execution,
        **more,
    }


# A busy host makes a run longer, never shorter: these are the least times.
def test_emulated_tasks_are_handed_over_when_they_arrive():
    workload = {"tasks": 9, "task_size_mb": 0.01, "task_work": 1.0, "arrival_gap_s": 2.0, "arrival_tasks": 3}
    experiment = Experiment.from_dict(described(workload))
    (simulated,) = crosswind.run(experiment)
    (run,) = crosswind.run(experiment, on="local", trace=True)
    assert run.data["tasks"] == 9
    assert run.makespan_s >= 4.25  # the last three arrive at 4 s, and one takes 0.25 s
    assert simulated.makespan_s >= 4.25
    begun = sorted(row["start_s"] for row in run.trace.to_arrow().to_pylist() if row["kind"] == "send")
    assert [at >= 2.0 * (place // 3) - 1e-6 for place, at in enumerate(begun)] == [True] * 9, begun
    assert run.flow["mean_slowdown"] >= 0.999
    assert set(run.flow) == set(simulated.flow)
    assert "bound-without-arrivals" in [one["code"] for one in run.warnings]


def test_a_file_of_tasks_with_users_and_deadlines_has_flow_times_by_user(tmp_path):
    lines = [
        "size_mb,work,release_s,deadline_s,user",
        "0.1,1,0,100000,ann",
        "0.1,1,0,0.001,bob",
        "0.1,1,0.5,100000,ann",
    ]
    (tmp_path / "tasks.csv").write_text("\n".join(lines) + "\n")
    experiment = Experiment.from_dict(described({"tasks_file": "tasks.csv"}, compute="burn"), tmp_path)
    (run,) = crosswind.run(experiment, on="local")
    assert run.makespan_s >= 0.5
    assert [(user["name"], user["tasks"]) for user in run.flow["users"]] == [("ann", 2), ("bob", 1)]
    assert run.flow["users"][0]["done_s"] >= 0.5
    assert run.flow["late"] == 1
    assert 0 < run.flow["jain"] <= 1


def test_without_arrivals_and_users_no_times_of_tasks_are_kept():
    (run,) = crosswind.run(
        Experiment.from_dict(described({"tasks": 4, "task_size_mb": 0.01, "task_work": 1.0})), on="local"
    )
    assert run.flow is None
    assert "done_s" not in run.data


SCRIPT = """
import json, sys
import crosswind

described = json.loads(sys.argv[1])
crosswind.run(crosswind.Experiment.from_dict(described, sys.argv[2]), on="local")
"""


def test_a_run_that_waits_for_a_task_can_be_interrupted(tmp_path):
    (tmp_path / "tasks.csv").write_text("size_mb,work,release_s\n0.1,1,0\n0.1,1,36000\n")
    workload = json.dumps(described({"tasks_file": "tasks.csv"}, compute="burn"))
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, workload, str(tmp_path)], stderr=subprocess.PIPE, text=True
    )
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(3.0)  # it takes ten hours
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=300)
    assert process.returncode != 0
