"""Claim: a farm whose end is levelled (`policy.level_end`) loses less to the exact bound, on both testbed trees.

Simulated, the fork of 7 and the tree of 13 nodes of `testbed_farms`, one port, 0.3 ms latency, 200 and 1000 tasks of 2,
5 and 10 MB, with and without. What real agents do on them: `farm_on_testbed.py`.

    python benchmarks/level_end.py
"""

from __future__ import annotations

import itertools
import json

import record
from farm_on_testbed import FARMS, platform

from crosswind import Platform, _core, plan

LATENCY_S = 0.0003


def of_bound(tree: str, task_mb: float, tasks: int, *, level_end: bool) -> float:
    """Throughput of a simulated run, of the exact bound."""
    spec = json.loads((FARMS / f"{tree}.json").read_text())
    described = platform(tree, spec, spec["links"][0]["from"])
    for node in described["node"]:
        if "parent" in node:
            node["latency_s"] = LATENCY_S
    farm = Platform.from_dict(described)
    point = {
        "schema_version": 1,
        "name": tree,
        "platform": "platform.toml",
        "workload": {"kind": "farm", "tasks": tasks, "task_size_mb": task_mb, "task_work": 1.0},
        "policy": {"level_end": level_end},
    }
    summary, _ = _core.simulate(farm._checked, json.dumps(point))
    bound = plan(farm, task_size_mb=task_mb, task_work=1.0, ports="single").bound_tasks_per_s
    return float(tasks / json.loads(summary)["makespan_s"] / bound)


def main() -> None:
    cases = []
    for tree, tasks, task_mb in itertools.product(("fork7", "tree13"), (200, 1000), (2.0, 5.0, 10.0)):
        without, level = (of_bound(tree, task_mb, tasks, level_end=on) for on in (False, True))
        print(
            f"{tree} {tasks} tasks of {task_mb:g} MB: {100 * without:.1f} -> {100 * level:.1f} % of the bound",
            flush=True,
        )
        cases.append({"tree": tree, "tasks": tasks, "task_mb": task_mb, "without": without, "level_end": level})
    holds = all(case["level_end"] >= case["without"] for case in cases)
    record.write("level_end", [], latency_s=LATENCY_S, holds=holds, cases=cases)


if __name__ == "__main__":
    main()
