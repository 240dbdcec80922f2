"""What is lost at which transfer rate, whatever its shape: a curve through the means of the levels that were measured.

A line's slope depends on the range that it is fitted to, where the loss bends; the loss at a rate does not. So losses
at the same rates are what measurements with different tops are compared by.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

from crosswind.model.interval import IDLE_BELOW
from crosswind.model.points import Points
from crosswind.statistics.autocorrelation import deviation
from crosswind.statistics.bootstrap import half_width, of_cycles
from crosswind.statistics.interval import reach

Floats = NDArray[np.float64]

STEPS = (1.0, 2.0, 5.0)
"""Losses are reported at these times powers of ten, MB/s: rates that do not depend on where a measurement's top is."""
MOST_RATES = 3
SAME_RATE = 1e-3
"""Part of a rate that a level may miss it by and still count as having measured it: what a pacer leaves open."""
NEXT = float(np.sqrt(2.0))
"""An interval for the next measurement is so much wider than one for the truth: both measurements have noise."""
PARTS = 12
"""Points of a loss curve in a platform: with fewer, lines between them miss more than the levels' noise."""


@dataclass(frozen=True)
class LossAt:
    """What is lost at one transfer rate.

    Attributes
    ----------
    mb_per_s : float
        The rate.
    loss, ci95 : float, tuple of float
        Part of the full rate lost there, and its 95 % interval.
    next95 : tuple of float
        Where another measurement of the same host, made in the same way, finds it in 95 of 100 cases: its own noise
        comes on top of this one's. What changes from one measurement to the next is in it only with `earlier` ones.
    earlier : int
        How many earlier measurements of the same host it knows.
    """

    mb_per_s: float
    loss: float
    ci95: tuple[float, float]
    next95: tuple[float, float]
    earlier: int = 0


@dataclass(frozen=True)
class LeftOut:
    """A measured level against what is predicted from the others.

    Attributes
    ----------
    mb_per_s : float
        Mean rate of the level.
    measured, by_curve, by_line : float
        Part of the full rate lost: as measured, by the curve through the other levels, by the line through them.
    """

    mb_per_s: float
    measured: float
    by_curve: float
    by_line: float


def levels(points: Points) -> tuple[Floats, Floats]:
    """Return the means of each level: transfer rates, MB/s, ascending, and compute rates over the idle one.

    Returns
    -------
    tuple of numpy.ndarray
        Both of shape (levels,); compute rates are NaN where no idle block was measured.
    """
    found, member = np.unique(np.round(points.level, 6), return_inverse=True)
    count = np.bincount(member)
    x = np.bincount(member, points.x_mb_per_s) / count
    y = np.bincount(member, points.y_work_per_s) / count
    idle = y[0] if found.size and found[0] == 0 else np.nan
    order = np.argsort(x)
    return x[order], y[order] / idle


def loss_at(points: Points, rate_mb_per_s: float) -> float:
    """Return the part of the idle compute rate lost at a transfer rate, by a curve through the measured levels.

    The curve is monotone where the levels are (Fritsch and Carlson, SIAM J. Numer. Anal. 17, 1980); beyond the top it
    is the top's. Negative where noise exceeds the loss, NaN where no idle block was measured.
    """
    x, y = levels(points)
    known = x.size > 1 and np.isfinite(y).all()
    return float(_through(x, 1.0 - y, np.array([rate_mb_per_s]))[0]) if known else float("nan")


def reported_rates(lowest_mb_per_s: float, top_mb_per_s: float) -> list[float]:
    """Return the rates at which losses are reported: the three highest round ones from the lowest to the top level.

    A loss below the lowest level or above the top one was not measured: where a curve bends, a line from idle to the
    lowest level misses it by more than any interval of the levels says. Without a round rate between the levels, the
    top level itself is reported.

    Examples
    --------
    >>> reported_rates(375.0, 1500.0), reported_rates(10.0, 110.0), reported_rates(240.0, 480.02)
    ([500.0, 1000.0], [20.0, 50.0, 100.0], [480.0])
    """
    if not 0 < lowest_mb_per_s <= top_mb_per_s < math.inf:
        return []
    power = math.floor(math.log10(top_mb_per_s))
    every = [float(f"{step * 10.0**exponent:.6g}") for exponent in range(power - 2, power + 1) for step in STEPS]
    low, high = lowest_mb_per_s * (1.0 - SAME_RATE), top_mb_per_s * (1.0 + SAME_RATE)
    found = [rate for rate in every if low <= rate <= high]
    return found[-MOST_RATES:] or [float(f"{top_mb_per_s:.4g}")]


