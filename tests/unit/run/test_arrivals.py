"""Tasks that arrive over time: flow times in runs, on the terminal and in ranks."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

import crosswind
from crosswind.cli import app
from crosswind.errors import DescriptionError
from crosswind.experiment import Experiment

ROOT = {"name": "r", "compute_per_s": 1.0}
LEAF = {"name": "a", "parent": "r", "compute_per_s": 1.0, "receive_limit_mb_per_s": 1.0}


def experiment(workload, nodes=(ROOT,), **more):
    platform = {"schema_version": 1, "name": "p", "node": list(nodes)}
    workload = {"kind": "farm", "tasks": 3, "task_size_mb": 1.0, "task_work": 2.0, **workload}
    return Experiment.from_dict(
        {"schema_version": 1, "name": "arriving", "platform": platform, "workload": workload, **more}
    )


def test_a_task_waits_for_those_before_it():
    (run,) = crosswind.run(experiment({"arrival_gap_s": 1.0}))
    assert run.makespan_s == pytest.approx(6.0)  # one after the other: 2, 4 and 6 s, arrived at 0, 1 and 2 s
    assert run.flow is not None
    assert run.flow["mean_s"] == pytest.approx(3.0)
    assert (run.flow["median_s"], run.flow["most_s"]) == pytest.approx((3.0, 4.0))
    assert (run.flow["mean_slowdown"], run.flow["most_slowdown"]) == pytest.approx((1.5, 2.0))
    assert "late" not in run.flow
    assert run.row()["flow.mean_s"] == run.flow["mean_s"]
    assert "bound-without-arrivals" in [one["code"] for one in run.warnings]


def test_without_arrivals_there_is_no_flow():
    (run,) = crosswind.run(experiment({}))
    assert run.flow is None
    assert not [name for name in run.row() if name.startswith("flow")]


def test_a_file_says_when_tasks_arrive_and_by_when_they_are_wanted(tmp_path):
    (tmp_path / "tasks.csv").write_text("deadline_s,work,size_mb,release_s\n2,2,1,0\n3,2,1,0\n,2,1,9\n")
    (tmp_path / "e.toml").write_text(
        'schema_version = 1\nname = "late"\n[platform]\nschema_version = 1\nname = "p"\n[[platform.node]]\nname = "r"\n'
        'compute_per_s = 1.0\n[workload]\nkind = "farm"\ntasks_file = "tasks.csv"\n'
    )
    (run,) = crosswind.run(tmp_path / "e.toml")
    assert run.flow is not None
    assert (run.flow["late"], run.flow["most_tardiness_s"], run.flow["mean_tardiness_s"]) == pytest.approx(
        (1, 1.0, 0.5)
    )
    done = CliRunner().invoke(app, ["run", str(tmp_path / "e.toml")])
    assert "A task took 2.67 s from its arrival to its end, 1.33 times as long as alone." in done.output
    assert "1 task ended after the deadline, by at most 1.00 s." in done.output


def test_late_tasks_of_several_seeds_are_a_mean_as_the_columns_beside_them(tmp_path):
    (tmp_path / "tasks.csv").write_text("deadline_s,work,size_mb,release_s\n2,2,1,0\n3,2,1,0\n,2,1,9\n")
    (tmp_path / "e.toml").write_text(
        'schema_version = 1\nname = "late"\nrepetitions = 4\n[platform]\nschema_version = 1\nname = "p"\n'
        '[[platform.node]]\nname = "r"\ncompute_per_s = 1.0\n[[failure]]\nnode = "r"\nmtbf_s = 1e6\nmttr_s = 1.0\n'
        'compute_factor = 0.5\n[workload]\nkind = "farm"\ntasks_file = "tasks.csv"\n'
    )
    assert [run.flow["late"] for run in crosswind.run(tmp_path / "e.toml")] == [1, 1, 1, 1]
    done = CliRunner().invoke(app, ["run", str(tmp_path / "e.toml")])
    assert "In the mean of the runs 1.00 tasks ended after the deadline" in done.output


def test_arrivals_are_said_once(tmp_path):
    (tmp_path / "tasks.csv").write_text("work,size_mb,release_s\n2,1,0\n")
    (tmp_path / "e.toml").write_text(
        'schema_version = 1\nname = "two"\n[platform]\nschema_version = 1\nname = "p"\n[[platform.node]]\nname = "r"\n'
        'compute_per_s = 1.0\n[workload]\nkind = "farm"\ntasks_file = "tasks.csv"\narrival_gap_s = 1.0\n'
    )
    with pytest.raises(DescriptionError, match=r"workload\.arrival_gap_s .* tasks_file .*release_s"):
        crosswind.run(tmp_path / "e.toml")


def test_ranks_go_by_the_flow_time():
    sweep = {"policy.order": ["bandwidth", "root-only"]}
    runs = crosswind.run(experiment({"arrival_gap_s": 1.1, "tasks": 20}, (ROOT, LEAF), sweep=sweep, repetitions=2))
    found = crosswind.ranking(runs)
    assert found is not None
    assert (found.measure, found.rows[0].value) == ("flow.mean_s", "bandwidth")


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        ({"arrival_gap_s": 0.0}, "workload.arrival_gap_s is 0 s; it must be finite and greater than 0 s"),
        ({"arrival_tasks": 2}, "workload.arrival_tasks stands without workload.arrival_gap_s"),
        ({"arrival_gap_s": 1.0, "arrival_tasks": 0}, "workload.arrival_tasks"),
    ],
)
def test_what_is_wrong_is_refused(workload, said):
    with pytest.raises(DescriptionError) as error:
        crosswind.run(experiment(workload))
    assert said in str(error.value)
