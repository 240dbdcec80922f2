"""The steady state of a tree as one linear program for HiGHS, written independently of the planner.

One variable per node: T_n, the tasks per second that it receives (the root: takes from its store). The rows are those
of interference-aware-scheduling, section 3.2, with E0-5, for the whole tree at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import highspy
import numpy as np
from numpy.typing import NDArray

from crosswind import _core

Ports = Literal["single", "multi"]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Columns:
    """A platform without names, one value per node; node 0 is the root and parents come before their children."""

    parent: NDArray[np.int32]
    compute_per_s: Floats
    send_limit_mb_per_s: Floats
    receive_limit_mb_per_s: Floats
    receive_limit_drop: Floats
    ir_receive_s_per_mb: Floats
    ir_send_s_per_mb: Floats
    task_size_mb: float
    task_work: float
    result_size_mb: float = 0.0

    def plan(self, ports: Ports, method: str = "exact") -> dict[str, Any]:
        """The planner's answer, its columns as arrays."""
        rates = _core.plan_rates(
            self.parent,
            self.compute_per_s,
            self.send_limit_mb_per_s,
            self.receive_limit_mb_per_s,
            self.receive_limit_drop,
            self.ir_receive_s_per_mb,
            self.ir_send_s_per_mb,
            self.task_size_mb,
            self.task_work,
            ports,
            method,
            self.result_size_mb,
        )
        kinds = {"rank": np.uint32, "never_send": np.bool_, "limited_by": np.uint8}
        return {
            key: np.frombuffer(value, kinds.get(key, np.float64)) if isinstance(value, bytes) else value
            for key, value in rates.items()
        }

    def changed(self, field: str, node: int, factor: float) -> Columns:
        """The same with one value multiplied."""
        values = getattr(self, field).copy()
        values[node] *= factor
        return replace(self, **{field: values})


@dataclass(frozen=True)
class Program:
    """Rows `lower <= A T <= upper` of a tree; A by its entries."""

    row: NDArray[np.int32]
    column: NDArray[np.int32]
    value: Floats
    lower: Floats
    upper: Floats

    def activity(self, flows: Floats) -> Floats:
        """A T."""
        return np.bincount(self.row, self.value * flows[self.column], minlength=len(self.lower))

    def excess(self, flows: Floats) -> float:
        """How far flows break a row at most, relative to the terms that meet in it."""
        activity = self.activity(flows)
        scale = np.bincount(self.row, np.abs(self.value * flows[self.column]), minlength=len(self.lower))
        broken = np.maximum(self.lower - activity, activity - self.upper)
        return float(np.max(broken / np.maximum(scale, 1e-300), initial=0.0, where=scale > 0.0))


def program(columns: Columns, ports: Ports) -> Program:
    """The rows of a tree: five per node, those that say nothing left open."""
    count = len(columns.parent)
    size, work, result = columns.task_size_mb, columns.task_work, columns.result_size_mb
    moved = size + result  # each task crosses its links twice
    compute = columns.compute_per_s / work
    receive = columns.receive_limit_mb_per_s / size
    send = columns.send_limit_mb_per_s / size
    below = np.arange(1, count, dtype=np.int32)
    above = columns.parent[1:]
    every = np.arange(count, dtype=np.int32)
    rho = columns.ir_receive_s_per_mb * moved * compute
    rho[0] = 0.0
    cost = columns.ir_send_s_per_mb[1:] * moved * compute[above]
    port = 1.0 / receive[1:] if ports == "single" else np.ones(count - 1)
    # (1) (1 + rho) T - sum T_i (1 - cost_i) <= C      (2) T + drop sum T_i <= receive, not at the root
    # (3) T - sum T_i >= 0                             (4) sum port_i T_i <= the port's room
    # (6) T Z' <= the link, not at the root: one more row per node, after all others
    row = [4 * every, 4 * above, 4 * below + 1, 4 * above + 1, 4 * every + 2, 4 * above + 2, 4 * above + 3]
    row.append(4 * count + below)
    column = [every, below, below, below, every, below, below, below]
    drop = np.where(above > 0, columns.receive_limit_drop[above], 0.0)
    value = [1.0 + rho, cost - 1.0, np.ones(count - 1), drop, np.ones(count), -np.ones(count - 1), port]
    value.append(np.full(count - 1, result))
    lower = np.full(5 * count, -np.inf)
    upper = np.full(5 * count, np.inf)
    upper[0 : 4 * count : 4] = compute
    upper[5 : 4 * count : 4] = receive[1:]
    lower[2 : 4 * count : 4] = 0.0
    upper[3 : 4 * count : 4] = 1.0 if ports == "single" else send
    upper[4 * count + 1 :] = columns.receive_limit_mb_per_s[1:]
    entries = np.concatenate(value)
    kept = entries != 0.0
    return Program(
        np.concatenate(row).astype(np.int32)[kept],
        np.concatenate(column).astype(np.int32)[kept],
        entries[kept],
        lower,
        upper,
    )


