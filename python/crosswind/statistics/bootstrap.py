"""A block bootstrap over cycles, fast enough to be asked after every cycle.

Samples of one measurement follow each other with lag-1 correlations of 0.4 to 0.8, so an interval computed as if they
were independent is up to 2.5 times too narrow. A cycle (one shuffled pass through all levels) is the unit that may be
exchanged: slow drift moves a whole cycle and cancels within it. Each cycle is condensed to its sums first, so a
resample costs one row of a small matrix product.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crosswind.statistics.interval import CONFIDENCE, reach

Floats = NDArray[np.float64]

LEAST_BATCHES = 8  # fewer say too little about how much they vary


def of_cycles(
    estimate: Callable[[Floats], Floats],
    sums: Floats,
    *,
    independent: bool = False,
    resamples: int = 400,
    seed: int = 0,
) -> list[tuple[float, float, float]]:
    """Return estimates from sums over cycles, each with a 95 % interval by a bootstrap (`stretched`).

    Parameters
    ----------
    estimate : callable
        From sums, shape (k, ...), to as many estimates, shape (k, m); NaN where a resample lacks what it takes.
    sums : numpy.ndarray, shape (cycles, ...)
        Of each cycle.
    independent : bool
        Whether neighbouring cycles cannot push the same way.
    resamples, seed : int
        Number of resamples, at least 2, and the seed of the draws.

    Returns
    -------
    list of tuple of float
        (value, low, high) of each of the m; infinite bounds with fewer than 2 cycles.
    """
    cycles, whole = sums.shape[0], sums.sum(axis=0, keepdims=True)
    values = [float(value) for value in estimate(whole)[0]]
    if cycles < 2:
        return [(value, -np.inf, np.inf) for value in values]
    drawn = estimate(np.tensordot(draws(cycles, resamples, seed), sums, 1))
    without = estimate(whole - sums)
    return [(value, *stretched(value, drawn[:, at], without[:, at], independent)) for at, value in enumerate(values)]


def half_width(deviation: float, independent: float) -> float:
    """Return half of a 95 % interval by Student's t, from what `autocorrelation.deviation` returns."""
    return _student(max(independent - 2.0, 2.0)) * reach(math.inf) * deviation


def mean_of_cycles(values: ArrayLike, cycle: ArrayLike) -> tuple[float, float, float]:
    """Return the mean of cycle means and its 95 % interval by Student's t over cycles, widened as in `stretched`.

    Parameters
    ----------
    values : array_like, shape (n,)
        One value per point.
    cycle : array_like of int, shape (n,)
        Cycle of each point.

    Returns
    -------
    tuple of float
        Mean, low, high; infinite bounds with fewer than 2 cycles, NaN without any point.

    Examples
    --------
    >>> mean, low, high = mean_of_cycles([1.0, 3.0, 2.0, 2.0], [0, 0, 1, 1])
    >>> (mean, low, high)
    (2.0, 2.0, 2.0)
    """
    given = np.asarray(values, float)
    if not given.size:
        return float("nan"), float("nan"), float("nan")
    _, member = np.unique(np.asarray(cycle), return_inverse=True)
    means = np.bincount(member, given) / np.bincount(member)
    mean = float(means.mean())
    if means.size < 2:
        return mean, -np.inf, np.inf
    without = (means.sum() - means) / (means.size - 1)
    half = float(_stretch(without) * reach(math.inf) * means.std() / np.sqrt(means.size))
    return mean, mean - half, mean + half


@lru_cache(maxsize=4)
def draws(cycles: int, resamples: int, seed: int) -> Floats:
    """Return how often each cycle is drawn, shape (resamples, cycles)."""
    drawn = np.random.default_rng(seed).integers(0, cycles, (resamples, cycles))
    drawn += np.arange(resamples)[:, None] * cycles
    return np.bincount(drawn.ravel(), minlength=resamples * cycles).reshape(resamples, cycles).astype(float)


def stretched(estimate: float, drawn: Floats, left_out: Floats, independent: bool = False) -> tuple[float, float]:
    """Return the 95 % interval of an estimate: percentiles of the resamples, stretched.

    Percentile intervals are too narrow when there are few cycles: their spread misses a factor sqrt(C / (C - 1)), and
    2.5 % of a normal is not 2.5 % of Student's t with C - 1 degrees of freedom. The distance from the estimate to each
    percentile is stretched by both (after Hesterberg, "What Teachers Should Know About the Bootstrap", The American
    Statistician 69(4), 2015; to move the percentile, as there, needs far more resamples). Where neighbouring
    cycles still push the estimate the same way, with lag-1 correlation r > 0 among the cycles' influences (leave one
    out), C cycles are worth only C (1 - r) / (1 + r), and the interval is stretched by that too; or by what batches of
    2, 4, 8... cycles show, where that is more: slow wander of the host hardly shows from one cycle to the next.

    Parameters
    ----------
    estimate : float
        From all cycles.
    drawn, left_out : numpy.ndarray
        From the resamples, and from all cycles but one, in order of time; NaN where one lacks what it takes.
    independent : bool
        Whether neighbouring cycles cannot push the same way.
    """
    drawn = drawn[np.isfinite(drawn)]
    if drawn.size < 2:
        return -np.inf, np.inf
    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = np.quantile(drawn, [tail, 1.0 - tail])
    stretch = _stretch(left_out[np.isfinite(left_out)], independent)
    return float(estimate + stretch * min(low - estimate, 0.0)), float(estimate + stretch * max(high - estimate, 0.0))


def _stretch(left_out: Floats, independent: bool = False) -> float:
    """Return how much wider than its percentiles an interval must be, from the estimates without each cycle."""
    cycles = max(left_out.size, 2)
    if independent:
        return float(np.sqrt(cycles / (cycles - 1.0)) * _student(cycles - 1.0))
    influence = left_out.mean() - left_out
    power = float(influence @ influence)
    # The lag-1 correlation of n independent values is -1/n on average, not 0.
    lag = float(influence[1:] @ influence[:-1]) / power + 1.0 / cycles if power > 0 else 0.0
    lag = min(max(lag, 0.0), 0.9)
    longer = max((1.0 + lag) / (1.0 - lag), _by_batches(influence))
    student = _student(max(cycles / longer - 1.0, min(cycles - 1.0, 2.0)))
    return float(np.sqrt(cycles / (cycles - 1.0) * longer) * student)


def _by_batches(influence: Floats) -> float:
    """Return how much more sums over runs of 2, 4, 8... cycles vary than sums over as many independent ones."""
    cycles, most, length = influence.size, 1.0, 2
    alone = float(influence @ influence) / max(cycles - 1, 1)
    while cycles // length >= LEAST_BATCHES and alone > 0:
        batches = cycles // length
        sums = influence[: batches * length].reshape(batches, length).sum(axis=1)
        most = max(most, float(sums.var(ddof=1)) / (length * alone))
        length *= 2
    return most


@lru_cache(maxsize=4096)
def _student(freedom: float) -> float:
    """Return how much further out Student's t leaves its tails than the normal distribution."""
    return reach(freedom) / reach(math.inf)
