"""The 95 % band of a fitted line: where the line itself may lie, not where points scatter.

Bootstrap over whole cycles, as for the interval of the slope (crosswind/model/interval.py says why), at every rate.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from crosswind.statistics.interval import reach

Floats = NDArray[np.float64]
RESAMPLES = 400


def line_band(
    x: Floats, y: Floats, idle: NDArray[np.bool_], cycle: NDArray[np.int64], grid: Floats, *, seed: int = 0
) -> tuple[Floats, Floats] | None:
    """Return the lower and upper end of the band at the rates of `grid`, relative to the line through all points.

    Parameters
    ----------
    x : array, shape (n,)
        Transfer rates, MB/s.
    y : array, shape (n,)
        Compute rates in any unit; each resample is divided by the mean of its own idle points.
    idle : array of bool, shape (n,)
        Points without traffic.
    cycle : array of int, shape (n,)
        What is drawn with replacement.
    grid : array, shape (m,)
        Rates at which the band is wanted, MB/s.
    seed : int
        Of the resampling.

    Returns
    -------
    tuple of arrays, shape (m,), or None
        Distances from the line, in parts of the idle rate: the lower ones <= 0, the upper ones >= 0. None with fewer
        than 3 cycles.
    """
    label, member = np.unique(cycle, return_inverse=True)
    count = label.size
    if count < 3 or not idle.any():
        return None
    centre = float(x.mean())
    u = x - centre
    terms = np.column_stack([np.ones_like(u), u, y, u * u, u * y, idle, idle * y])
    sums = np.zeros((count, terms.shape[1]))
    np.add.at(sums, member, terms)
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1.0 / count), size=RESAMPLES).astype(float)
    lines = _lines(drawn @ sums, grid - centre)
    lines = lines[np.isfinite(lines).all(axis=1)]
    if len(lines) < 2:
        return None
    estimate = _lines(sums.sum(axis=0)[None, :], grid - centre)[0]
    low, high = np.quantile(lines, [0.025, 0.975], axis=0)
    # With few cycles percentiles lie too near: a factor sqrt(C / (C - 1)), and Student's t in place of the normal.
    stretch = np.sqrt(count / (count - 1.0)) * reach(count - 1) / reach(math.inf)
    return stretch * np.minimum(low - estimate, 0.0), stretch * np.maximum(high - estimate, 0.0)


def _lines(sums: Floats, offset: Floats) -> Floats:
    """Return each resample's line at `offset` from the centre, over its idle mean; shape (resamples, m)."""
    n, su, sy, suu, suy, n_idle, idle = sums.T
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = suu - su * su / n
        slope = np.where(spread > 0, (suy - su * sy / n) / spread, np.nan)
        middle = sy / n - slope * su / n
        lines: Floats = (middle[:, None] + slope[:, None] * offset[None, :]) / (idle / n_idle)[:, None]
    return lines
