"""How a cost that several causes make together is shared out among them: arithmetic only.

A *coalition* is a set of causes, as a bit mask: bit k says that cause k is there. Costs are paired by seed: one column
per seed, so that what a seed alone does to all of them drops out of every difference.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.typing import NDArray

from crosswind.statistics.interval import CONFIDENCE, MeanInterval, mean_interval

Floats = NDArray[np.float64]

ROUNDING = 1e-9
MOST_SHARED = 6
"""Causes that are shared out over all orders: beyond, 2^causes coalitions are too many runs, and orders are drawn."""


def cost_estimate(values: Floats) -> MeanInterval:
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
    found = mean_interval(values)
    if values.size == 1 or np.ptp(values) > ROUNDING * abs(found.mean) or found.mean == 0.0:
        return found
    half = (1.0 - (1.0 - CONFIDENCE) ** (1.0 / values.size)) * abs(found.mean)
    return MeanInterval(found.mean, found.mean - half, found.mean + half, alike=True)


@dataclass(frozen=True)
class Leading:
    """Which causes cost most, as far as paired runs settle it.

    Attributes
    ----------
    first : list of str
        Causes whose cost is distinguishable from 0, and not distinguishable from the largest such cost; largest first.
        Empty where no cost is distinguishable from 0.
    open : list of str
        Causes that may cost more than these, and may cost nothing.
    """

    first: list[str]
    open: list[str]


def leading(costs: Mapping[str, Floats]) -> Leading:
    """Return which causes cost most, by paired differences of their costs per seed or block.

    Examples
    --------
    >>> a, b, c = np.array([5.0, 5.1, 5.2]), np.array([1.0, 1.1, 0.9]), np.array([-20.0, 4.0, 22.0])
    >>> leading({"a": a, "b": b}), leading({"b": b, "c": c}), leading({"c": c})
    (Leading(first=['a'], open=[]), Leading(first=['b'], open=['c']), Leading(first=[], open=['c']))
    """
    ordered = sorted(costs, key=lambda cause: -float(costs[cause].mean()))
    known = [cause for cause in ordered if cost_estimate(costs[cause]).low > 0.0]
    if not known:
        return Leading([], ordered)
    most = costs[known[0]]
    near = [cause for cause in ordered if cause != known[0] and not cost_estimate(most - costs[cause]).low > 0.0]
    return Leading(
        [known[0], *(cause for cause in near if cause in known)], [cause for cause in near if cause not in known]
    )


def coalitions(causes: int) -> list[int]:
    """Return which coalitions every seed runs: all where causes are few, else none, each alone, all but each, and all.

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


def orders(causes: int, seed: int) -> list[list[int]]:
    """Return the orders in which causes are added for a seed: one drawn from it, and its reverse.

    The reverse balances a cause that came early in the first. Each seed has its own orders, so the interval over seeds
    contains the error of drawing.

    Examples
    --------
    >>> first, second = orders(7, seed=1)
    >>> sorted(first), second == first[::-1]
    ([0, 1, 2, 3, 4, 5, 6], True)
    """
    draw = random.Random(seed)
    keys = [draw.random() for _ in range(causes)]  # only random() gives the same numbers in every version of Python
    first = sorted(range(causes), key=keys.__getitem__)
    return [first, first[::-1]]


def drawn_coalitions(causes: int, seed: int) -> list[int]:
    """Return the coalitions that a seed runs beyond `coalitions`: those on the way of its `orders`.

    Examples
    --------
    >>> len(drawn_coalitions(6, seed=1)), len(drawn_coalitions(7, seed=1)), len(drawn_coalitions(20, seed=1))
    (0, 8, 34)
    """
    if causes <= MOST_SHARED:
        return []
    found = {_prefix(order, length) for order in orders(causes, seed) for length in range(causes + 1)}
    return sorted(found - set(coalitions(causes)))


def drawn_share(costs: Mapping[int, float], cause: int, causes: int, seed: int) -> float:
    """Return an unbiased estimate of a cause's Shapley value from one seed: its mean addition over the seed's orders.

    The estimates of all causes sum to what all of them cost together.

    Raises
    ------
    KeyError
        When a coalition is missing.
    """
    found = orders(causes, seed)
    additions = []
    for order in found:
        before = _prefix(order, order.index(cause))
        additions.append(costs[before | 1 << cause] - costs[before])
    return sum(additions) / len(found)


def _prefix(order: Sequence[int], length: int) -> int:
    return sum(1 << cause for cause in order[:length])


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
