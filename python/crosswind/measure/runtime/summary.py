"""A runtime's measurement beyond its fit: what had the CPU, why, and what native threads pay."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from crosswind.documents import Row
from crosswind.errors import DescriptionError
from crosswind.measure.runtime.explanation import explanation

if TYPE_CHECKING:
    from crosswind.measurement import Measurement
    from crosswind.model.fit import Fit
    from crosswind.model.paired import Beside


def direction_row(measurement: Measurement, fit: Fit | None, index: int) -> Row:
    """Return intercept, rate and slope of a channel, and why they are so; None where it is not known."""
    channel = measurement.header["channels"][index]
    fitted = next((c for c in fit.channels if c.channel == index), None) if fit else None
    moves = channel["unpaced_mb_per_s"] > 0
    return {
        "direction": channel["direction"],
        "unpaced_mb_per_s": channel["unpaced_mb_per_s"],
        "at_mb_per_s": fitted.top_mb_per_s if fitted else None,
        "computing_left": 1 - fitted.loss_at_top if fitted else None,
        "intercept": fitted.intercept if fitted else None,
        "ir_s_per_gb": fitted.ir_s_per_gb if fitted else None,
        "why": explanation(measurement.header.get("runtime") or {}, channel["direction"], moves),
    }


def cpu_shares(measurement: Measurement) -> dict[str, float]:
    """Return the parts of the process's CPU time by cause, in the blocks at the tops of the ladders."""
    from crosswind.model.points import samples

    runtime = measurement.header["runtime"]
    if runtime is None or not runtime["split"]:
        return {}
    columns = samples(measurement)
    top = columns["phase"].astype(str) == "ladder"
    asked = sum(columns[f"channel{i}_asked_mb_per_s"] for i in range(len(measurement.header["channels"])))
    top &= ~columns["settling"].astype(bool) & (asked > 0)
    parts = {"task": "compute_cpu_s", "traffic": "traffic_cpu_s", "carriers": "carriers_cpu_s"}
    parts |= {"JIT": "jit_cpu_s", "GC": "gc_cpu_s"}
    amounts = {name: float(columns[column][top].sum()) for name, column in parts.items()}
    whole = sum(float(columns[c][top].sum()) for c in ("compute_cpu_s", "traffic_cpu_s", "runtime_cpu_s"))
    return {name: amount / whole for name, amount in amounts.items()} if whole > 0 else {}


def compared(measurement: Measurement) -> list[Beside]:
    """Return how it compares with what took turns with it; empty where nothing did."""
    from crosswind.model.paired import compare

    if measurement.beside is None:
        return []
    try:
        return compare(measurement, measurement.beside)
    except DescriptionError:
        return []


def beside_sentence(runtime: Mapping[str, Any], one: Beside) -> str:
    """Return what this direction costs over what native threads pay.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> one = SimpleNamespace(direction="send", ratio=2.87, low=2.2, high=3.8, compute_ratio=0.9)
    >>> print(beside_sentence({"name": "java", "facts": {"io": "stream"}}, one))
    sending through java (io=stream) costs 2.87 (2.20 to 3.80) times what native costs; it computes at 0.900 of native
    """
    verb = "sending" if one.direction == "send" else "receiving"
    kind = runtime["facts"].get("io")
    name = f"{runtime['name']} (io={kind})" if kind else runtime["name"]
    if not math.isfinite(one.ratio):
        cost = "cannot be compared with native: one of the two costs nothing measurable"
    else:
        known = f" ({one.low:.2f} to {one.high:.2f})" if math.isfinite(one.low + one.high) else " (too few forks)"
        cost = f"costs {one.ratio:.2f}{known} times what native costs"
    return f"{verb} through {name} {cost}; it computes at {one.compute_ratio:.3f} of native"
