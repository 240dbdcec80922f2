"""Benchmarks measure what users get."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from crosswind import Platform, plan

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize("for_tests", [True, False])
def test_no_record_is_made_with_an_extension_that_was_built_for_tests(for_tests):
    run = "import runpy; runpy.run_path('record.py', run_name='__main__')"
    script = f"from crosswind import _core; _core.FOR_TESTS = {for_tests}; {run}"
    done = subprocess.run([sys.executable, "-c", script], cwd=BENCHMARKS, capture_output=True, text=True, check=False)
    assert (done.returncode, "hint: `make build`" in done.stderr) == (int(for_tests), for_tests)


@pytest.fixture
def level_end(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("level_end")


@pytest.mark.parametrize("tree", ["fork7", "tree13", "tree8", "star6", "apart6"])
@pytest.mark.parametrize("task_mb", [1.0, 5.0])
def test_no_simulated_run_is_shorter_than_whole_tasks_allow(level_end, tree, task_mb):
    from whole_tasks import shortest_s

    described = level_end.on_testbed(tree)
    bound = plan(described, task_size_mb=task_mb, task_work=1.0, ports="multi").bound_tasks_per_s
    for tasks in (1, 7, 40, 200):
        shortest = shortest_s(described.to_dict(), task_mb, tasks)
        found = level_end.of_bound(described, "multi", task_mb, tasks, level_end=True)
        assert found <= tasks / shortest / bound <= 1 + 1e-9


@pytest.mark.parametrize(
    ("rate", "shortest"),
    [
        (1.0, 6.0),  # the processor is what limits: the first task is there after 1 s
        (10.0, 3.1),  # the first link is: five tasks in 2.5 s, then 0.5 and 0.1 s for the last
    ],
)
def test_a_chain_takes_as_long_as_whole_tasks_need(level_end, rate, shortest):
    from whole_tasks import shortest_s

    node = {"receive_limit_mb_per_s": 2.0, "compute_per_s": 0.0}
    nodes = [{"name": "a", "compute_per_s": 0.0}, {"name": "b", "parent": "a", **node}]
    nodes.append({"name": "c", "parent": "b", **node, "compute_per_s": rate})
    chain = Platform.from_dict({"schema_version": 1, "name": "chain", "node": nodes})
    assert shortest_s(chain.to_dict(), 1.0, 5) == pytest.approx(shortest)
    # A buffer of one task, as in so short a run, keeps the links from sending at the same time.
    found = level_end.of_bound(chain, "multi", 1.0, 5, level_end=True) * min(rate, 2.0)
    assert 0.6 < found / (5 / shortest) < 1 + 1e-9


def test_a_full_card_takes_as_long_as_whole_tasks_need(level_end):
    from whole_tasks import shortest_s

    below = {"parent": "root", "receive_limit_mb_per_s": 10.0, "compute_per_s": 100.0}
    root = {"name": "root", "compute_per_s": 0.0, "send_limit_mb_per_s": 2.0}
    star = Platform.from_dict(
        {"schema_version": 1, "name": "star", "node": [root, {"name": "x", **below}, {"name": "y", **below}]}
    )
    assert shortest_s(star.to_dict(), 1.0, 4) == pytest.approx(2.01)
    assert level_end.of_bound(star, "multi", 1.0, 4, level_end=True) == pytest.approx(4 / 2.01 / 2.0)


@pytest.fixture
def jobs(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS / "recorded_jobs")
    return importlib.import_module("jobs")


def test_what_a_straggler_costs_follows_from_the_stamps_of_the_ranks(jobs):
    # Begin, arrival, end, lateness of each phase: rank 1 is 20 ns late for the first of two allreduces.
    early, late = [[0, 10, 32, 0], [32, 42, 44, 0]], [[0, 30, 32, 20], [32, 42, 44, 0]]
    assert jobs.cost_s("allreduce", [early, late], [1]) == pytest.approx(20e-9)
    assert jobs.cost_s("allreduce", [early, late], [0]) == 0


def test_of_two_ranks_that_hide_each_other_neither_costs_anything_alone(jobs):
    # In a ring rank 1 is late before it sends to rank 2, and rank 3 before the reduction that follows.
    ring = [
        [[0, 10, 11, 0], [11, 21, 42, 0]],
        [[0, 30, 31, 20], [31, 41, 42, 0]],
        [[0, 10, 31, 0], [31, 41, 42, 0]],
        [[0, 10, 11, 0], [11, 41, 42, 20]],
    ]
    assert jobs.cost_s("ring", ring, [1]) == jobs.cost_s("ring", ring, [3]) == 0
    assert jobs.cost_s("ring", ring, [1, 3]) == pytest.approx(20e-9)
    # A worker waits for its master, the master for all of its workers.
    assert [jobs.needs("master", 0, rank, 3) for rank in range(3)] == [[0], [0, 1], [0, 2]]
    assert [jobs.needs("master", 1, rank, 3) for rank in range(3)] == [[0, 1, 2], [1], [2]]
