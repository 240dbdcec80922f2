"""How fast traffic can go: its rate without pacing, and from it a top that is reached, the same from run to run."""

from __future__ import annotations

import math
from collections.abc import Callable

from crosswind.documents import Row
from crosswind.errors import MeasurementError
from crosswind.measure import design

TRIES = 3
"""Where nothing moves at first: on a crowded host a thread may wait half a second for its CPU."""
BLOCKS = 8
BLOCK_S = 0.15
QUANTILE = 0.75
"""Of the blocks' rates: others on the host lower the rate of some blocks, and nothing raises it."""
REACHED = 0.97
"""Part of the asked rate that the top of a ladder must reach, in one block at least, to count as paced."""
LEAST_SHARE = 0.2
"""Least part of a block that counts as left to us; less says nothing about a rate."""
TOP_TRIES = 6
TOP_BLOCKS = 4
BUSY = 0.8
"""Part of its time that a traffic thread runs or waits for the CPU, above which the CPU limits the rate."""

# Moves bytes on one channel at a level for a number of blocks, and returns their settled samples.
Move = Callable[[float | None, int], list[Row]]


def unpaced(move: Move, channel: int, peer: str) -> tuple[float, list[Row]]:
    """Return the rate without pacing, MB/s, and the samples that it was seen in.

    Raises
    ------
    MeasurementError
        When no byte moves.
    """
    for _ in range(TRIES):
        rows = move(design.UNPACED, BLOCKS)
        rate = _upper_quartile(rates(rows, channel))
        if rate > 0:
            return rate, rows
    raise MeasurementError(f"no byte moved to or from {peer}", "no-traffic", "does a firewall drop data?")


def limited_by_cpu(rows: list[Row], streams: int) -> bool:
    """Whether the threads that move bytes are busy nearly all the time."""
    busy = sum(row["traffic_cpu_s"] + row["traffic_wait_s"] for row in rows) / sum(row["dt_s"] for row in rows)
    return bool(busy > BUSY * streams)


def reached_top(move: Move, channel: int, top: float) -> tuple[float, bool]:
    """Lower a top, MB/s, until a paced rate reaches it; the last one tried, and whether it does."""
    for _ in range(TOP_TRIES):
        tried = top
        if max(rates(move(top, TOP_BLOCKS), channel)) >= REACHED * top:
            return top, True
        top = design.top_of_ladder(top / design.PART_WHERE_CPU_LIMITS * 0.99, limited_by_cpu=True)
    return tried, False


def rates(rows: list[Row], channel: int) -> list[float]:
    """Return the rates of a channel, MB per second that others left to us on the computing CPU."""

    def seconds(row: Row) -> float:
        foreign: float = row["foreign_cpu_s"]
        left: float = row["dt_s"] - (foreign if math.isfinite(foreign) else 0.0)
        return max(left, LEAST_SHARE * float(row["dt_s"]))

    return [row[f"channel{channel}_mb"] / seconds(row) for row in rows]


def _upper_quartile(rates: list[float]) -> float:
    return sorted(rates)[math.floor(QUANTILE * len(rates))]
