"""How a cost that several causes make together is shared out among them: arithmetic only.

A *coalition* is a set of causes, as a bit mask: bit k says that cause k is there. Costs are paired by seed: one column
per seed, so that what a seed alone does to all of them drops out of every difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
ROUNDING = 1e-9
MOST_SHARED = 6
"""Causes that are shared out by Shapley's value: beyond, 2^causes coalitions are too many runs."""


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds and its 95 % interval, in the unit of what was averaged; infinite ends where one seed was run.

    Examples
    --------
    >>> estimate(np.array([1.0, 2.0, 3.0]))  # doctest: +ELLIPSIS
    Estimate(mean=2.0, low=-0.48..., high=4.48...)
    """

    mean: float
    low: float
    high: float
    alike: bool = False
    """Whether all seeds gave the same cost, so that the interval is an assumption (`cost_estimate`)."""

    @property
    def is_told_from_zero(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.low > 0.0 or self.high < 0.0


def estimate(values: Floats) -> Estimate:
    """Return the mean of one value per seed with Student's interval.

    Raises
    ------
    ValueError
        When there is no value.
    """
    if not values.size:
        raise ValueError("an estimate needs a value")
    mean = float(values.mean())
    if values.size == 1:
        return Estimate(mean, -np.inf, np.inf)
    half = float(stats.t.ppf(0.5 + CONFIDENCE / 2, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size))
    return Estimate(mean, mean - half, mean + half)


def cost_estimate(values: Floats) -> Estimate:
    """Return the mean cost with Student's interval; a wider one where all seeds gave the same cost.

    A cost is often a whole number of events, so a few seeds may be alike by chance, and their spread of 0 says nothing.
    With n seeds alike, the share of seeds that differ is at most 1 - 0.05^(1/n) (95 %); the interval assumes that each
    of those differs by the whole cost.

    Examples
    --------
    >>> found = cost_estimate(np.array([2.0, 2.0, 2.0, 2.0, 2.0]))
    >>> found.alike, round(found.low, 2), round(found.high, 2)
    (True, 1.1, 2.9)
    """
    found = estimate(values)
    if values.size == 1 or np.ptp(values) > ROUNDING * abs(found.mean) or found.mean == 0.0:
        return found
    half = (1.0 - (1.0 - CONFIDENCE) ** (1.0 / values.size)) * abs(found.mean)
    return Estimate(found.mean, found.mean - half, found.mean + half, alike=True)


def coalitions(causes: int) -> list[int]:
    """Return which coalitions have to be run: all where causes are few, else none, each alone, all but each, and all.

    Examples
    --------
    >>> coalitions(2)
    [0, 1, 2, 3]
    >>> len(coalitions(6)), len(coalitions(7)), len(coalitions(20))
    (64, 16, 42)
    """
    everything = (1 << causes) - 1
    if causes <= MOST_SHARED:
        return list(range(everything + 1))
    return sorted({0, everything, *(1 << k for k in range(causes)), *(everything ^ (1 << k) for k in range(causes))})


def alone(costs: Mapping[int, Floats], cause: int) -> Floats:
    """Return what a cause costs when it is the only one, per seed."""
    return costs[1 << cause] - costs[0]


def removed(costs: Mapping[int, Floats], cause: int, causes: int) -> Floats:
    """Return what is saved when a cause is removed from all, per seed."""
    everything = (1 << causes) - 1
    return costs[everything] - costs[everything ^ (1 << cause)]


def shapley(costs: Mapping[int, Floats], cause: int, causes: int) -> Floats:
    """Return a cause's Shapley value, per seed: its mean addition over all orders in which the causes could arrive.

    The values of all causes sum to what all of them cost together. Equation, v the cost of a coalition, n causes::

        phi_k = sum over S without k of |S|! (n - |S| - 1)! / n! (v(S + k) - v(S))

    Raises
    ------
    KeyError
        When a coalition is missing.

    Examples
    --------
    Two causes that cost 1 and 2 alone, and 4 together, share the 1 that neither made alone:

    >>> costs = {0: np.array([0.0]), 1: np.array([1.0]), 2: np.array([2.0]), 3: np.array([4.0])}
    >>> shapley(costs, 0, 2), shapley(costs, 1, 2)
    (array([1.5]), array([2.5]))
    """
    bit = 1 << cause
    value = np.zeros_like(costs[0])
    for coalition in range(1 << causes):
        if coalition & bit:
            continue
        others = coalition.bit_count()
        weight = factorial(others) * factorial(causes - others - 1) / factorial(causes)
        value += weight * (costs[coalition | bit] - costs[coalition])
    return value
