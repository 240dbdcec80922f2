"""Which pairs of hosts are measured at the same time: rounds in which no host appears twice (an edge colouring).

Two measurements that shared a host would measure each other. All pairs of n hosts take n - 1 rounds (n where n is odd),
by the circle method of tournaments; the edges of a tree as many as its busiest node has neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Pair = tuple[str, str]


def rounds(pairs: Iterable[Pair], at_once: int | None = None) -> list[list[Pair]]:
    """Spread pairs over rounds, so that no host is in two pairs of a round.

    Parameters
    ----------
    pairs : iterable of (str, str)
        Unordered: (a, b) and (b, a) are the same pair, and count once.
    at_once : int, optional
        Most pairs in a round, at least 1: where pairs share a switch that bears no more.

    Returns
    -------
    list of list of (str, str)
        The pairs as they were given first. Of m pairs among n hosts, of which none is in more than d pairs, at most
        2 d - 1 rounds; d for a tree whose pairs come from the root down; no more than n for any.

    Examples
    --------
    >>> rounds([("a", "b"), ("a", "c"), ("b", "c"), ("a", "d"), ("b", "d"), ("c", "d")])
    [[('a', 'b'), ('c', 'd')], [('a', 'c'), ('b', 'd')], [('b', 'c'), ('a', 'd')]]
    >>> rounds([("root", "a"), ("root", "b"), ("a", "c")])
    [[('root', 'a')], [('root', 'b'), ('a', 'c')]]
    """
    once = list({frozenset(pair): pair for pair in reversed(list(pairs))}.values())[::-1]
    best = min(_by_first_fit(once), _by_circle(once), key=len)
    size = at_once or max(len(once), 1)
    return [one[start : start + size] for one in best for start in range(0, len(one), size)]


def _by_first_fit(pairs: Sequence[Pair]) -> list[list[Pair]]:
    """Put each pair into the first round in which both its hosts are free."""
    busy: list[set[str]] = []
    found: list[list[Pair]] = []
    for pair in pairs:
        place = next((at for at, hosts in enumerate(busy) if hosts.isdisjoint(pair)), len(busy))
        if place == len(busy):
            busy.append(set())
            found.append([])
        busy[place].update(pair)
        found[place].append(pair)
    return found


def _by_circle(pairs: Sequence[Pair]) -> list[list[Pair]]:
    """Put each pair into its round of a tournament in which each meets each other, without the empty rounds.

    Hosts stand in a circle of odd length (one of an even number in its middle); in round r those meet whose places add
    up to r, and the one that meets itself meets the middle.
    """
    hosts = sorted({host for pair in pairs for host in pair})
    length = len(hosts) - 1 + len(hosts) % 2
    place = {host: at for at, host in enumerate(hosts)}
    found: dict[int, list[Pair]] = {}
    for pair in pairs:
        a, b = sorted(place[host] for host in pair)
        found.setdefault((2 * a if b == length else a + b) % length, []).append(pair)
    return [found[number] for number in sorted(found)]
