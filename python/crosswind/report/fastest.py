"""Which order of service is fastest, as far as runs with the same seeds settle it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np

from crosswind.blame.shares import ROUNDING, cost_estimate
from crosswind.run.results import Run


def fastest(by_order: Mapping[str, Sequence[Run]], exact: bool) -> list[str]:
    """Return the orders that no other is faster than, in the order given.

    An order is slower than the one with the least mean makespan where the 95 % interval of their differences, paired by
    seed, is above 0. Several orders in the result are a tie: their differences may be chance.

    Parameters
    ----------
    by_order : mapping
        Runs of one point, by order.
    exact : bool
        Whether a single run is no sample (simulated): then any difference counts.

    Examples
    --------
    >>> def runs(*makespans):
    ...     return [Run({"seed": seed, "makespan_s": makespan}) for seed, makespan in enumerate(makespans)]
    >>> fastest({"planned": runs(1.0, 2.0, 3.0), "arrival": runs(1.1, 2.12, 3.11)}, exact=True)
    ['planned']
    >>> fastest({"planned": runs(1.0, 2.0, 3.0), "arrival": runs(1.3, 1.8, 3.2)}, exact=True)
    ['planned', 'arrival']
    """
    seconds = {order: {run.seed: run.makespan_s for run in runs} for order, runs in by_order.items()}
    shared = set.intersection(*(set(of) for of in seconds.values()))
    means = {order: fmean(of[seed] for seed in sorted(shared or of)) for order, of in seconds.items()}
    best = min(means, key=means.__getitem__)

    def slower(order: str) -> bool:
        seeds = sorted(set(seconds[order]) & set(seconds[best]))
        longer = np.array([seconds[order][seed] - seconds[best][seed] for seed in seeds])
        if len(seeds) > 1:
            return cost_estimate(longer).low > ROUNDING * means[best]
        return exact and bool(seeds) and float(longer[0]) > ROUNDING * means[best]

    return [order for order in by_order if order == best or not slower(order)]


def in_words(found: Sequence[Sequence[str]], orders: Sequence[str]) -> str:
    """Return how often each order, or each tie of several, was fastest.

    Parameters
    ----------
    found : sequence of sequence of str
        The fastest orders of each point.
    orders : sequence of str
        All orders that were compared.

    Examples
    --------
    >>> in_words([["planned"]], ["planned", "arrival"])
    'planned was fastest'
    >>> in_words([["a"], ["a"], ["b"], ["a", "b"], ["a", "b", "c"]], ["a", "b", "c"])
    'a was fastest at 2 of 5 points, b at 1; tied: a and b at 1, all 3 orders at 1'
    >>> in_words([["a", "b"], ["a", "b"]], ["a", "b"])
    'all 2 orders tied for the fastest at 2 of 2 points'
    """
    points = len(found)
    counts: dict[tuple[str, ...], int] = {}
    for first in found:
        counts[tuple(first)] = counts.get(tuple(first), 0) + 1
    by_count = sorted(counts.items(), key=lambda item: -item[1])
    alone = [(first[0], count) for first, count in by_count if len(first) == 1]
    tied = [(first, count) for first, count in by_count if len(first) > 1]

    def where(count: int, of: bool) -> str:
        return "" if points == 1 else f" at {count} of {points} points" if of else f" at {count}"

    if not alone and len(tied) == 1:
        (first, count) = tied[0]
        names = f"all {len(first)} orders" if len(first) == len(orders) else listed(first)
        return f"{names} tied for the fastest{where(count, of=True)}"
    parts = [
        f"{order} {'was fastest' if not k else ''}".strip() + where(n, not k) for k, (order, n) in enumerate(alone)
    ]
    ties = [
        f"{f'all {len(first)} orders' if len(first) == len(orders) else listed(first)}{where(count, of=not alone)}"
        for first, count in tied
    ]
    more = len(ties) - _MOST_TIES
    if more > 0:
        rest = sum(count for _, count in tied[_MOST_TIES:])
        ties = [*ties[:_MOST_TIES], f"other orders{where(rest, of=False)}"]
    return "; ".join([", ".join(parts)] * bool(parts) + [f"tied: {', '.join(ties)}"] * bool(ties))


_MOST_TIES = 3


def listed(words: Sequence[str]) -> str:
    """Return names as a list in words.

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
