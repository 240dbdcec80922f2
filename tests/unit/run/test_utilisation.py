"""Utilisation over time, from a trace."""

from __future__ import annotations

import pytest

import crosswind
from crosswind.errors import DescriptionError
from crosswind.experiment import Experiment

NODES = [
    {"name": "r", "compute_per_s": 1.0},
    {"name": "all", "parent": "r", "compute_per_s": 3.0, "receive_limit_mb_per_s": 2.0},
    {"name": "idle", "parent": "r", "compute_per_s": 0.0, "receive_limit_mb_per_s": 1.0},
]


@pytest.fixture
def trace():
    platform = {"schema_version": 1, "name": "p", "node": NODES}
    work = {"distribution": "exponential", "mean": 2.0}
    farm = {"kind": "farm", "tasks": 60, "task_size_mb": 1.0, "task_work": work}
    head = {"schema_version": 1, "name": "e", "platform": platform, "workload": farm}
    (run,) = crosswind.run(Experiment.from_dict(head), trace=True)
    return run.trace


@pytest.mark.parametrize("intervals", [1, 7, 500])
def test_parts_add_up_to_the_time_that_each_node_was_busy(trace, intervals):
    table = crosswind.utilisation(trace, intervals)
    length = trace.run["makespan_s"] / intervals
    for node in trace.run["nodes"]:
        parts = table[f"node[{node['name']}]"].to_pylist()
        assert all(0.0 <= part <= 1.0 for part in parts)
        assert sum(parts) * length == pytest.approx(node["busy_s"], rel=1e-9)
    whole = [
        0.25 * r + 0.75 * a for r, a in zip(table["node[r]"].to_pylist(), table["node[all]"].to_pylist(), strict=True)
    ]
    assert table["all"].to_pylist() == pytest.approx(whole)


def test_the_number_of_intervals_is_checked(trace):
    with pytest.raises(DescriptionError, match="intervals is 0; it must be 1 to 100,000"):
        crosswind.utilisation(trace, 0)