def losses(points: Points, seed: int = 0) -> tuple[LossAt, ...]:
    """Return what is lost at `reported_rates`, each with its interval over cycles; none without idle and busy levels.

    Between two levels the interval also holds what a law without turning point may do there (`_between`).
    """
    x, y = levels(points)
    if x.size < 2 or not np.isfinite(y).all():
        return ()
    rates = np.array(reported_rates(_lowest(points, x), float(x[-1])))
    if not rates.size:
        return ()
    part, member = np.unique(np.round(points.level, 6), return_inverse=True)
    _, cycle = np.unique(points.cycle, return_inverse=True)
    sums = np.zeros((int(cycle.max()) + 1, part.size, 3))
    terms = np.column_stack([np.ones_like(points.x_mb_per_s), points.x_mb_per_s, points.y_work_per_s])
    np.add.at(sums, (cycle, member), terms)
    reached = sums[..., 1].sum(axis=0) / sums[..., 0].sum(axis=0)  # how far hardly differs from cycle to cycle

    def of(drawn: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            work = drawn[..., 2] / drawn[..., 0]
            lost = 1.0 - work / work[:, :1]
        whole = np.isfinite(lost).all(axis=1)  # few cycles may lack a level
        found = np.full((lost.shape[0], rates.size), np.nan)
        found[whole] = _through(reached, lost[whole].T, rates).T
        return found

    found = []
    slow = _slow(points, part, member, sums.sum(axis=0), rates)
    reach = _between(x, 1.0 - y, rates)
    for rate, half, (loss, low, high), bend in zip(rates, slow, of_cycles(of, sums, seed=seed), reach, strict=True):
        below, above = max(loss - low, half) + bend[0], max(high - loss, half) + bend[1]
        below, above = float(below), float(above)
        following = (loss - NEXT * below, loss + NEXT * above)
        found.append(LossAt(float(rate), loss, (loss - below, loss + above), following))
    return tuple(found)


def with_earlier(found: LossAt, earlier: Sequence[float]) -> LossAt:
    """Return a loss that knows what earlier measurements of the same host found at the same rate.

    A host is not the same from minute to minute (which pages a buffer got, what else its caches hold), and no single
    measurement can tell by how much. The interval for the next one then holds the prediction interval of a mean of as
    many draws (Student's t), and is never narrower than this measurement's own.

    Examples
    --------
    >>> alone = LossAt(500.0, 0.31, (0.29, 0.33), (0.28, 0.34))
    >>> low, high = with_earlier(alone, [0.30, 0.36, 0.29]).next95
    >>> round(low, 2), round(high, 2)
    (0.2, 0.43)
    """
    every = [*earlier, found.loss]
    if len(every) < 2:
        return found
    away = reach(len(every) - 1) * stdev(every) * math.sqrt(1.0 + 1.0 / len(every))
    low, high = found.next95
    following = (min(low, fmean(every) - away), max(high, fmean(every) + away))
    return replace(found, next95=following, earlier=len(earlier))


def _slow(points: Points, part: Floats, member: NDArray[np.intp], sums: Floats, rates: Floats) -> list[float]:
    """Return half the interval that noise from block to block gives each loss (`autocorrelation`)."""
    count, at, work = sums[:, 0], sums[:, 1] / sums[:, 0], sums[:, 2] / sums[:, 0]
    level = work / work[0]
    base, step = _through(at, 1.0 - level, rates), 1e-6
    moved = np.empty((part.size, rates.size))
    for one in range(part.size):
        other = work.copy()
        other[one] += step * work[0]
        moved[one] = (_through(at, 1.0 - other / other[0], rates) - base) / step
    weights = (moved / count[:, None])[member]
    residual, predicted = points.y_work_per_s / work[0] - level[member], level[member]
    return [half_width(*deviation(weights[:, r], residual, predicted, points.block)) for r in range(rates.size)]


def left_out(points: Points) -> tuple[LeftOut, ...]:
    """Return each level between idle and top against the curve, and the line, through the others."""
    x, y = levels(points)
    if x.size < 4 or not np.isfinite(y).all():
        return ()
    lost, found = 1.0 - y, []
    for at in range(1, x.size - 1):
        others = np.arange(x.size) != at
        rate = x[at : at + 1]
        line = np.polynomial.Polynomial.fit(x[others], lost[others], 1)
        curve = _through(x[others], lost[others], rate)
        found.append(LeftOut(float(rate[0]), float(lost[at]), float(curve[0]), float(line(rate[0]))))
    return tuple(found)


def table(points: Points) -> list[tuple[float, float]]:
    """Return the curve as (MB/s, loss) at `PARTS` rates from the lowest measured one to the top; no loss is below 0.

    A platform takes what lies between idle and the lowest rate as a line: nothing there was measured.
    """
    x, y = levels(points)
    rates = np.linspace(min(_lowest(points, x), float(x[-1])), float(x[-1]), PARTS)
    return [(float(rate), max(float(loss), 0.0)) for rate, loss in zip(rates, _through(x, 1.0 - y, rates), strict=True)]


def _lowest(points: Points, x: Floats) -> float:
    """Return the lowest rate whose loss was measured: that of the lowest level with traffic, above any left in idle."""
    idle = float(points.x_mb_per_s[points.level == 0].mean())
    carried = max(idle, IDLE_BELOW * float(x[-1]))
    return float(np.min(x[x > carried], initial=np.inf))


def _between(x: Floats, lost: Floats, at: Floats) -> Floats:
    """Return how far the loss may lie below and above `_through`, shape (rates, 2), if the law has no turning point.

    A law that is concave or convex over neighbouring levels, kinks included, lies between the chord of the two levels
    around a rate and the extensions of the segments beside them. Where levels lie on a line, all of these are one.
    """
    nodes, values = _nodes(x, lost)
    found = np.zeros((at.size, 2))
    slopes = np.diff(values) / np.diff(nodes)
    for row, (rate, middle) in enumerate(zip(at, _through(x, lost, at), strict=True)):
        right = int(np.searchsorted(nodes, rate))
        if not 0 < right < nodes.size or nodes[right] == rate:
            continue  # a level itself, or beyond the top by no more than its pacer leaves open
        left = right - 1
        may = [values[left] + slopes[left] * (rate - nodes[left])]
        if left > 0:
            may.append(values[left] + slopes[left - 1] * (rate - nodes[left]))
        if right < nodes.size - 1:
            may.append(values[right] + slopes[right] * (rate - nodes[right]))
        low, high = sorted((values[left], values[right]))
        inside = np.clip(may, low, high)  # a loss that rises (or falls) with the rate lies between its neighbours
        found[row] = max(middle - inside.min(), 0.0), max(inside.max() - middle, 0.0)
    return found


def _through(x: Floats, lost: Floats, at: Floats) -> Floats:
    """Return the monotone cubic through (0, 0) and the measured levels, the top's value beyond it.

    `x` has shape (levels,), `lost` (levels,) or (levels, k), the result (rates,) or (rates, k).
    """
    nodes, values = _nodes(x, lost)
    found: Floats = PchipInterpolator(nodes, values)(np.clip(at, 0.0, nodes[-1]))
    return found


def _nodes(x: Floats, lost: Floats) -> tuple[Floats, Floats]:
    """Return (0, 0) and the measured levels in ascending order of rate, without idle ones and equal rates."""
    busy = x > IDLE_BELOW * x.max()  # what an idle level moves is noise, and what it loses is 0 by definition
    order = np.flatnonzero(busy)[np.argsort(x[busy])]
    nodes = np.concatenate([[0.0], x[order]])
    values = np.concatenate([np.zeros((1, *lost.shape[1:])), lost[order]])
    ascends = np.concatenate([[True], np.diff(nodes) > 0])
    nodes, values = nodes[ascends], values[ascends]
    return nodes, values
