"""What a watched run says of itself: rates, use of links and processors, nodes behind or lost, at times handed in."""

import pytest

from crosswind.plan import plan
from crosswind.platform import Platform
from crosswind.watch.lines import lines_of
from crosswind.watch.state import WatchedRun

ROOT = {"name": "r", "compute_per_s": 1.0}
A = {"name": "a", "parent": "r", "compute_per_s": 4.0, "receive_limit_mb_per_s": 20.0}
B = {"name": "b", "parent": "a", "compute_per_s": 2.0, "receive_limit_mb_per_s": 10.0}
CHAIN = Platform.from_dict({"schema_version": 1, "name": "chain", "node": [ROOT, A, B]})


def started(total=1000, scale=1.0, planned=True, below=None):
    best = plan(CHAIN, task_size_mb=1.0, task_work=1.0).to_dict() if planned else None
    return WatchedRun(CHAIN.to_dict(), total, best, (1.0, 1.0), scale, 0.0, below)


def test_it_is_called_as_its_experiment_and_says_on_which_platform():
    seen = [
        WatchedRun(CHAIN.to_dict(), 9, None, (1.0, 1.0), 1.0, 0.0, name=name).snapshot(1.0) for name in ("study", None)
    ]
    chain = CHAIN.to_dict()["name"]
    assert [(one["name"], one["platform"]) for one in seen] == [("study", chain), (chain, None)]


def ran(run, seconds, **per_second):
    for half in range(2 * seconds):
        for name, rate in per_second.items():
            run.took([name] * (rate // 2), half / 2)
    return run.snapshot(float(seconds))


def node(snapshot, name):
    return next(node for node in snapshot["nodes"] if node["name"] == name)


def test_before_the_first_result_it_is_starting():
    assert started().snapshot(3.0)["state"] == "starting"
    assert lines_of(started().snapshot(3.0)) == ["agents start"]


def test_rates_stand_beside_the_plan_and_a_link_carries_what_is_below_it():
    snapshot = ran(started(), 20, a=4, b=2)
    assert snapshot["state"] == "running"
    assert snapshot["bound_tasks_per_s"] == 7.0
    assert snapshot["tasks_per_s"] == pytest.approx(6.0)
    assert snapshot["left_s"] == pytest.approx((1000 - 120) / 6.0)
    assert node(snapshot, "a")["processor"] == pytest.approx(1.0)
    assert node(snapshot, "a")["planned_processor"] == pytest.approx(1.0)
    assert node(snapshot, "a")["link"] == pytest.approx(6.0 / 20.0)
    assert node(snapshot, "b")["link"] == pytest.approx(0.2)
    assert [row["depth"] for row in snapshot["nodes"]] == [0, 1, 2]


def test_seen_from_a_node_only_it_and_those_below_it_are_there():
    snapshot = ran(started(total=None, below="a"), 20, a=4, b=2)
    assert [(row["name"], row["parent"], row["depth"]) for row in snapshot["nodes"]] == [("a", None, 0), ("b", "a", 1)]
    assert snapshot["bound_tasks_per_s"] == pytest.approx(6.0)  # of the plan's 7, the root computes 1
    assert node(snapshot, "a")["link"] == pytest.approx(6.0 / 20.0)
    assert snapshot["name"] == "chain, a and below"
    assert (snapshot["total"], snapshot["left_s"]) == (None, None)


def test_a_node_below_its_planned_rate_is_behind_and_one_at_it_is_not():
    snapshot = ran(started(), 30, r=2, a=2, b=2)
    assert [node(snapshot, name)["state"] for name in "ab"] == ["behind", "works"]


def test_nothing_is_behind_before_it_could_be_known_or_when_tasks_run_out():
    assert node(ran(started(), 5, r=2, a=2, b=2), "a")["state"] == "works"
    assert node(ran(started(total=190), 30, r=2, a=2, b=2), "a")["state"] == "works"


def test_a_planned_node_that_has_sent_nothing_is_behind():
    assert node(ran(started(), 30, r=2, a=4), "b")["state"] == "behind"


def test_a_lost_node_is_lost_until_a_result_of_it_comes():
    run = started()
    run.took(["a", "b"], 1.0)
    run.happened("agent-lost", "b", "b is lost: silent for 5 s", 2.0)
    snapshot = run.snapshot(3.0)
    assert node(snapshot, "b")["state"] == "lost"
    assert snapshot["events"] == [{"t_s": 2.0, "code": "agent-lost", "message": "b is lost: silent for 5 s"}]
    run.took(["b"], 4.0)
    assert node(run.snapshot(5.0), "b")["state"] == "works"


def test_a_node_that_joins_stands_below_the_root():
    run = started()
    run.took(["a"], 1.0)
    run.happened("agent-joined", "new", "new joined", 2.0)
    run.took(["new"], 3.0)
    assert (node(run.snapshot(4.0), "new")["parent"], node(run.snapshot(4.0), "new")["tasks"]) == ("r", 1)


def test_a_run_in_scaled_time_is_compared_in_the_platforms_seconds():
    run = started(scale=10.0)
    for half in range(40):
        run.took(["a"] * 20, half / 2)
    assert run.snapshot(20.0)["tasks_per_s"] == pytest.approx(4.0)
    assert run.snapshot(20.0)["elapsed_s"] == pytest.approx(200.0)


def test_without_a_plan_nothing_is_compared():
    snapshot = ran(started(total=None, planned=False), 30, r=2, a=2)
    assert (snapshot["bound_tasks_per_s"], snapshot["left_s"]) == (None, None)
    assert {row["state"] for row in snapshot["nodes"]} == {"works", "waits"}
    assert {row["processor"] for row in snapshot["nodes"]} == {None}
    assert lines_of(snapshot)[:2] == ["120 tasks", "4 tasks/s"]


def test_after_the_end_a_node_is_done_or_unused_or_lost():
    run = started(total=60)
    ran(run, 2, a=4, b=2)
    run.happened("agent-lost", "b", "b is lost", 2.0)
    run.happened("agent-joined", "new", "new joined", 2.0)
    assert node(run.snapshot(2.0), "a")["state"] == "works"
    run.end(2.0)
    states = {row["name"]: row["state"] for row in run.snapshot(9.0)["nodes"]}
    assert (states["a"], states["b"], states["new"]) == ("done", "lost", "unused")


def test_the_end_stays_as_it_was():
    run = started(total=60)
    ran(run, 10, a=4, b=2)
    run.end(10.0)
    snapshot = run.snapshot(99.0)
    assert (snapshot["state"], snapshot["elapsed_s"], snapshot["left_s"]) == ("ended", 10.0, 0.0)


def test_the_lines_fit_80_columns_and_name_what_is_behind_and_lost():
    run = started()
    snapshot = ran(run, 30, r=2, a=2, b=2)
    run.happened("agent-lost", "b", "b is lost", 30.0)
    lines = lines_of(run.snapshot(30.0), 80)
    assert lines == [
        "180 of 1000 tasks, 137 s left".replace("137 s", "2 min"),
        "6 tasks/s of at most 7 (86%)",
        "links: a 20%, b 20%",
        "behind: a",
        "lost: b",
    ]
    long = {**snapshot, "nodes": [{**row, "name": row["name"] * 60} for row in snapshot["nodes"]]}
    assert max(map(len, lines_of(long, 80))) <= 80
