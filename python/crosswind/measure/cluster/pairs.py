"""Which pairs of hosts are measured, and in which direction: all of them, those of a star, or the edges of a tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Literal, get_args

from crosswind.errors import DescriptionError

Pairs = Literal["all", "star", "tree"]
"""Every ordered pair; from the root to each other host; from each node of a platform to its children."""


@dataclass(frozen=True)
class Visit:
    """One measurement: what a host loses and reaches while it exchanges data with a peer.

    Attributes
    ----------
    at, peer : str
        The host that computes, and the host that answers.
    direction : str
        `receive`, `send`, or `each` of both, seen from `at`.
    """

    at: str
    peer: str
    direction: str

    @property
    def pair(self) -> tuple[str, str]:
        """Both hosts, in the order of their names."""
        return (self.at, self.peer) if self.at < self.peer else (self.peer, self.at)


def links_wanted(
    pairs: Pairs, hosts: Sequence[str], edges: Sequence[tuple[str, str]] | None = None, root: str | None = None
) -> list[tuple[str, str]]:
    """Return the links, (from, to), that must be known.

    Parameters
    ----------
    pairs : {"all", "star", "tree"}
    hosts : sequence of str
        All hosts.
    edges : sequence of (str, str), optional
        For "tree": the hosts of each parent and child.
    root : str, optional
        For "star": the one in the middle; default: the first host.

    Raises
    ------
    DescriptionError
        When what one of them needs is not given, or the root is no host.

    Examples
    --------
    >>> links_wanted("star", ["a", "b", "c"], root="b")
    [('b', 'a'), ('b', 'c')]
    """
    if pairs not in get_args(Pairs):
        permitted = ", ".join(get_args(Pairs))
        raise DescriptionError(f"pairs is {pairs!r}; it must be one of {permitted}", "pairs")
    if pairs == "tree":
        if edges is None:
            raise DescriptionError("pairs is 'tree', but no tree is given", "pairs", "name it with --platform")
        return list(edges)
    if root is not None and root not in hosts:
        shown = ", ".join(hosts[:20])
        raise DescriptionError(f"root is {root!r}, which is no host of the cluster", "root", f"there are: {shown}")
    if pairs == "all":
        return list(permutations(hosts, 2))
    middle = root or hosts[0]
    return [(middle, host) for host in hosts if host != middle]


def visits(links: Sequence[tuple[str, str]]) -> list[Visit]:
    """Return the measurements that tell of these links: at the receiver what receiving costs, at the sender sending.

    Examples
    --------
    >>> [(one.at, one.direction, one.peer) for one in visits([("a", "b"), ("b", "a"), ("a", "c")])]
    [('b', 'each', 'a'), ('a', 'each', 'b'), ('c', 'receive', 'a'), ('a', 'send', 'c')]
    """
    directions: dict[tuple[str, str], set[str]] = {}
    for sender, receiver in links:
        directions.setdefault((receiver, sender), set()).add("receive")
        directions.setdefault((sender, receiver), set()).add("send")
    return [
        Visit(at, peer, "each" if len(found) == 2 else next(iter(found))) for (at, peer), found in directions.items()
    ]
