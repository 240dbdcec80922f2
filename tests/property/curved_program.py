"""Trees whose losses bend, and two oracles of their plan, independent of it: a grid of rates, a mixed-integer program.

Both are written from docs/reference/files.md: a node that receives T tasks/s and sends x_i computes at most
C (1 - L_r(T Z) - sum L_i(x_i Z)), and no less than 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

Points = list[list[float]]


@dataclass
class Node:
    parent: int
    compute: float
    limit: float = 0.0
    send: float = np.inf
    drop: float = 0.0
    receive_losses: Points = field(default_factory=list)
    send_losses: Points = field(default_factory=list)


def platform(nodes: list[Node]) -> dict[str, Any]:
    """Return the tree as the content of a platform.toml."""
    described: list[dict[str, Any]] = []
    for at, node in enumerate(nodes):
        one: dict[str, Any] = {"name": f"n{at}", "compute_per_s": node.compute}
        if np.isfinite(node.send):
            one["send_limit_mb_per_s"] = node.send
        if at:
            one |= {"parent": f"n{node.parent}", "receive_limit_mb_per_s": node.limit, "receive_limit_drop": node.drop}
            one |= {"receive_losses": node.receive_losses, "send_losses": node.send_losses}
        described.append(one)
    return {"schema_version": 1, "name": "curves", "node": described}


def curve(random: np.random.Generator, shape: str, top: float, loss: float) -> Points:
    """Draw a loss of `loss` at about `top`: convex, concave, with a knee, or one that also falls."""
    count = int(random.integers(1, 7))
    reach = top * random.uniform(0.5, 1.2)
    rates = np.sort(random.uniform(0.05, 1.0, count)) * reach
    part = rates / reach
    match shape:
        case "convex":
            losses = loss * part ** random.uniform(1.2, 4)
        case "concave":
            losses = loss * part ** random.uniform(0.1, 0.9)
        case "kinked":
            losses = loss * np.cumsum(random.exponential(1, count) * (random.random(count) < 0.6)) / count
        case _:
            losses = loss * random.uniform(0, 1, count)
    return [[float(rate), float(lost)] for rate, lost in zip(rates, losses, strict=True)]


def draw(random: np.random.Generator, count: int, shape: str, is_fork: bool, most: float = 1.3) -> list[Node]:
    """Draw a tree; most losses have the shape and are at most about `most`, some are lines."""
    nodes = [Node(-1, float(random.choice([0.0, 1.0, 1.0, 1.0])) * random.uniform(1, 20))]
    for at in range(1, count):
        parent = 0 if is_fork else int(random.integers(max(0, at - 4), at))
        node = Node(parent, random.uniform(0.5, 15), random.uniform(1, 15))
        if random.random() < 0.1:
            node.compute = 0.0
        for name in ("receive_losses", "send_losses"):
            if random.random() < 0.75:
                setattr(node, name, curve(random, shape, node.limit, random.uniform(0.02, most)))
        if random.random() < 0.2:
            node.drop = random.uniform(0.1, 1)
        nodes.append(node)
    for node in nodes:
        if random.random() < 0.4:
            node.send = random.uniform(1, 20)
    return nodes


def whole(points: Points, limit: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the loss from 0 to the link's limit: on lines between the points, beyond the last in proportion."""
    if not points:
        return np.array([0.0, limit]), np.zeros(2)
    rates, losses = np.array([[0.0, 0.0], *points]).T
    if limit > rates[-1]:
        losses = np.append(losses, losses[-1] / rates[-1] * limit)
        rates = np.append(rates, limit)
    inside = rates < limit
    return np.append(rates[inside], limit), np.append(losses[inside], np.interp(limit, rates, losses))


def grid(nodes: list[Node], steps: int) -> float:
    """Return the most tasks/s of a fork over a grid of constant rates, for 1 MB and 1 unit a task: at most the best."""
    sent, lost = np.zeros(1), np.zeros(1)
    root = nodes[0]
    for node in nodes[1:]:
        rates = np.linspace(0, node.limit, steps)
        for points in (node.receive_losses, node.send_losses):
            rates = np.union1d(rates, [p[0] for p in points if p[0] < node.limit])
        own = node.compute * (1 - np.interp(rates, *whole(node.receive_losses, node.limit)))
        rates = rates[(own >= rates) | (rates == 0)]  # a leaf computes all that it receives
        cost = np.interp(rates, *whole(node.send_losses, node.limit))
        sent = (sent[:, None] + rates).ravel()
        lost = (lost[:, None] + cost).ravel()
        keep = (sent <= root.send) & ((lost <= 1) | (root.compute == 0))
        sent, lost = sent[keep], lost[keep]
    return float(np.max(sent + root.compute * np.maximum(0, 1 - lost)))


