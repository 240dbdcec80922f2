"""How well is a slope known? A block bootstrap over cycles, fast enough to be asked after every cycle.

Samples of one measurement follow each other with lag-1 correlations of 0.4 to 0.8, so an interval computed as if they
were independent is up to 2.5 times too narrow. A cycle (one shuffled pass through all levels) is the unit that may be
exchanged: slow drift moves a whole cycle and cancels within it.

This file does not know what a measurement is; `points.py` makes its input.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crosswind.errors import DescriptionError
from crosswind.statistics.autocorrelation import deviation
from crosswind.statistics.bootstrap import draws, half_width, of_cycles, stretched

Floats = NDArray[np.float64]

IDLE_BELOW = 0.02  # part of the top rate; a ladder's lowest step is a quarter, so stragglers of an idle block fit in
TOP_ABOVE = 0.85  # part of the top rate; the step below the top is three quarters


@dataclass(frozen=True)
class SlopeInterval:
    """A normalised line y / y_idle = intercept + slope x, with 95 % intervals; IR is `-slope`.

    Attributes
    ----------
    slope, low, high : float
        Change of the normalised rate per MB/s, s/MB, and its interval; infinite bounds where fewer than 2 cycles
        are there.
    intercept : float
        Normalised rate at 0 MB/s.
    at_top, at_top_low, at_top_high : float
        Loss 1 - y / y_idle measured at the largest level, and its interval.
    top_mb_per_s : float
        That level: the median over its points.
    cycles : int
        Cycles that carried both idle and traffic.
    """

    slope: float
    low: float
    high: float
    intercept: float
    at_top: float
    at_top_low: float
    at_top_high: float
    top_mb_per_s: float
    cycles: int


def slope_interval(
    x: ArrayLike,
    y: ArrayLike,
    cycle: ArrayLike,
    block: ArrayLike | None = None,
    *,
    resamples: int = 400,
    seed: int = 0,
) -> SlopeInterval:
    """Fit a line by least squares and say how well its slope is known.

    Whole cycles are drawn with replacement; in each resample y is divided by the mean of that resample's own idle
    points, so the uncertainty of the normalisation is part of the interval. Each cycle is condensed to its sums first,
    so a resample costs one row of a small matrix product.

    The interval is that of `crosswind.statistics.bootstrap.stretched`. Where the blocks' order is given, the interval
    is at least what their residuals say as noise that is correlated from block to block
    (`crosswind.statistics.autocorrelation`). Where one 0.1 s block correlates with the next by 0 to 0.7, 95 %
    intervals then cover in 97 to 99 of 100 simulated measurements from 4 cycles up; at 0.9 in 89 to 98, at 0.95 in 85
    to 93, at 0.98 in 69 to 81; the more cycles the more (tests/unit/model/test_interval.py). What wanders more slowly
    than the measurement lasts shows in no interval of one measurement.

    Parameters
    ----------
    x : array_like, shape (n,)
        Transfer rates, MB/s, not negative.
    y : array_like, shape (n,)
        Compute rates in any unit, on the same time base as `x`.
    cycle : array_like of int, shape (n,)
        Cycle of each point.
    block : array_like of int, shape (n,), optional
        Number of each point in the order of time; without it, only cycles are distinguished.
    resamples : int
        Number of resamples, at least 2.
    seed : int
        Of the resampling: same seed, same interval.

    Returns
    -------
    SlopeInterval

    Raises
    ------
    DescriptionError
        Without an idle point (x about 0), or without any traffic.

    Examples
    --------
    >>> x = [0.0, 5.0, 10.0] * 4
    >>> y = [9.0, 6.75, 4.5, 9.2, 6.9, 4.6, 8.8, 6.6, 4.4, 9.0, 6.75, 4.5]
    >>> found = slope_interval(x, y, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3])
    >>> round(-found.slope, 6), round(found.at_top, 6), found.cycles
    (0.05, 0.5, 4)
    """
    xs, ys, cycles, order = _finite(x, y, cycle, block)
    labels, member = np.unique(cycles, return_inverse=True)
    idle, top = _ends(xs, ys, member, labels.size)
    u, v, sums, centre, at = _condensed(xs, ys, member, labels.size, (idle, top))

    slope, intercept, loss = (float(part[0]) for part in _line(sums.sum(axis=0)[None, :], centre, at))
    carried = int(np.count_nonzero((sums[:, 5] > 0) & (sums[:, 5] < sums[:, 0])))
    (low, high), (loss_low, loss_high) = (-np.inf, np.inf), (-np.inf, np.inf)
    if carried >= 2:
        drawn_slope, _, drawn_loss = _line(draws(labels.size, resamples, seed) @ sums, centre, at)
        slope_without, _, loss_without = _line(sums.sum(axis=0) - sums, centre, at)
        low, high = stretched(slope, drawn_slope, slope_without)
        loss_low, loss_high = stretched(loss, drawn_loss, loss_without)
    if carried >= 2 and order is not None:
        line = intercept + slope * xs
        of_slope = u / float(u @ u) - slope * idle / idle.sum()
        of_loss = (1.0 - loss) * idle / idle.sum() - top / top.sum()
        half, loss_half = (half_width(*deviation(weights, v - line, line, order)) for weights in (of_slope, of_loss))
        low, high = min(low, slope - half), max(high, slope + half)
        loss_low, loss_high = min(loss_low, loss - loss_half), max(loss_high, loss + loss_half)
    return SlopeInterval(slope, low, high, intercept, loss, loss_low, loss_high, at, carried)


def slope_ratio(
    first: tuple[ArrayLike, ArrayLike, ArrayLike],
    second: tuple[ArrayLike, ArrayLike, ArrayLike],
    *,
    independent: bool = False,
    resamples: int = 400,
    seed: int = 0,
) -> tuple[float, float, float]:
    """Return how many times steeper the first normalised line is than the second, with a 95 % interval.

    Both were measured in turns within the same cycles (or forks), so each resample draws the same ones of both: what
    slows the host for a while hits both and cancels in their ratio. Percentiles are taken of its logarithm.

    Parameters
    ----------
    first, second : tuple of array_like
        x, y and cycle, as of `slope_interval`; only cycles that both have are used.
    independent : bool
        Whether cycles are forks: what a fork draws it draws anew, and what the host does cancels, so neighbours do not
        push the same way. Whether five seem to is chance, and would make every second interval half as wide again.
    resamples, seed : int
        As of `slope_interval`.

    Returns
    -------
    tuple of float
        Ratio, low, high; NaN where a slope is not below 0, infinite bounds with fewer than 2 cycles.

    Raises
    ------
    DescriptionError
        Where one has no idle point, or no traffic.

    Examples
    --------
    >>> x, cycle = [0.0, 5.0, 10.0] * 2, [0, 0, 0, 1, 1, 1]
    >>> steep, flat = [9.0, 6.75, 4.5] * 2, [4.0, 3.5, 3.0] * 2
    >>> ratio, low, high = slope_ratio((x, steep, cycle), (x, flat, cycle))
    >>> round(ratio, 6), round(low, 6), round(high, 6)
    (2.0, 2.0, 2.0)
    """
    common = np.intersect1d(np.asarray(first[2], np.int64), np.asarray(second[2], np.int64))
    both = [_line_sums(*one, common) for one in (first, second)]
    sums = np.stack([sums for sums, _ in both], axis=1)

    def log_ratio(drawn: Floats) -> Floats:
        slopes = [_line(drawn[:, i], centre, 0.0)[0] for i, (_, centre) in enumerate(both)]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(np.where(slopes[0] < 0, -slopes[0], np.nan) / np.where(slopes[1] < 0, -slopes[1], np.nan))[
                :, None
            ]

    [(value, low, high)] = of_cycles(log_ratio, sums, independent=independent, resamples=resamples, seed=seed)
    return float(np.exp(value)), float(np.exp(low)), float(np.exp(high))


def _line_sums(x: ArrayLike, y: ArrayLike, cycle: ArrayLike, common: NDArray[np.int64]) -> tuple[Floats, float]:
    xs, ys, cycles, _ = _finite(x, y, cycle, None)
    kept = np.isin(cycles, common)
    if not kept.any():
        raise DescriptionError("no cycle that both were measured in", "too-few-points", "measure longer")
    xs, ys = xs[kept], ys[kept]
    member = np.searchsorted(common, cycles[kept])
    idle, top = _ends(xs, ys, member, common.size)
    _, _, sums, centre, _ = _condensed(xs, ys, member, common.size, (idle, top))
    return sums, centre


def _finite(
    x: ArrayLike, y: ArrayLike, cycle: ArrayLike, block: ArrayLike | None
) -> tuple[Floats, Floats, NDArray[np.int64], NDArray[np.int64] | None]:
    xs, ys, cycles = np.asarray(x, float), np.asarray(y, float), np.asarray(cycle, np.int64)
    if not (xs.ndim == 1 and xs.shape == ys.shape == cycles.shape):
        shapes = f"{xs.shape}, {ys.shape}, {cycles.shape}"
        raise ValueError(f"x, y and cycle must be vectors of one length; they are {shapes}")
    good = np.isfinite(xs) & np.isfinite(ys)
    if not good.any():
        raise DescriptionError("no finite point", "too-few-points", "measure longer")
    return xs[good], ys[good], cycles[good], None if block is None else np.asarray(block, np.int64)[good]


def _ends(xs: Floats, ys: Floats, member: NDArray[np.intp], cycles: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which points are idle, and which are at the top."""
    top_rate = _top_rate(xs, member, cycles)
    if top_rate <= 0:
        raise DescriptionError("no traffic: every transfer rate is 0", "no-traffic", "is the peer reachable?")
    idle, top = xs <= IDLE_BELOW * top_rate, xs >= TOP_ABOVE * top_rate
    if not idle.any() and xs.min() > 0:
        least = f"each block carried traffic, also those that asked for none: at least {xs.min():.4g} MB/s"
        hint = f"of at most {top_rate:.4g} MB/s; a lower --top-mb-per-s, or a quieter host, lets blocks end in time"
        raise DescriptionError(least, "no-idle", hint)
    if not idle.any() or not ys[idle].mean() > 0:
        hint = "measure some blocks without traffic"
        raise DescriptionError("no computation without traffic: nothing to normalise by", "no-idle", hint)
    return idle, top


