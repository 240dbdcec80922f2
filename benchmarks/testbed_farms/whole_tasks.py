"""What a run of so many tasks can reach of the exact bound: tasks are whole, and the first ones have to get there.

The exact bound is the rate in mid-run. A run starts with empty nodes and cannot end with parts of tasks. In a run of
`T` seconds a node that its first task reaches after `a` s (sent link after link, each whole before it goes on) computes
at most `floor((T - a) r)` tasks at `r` per second; a link or a card carries at most what has left early enough for the
fastest computer below to be done with it by `T`. The least `T` with room for all tasks is a lower bound of every
schedule that sends tasks down the tree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

ROUNDING = 1e-9


def shortest_s(platform: Mapping[str, Any], task_mb: float, tasks: int) -> float:
    """Return seconds below which no run of so many tasks can be, several ports, without interference.

    `platform` as in `platform.toml`, in tasks per second.
    """
    nodes = {node["name"]: node for node in platform["node"]}
    children: dict[str | None, list[str]] = {}
    for name, node in nodes.items():
        children.setdefault(node.get("parent"), []).append(name)
    [root] = children[None]

    def send_s(name: str) -> float:
        return task_mb / float(nodes[name]["receive_limit_mb_per_s"])

    def first_s(name: str) -> float:
        """When the first task is there."""
        return 0.0 if name == root else first_s(nodes[name]["parent"]) + send_s(name)

    def last_s(name: str) -> float:
        """How long before the end the last task has to be there."""
        rate = nodes[name]["compute_per_s"]
        below = (send_s(child) + last_s(child) for child in children.get(name, []))
        return min(1.0 / rate if rate > 0.0 else math.inf, *below, math.inf)

    def whole(seconds: float, rate: float) -> float:
        return math.floor(max(seconds, 0.0) * rate + ROUNDING) if rate < math.inf else math.inf

    def most(name: str, time_s: float) -> float:
        """Tasks that a node and those below it can be done with."""
        node, below = nodes[name], children.get(name, [])
        found = whole(time_s - first_s(name), node["compute_per_s"])
        if below:
            card = node.get("send_limit_mb_per_s", math.inf) / task_mb
            in_time_s = time_s - first_s(name) - min(map(last_s, below))
            found += min(sum(most(child, time_s) for child in below), whole(in_time_s, card))
        if name != root:
            found = min(found, whole(time_s - first_s(node["parent"]) - last_s(name), 1.0 / send_s(name)))
        return found

    low, high = 0.0, 1.0
    while most(root, high) < tasks:
        high *= 2.0
    while high - low > 1e-9 * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if most(root, middle) >= tasks else (middle, high)
    return high
