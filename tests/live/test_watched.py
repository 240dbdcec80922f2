"""A watched farm of real agents: the page hears results by node, and which agent was lost."""

import signal
import time

import pytest

from crosswind.platform import Platform
from crosswind.run.farm import Farm

pytest.importorskip("tornado", reason="tornado is not installed")
from crosswind.watch import Watch

pytestmark = pytest.mark.live

ROOT = {"name": "r", "compute_per_s": 0.0}
LEAF = {"parent": "r", "compute_per_s": 1.0, "receive_limit_mb_per_s": 100.0}
TREE = Platform.from_dict(
    {"schema_version": 1, "name": "t", "node": [ROOT, {"name": "a", **LEAF}, {"name": "b", **LEAF}]}
)


def until(what):
    begun = time.monotonic()
    while not (found := what()):
        assert time.monotonic() - begun < 60
        time.sleep(0.02)
    return found


def states(watch):
    return {node["name"]: node["state"] for node in watch.snapshot().get("nodes", [])}


def test_a_killed_agent_is_lost_and_works_again_once_it_is_back():
    with Watch() as watch, Farm(TREE, watch=watch) as farm:
        first = [farm.submit(time.sleep, 0.01) for _ in range(40)]
        until(lambda: states(watch) == {"r": "sends", "a": "works", "b": "works"})
        [future.result(60) for future in first]
        farm._live.processes.signal("b", signal.SIGKILL)
        until(lambda: states(watch)["b"] == "lost")
        assert any(event["code"] == "agent-lost" for event in watch.snapshot()["events"])
        again = [farm.submit(time.sleep, 0.02) for _ in range(400)]
        until(lambda: states(watch)["b"] == "works")
        for future in again:
            future.cancel()
    assert watch.snapshot()["state"] == "ended"
    assert sum(node["tasks"] for node in watch.snapshot()["nodes"]) == watch.snapshot()["done"] >= 40
