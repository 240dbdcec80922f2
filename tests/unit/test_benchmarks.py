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


@pytest.fixture
def cost_s(jobs):
    return lambda *words: jobs.cost_s(*words)[0]


def test_what_a_straggler_costs_follows_from_the_stamps_of_the_ranks(cost_s):
    # Begin, arrival, end, lateness, time off the processor in communication: rank 1 is 20 ns late for one allreduce.
    start = [0, 0, 0, 0, 0]
    early, late = [start, [0, 10, 32, 0, 0], [32, 42, 44, 0, 0]], [start, [0, 30, 32, 20, 0], [32, 42, 44, 0, 0]]
    assert cost_s("allreduce", [early, late], [1]) == pytest.approx(20e-9)
    assert cost_s("allreduce", [early, late], [0]) == 0


def test_lateness_counts_from_the_start_and_inside_of_communication(cost_s):
    start = [0, 5, 25, 0, 0]
    phases = [[25 + 12 * at, 35 + 12 * at, 37 + 12 * at, 0, 0] for at in range(6)]
    late = [[0, 24, 25, 19, 0], *phases]
    others = [start, *phases]
    assert cost_s("allreduce", [others, late], [1]) == pytest.approx(19e-9)
    first = [0, 5, 6, 0, 0]
    # In the fourth phase rank 1 is off its processor for 7 of the 9 ns that it takes all of them.
    early = [[begin - 19, arrival - 19, end - 19] for begin, arrival, end, *_ in phases]
    slow = [
        [begin + 7 * (at > 3), arrival + 7 * (at > 3), end + 7 * (at > 2), 0, 0]
        for at, (begin, arrival, end) in enumerate(early)
    ]
    off = [[*row[:4], 50 if at == 3 else 0] for at, row in enumerate(slow)]
    assert cost_s("allreduce", [[first, *slow], [first, *off]], [1]) == pytest.approx(7e-9)
    assert cost_s("allreduce", [[first, *slow], [first, *off]], [0]) == 0
    # A rank that is off its processor for 45 ns in each phase is so for 5 ns more in this one.
    often = [[*row[:4], 50 if at == 3 else 45] for at, row in enumerate(slow)]
    assert cost_s("allreduce", [[first, *slow], [first, *often]], [1]) == pytest.approx(5e-9)


def test_without_its_lateness_a_rank_is_still_as_late_as_the_others_are(jobs, cost_s):
    start = [0, 0, 0, 0, 0]
    # In the third phase the healthy rank is 6 ns late itself; in the first, rank 1 by 20 ns.
    healthy = [start, [0, 10, 32, 0, 0], [32, 42, 44, 0, 0], [44, 60, 62, 6, 0]]
    late = [start, [0, 30, 32, 20, 0], [32, 42, 44, 0, 0], [44, 54, 62, 0, 0]]
    cost = cost_s("allreduce", [healthy, late], [1])
    assert 14e-9 < cost < 20e-9
    assert cost == cost_s("allreduce", [healthy, late], [1])
    # Which of the two it is cannot be known: 6 ns in some phase, or none.
    assert 1e-9 < jobs.cost_s("allreduce", [healthy, late], [1])[1] < 5e-9


def test_of_two_ranks_that_hide_each_other_neither_costs_anything_alone(jobs, cost_s):
    # In a halo rank 1 is late before it sends to its neighbours, and rank 3 before the reduction that follows.
    start = [0, 0, 0, 0, 0]
    halo = [
        [start, [0, 10, 31, 0, 0], [31, 41, 42, 0, 0]],
        [start, [0, 30, 31, 20, 0], [31, 41, 42, 0, 0]],
        [start, [0, 10, 31, 0, 0], [31, 41, 42, 0, 0]],
        [start, [0, 10, 11, 0, 0], [11, 41, 42, 20, 0]],
    ]
    assert cost_s("halo", halo, [1]) == cost_s("halo", halo, [3]) == 0
    assert cost_s("halo", halo, [1, 3]) == pytest.approx(20e-9)
    # Sends wait for their receivers; the master serves the workers in their order.
    assert [jobs.needs("ring", 0, rank, 4) for rank in range(2)] == [[0, 1, 3], [0, 1, 2]]
    assert [jobs.needs("master", phase, rank, 3) for phase in (0, 1) for rank in range(3)] == 2 * [
        [0, 1, 2],
        [0, 1],
        [0, 1, 2],
    ]
