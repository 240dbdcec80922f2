"""A watched farm of real agents: the page hears results by node, and which agent was lost."""

import json
import signal
import time
import urllib.error
import urllib.request

import pytest

from crosswind.experiment import Experiment
from crosswind.platform import Platform
from crosswind.run.farm import Farm
from crosswind.run.grid import run

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


def read(address, path=""):
    with urllib.request.urlopen(address + path, timeout=20) as page:
        return page.read().decode()


def test_a_farm_says_where_its_page_is_which_stays_until_the_next_one_has_ended(capsys):
    addresses = []
    for numbers in (2, 3):
        with Farm(TREE, watch=True) as farm:
            address = capsys.readouterr().err.removeprefix("watch: ").strip()
            addresses.append(address)
            assert "<title>A run, live</title>" in read(address)
            assert list(farm.map(abs, range(numbers))) == list(range(numbers))
        assert "<title>A run, live</title>" in read(address)
        last = json.loads(read(address, "events").split("\n")[0].removeprefix("data: "))
        assert (last["state"], last["done"]) == ("ended", numbers)
        assert {node["state"] for node in last["nodes"]} <= {"done", "unused"}
        assert read(address, "events").strip().endswith("event: over\ndata: {}")
    with pytest.raises(urllib.error.URLError):
        read(addresses[0])


def test_an_experiment_is_compared_with_its_plan_in_the_platforms_seconds():
    described = {
        "schema_version": 1,
        "name": "watched",
        "platform": TREE.to_dict(),
        "workload": {"kind": "farm", "tasks": 60, "task_size_mb": 0.01, "task_work": 1.0},
        "execution": {"compute": "emulated", "time_scale": 20},
    }
    with Watch() as watch:
        done = run(Experiment.from_dict(described), "local", watch=watch)[0]
        last = watch.snapshot()
    assert (last["state"], last["done"], last["total"]) == ("ended", 60, 60)
    assert last["bound_tasks_per_s"] == pytest.approx(done.bound_tasks_per_s)
    assert 0 < last["tasks_per_s"] <= 1.2 * last["bound_tasks_per_s"]
    assert {node["name"]: node["tasks"] for node in last["nodes"]} == {
        n["name"]: n["tasks"] for n in done.data["nodes"]
    }


def states(watch):
    return {node["name"]: node["state"] for node in watch.snapshot().get("nodes", [])}


def test_a_killed_agent_is_lost_and_works_again_once_it_is_back():
    with Watch() as watch, Farm(TREE, watch=watch) as farm:
        first = [farm.submit(time.sleep, 0.01) for _ in range(40)]
        until(lambda: states(watch) == {"r": "sends", "a": "works", "b": "works"})
        [future.result(60) for future in first]
        farm._run.live.processes.signal("b", signal.SIGKILL)
        # Its state is "lost" only until it is back, on a quiet host 0.2 s.
        until(lambda: any(event["code"] == "agent-lost" for event in watch.snapshot()["events"]))
        again = [farm.submit(time.sleep, 0.02) for _ in range(400)]
        until(lambda: states(watch)["b"] == "works")
        for future in again:
            future.cancel()
    assert watch.snapshot()["state"] == "ended"
    assert sum(node["tasks"] for node in watch.snapshot()["nodes"]) == watch.snapshot()["done"] >= 40
