"""Which order of service is fastest, as far as runs with the same seeds settle it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

from crosswind.run.results import Run
from crosswind.statistics.interval import span

REPEAT = "--set repetitions=5"
ROUNDING = 1e-9
"""Differences up to this part of a makespan are rounding."""


class Fastest(NamedTuple):
    """The orders of one point that no other is faster than.

    Attributes
    ----------
    orders : list of str
        Several, if compared, are a tie: their differences may be chance.
    compared : bool
        Whether each ran with a seed of each other, so that what settles nothing is a tie.
    once : bool
        Whether they are alike only because each ran once where a single run is a sample: any difference may be chance.
    """

    orders: list[str]
    compared: bool = True
    once: bool = False


def fastest(by_order: Mapping[str, Sequence[Run]], exact: bool) -> Fastest:
    """Return the orders that no other is faster than, in the order given.

    An order is slower than another where the 95 % interval of their differences, paired by seed, is above 0.

    Parameters
    ----------
    by_order : mapping
        Runs of one point, by order.
    exact : bool
        Whether a single run is no sample (simulated): then any difference counts.

    Examples
    --------
    >>> def runs(*makespans, first=0):
    ...     return [Run({"seed": seed, "makespan_s": makespan}) for seed, makespan in enumerate(makespans, first)]
    >>> fastest({"planned": runs(1.0, 2.0, 3.0), "arrival": runs(1.1, 2.12, 3.11)}, exact=True)
    Fastest(orders=['planned'], compared=True, once=False)
    >>> fastest({"planned": runs(1.0, 2.0, 3.0), "arrival": runs(1.3, 1.8, 3.2)}, exact=True)
    Fastest(orders=['planned', 'arrival'], compared=True, once=False)
    >>> fastest({"planned": runs(1.0, 2.0), "arrival": runs(7.0, 8.0, first=2)}, exact=True)
    Fastest(orders=['planned', 'arrival'], compared=False, once=False)
    >>> fastest({"planned": runs(1.0), "arrival": runs(7.0)}, exact=False)
    Fastest(orders=['planned', 'arrival'], compared=True, once=True)
    """
    seconds = {order: {run.seed: run.makespan_s for run in runs} for order, runs in by_order.items()}

    def slower(order: str, other: str) -> bool:
        seeds = sorted(set(seconds[order]) & set(seconds[other]))
        if not seeds:
            return False
        longer = [seconds[order][seed] - seconds[other][seed] for seed in seeds]
        least = ROUNDING * fmean(seconds[other][seed] for seed in seeds)
        if len(seeds) > 1:
            return span(longer)[1] > least
        single = len(seconds[order]) == len(seconds[other]) == 1
        return exact and single and longer[0] > least

    found = [order for order in seconds if not any(slower(order, other) for other in seconds if other != order)]
    if not found:  # each is slower than another, with seeds that the third does not have
        return Fastest(list(seconds), compared=False)
    common = [set(seconds[one]) & set(seconds[other]) for one, other in combinations(found, 2)]
    once = not exact and len(found) > 1 and all(len(seeds) == 1 for seeds in common)
    return Fastest(found, all(common), once)


def in_words(found: Sequence[Fastest], orders: Sequence[str]) -> str:
    """Return how often each order, or each tie of several, was fastest, and which were not compared.

    Parameters
    ----------
    found : sequence of Fastest
        Of each point.
    orders : sequence of str
        All orders that were compared.

    Examples
    --------
    >>> def of(*several):
    ...     return [Fastest(list(one)) for one in several]
    >>> in_words(of(["planned"]), ["planned", "arrival"])
    'planned was fastest'
    >>> in_words(of("a", "a", "b", "ab", "abc"), ["a", "b", "c"])
    'a was fastest at 2 of 5 points, b at 1; tied: a and b at 1, all 3 orders at 1'
    >>> in_words(of("ab", "ab"), ["a", "b"])
    'all 2 orders tied for the fastest at 2 of 2 points'
    >>> in_words([*of("a"), Fastest(["a", "b"], compared=False)], ["a", "b"])
    'a was fastest at 1 of 2 points; no seed in common: all 2 orders at 1'
    >>> in_words([Fastest(["a", "c"], compared=False)], ["a", "b", "c"])
    'not compared, since they have no seed in common: a and c'
    >>> in_words([Fastest(["a", "b"], once=True)], ["a", "b"])
    'all 2 orders ran once, so any difference may be chance (--set repetitions=5)'
    """
    points = len(found)
    counts: dict[tuple[tuple[str, ...], bool], int] = {}
    for one in found:
        key = (tuple(one.orders), one.compared)
        counts[key] = counts.get(key, 0) + 1
    by_count = sorted(counts.items(), key=lambda item: -item[1])
    alone = [(first[0], count) for (first, _), count in by_count if len(first) == 1]
    tied = [(first, count) for (first, compared), count in by_count if len(first) > 1 and compared]
    apart = [(first, count) for (first, compared), count in by_count if len(first) > 1 and not compared]

    def where(count: int, of: bool) -> str:
        return "" if points == 1 else f" at {count} of {points} points" if of else f" at {count}"

    def names(first: Sequence[str]) -> str:
        return f"all {len(first)} orders" if len(first) == len(orders) else listed(first)

    def several(groups: Sequence[tuple[Sequence[str], int]], of: bool) -> str:
        shown = [f"{names(first)}{where(count, of=of)}" for first, count in groups[:_MOST_TIES]]
        rest = sum(count for _, count in groups[_MOST_TIES:])
        return ", ".join(shown + [f"other orders{where(rest, of=False)}"] * bool(rest))

    if not alone and not apart and len(tied) == 1:
        (first, count) = tied[0]
        if all(one.once for one in found):
            return f"{names(first)} ran once{where(count, of=True)}, so any difference may be chance ({REPEAT})"
        return f"{names(first)} tied for the fastest{where(count, of=True)}"
    parts = [
        f"{order} {'was fastest' if not k else ''}".strip() + where(n, not k) for k, (order, n) in enumerate(alone)
    ]
    said = [", ".join(parts)] * bool(parts)
    if tied:
        said.append(f"tied: {several(tied, of=not said)}")
    if apart:
        why = "no seed in common" if said else "not compared, since they have no seed in common"
        said.append(f"{why}: {several(apart, of=not said)}")
    return "; ".join(said)


_MOST_TIES = 3


def listed(words: Sequence[str]) -> str:
    """Return names as a list in words.

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
