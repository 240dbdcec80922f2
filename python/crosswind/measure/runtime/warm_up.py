"""Has a runtime become quiet? Its compiler rests and its rates have no trend, at silence and at the top alike.

A JVM compiles in several passes, the last of them seconds after the start, and on a contested core its compilers
starve: rates before and after differ by a factor. What was sampled before it is quiet is no headline.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from crosswind.documents import Row

BLOCKS = 8
JIT_SHARE = 0.005
"""Most CPU time of compilers, as a part of a block."""
RESTING_BLOCKS = 80
"""As many rows, 40 blocks with the part that settles: what a JVM compiles late it compiles one method at a time."""
TREND = 0.02
"""Smallest change over those blocks that counts as a trend: below, a host's own noise looks like one."""
T_VALUE = 2.447
"""Student's t, 6 degrees of freedom, 95 %: a slope through 8 points beyond this is no chance."""


def quiet(rows: Sequence[Row], channels: int) -> bool:
    """Return whether the last `BLOCKS` settled rows show neither compilers nor a trend.

    Parameters
    ----------
    rows : sequence of dict
        Samples of blocks at one level, in order.
    channels : int
        How many columns `channel{i}_mb` they have.
    """
    used = [row for row in rows if not row["settling"]][-BLOCKS:]
    if len(used) < BLOCKS or compiles(used):
        return False
    seconds = np.array([_available_s(row) for row in used])
    if not (seconds > 0).all():
        return False
    series = [np.array([row["work"] for row in used]) / seconds]
    moved = np.array([sum(row[f"channel{i}_mb"] for i in range(channels)) for row in used]) / seconds
    if moved.any():
        series.append(moved)
    return not any(has_trend(values) for values in series)


def compiles(rows: Sequence[Row]) -> bool:
    """Return whether compilers took more than their share of any of these blocks."""
    return any(row.get("jit_cpu_s", 0.0) > JIT_SHARE * row["dt_s"] for row in rows)


def rests(rows: Sequence[Row]) -> bool:
    """Return whether compilers had less than their share of the last `RESTING_BLOCKS`, all together.

    Examples
    --------
    >>> rests([{"dt_s": 0.04, "jit_cpu_s": 0.0}] * 80), rests([{"dt_s": 0.04, "jit_cpu_s": 0.001}] * 80)
    (True, False)
    """
    used = rows[-RESTING_BLOCKS:]
    used_s, all_s = (sum(row[name] for row in used) for name in ("jit_cpu_s", "dt_s"))
    return len(used) >= RESTING_BLOCKS and used_s <= JIT_SHARE * all_s


def has_trend(values: Any) -> bool:
    """Return whether equally spaced values change by more than `TREND` of their mean, and not by chance.

    Examples
    --------
    >>> has_trend([1.0, 1.01, 0.99, 1.0, 1.01, 1.0, 0.99, 1.0]), has_trend([1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7])
    (False, True)
    """
    y = np.asarray(values, float)
    x = np.arange(y.size) - (y.size - 1) / 2
    slope = float(x @ y) / float(x @ x)
    mean = float(y.mean())
    if mean <= 0 or abs(slope) * (y.size - 1) < TREND * mean:
        return False
    rest = y - mean - slope * x
    error = math.sqrt(float(rest @ rest) / (y.size - 2) / float(x @ x))
    return error == 0 or abs(slope) / error > T_VALUE


def _available_s(row: Row) -> float:
    foreign: float = row["foreign_cpu_s"]
    return float(row["dt_s"]) - (foreign if math.isfinite(foreign) else 0.0)
