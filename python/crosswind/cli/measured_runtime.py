"""What `crosswind measure --runtime` prints beside the fit: what had the CPU, why, and what native threads pay."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from crosswind.cli.console import print_table, print_text
from crosswind.errors import DescriptionError

if TYPE_CHECKING:
    from crosswind.measurement import Measurement

NOT_KNOWN = "-"


def as_dict(measurement: Measurement, fit: Any) -> dict[str, Any]:
    """Return it as part of the JSON document."""
    runtime = measurement.header["runtime"]
    document = {**runtime, "channels": [_row(measurement, fit, i) for i in range(len(measurement.header["channels"]))]}
    document["cpu_share_at_top"] = _shares(measurement)
    if measurement.beside:
        document["beside"] = [one.to_dict() for one in _compared(measurement)]
    return document


def print_runtime(measurement: Measurement, fit: Any) -> None:
    """Print intercept, rate and slope beside each other, with a sentence for each direction."""
    runtime = measurement.header["runtime"]
    columns = [("direction", "left"), ("unpaced MB/s", "right"), ("at MB/s", "right"), ("computing left", "right")]
    columns += [("const", "right"), ("IR s/GB", "right")]
    rows = [_row(measurement, fit, i) for i in range(len(measurement.header["channels"]))]
    cells = [
        [
            row["direction"],
            f"{row['unpaced_mb_per_s']:.0f}",
            _known(row["at_mb_per_s"], ".0f"),
            _known(row["computing_left"], ".3f"),
            _known(row["intercept"], ".4f"),
            _known(row["ir_s_per_gb"], ".4f"),
        ]
        for row in rows
    ]
    facts = " ".join(f"{key}={value}" for key, value in runtime["facts"].items())
    title = f"{runtime['name']} {runtime['version']} {facts}".rstrip()
    print_table(columns, cells, title=f"{title}, pinned as {runtime['pin']}, {runtime['forks']} forks")
    for row in rows:
        if row["why"]:
            print_text(f"{row['direction']}: {row['why']}")
    shares = _shares(measurement)
    if shares:
        text = ", ".join(f"{name} {100 * share:.1f} %" for name, share in shares.items())
        print_text(f"CPU time at the top: {text}")
    if measurement.beside:
        for one in _compared(measurement):
            print_text(_sentence(runtime, one))


def _known(value: float | None, form: str) -> str:
    return NOT_KNOWN if value is None or not math.isfinite(value) else format(value, form)


def _row(measurement: Measurement, fit: Any, index: int) -> dict[str, Any]:
    from crosswind.measure.runtime.explained import explanation

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
        "why": explanation(measurement.header["runtime"], channel["direction"], moves),
    }


def _shares(measurement: Measurement) -> dict[str, float]:
    """Return the parts of the process's CPU time by cause, in the blocks at the tops of the ladders."""
    from crosswind.model.points import samples

    if not measurement.header["runtime"]["split"]:
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


def _compared(measurement: Measurement) -> list[Any]:
    from crosswind.model.beside import compare

    assert measurement.beside is not None  # asked before
    try:
        return compare(measurement, measurement.beside)
    except DescriptionError:
        return []


def _sentence(runtime: dict[str, Any], one: Any) -> str:
    """Return what this direction costs over what native threads pay.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> one = SimpleNamespace(direction="send", ratio=2.87, low=2.2, high=3.8, compute_ratio=0.9)
    >>> print(_sentence({"name": "java", "facts": {"io": "stream"}}, one))
    sending through java (io=stream) costs 2.87 (2.20 to 3.80) times what native costs; it computes at 0.900 of native
    """
    verb = "sending" if one.direction == "send" else "receiving"
    kind = runtime["facts"].get("io")
    name = f"{runtime['name']} (io={kind})" if kind else runtime["name"]
    if not math.isfinite(one.ratio):
        cost = "cannot be compared with native: one of the two costs nothing that can be told"
    else:
        known = f" ({one.low:.2f} to {one.high:.2f})" if math.isfinite(one.low + one.high) else " (too few forks)"
        cost = f"costs {one.ratio:.2f}{known} times what native costs"
    return f"{verb} through {name} {cost}; it computes at {one.compute_ratio:.3f} of native"
