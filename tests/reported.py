"""What tests report on: a synthetic measurement, a sweep, a platform and its plan, with names that attack the page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import synthetic

from crosswind.measure.sweep import Sweep, measure_sweep
from crosswind.measurement import Measurement
from crosswind.plan import Plan, plan
from crosswind.platform import Platform
from crosswind.run.columns import NOBODY, as_trace
from crosswind.run.results import Run, Runs
from crosswind.run.trace import Trace

BREAKS_SCRIPT = "</script><img src=x onerror=window.attacked=1>"
BREAKS_ATTRIBUTE = "\"' onmouseover=window.attacked=1 x='<svg onload=window.attacked=1>"
IS_A_TEMPLATE = "{{ 7 * 7 }}{% raw %}<!--"
LONG = "n" * 255
HOSTILE = (BREAKS_SCRIPT, BREAKS_ATTRIBUTE, IS_A_TEMPLATE, LONG)


def measured(hostile: bool = False, **arguments: Any) -> Measurement:
    """Return a measurement of both directions of one peer, or of two peers with hostile names."""
    if not hostile:
        return synthetic.measurement(cycles=12, **arguments)
    peers = (BREAKS_SCRIPT, BREAKS_ATTRIBUTE)
    found = synthetic.measurement((0.00016, 0.0001), (0.0001, 0.00007), cycles=12, peers=peers, host=BREAKS_SCRIPT)
    found.header["name"] = BREAKS_SCRIPT
    found.header["command"] = ["crosswind", "measure", "--name", IS_A_TEMPLATE]
    found.header["kernel"]["task"] = BREAKS_ATTRIBUTE
    found.header["host"]["settings"][BREAKS_ATTRIBUTE] = BREAKS_SCRIPT
    found.header["warnings"].append({"code": "odd", "message": BREAKS_SCRIPT, "hint": IS_A_TEMPLATE})
    return found


def hour_of(measurement: Measurement) -> Measurement:
    """Return the same samples again and again until an hour is full."""
    table = measurement.samples
    span = float(table.column("t_s")[-1].as_py()) + 0.01
    blocks, cycles = (int(np.max(table.column(name).to_numpy())) + 1 for name in ("block", "cycle"))
    parts = []
    for turn in range(round(3600 / span)):
        part = table
        for name, step in (("t_s", turn * span), ("block", turn * blocks), ("cycle", turn * cycles)):
            column = table.column(name).to_numpy()
            moved = np.where(column < 0, column, column + step).astype(column.dtype)
            part = part.set_column(part.column_names.index(name), name, pa.array(moved))
        parts.append(part)
    return Measurement(pa.concat_tables(parts), {**measurement.header, "elapsed_s": 3600.0})


def platform(names: tuple[str, ...] = ("Lab0", "Lab3", "Lab4", "Tenn")) -> Platform:
    """Return a fork: the first name is the root, the last leaf is worth nothing."""
    root = {"name": names[0], "compute_per_s": 9.0, "send_limit_mb_per_s": 10.7}
    leaves = [
        {
            "name": name,
            "parent": names[0],
            "compute_per_s": 3.0 + 5 * k,
            "receive_limit_mb_per_s": 1.0 if k == len(names) - 2 else 10.0,
            "ir_receive_s_per_mb": 0.04,
            "ir_send_s_per_mb": 0.9 if k == len(names) - 2 else 0.02 + 0.005 * k,
        }
        for k, name in enumerate(names[1:])
    ]
    return Platform.from_dict({"schema_version": 1, "name": names[0], "node": [root, *leaves]})


def planned(names: tuple[str, ...] = ("Lab0", "Lab3", "Lab4", "Tenn")) -> Plan:
    """Return the best multi-port plan of `platform(names)`."""
    return plan(platform(names), task_size_mb=2.0, task_work=5.0)


def tree_of(count: int, children: int = 6) -> list[dict[str, Any]]:
    """Return the nodes of a plan for a complete tree: leaves compute 1, 2 or 3 tasks/s, every seventh nothing."""
    computed = [0.0 if k % 7 == 6 else 1.0 + k % 3 for k in range(count)]
    received = list(computed)
    for k in range(count - 1, 0, -1):
        received[(k - 1) // children] += received[k]
    return [
        {
            "name": f"node {k}",
            "parent": f"node {(k - 1) // children}" if k else None,
            "computed_tasks_per_s": computed[k],
            "received_tasks_per_s": received[k],
            "rank": (k - 1) % children + 1 if k and received[k] > 0 else 0,
            "never_send": received[k] == 0,
            "limited_by": "never-send" if received[k] == 0 else "compute",
            "gain_per_receive_mb_per_s": 0.0,
            "gain_per_send_mb_per_s": 0.0,
            "gain_per_work_per_s": 0.1,
        }
        for k in range(count)
    ]


def swept(directory: Path, kind: str = "message-size", values: tuple[Any, ...] = (64_000, 1_000_000)) -> Sweep:
    """Return a sweep whose interference rises from value to value."""
    by_value = {value: 0.00005 * (k + 1) for k, value in enumerate(values)}

    def measure(**arguments: Any) -> Measurement:
        value = next(arguments[name] for name in ("message_bytes", "placement") if arguments.get(name) in by_value)
        return synthetic.measurement(by_value[value], 0.00003, cycles=8, together_cycles=0)

    return measure_sweep(kind, directory, list(values), measure=measure)


ORDERS = ("interference", "interference-rate", "bandwidth", "compute", "arrival", "root-only", "planned")


def one_run(
    names: tuple[str, ...] = ("Lab0", "Lab3", "Lab4", "Tenn"),
    *,
    order: str = "planned",
    slower: float = 1.0,
    **other: Any,
) -> dict[str, Any]:
    """Return an entry of `runs.json`: 1000 tasks, each node computes as many."""
    makespan = 160.0 * slower
    return {
        "params": {},
        "seed": 1,
        "platform": names[0],
        "order": order,
        "ports": "single",
        "compute": "simulated",
        "tasks": 1000,
        "makespan_s": makespan,
        "throughput_tasks_per_s": 1000 / makespan,
        "bound_tasks_per_s": 6.58,
        "root_only_tasks_per_s": 1.81,
        "nodes": [
            {
                "name": name,
                "tasks": 1000 // len(names),
                "busy_s": 0.9 * makespan / (k + 1),
                "received_mb": 500.0 * bool(k),
            }
            for k, name in enumerate(names)
        ],
        "events": [],
        "warnings": [],
    } | other


def ran(on: str = "sim", *, slower: float = 1.0, works: tuple[int, ...] = (1, 3, 5, 11), hostile: bool = False) -> Runs:
    """Return runs of all orders for several works; with hostile names, events and warnings."""
    runs = []
    for work in works:
        for k, order in enumerate(ORDERS):
            entry = one_run(
                HOSTILE if hostile else ("Lab0", "Lab3", "Lab4", "Tenn"),
                order=order,
                slower=slower * (1 + 0.1 * k) * work / 5,
                params={"workload.task_work": work, "policy.order": order},
                compute="simulated" if on == "sim" else "emulated",
            )
            if hostile:
                event = {
                    "t_s": 1.5,
                    "code": "agent-lost",
                    "node": BREAKS_SCRIPT,
                    "tasks": 2,
                    "message": BREAKS_ATTRIBUTE,
                }
                entry["events"] = [event]
                entry["warnings"] = [{"code": "odd", "message": BREAKS_SCRIPT, "hint": IS_A_TEMPLATE}]
                entry["params"]["platform"] = BREAKS_ATTRIBUTE
            runs.append(Run(entry))
    return Runs(BREAKS_SCRIPT if hostile else "fork graph", on, runs)


def traced(tasks: int = 300, hostile: bool = False) -> Trace:
    """Return a trace: the root sends to its three children in turn, each computes what it got."""
    found = platform(HOSTILE) if hostile else platform()
    rows = []
    for task in range(tasks):
        child = 1 + task % 3
        rows.append((1, 0, child, task, 0.5 * task, 0.5 * task + 0.4, 2.0, 0.0))
        rows.append((0, child, NOBODY, task, 0.5 * task + 0.4, 0.5 * task + 1.5, 0.0, 5.0))
        if task % 10 == 0:
            rows.append((2, 0, child, task, 0.5 * task + 1.5, 0.5 * task + 1.6, 0.1, 0.0))
    names = ("kind", "node", "child", "task", "start_s", "end_s", "mb", "work")
    types = (np.uint8, np.uint32, np.uint32, np.uint64, *[np.float64] * 4)
    columns = {n: np.array(v, t).tobytes() for n, t, v in zip(names, types, zip(*rows, strict=True), strict=True)}
    entry = one_run(tuple(node["name"] for node in found.nodes), makespan_s=0.5 * tasks + 1.5)
    return as_trace(columns, entry, found, BREAKS_SCRIPT if hostile else "fork graph", "sim")


def unexplained(page: str) -> str:
    """Return a page without the meanings of its terms."""
    return re.sub('(?s)<details class="explained">.*?</details>', "", page)