def _condensed(
    xs: Floats,
    ys: Floats,
    member: NDArray[np.intp],
    cycles: int,
    ends: tuple[NDArray[np.bool_], NDArray[np.bool_]],
) -> tuple[Floats, Floats, Floats, float, float]:
    """Return x about its centre, y over the idle mean, each cycle's sums of them, the centre, and the top rate.

    Centred and scaled, so that sums of squares lose no digits at rates of thousands of MB/s.
    """
    idle, top = ends
    centre, at = float(xs.mean()), float(np.median(xs[top]))
    u, v = xs - centre, ys / ys[idle].mean()
    terms = np.column_stack([np.ones_like(u), u, v, u * u, u * v, idle, idle * v, top, top * v, top * u])
    sums = np.zeros((cycles, terms.shape[1]))
    np.add.at(sums, member, terms)
    return u, v, sums, centre, at


def _top_rate(x: Floats, member: NDArray[np.intp], cycles: int) -> float:
    """Return the typical highest rate of a cycle: a single burst must not move what counts as the top."""
    highest = np.zeros(cycles)
    np.maximum.at(highest, member, x)
    reached = highest[highest > 0]
    return float(np.median(reached)) if reached.size else 0.0


def _line(sums: Floats, centre: float, at: float) -> tuple[Floats, Floats, Floats]:
    """Return slope, intercept and loss at the rate `at`, over the idle mean; NaN where a resample lacks what it takes.

    The loss is that of the top points, moved along the slope from their mean rate to `at`: how far the top was reached
    differs from cycle to cycle, and is no uncertainty of the loss.
    """
    n, su, sv, suu, suv, n_idle, idle, n_top, top, top_u = sums.T
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = idle / n_idle
        spread = suu - su * su / n
        slope = np.where(spread > 0, (suv - su * sv / n) / spread, np.nan) / rest
        intercept = sv / n / rest - slope * (su / n + centre)
        return slope, intercept, 1.0 - top / n_top / rest - slope * (at - centre - top_u / n_top)
