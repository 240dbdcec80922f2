"""Leaves of large emulated trees share processes: each is a node of its own all the same."""

import os
import signal

import pytest
from farms import point, wait_until

from crosswind.platform import Platform
from crosswind.run.agents import Launch, Limits, LiveFarm, Task, Work

pytestmark = pytest.mark.live

LEAVES = 70


def leaf(name, parent="r"):
    return {"name": name, "parent": parent, "compute_per_s": 100.0, "receive_limit_mb_per_s": 100.0}


def farm_of(nodes, trace=False):
    root = {"name": "r", "compute_per_s": 0.0}
    platform = Platform.from_dict({"schema_version": 1, "name": "wide", "node": [root, *nodes]})
    launch, limits = Launch(shares=True), Limits(start_s=30.0, silence_s=5.0)
    return LiveFarm(platform, point(order="bandwidth"), Work("emulated"), launch=launch, limits=limits, trace=trace)


def do(farm, tasks):
    for _ in range(tasks):
        farm.submit(Task(bytes(10), 1.0))
    farm.end_of_tasks()
    done = []
    while results := farm.results():
        done += [result.task for result in results]
    return done


def test_the_leaves_of_a_wide_emulated_tree_share_a_process_and_decide_each_for_itself():
    with farm_of([leaf("a"), *(leaf(f"a{number}", "a") for number in range(LEAVES))], trace=True) as farm:
        assert farm.wait_for_agents(30.0)
        assert len({farm.processes.pid(f"a{number}") for number in range(LEAVES)}) == 1
        assert farm.processes.pid("a") != farm.processes.pid("a0")
        assert sorted(do(farm, 300)) == list(range(300))
        summary, _ = farm.close()
        events = farm.replay()
    assert not summary["events"]
    assert sum(node["tasks"] for node in summary["nodes"]) == 300
    assert events.keys() == {"r", "a", *(f"a{number}" for number in range(LEAVES))}


def test_a_shared_process_that_is_killed_is_started_again_with_all_its_nodes():
    with farm_of([leaf(f"a{number}") for number in range(LEAVES)]) as farm:
        assert farm.wait_for_agents(30.0)
        before = farm.processes.pid("a7")
        os.kill(before, signal.SIGKILL)
        wait_until(lambda: farm.processes.pid("a7") != before, "its successor")
        assert farm.processes.pid("a7") == farm.processes.pid("a69")
        assert sorted(do(farm, 300)) == list(range(300))
        summary, _ = farm.close()
    codes = [event["code"] for event in summary["events"]]
    assert codes.count("agent-lost") >= LEAVES
    assert "agent-joined" in codes
