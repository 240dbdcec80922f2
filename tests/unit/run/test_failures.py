"""Drawn failures of nodes: in experiments, runs, sweeps and on the terminal."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

import crosswind
from crosswind.cli import app
from crosswind.errors import DescriptionError
from crosswind.experiment import Experiment

ROOT = {"name": "r", "compute_per_s": 1.0}
LEAF = {"name": "a", "parent": "r", "compute_per_s": 4.0, "receive_limit_mb_per_s": 5.0}
OTHER = {"name": "b", "parent": "r", "compute_per_s": 2.0, "receive_limit_mb_per_s": 9.0}
WORKLOAD = {
    "kind": "farm",
    "tasks": 100,
    "task_size_mb": 1.0,
    "task_work": {"distribution": "exponential", "mean": 1.0},
}


def experiment(*failures, nodes=(ROOT, LEAF, OTHER), **more):
    platform = {"schema_version": 1, "name": "p", "node": list(nodes)}
    head = {"schema_version": 1, "name": "failing", "platform": platform, "workload": WORKLOAD}
    return Experiment.from_dict(head | ({"failure": list(failures)} if failures else {}) | more)


def test_failures_of_each_node_are_counted():
    (run,) = crosswind.run(experiment({"mtbf_s": 5.0, "mttr_s": 2.0}))
    root, leaf, other = run.nodes
    assert root["failures"] == {"count": 0, "failed_s": 0.0, "tasks_again": 0}
    assert leaf["failures"]["count"] > 0
    assert other["failures"]["count"] > 0
    assert run.failures["count"] == leaf["failures"]["count"] + other["failures"]["count"]
    assert run.row()["failures.count"] == run.failures["count"]
    assert run.row()["failures.tasks_again"] > 0
    assert run.throughput_tasks_per_s < run.bound_tasks_per_s
    assert not run.events  # those of the file alone
    assert [column.label for column in run.tables()[0].columns][-3:] == ["failures", "failed", "done again"]


def test_an_experiment_without_failures_has_none():
    (run,) = crosswind.run(experiment())
    assert run.failures is None
    assert "failures" not in run.nodes[0]
    assert not [name for name in run.row() if name.startswith("failures")]


def test_failures_change_no_other_draw():
    """Whatever fails, tasks are those of the seed; whatever else fails, a node fails at the same times."""
    only_b = {"node": "b", "mtbf_s": 2.0, "mttr_s": 1e-9}
    rare = {"node": "a", "mtbf_s": 1e12, "mttr_s": 1.0}
    plain, none = (crosswind.run(experiment(*which))[0] for which in [(), (rare,)])
    assert plain.makespan_s == none.makespan_s
    first, second = (crosswind.run(experiment(*which))[0] for which in [(only_b,), (only_b, rare)])
    assert first.nodes[2] == second.nodes[2]


def test_a_sweep_varies_them():
    failure = {"node": "a", "mtbf_s": 5.0, "mttr_s": 2.0}
    sweep = {"failure[0].mtbf_s": [1.0, 1000.0], "failure[a].compute_factor": [0.0, 1.0]}
    runs = crosswind.run(experiment(failure, sweep=sweep, repetitions=5))
    spans = {tuple(run.params.values()): run.makespan_s for run in runs}
    assert spans[1.0, 0.0] > spans[1000.0, 0.0]
    assert spans[1.0, 1.0] == spans[1000.0, 1.0]  # a failure that changes nothing


def test_the_answer_says_how_often_nodes_failed(tmp_path):
    (tmp_path / "e.toml").write_text(
        'schema_version = 1\nname = "f"\n[platform]\nschema_version = 1\nname = "p"\n[[platform.node]]\nname = "r"\n'
        'compute_per_s = 1.0\n[[platform.node]]\nname = "a"\nparent = "r"\ncompute_per_s = 4.0\n'
        "receive_limit_mb_per_s = 5.0\n"
        '[workload]\nkind = "farm"\ntasks = 100\ntask_size_mb = 1.0\ntask_work = 1.0\n'
        "[[failure]]\nmtbf_s = 5.0\nmttr_s = 2.0\n"
    )
    done = CliRunner().invoke(app, ["run", str(tmp_path / "e.toml")])
    assert "Nodes failed " in done.output
    assert "of their time" in done.output
    swept = CliRunner().invoke(app, ["run", str(tmp_path / "e.toml"), "--sweep", "failure[0].mtbf_s=5,500"])
    assert swept.exit_code == 0, swept.output


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        ({"mtbf_s": 0.0, "mttr_s": 1.0}, r"failure\[0\].mtbf_s is 0 s; it must be finite and greater than 0 s"),
        ({"mtbf_s": 1.0}, "mttr_s"),
        ({"mtbf_s": 1.0, "mttr_s": 1.0, "shape": 0.0}, r"failure\[0\].shape is 0; it must be 0.1 to 100"),
        ({"mtbf_s": 1.0, "mttr_s": 1.0, "link_factor": 0.0}, "link_factor is 0; it must be greater than 0 and at most"),
        ({"mtbf_s": 1.0, "mttr_s": 1.0, "node": "c"}, "no node of this platform"),
        ({"mtbf_s": 1.0, "mttr_s": 1.0, "node": "r"}, "the root; it holds the tasks"),
    ],
)
def test_what_is_wrong_is_refused(failure, said):
    with pytest.raises(DescriptionError, match=said):
        crosswind.run(experiment(failure))


def test_a_platform_of_one_node_has_none_that_fails():
    with pytest.raises(DescriptionError, match="all nodes below the root fail, but the platform has none"):
        crosswind.run(experiment({"mtbf_s": 1.0, "mttr_s": 1.0}, nodes=(ROOT,)))


def test_live_runs_refuse_failures():
    with pytest.raises(DescriptionError, match="draws failures of nodes in virtual time"):
        crosswind.run(experiment({"mtbf_s": 1.0, "mttr_s": 1.0}), on="local")
