"""Claim: a farm whose end is levelled (`policy.level_end`) loses less to the exact bound, with any kind of ports.

And the order `planned` loses hardly more than the default one.

Simulated, 0.3 ms latency, with and without, for each kind of ports:

- the fork of 7 and the tree of 13 nodes of `testbed_farms`, 200 and 1000 tasks of 2, 5 and 10 MB;
- 200 random trees of 3 to 13 nodes (0.5 to 20 tasks/s, links of 2 to 40 MB/s, in 7 of 10 trees nodes that send less
  than all their links would take), 100, 300 and 1000 tasks of 1 and 5 MB;
- 200 whose nodes are further apart (0.03 to 20 tasks/s, links of 0.2 to 50 MB/s, latencies to 20 ms).

`planned_longest` is the longest run in the order `planned` over that in the default order, of all trees.

What real agents do: `farm_on_testbed.py`.

    python benchmarks/level_end.py
"""

from __future__ import annotations

import itertools
import json
import random
import statistics
from typing import Any

import record
from farm_on_testbed import platform

from crosswind import Platform, _core, plan

LATENCY_S = 0.0003
TREES = 200
PORTS = ("single", "multi")


def of_bound(
    farm: Platform, ports: str, task_mb: float, tasks: int, *, level_end: bool, order: str = "interference"
) -> float:
    """Throughput of a simulated run, of the exact bound for its ports."""
    point = {
        "schema_version": 1,
        "name": "level end",
        "platform": "platform.toml",
        "workload": {"kind": "farm", "tasks": tasks, "task_size_mb": task_mb, "task_work": 1.0},
        "policy": {"ports": ports, "level_end": level_end, "order": order},
    }
    summary, _ = _core.simulate(farm._checked, json.dumps(point))
    bound = plan(farm, task_size_mb=task_mb, task_work=1.0, ports=ports).bound_tasks_per_s
    return float(tasks / json.loads(summary)["makespan_s"] / bound)


def on_testbed(tree: str) -> Platform:
    described = platform(tree)
    for node in described["node"]:
        if "parent" in node:
            node["latency_s"] = LATENCY_S
    return Platform.from_dict(described)


def drawn(rng: random.Random, *, apart: bool) -> Platform:
    """Return a tree whose nodes differ, or are far apart."""
    root = {"name": "n0", "compute_per_s": rng.choice([0.0, rng.uniform(0.5, 5.0)])}
    nodes: list[dict[str, Any]] = [root]
    for n in range(1, rng.randint(3, 13)):
        compute, link = rng.uniform(0.5, 20.0), rng.uniform(2.0, 40.0)
        latency = LATENCY_S
        if apart:
            compute, link = 10 ** rng.uniform(-1.5, 1.3), 10 ** rng.uniform(-0.7, 1.7)
            latency = rng.choice([LATENCY_S, 0.02])
        rates = {"compute_per_s": compute, "receive_limit_mb_per_s": link}
        nodes.append({"name": f"n{n}", "parent": f"n{rng.randrange(n)}", "latency_s": latency, **rates})
    is_scarce = rng.random() < 0.7
    for node in nodes:
        links = [child["receive_limit_mb_per_s"] for child in nodes if child.get("parent") == node["name"]]
        if links and is_scarce:
            node["send_limit_mb_per_s"] = rng.uniform(max(links), max(sum(links), 1.01 * max(links)))
    return Platform.from_dict({"schema_version": 1, "name": "drawn", "node": nodes})


def over_random_trees(ports: str, tasks: int, task_mb: float, *, apart: bool) -> dict[str, Any]:
    """Losses to the bound on average, and the largest makespan of one way over another's."""
    rng = random.Random(1)
    without, level, planned = [], [], []
    for _ in range(TREES):
        farm = drawn(rng, apart=apart)
        without.append(of_bound(farm, ports, task_mb, tasks, level_end=False))
        level.append(of_bound(farm, ports, task_mb, tasks, level_end=True))
        planned.append(of_bound(farm, ports, task_mb, tasks, level_end=True, order="planned"))

    def lost(many: list[float]) -> float:
        return statistics.fmean(1.0 / of - 1.0 for of in many)

    def longest(many: list[float], beside: list[float]) -> float:
        return max(b / a for a, b in zip(many, beside, strict=True))

    return {
        "apart": apart,
        "ports": ports,
        "tasks": tasks,
        "task_mb": task_mb,
        "lost": lost(without),
        "lost_level": lost(level),
        "longest": longest(level, without),
        "lost_planned": lost(planned),
        "planned_longest": longest(planned, level),
    }


def is_won(trees: list[dict[str, Any]]) -> bool:
    """Whether half of what is lost over all trees is won, and no run takes more than 2 % longer."""
    lost, level = (sum(of[name] for of in trees) for name in ("lost", "lost_level"))
    return level <= 0.5 * lost and max(of["longest"] for of in trees) <= 1.02


def main() -> None:
    cases = []
    for tree, ports, tasks, task_mb in itertools.product(("fork7", "tree13"), PORTS, (200, 1000), (2.0, 5.0, 10.0)):
        farm = on_testbed(tree)
        without, level = (of_bound(farm, ports, task_mb, tasks, level_end=on) for on in (False, True))
        told = f"{tree}, {ports}, {tasks} tasks of {task_mb:g} MB"
        print(f"{told}: {100 * without:.1f} -> {100 * level:.1f} % of the bound", flush=True)
        case = {"tree": tree, "ports": ports, "tasks": tasks, "task_mb": task_mb}
        cases.append({**case, "without": without, "level_end": level})
    trees = []
    for apart, ports, tasks, task_mb in itertools.product((False, True), PORTS, (100, 300, 1000), (1.0, 5.0)):
        of = over_random_trees(ports, tasks, task_mb, apart=apart)
        told = f"{TREES} trees{', far apart' * apart}, {ports}, {tasks} tasks of {task_mb:g} MB"
        losses = f"loses {100 * of['lost']:.1f} -> {100 * of['lost_level']:.1f} %"
        planned = f"planned {100 * of['lost_planned']:.1f} %, {of['planned_longest']:.3f}"
        print(f"{told}: {losses}, at most {of['longest']:.3f} times as long; {planned}", flush=True)
        trees.append(of)
    holds = all(is_won([of for of in trees if of["ports"] == ports and of["tasks"] >= 300]) for ports in PORTS)
    record.write("level_end", [], latency_s=LATENCY_S, trees=TREES, holds=holds, cases=cases, random_trees=trees)


if __name__ == "__main__":
    main()
