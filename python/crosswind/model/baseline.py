"""The computation without traffic: before any socket, idle between transfers, and how steady it was.

A thread that spins for messages takes half the node while nothing moves: its interference rate is 0, and only the
baseline without any socket shows the loss (docs, prototype.md). So the intercept against that baseline is a result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crosswind.measurement import Measurement
from crosswind.model.points import Estimator, foreign, in_phases, samples, time_base
from crosswind.model.robust import theil_sen
from crosswind.statistics.bootstrap import mean_of_cycles

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Baseline:
    """Compute rates without traffic, on the time base of the headline figures.

    Attributes
    ----------
    bare_per_s : float
        Work units/s before any socket existed; NaN where that was not measured.
    idle_per_s, idle_ci95 : float, tuple of float
        Work units/s in idle blocks of the design, and its interval over cycles.
    intercept_against_bare : float
        idle / bare: what is left of the computation when connections are open and nothing moves.
    drift : float
        Change of the idle rate from the design's start to its end, parts of its mean (Theil-Sen).
    noise : float
        Standard deviation of idle blocks within their cycles, parts of their mean: cycles differ by their memory, too.
    correlation : float
        Lag-1 correlation of idle blocks: why points must not be taken as independent. NaN with fewer than 4 blocks.
    foreign_share : float
        Mean part of the computing CPU that went to other people's work; NaN if unknown.
    blocks : int
        Number of idle blocks.
    """

    bare_per_s: float
    idle_per_s: float
    idle_ci95: tuple[float, float]
    intercept_against_bare: float
    drift: float
    noise: float
    correlation: float
    foreign_share: float
    blocks: int


def baseline(measurement: Measurement, estimator: Estimator) -> Baseline:
    """Describe the computation without traffic.

    Both time bases show a receiver that spins on the computing CPU: `available` counts the traffic's CPU seconds too.
    Intervals with too much foreign load for the time base are used only where no others are.
    """
    columns = samples(measurement)
    used = ~columns["settling"].astype(bool)
    design = used & in_phases(measurement)
    idle = design.copy()
    for channel in range(len(measurement.header["channels"])):
        idle &= columns[f"channel{channel}_asked_mb_per_s"] == 0
    bare = used & in_phases(measurement, ("bare",))
    block, first, y, at = _rates(measurement, _quiet_or_all(columns, idle, estimator), estimator)
    bare_rates = _rates(measurement, _quiet_or_all(columns, bare, estimator), estimator)[2]
    bare_rate = float(bare_rates.mean()) if bare_rates.size else float("nan")
    mean, low, high = mean_of_cycles(y, columns["cycle"][first])
    # Chords between all blocks, of whatever cycle; in a long run between as many of them, spread evenly, as is quick.
    some = np.linspace(0, max(y.size - 1, 0), min(y.size, 400)).astype(int)
    slope = theil_sen(at[some], y[some], np.zeros(some.size, int))
    scatter = y - slope * (at - at.mean()) - y.mean() if y.size else y
    power = float(scatter @ scatter)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = (
            float(np.sum(columns["foreign_cpu_s"][design]) / np.sum(columns["dt_s"][design])) if design.any() else 0.0
        )
    return Baseline(
        bare_per_s=bare_rate,
        idle_per_s=mean,
        idle_ci95=(low, high),
        intercept_against_bare=mean / bare_rate if bare_rate > 0 else float("nan"),
        drift=float(slope * np.ptp(at) / y.mean()) if y.size > 1 else float("nan"),
        noise=_within(y, columns["cycle"][first]) / float(y.mean()) if y.size else float("nan"),
        correlation=float(scatter[1:] @ scatter[:-1]) / power if y.size >= 4 and power > 0 else float("nan"),
        foreign_share=share,
        blocks=int(block.size),
    )


def _within(values: NDArray[np.float64], cycle: NDArray[np.float64]) -> float:
    """Return the standard deviation of values around the means of their cycles; NaN where each has only one."""
    _, member, count = np.unique(cycle, return_inverse=True, return_counts=True)
    apart = values - (np.bincount(member, values) / count)[member]
    freedom = values.size - count.size
    return float(np.sqrt(apart @ apart / freedom)) if freedom > 0 else float("nan")


def _quiet_or_all(
    columns: dict[str, NDArray[np.float64]], rows: NDArray[np.bool_], estimator: Estimator
) -> NDArray[np.bool_]:
    quiet = rows & ~foreign(columns, estimator)
    return quiet if quiet.any() else rows


def _rates(
    measurement: Measurement, rows: NDArray[np.bool_], estimator: Estimator
) -> tuple[NDArray[np.int64], NDArray[np.intp], Floats, Floats]:
    """Return number, first row, compute rate and time of each block among `rows` in which the time base advanced.

    A command that waits, or whose CPU was taken for a whole interval, leaves a time base of 0, and no rate.
    """
    columns = samples(measurement)
    base = time_base(measurement, estimator)
    rows = rows & (base > 0)
    block, first, member = np.unique(columns["block"][rows], return_index=True, return_inverse=True)
    seconds = np.bincount(member, base[rows], block.size)
    rate = np.bincount(member, columns["work"][rows], block.size) / seconds
    return block, np.flatnonzero(rows)[first], rate, columns["t_s"][rows][first]
