"""A tree of nodes from the routes that lead from one host to all others.

Other tools describe a network by its links and the links that a message crosses on its way to each host. Where these
routes part and never meet again they are a tree, and a platform says the same:

- a link that leads to one host is that node's receive limit; links in a row are as fast as the slowest of them;
- a link that all routes out of a host cross first is that host's send limit;
- a link that some of them share is a node that computes nothing and passes tasks on;
- a link of which each message gets all (`shared=False`) limits each node behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from crosswind.errors import DescriptionError, Notice, warning

if TYPE_CHECKING:
    from crosswind.documents.shared import Node


@dataclass(frozen=True)
class Wire:
    """One direction of a link.

    Attributes
    ----------
    name : str
        Unique among the wires of a platform.
    mb_per_s, latency_s : float
        What it carries, MB/s, and how long a message is under way, s.
    shared : bool
        Whether messages that cross it at the same time share what it carries.
    line : int
        Where the file describes it.
    """

    name: str
    mb_per_s: float
    latency_s: float
    shared: bool = True
    line: int = 0


@dataclass
class _Place:
    """Where a wire ends: the hosts there, and the wires that lead on."""

    wire: Wire
    hosts: list[str] = field(default_factory=list)
    onward: dict[str, _Place] = field(default_factory=dict)

    @property
    def only(self) -> _Place:
        """The place next to this one, where there is one only."""
        (place,) = self.onward.values()
        return place

    @property
    def is_passed(self) -> bool:
        """Whether all messages over a shared wire leave its end over one wire."""
        return self.is_passed_or_parts and len(self.onward) == 1

    @property
    def is_passed_or_parts(self) -> bool:
        """Whether all messages over a shared wire leave its end again."""
        return self.wire.shared and not self.hosts and bool(self.onward)

    @property
    def next_parts(self) -> bool:
        """Whether an unshared wire is next, behind which routes part: what is shared ends here."""
        place = self.only
        if place.wire.shared:
            return False
        while not place.hosts and len(place.onward) == 1:
            place = place.only
        return not place.hosts


@dataclass(frozen=True)
class _Way:
    """From a node that is in the tree already to a place that is not."""

    parent: str
    place: _Place
    mb_per_s: float
    latency_s: float

    def over(self, place: _Place) -> _Way:
        """Return the way to a place next to it."""
        wire = place.wire
        return _Way(self.parent, place, min(self.mb_per_s, wire.mb_per_s), self.latency_s + wire.latency_s)


def tree_of(
    file: str, root: str, compute_per_s: Mapping[str, float], routes: Mapping[str, Sequence[Wire]]
) -> tuple[list[Node], list[Notice]]:
    """Return the nodes of a tree over which messages cross the links that they cross on the routes.

    Parameters
    ----------
    file : str
        What errors call the file.
    root : str
        The host that holds the tasks.
    compute_per_s : mapping
        Host -> work units/s, the root included.
    routes : mapping
        Each other host -> the wires from the root to it, in order.

    Returns
    -------
    list of dict, list of dict
        Nodes as in `platform.toml`, each after its parent, and what the reader should know of them.

    Raises
    ------
    DescriptionError
        With file and line: the routes are no tree.

    Examples
    --------
    >>> up, a, b = Wire("up", 100.0, 0.0), Wire("a", 40.0, 0.001), Wire("b", 30.0, 0.001)
    >>> nodes, _ = tree_of("two.xml", "r", {"r": 1.0, "a": 2.0, "b": 2.0}, {"a": [up, a], "b": [up, b]})
    >>> [(node["name"], node.get("send_limit_mb_per_s"), node.get("receive_limit_mb_per_s")) for node in nodes]
    [('r', 100.0, None), ('a', None, 40.0), ('b', None, 30.0)]
    """
    start = _places(file, root, routes)
    nodes: dict[str, Node] = {root: {"name": root, "compute_per_s": compute_per_s[root]}}
    switches: list[str] = []
    ways = _onward(nodes[root], start)[::-1]
    while ways:
        way = ways.pop()
        while way.place.is_passed and not way.place.next_parts:
            way = way.over(way.place.only)
        last = way.place
        if not last.wire.shared:
            for host in last.hosts:
                nodes[host] = _node(host, compute_per_s[host], way)
            ways.extend([way.over(further) for further in last.onward.values()][::-1])
            continue
        if len(last.hosts) == 1:
            (name,) = last.hosts
            nodes[name] = _node(name, compute_per_s[name], way)
        else:
            name = _unused(last.wire.name, {*compute_per_s, *nodes})
            switches.append(name)
            nodes[name] = _node(name, 0.0, way)
            for host in last.hosts:
                nodes[host] = _node(host, compute_per_s[host], _Way(name, last, way.mb_per_s, 0.0))
        ways.extend(_onward(nodes[name], last)[::-1])
    return list(nodes.values()), _warnings(switches)


def _places(file: str, root: str, routes: Mapping[str, Sequence[Wire]]) -> _Place:
    """Return the places that the routes lead through; each shared wire leads to one."""
    start = _Place(Wire(root, inf, 0.0))
    first_by: dict[str, tuple[_Place, str]] = {}
    for host, route in routes.items():
        if not route:
            what = f"{file}: no link lies between {root} and {host}"
            raise DescriptionError(what, "route", "give the route a link with what it carries")
        place = start
        for wire in route:
            before, by = first_by.setdefault(wire.name, (place, host))
            if wire.shared and before is not place:
                what = (
                    f"{file}:{wire.line}: the routes from {root} are no tree: those to {by} and to {host} meet in link"
                )
                hint = f"choose another root, or give {by} and {host} links of their own"
                raise DescriptionError(f"{what} {wire.name} on different ways", "route", hint)
            place = place.onward.setdefault(wire.name, _Place(wire))
        place.hosts.append(host)
    return start


def _onward(node: Node, place: _Place) -> list[_Way]:
    """Return the ways that lead on below a node; what all of them cross first becomes its send limit."""
    way = _Way(node["name"], place, inf, 0.0)
    while len(way.place.onward) == 1 and way.place.only.is_passed_or_parts:
        way = way.over(way.place.only)
    if way.place is not place and (len(way.place.onward) > 1 or way.place.next_parts):
        node["send_limit_mb_per_s"] = way.mb_per_s
        way = _Way(way.parent, way.place, inf, way.latency_s)
    else:
        way = _Way(node["name"], place, inf, 0.0)  # a row of links to one host: its receive limit says it all
    return [way.over(further) for further in way.place.onward.values()]


def _node(name: str, compute_per_s: float, way: _Way) -> Node:
    node: Node = {"name": name, "parent": way.parent, "compute_per_s": compute_per_s}
    node["receive_limit_mb_per_s"] = way.mb_per_s
    if way.latency_s:
        node["latency_s"] = way.latency_s
    return node


def _unused(wire: str, names: set[str]) -> str:
    plain = wire if wire.startswith("switch-") else f"switch-{wire}"
    name, number = plain, 2
    while name in names:
        name, number = f"{plain}-{number}", number + 1
    return name


def _warnings(switches: Sequence[str]) -> list[Notice]:
    if not switches:
        return []
    some = ", ".join(switches[:3]) + (f" and {len(switches) - 3} more" if len(switches) > 3 else "")
    what = f"{some}: links that several hosts share became nodes that compute nothing and pass whole tasks on"
    hint = "rates are the same; the first task arrives later than where a switch passes each packet on"
    return [warning("switches", what, hint)]