def program(nodes: list[Node], ports: str, gap: float = 1e-7) -> float:
    """Return the most tasks/s of constant rates by HiGHS, for 1 MB and 1 unit a task; a bound if it stops early."""
    costs: list[float] = []
    lower: list[float] = []
    upper: list[float] = []
    integral: list[int] = []
    rows: list[dict[int, float]] = []
    most: list[float] = []

    def variable(high: float, whole: bool = False) -> int:
        costs.append(0.0)
        lower.append(0.0)
        upper.append(high)
        integral.append(int(whole))
        return len(costs) - 1

    def at_most(row: dict[int, float], value: float) -> None:
        rows.append(row)
        most.append(value)

    def equal(row: dict[int, float], value: float) -> None:
        at_most(row, value)
        at_most({at: -of for at, of in row.items()}, -value)

    everything = sum(node.compute for node in nodes)
    taken = [variable(node.limit if at else everything) for at, node in enumerate(nodes)]

    def lost(flow: int, points: Points, limit: float) -> dict[int, float]:
        """Return the loss at a flow as a row, with one line of the curve chosen."""
        rates, losses = whole(points, limit)
        if ports == "single":
            return {flow: losses[-1] / limit}
        row: dict[int, float] = {}
        chosen, parts = {}, {flow: -1.0}
        for low, high, at_low, at_high in zip(rates, rates[1:], losses, losses[1:], strict=False):
            pick, part = variable(1, True), variable(high)
            chosen[pick] = 1.0
            parts[part] = 1.0
            at_most({part: 1.0, pick: -high}, 0)
            at_most({part: -1.0, pick: low}, 0)
            slope = (at_high - at_low) / (high - low)
            row |= {pick: at_low - slope * low, part: slope}
        equal(chosen, 1)
        equal(parts, 0)
        return row

    for at, node in enumerate(nodes):
        children = [n for n, child in enumerate(nodes) if child.parent == at]
        if node.compute:
            own = {taken[at]: 1.0} | {taken[n]: -1.0 for n in children}
            losses = [(taken[n], nodes[n].send_losses, nodes[n].limit) for n in children]
            losses += [(taken[at], node.receive_losses, node.limit)] if at else []
            for one in losses:
                for name, of in lost(*one).items():
                    own[name] = own.get(name, 0.0) + node.compute * of
            at_most(own, node.compute)
        else:
            at_most({taken[at]: 1.0} | {taken[n]: -1.0 for n in children}, 0)
        at_most({taken[n]: 1.0 for n in children} | {taken[at]: -1.0}, 0)
        if at:
            at_most({taken[at]: 1.0} | {taken[n]: node.drop for n in children}, node.limit)
        if ports == "single":
            at_most({taken[n]: 1 / nodes[n].limit for n in children}, 1)
        elif np.isfinite(node.send):
            at_most({taken[n]: 1.0 for n in children}, node.send)
    costs[taken[0]] = -1.0
    matrix = np.zeros((len(rows), len(costs)))
    for at, row in enumerate(rows):
        for name, of in row.items():
            matrix[at, name] = of
    found = milp(
        costs,
        integrality=integral,
        bounds=Bounds(lower, upper),
        constraints=LinearConstraint(matrix, -np.inf, most),
        options={"mip_rel_gap": gap, "time_limit": 60},
    )
    dual = getattr(found, "mip_dual_bound", None)
    return -float(found.fun if dual is None or found.status == 0 else dual)


def excess(nodes: list[Node], plan: dict[str, Any]) -> float:
    """Return by how much the plan's own rates break what must hold, as a part of its throughput: 0 but for rounding."""
    planned = plan["nodes"]
    worst = 0.0
    for at, node in enumerate(nodes):
        children = [n for n, child in enumerate(nodes) if child.parent == at]
        received, computed = planned[at]["received_tasks_per_s"], planned[at]["computed_tasks_per_s"]
        flows = [planned[n]["received_tasks_per_s"] for n in children]
        left = 1.0
        for flow, n in zip(flows, children, strict=True):
            left -= np.interp(flow, *whole(nodes[n].send_losses, nodes[n].limit))
        if at:
            left -= np.interp(received, *whole(node.receive_losses, node.limit))
            worst = max(worst, received + node.drop * sum(flows) - node.limit)
        worst = max(worst, sum(flows) - node.send, abs(received - computed - sum(flows)), -computed)
        worst = max(worst, computed - node.compute * left)
    return worst / max(plan["throughput_tasks_per_s"], 1e-9)
