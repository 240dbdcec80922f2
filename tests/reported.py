"""What tests report on: a synthetic measurement, a sweep, a platform and its plan, with names that attack the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import synthetic

from crosswind.measurement import Measurement
from crosswind.plan import Plan, plan
from crosswind.platform import Platform
from crosswind.sweep import Sweep, run_sweep

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

    return run_sweep(kind, directory, list(values), measure=measure)