def quiet_highs() -> highspy.Highs:
    """A solver that prints nothing, on one thread, with the tightest tolerances that it takes."""
    highs = highspy.Highs()
    for option, setting in {
        "output_flag": False,
        "threads": 1,
        "primal_feasibility_tolerance": 1e-10,
        "dual_feasibility_tolerance": 1e-10,
    }.items():
        highs.setOptionValue(option, setting)
    return highs


def load(highs: highspy.Highs, rows: Program, count: int) -> None:
    """Hand the program to the solver, in arrays, row by row."""
    order = np.argsort(rows.row, kind="stable")
    start = np.zeros(len(rows.lower) + 1, dtype=np.int32)
    np.cumsum(np.bincount(rows.row, minlength=len(rows.lower)), out=start[1:])
    cost = np.zeros(count)
    cost[0] = 1.0
    status = highs.passModel(
        count,
        len(rows.lower),
        len(rows.value),
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMaximize),
        0.0,
        cost,
        np.zeros(count),
        np.full(count, highspy.kHighsInf),
        rows.lower,
        rows.upper,
        start,
        rows.column[order],
        rows.value[order],
        np.zeros(count, dtype=np.int32),  # all continuous
    )
    assert status == highspy.HighsStatus.kOk


def optimum(highs: highspy.Highs, columns: Columns, ports: Ports) -> float:
    """The most tasks per second, by HiGHS."""
    load(highs, program(columns, ports), len(columns.parent))
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(highs.getObjectiveValue())


def random_columns(random: np.random.Generator, levels: int, count: int, kind: str) -> Columns:
    """A random tree of at most `levels` levels.

    `kind` says what its values are like: "measured" as in the papers, "starved" so that computation runs out before the
    port (E0-4), "degenerate" from a few round numbers with zeros and ties, "wide-ranging" over many powers of ten.
    """
    parent = np.full(count, -1, dtype=np.int32)
    level = np.zeros(count, dtype=np.int64)
    deep = random.random() < 0.5  # half the trees grow down, half sideways
    for node in range(1, count):
        allowed = np.flatnonzero(level[:node] < levels - 1)
        late = allowed[-4:] if deep else allowed
        parent[node] = random.choice(late)
        level[node] = level[parent[node]] + 1

    def uniform(low: float, high: float) -> Floats:
        return random.uniform(low, high, count)

    size, work = float(random.choice([0.5, 2.0, 5.0, 10.0])), float(random.integers(1, 12))
    compute, receive, send = uniform(1.0, 30.0), uniform(0.2, 60.0), uniform(1.0, 80.0)
    drop, ir_receive, ir_send = uniform(0.0, 1.5), uniform(0.0, 0.13), uniform(0.0, 0.07)
    above = np.maximum(parent, 0)
    match kind:
        case "measured":
            drop = np.where(random.random(count) < 0.5, 0.0, drop)
        case "starved":
            compute = np.where(random.random(count) < 0.3, compute, 0.05 * compute)
            receive = 10.0 ** uniform(0.0, 3.0)
            ir_send = uniform(0.0, 1.1) / (size * compute[above] / work)
            drop = np.where(random.random(count) < 0.5, 0.0, 0.3 * drop)
        case "degenerate":
            size, work = 1.0, 1.0
            compute = random.choice([0.0, 1.0, 2.0, 4.0], count)
            receive, send = random.choice([1.0, 2.0, 4.0], count), random.choice([1.0, 2.0, 4.0, np.inf], count)
            ir_send, ir_receive = random.choice([0.0, 0.125, 0.25, 0.5], (2, count))
            drop = random.choice([0.0, 0.5, 1.0], count)
        case "wide-ranging":
            compute, receive, send = 10.0 ** random.uniform(-2.0, 3.0, (3, count))
            ir_send, ir_receive = 10.0 ** random.uniform(-6.0, 0.0, (2, count))
            drop = np.where(random.random(count) < 0.5, 0.0, 10.0 ** uniform(-3.0, 1.0))
    return Columns(parent, compute, send, receive, drop, ir_receive, ir_send, size, work)


def gains_between_differences(
    highs: Any, columns: Columns, ports: Ports, fields: dict[str, str], about: str, step: float = 1e-5
) -> dict[str, int]:
    """Assert that the gains of a plan (field -> its gain) lie between what a little more and a little less change.

    Returns how many gains of each kind are above the slack.
    """
    seen = dict.fromkeys(fields.values(), 0)
    plan, best = columns.plan(ports), optimum(highs, columns, ports)
    for field, gain in fields.items():
        for node in range(len(columns.parent)):
            value = getattr(columns, field)[node]
            more = (optimum(highs, columns.changed(field, node, 1 + step), ports) - best) / (step * value)
            less = (best - optimum(highs, columns.changed(field, node, 1 - step), ports)) / (step * value)
            slack = 1e-6 * best / value + 1e-3 * max(abs(more), abs(less))
            found = plan[gain][node]
            assert min(more, less) - slack <= found <= max(more, less) + slack, f"{about}: {gain} of {node}"
            seen[gain] += found > slack
    return seen
