"""Claim: when a worker is killed, a farm loses less than two tasks' time per node.

Farms on the testbed's two trees (`testbed_farms/`, which needs root), tasks of 2 MB and 50 ms of a core; the root only
sends. In mid-run an agent is killed with SIGKILL: a leaf of the fork, a leaf of the third level, and an inner node. It
stays away, and those below an inner node are of no use then; or it is started again, as `Launch` does. Lost is what the
exact bound of the tree that is left (the whole one, where it is started again) would have delivered in the window after
the kill, less what was delivered in it; the same for the window before the kill says how much of that the farm loses
anyway. The window is what the slowest node takes for ten tasks.

    python benchmarks/recovery.py [runs]
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import signal
import statistics
import sys
import threading
import time
from typing import Any

import record
from farm_on_testbed import FARMS, platform
from testbed_farms.kernel import CORE_S
from testbed_farms.nodes import Testbed, missing

from crosswind import Platform, plan
from crosswind.errors import AgentLost
from crosswind.run.agents import Launch, LiveFarm, Task, Work

sys.path.insert(0, str(FARMS))
import kernel

NAME = "recovery"
SIZE_MB = 2.0
MOST_LOST_PER_NODE = 2.0
SLOWEST_TASKS = 10
CASES = (("fork7", "Lab3"), ("tree13", "x1"), ("tree13", "x"))


def without(described: dict[str, Any], lost: str) -> dict[str, Any]:
    """Return the tree that is left: those below the lost node are lost, too."""
    gone = {lost}
    for node in described["node"]:  # parents first
        if node.get("parent") in gone:
            gone.add(node["name"])
    return {**described, "node": [node for node in described["node"] if node["name"] not in gone]}


def bound_of(described: dict[str, Any]) -> float:
    """Tasks per second of the exact plan."""
    found = plan(Platform.from_dict(described), task_size_mb=SIZE_MB, task_work=1.0, ports="single")
    return float(found.bound_tasks_per_s)


def one(tree: str, lost: str, again: bool) -> dict[str, Any]:
    """Kill one worker in mid-run."""
    with Testbed(FARMS / f"{tree}.json") as bed:
        described = platform(tree, bed.spec, bed.root)
        described["node"][0]["compute_per_s"] = 0.0
        left = described if again else without(described, lost)
        before, after = bound_of(described), bound_of(left)
        window_s = SLOWEST_TASKS * CORE_S / min(node["cpu"] for node in bed.spec["nodes"].values())
        workload = {"kind": "farm", "tasks": 1000, "task_size_mb": SIZE_MB, "task_work": 1.0}
        policy = {"order": "interference", "ports": "single"}
        point = {"schema_version": 1, "name": NAME, "platform": "", "workload": workload, "policy": policy}
        launch = Launch(prefix=bed.on, address=bed.addresses.__getitem__, again=again)
        farm = LiveFarm(Platform.from_dict(described), point, Work("callable", function=kernel.work), launch=launch)
        over = threading.Event()
        came: list[float] = []
        killed_at = 0.0
        with bed.entered(bed.root):
            farm.start()
        try:
            begun = time.monotonic()

            def feed() -> None:
                with contextlib.suppress(AgentLost):  # the farm is over, and this one waits to hand over
                    for data in kernel.tasks(100_000, round(SIZE_MB * 1e6)):
                        if over.is_set():
                            break
                        farm.submit(Task(pickle.dumps(data, protocol=pickle.HIGHEST_PROTOCOL), 1.0))

            feeder = threading.Thread(target=feed, daemon=True)
            feeder.start()
            while not killed_at or time.monotonic() < killed_at + window_s:
                for result in farm.results(0.1):
                    assert result.ok, result.data
                    came.append(time.monotonic())
                # The start is not measured: as long again as the window before the kill.
                if not killed_at and time.monotonic() > begun + 2.0 * window_s:
                    killed_at = time.monotonic()
                    farm.processes.signal(lost, signal.SIGKILL)
        finally:
            over.set()
            farm.__exit__(RuntimeError, None, None)
    in_window = {
        "before": sum(killed_at - window_s <= at < killed_at for at in came),
        "after": sum(killed_at <= at < killed_at + window_s for at in came),
    }
    lost_tasks = {"before": before * window_s - in_window["before"], "after": after * window_s - in_window["after"]}
    return {
        "tree": tree,
        "killed": lost,
        "started_again": again,
        "window_s": window_s,
        "bound_before_tasks_per_s": before,
        "bound_after_tasks_per_s": after,
        "delivered": in_window,
        "lost_tasks_before_per_node": lost_tasks["before"] / len(described["node"]),
        "lost_tasks_per_node": lost_tasks["after"] / len(left["node"]),
    }


def main() -> None:
    if why := missing():
        print(f"skipped: {why}")
        return
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    os.environ["PYTHONPATH"] = os.pathsep.join([str(FARMS), *filter(None, sys.path)])  # where agents find the work
    cases = []
    for (tree, lost), again in itertools.product(CASES, (False, True)):
        found = []
        for _ in range(runs):
            found.append(one(tree, lost, again))
            print(found[-1], flush=True)
        median = statistics.median(run["lost_tasks_per_node"] for run in found)
        reached = max(run["lost_tasks_per_node"] for run in found) < MOST_LOST_PER_NODE
        case = {"tree": tree, "killed": lost, "started_again": again}
        cases.append({**case, "lost_tasks_per_node": median, "reached": reached, "runs": found})
    record.write(NAME, ["numpy", "cloudpickle"], cases=cases)


if __name__ == "__main__":
    main()
