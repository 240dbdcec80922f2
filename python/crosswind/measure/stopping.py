"""When enough is known: the 95 % interval of an interference rate, asked again as cycles come in.

It uses the points and the interval of the fit, so that what stops a measurement is what its report says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from crosswind.errors import DescriptionError
from crosswind.measurement import Measurement
from crosswind.model.interval import slope_interval
from crosswind.model.points import Estimator, available_is_valid, in_phases, points, samples, time_base

LEAST_CYCLES = 24
"""Fewer make an interval that is itself too uncertain to stop on: what disturbs a host comes in spells of seconds."""
LEAST_FORKS = 3
"""The same for forks of a runtime, each of which is many cycles."""
GROWTH = 1.05
"""Cycles are this many times more before the question is asked again, so that asking stays cheap in long runs."""


@dataclass(frozen=True)
class Precision:
    """How well one channel is known.

    Attributes
    ----------
    ir_s_per_mb, ir_half_width : float
        Interference rate, and half of its 95 % interval, s/MB.
    loss_half_width : float
        Half of the 95 % interval of the loss at the top, as a part of the compute rate.
    cycles : int
        Cycles, or forks of a runtime, used.
    least : int
        Fewer of them are too few.
    """

    ir_s_per_mb: float
    ir_half_width: float
    loss_half_width: float
    cycles: int
    least: int = field(default_factory=lambda: LEAST_CYCLES)

    def reached(self, target: float, loss_target: float) -> bool:
        """Whether the interval is within `target` of IR, or the loss at the top known to `loss_target`."""
        enough = self.cycles >= self.least
        return enough and (self.ir_half_width <= target * abs(self.ir_s_per_mb) or self.loss_half_width <= loss_target)

    def cycles_to_go(self, target: float, loss_target: float) -> float:
        """Return how many cycles are probably missing: precision grows with the root of their number."""
        needed = max(abs(self.ir_s_per_mb) * target, 1e-30)
        factor = min((self.ir_half_width / needed) ** 2, (self.loss_half_width / loss_target) ** 2)
        missing = self.cycles * (factor - 1.0) if math.isfinite(factor) else math.inf
        return max(missing, self.least - self.cycles, 0.0)


def precision(measurement: Measurement, channel: int, seed: int) -> Precision | None:
    """Return how well a channel is known alone, or None while its points are too few."""
    try:
        found = points(measurement, channel, _estimator(measurement))
        known = precision_of(found.x_mb_per_s, found.y_work_per_s, found.cycle, found.block, seed)
    except DescriptionError:
        return None
    runtime = measurement.header.get("runtime")
    return replace(known, least=LEAST_FORKS) if runtime and runtime["forks"] > 1 else known


def precision_together(measurement: Measurement, seed: int) -> Precision | None:
    """Return how well the loss per MB/s of all channels together is known, or None while points are too few."""
    columns = samples(measurement)
    base = time_base(measurement, _estimator(measurement))
    # While another process had the CPU for a whole interval, the time base is 0 and there is no rate.
    used = in_phases(measurement, ("together",)) & ~columns["settling"].astype(bool) & (base > 0)
    seconds = base[used]
    moved = sum(columns[f"channel{i}_mb"][used] for i in range(len(measurement.header["channels"])))
    try:
        order = np.flatnonzero(used)
        return precision_of(moved / seconds, columns["work"][used] / seconds, columns["cycle"][used], order, seed)
    except DescriptionError:
        return None


def _estimator(measurement: Measurement) -> Estimator:
    return "available" if available_is_valid(measurement) is None else "wall"


def precision_of(x: ArrayLike, y: ArrayLike, cycle: ArrayLike, block: ArrayLike, seed: int) -> Precision:
    """Return how well the slope of points is known; arguments as those of `slope_interval`."""
    found = slope_interval(x, y, cycle, block, seed=seed)
    half = max(found.high - found.slope, found.slope - found.low)
    loss_half = max(found.at_top_high - found.at_top, found.at_top - found.at_top_low)
    return Precision(-found.slope, half, loss_half, found.cycles)
