"""Several users: flow times by user and Jain's index."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

import crosswind
from crosswind.cli import app

HEAD = """schema_version = 1
name = "users"
[platform]
schema_version = 1
name = "p"
[[platform.node]]
name = "r"
compute_per_s = 1.0
[workload]
kind = "farm"
tasks_file = "tasks.csv"
"""


def write(tmp_path, lines, header="size_mb,work,user"):
    (tmp_path / "tasks.csv").write_text(f"{header}\n" + "\n".join(lines) + "\n")
    (tmp_path / "e.toml").write_text(HEAD)
    return tmp_path / "e.toml"


def test_each_user_has_flow_times(tmp_path):
    """One after the other at 1 work unit/s: they end at 1, 2, 4 and 8 s, alone they take 1, 1, 2 and 4 s."""
    (run,) = crosswind.run(write(tmp_path, ["1,1,ann", "1,1,bob", '1,2,"ann"', "1,4,bob"]))
    assert run.flow is not None
    assert run.flow["users"] == [
        {"name": "ann", "tasks": 2, "done_s": 4.0, "mean_s": 2.5, "mean_slowdown": 1.5},
        {"name": "bob", "tasks": 2, "done_s": 8.0, "mean_s": 5.0, "mean_slowdown": 2.0},
    ]
    assert run.flow["jain"] == pytest.approx(3.5**2 / (2 * (1.5**2 + 2.0**2)))
    assert run.row()["flow.jain"] == run.flow["jain"]
    assert "flow.users" not in run.row()


def test_users_and_release_times_go_together(tmp_path):
    (run,) = crosswind.run(write(tmp_path, ["1,2,ann,0", "1,2,bob,10"], "size_mb,work,user,release_s"))
    assert [user["mean_slowdown"] for user in run.flow["users"]] == pytest.approx([1.0, 1.0])
    assert run.flow["jain"] == pytest.approx(1.0)


def test_the_answer_has_a_row_for_each_user(tmp_path):
    done = CliRunner().invoke(app, ["run", str(write(tmp_path, ["1,1,ann", "1,1,bob", "1,2,ann", "1,4,bob"]))])
    assert done.exit_code == 0, done.output
    assert "Among 2 users Jain's index of the slowdowns is 0.980." in done.output
    assert "ann" in done.output
    assert "bob" in done.output


def test_without_users_there_are_none(tmp_path):
    (run,) = crosswind.run(write(tmp_path, ["1,1,0", "1,1,0"], "size_mb,work,release_s"))
    assert "users" not in run.flow
    assert "jain" not in run.flow


LINES = [f"1,1,{user},{8 * (user == 'bob' and n == 7)}" for n in range(8) for user in ("ann", "bob")]


def test_fairness_over_time_is_of_those_that_have_a_task(tmp_path):
    """In turns at 1 work unit/s; bob's last task arrives at 8 s, and ann has one at any time."""
    path = write(tmp_path, LINES, "size_mb,work,user,release_s")
    path.write_text(path.read_text() + "fairness_window_s = 4.0\n")
    (run,) = crosswind.run(path)
    (fairness,) = run.fairness
    assert (fairness["of"], fairness["window_s"], len(fairness["index"])) == ("users", 4.0, 4)
    assert fairness["index"][:3] == pytest.approx([1.0, 1.0, 1.0])
    assert run.row()["fairness.users.mean"] == fairness["mean"] == pytest.approx(1.0)
    done = CliRunner().invoke(app, ["run", str(path)])
    said = "Over time, in windows of 4.00 s, the index of the work done for each is 1.000, at least 1.000."
    assert said in " ".join(done.output.split())


def test_too_many_windows_are_a_warning(tmp_path):
    path = write(tmp_path, ["1,1,ann", "1,1,bob"])
    path.write_text(path.read_text() + "fairness_window_s = 1e-5\n")
    (run,) = crosswind.run(path)
    assert run.fairness == []
    assert "too-many-windows" in [one["code"] for one in run.warnings]


def test_classes_have_an_index_of_their_own():
    node = {"name": "r", "compute_per_s": 1.0}
    workload = {"kind": "farm", "tasks": 200, "task_size_mb": 1.0, "task_work": 1.0}
    workload["class"] = [{"name": "slow", "factor": 0.5}, {"name": "fast", "factor": 1.0}]
    platform = {"schema_version": 1, "name": "p", "node": [node]}
    described = {"schema_version": 1, "name": "classes", "platform": platform, "workload": workload}
    (run,) = crosswind.run(crosswind.Experiment.from_dict(described))
    (fairness,) = run.fairness
    assert fairness["of"] == "classes"
    assert 0.5 <= fairness["least"] <= fairness["mean"] <= 1.0
    assert run.flow is None
