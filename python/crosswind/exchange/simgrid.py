"""Platforms of SimGrid: its XML read as a tree of nodes, and a tree written for it.

Read are hosts, routers, links, routes, clusters (flat), cabinets, backbones and zones of zones, routed in full, by
fewest links (Floyd, Dijkstra) or as a cluster. A speed of 1 Gflop/s is 1 work unit/s.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from crosswind.errors import DescriptionError, Notice, warning
from crosswind.exchange.routes import Wire, tree_of
from crosswind.exchange.simgrid_file import Network, Route, Zone, named, network_of
from crosswind.platform import Platform

if TYPE_CHECKING:
    from crosswind.documents.shared import Node

FLOPS_PER_WORK = 1e9
"""Floating point operations that one work unit stands for."""
_SHORTEST = ("Floyd", "Dijkstra", "DijkstraCache")


def read(path: str | Path, root: str | None = None) -> Platform:
    """Return the tree that a platform file of SimGrid describes.

    Parameters
    ----------
    path : str or Path
        Version 4 or 4.1.
    root : str, optional
        The host that holds the tasks; the first of the file by default.

    Raises
    ------
    DescriptionError
        With file and line: what does not fit a tree, or is wrong.
    """
    network = network_of(path)
    names = list(network.hosts)
    if root is None:
        root = names[0]
    elif root not in network.hosts:
        raise DescriptionError(f"{path}: there is no host {root}", "root", f"its hosts are {named(names, 6)}")
    routes = {host: _between(network, root, host) for host in names if host != root}
    rates = {host: flops / FLOPS_PER_WORK for host, flops in network.hosts.items()}
    nodes, warnings = tree_of(str(path), root, rates, routes)
    crossed = {wire.name: wire for route in routes.values() for wire in route}
    return Platform.from_dict({"schema_version": 1, "name": Path(path).stem, "node": nodes}).with_warnings(
        [*warnings, *_warnings(network, crossed)]
    )


def _warnings(network: Network, crossed: dict[str, Wire]) -> Iterator[Notice]:
    for what, element in network.left_out.items():
        where = f"line {element.line}: {what} are left out"
        yield warning("left-out", where, "say what changes during a run in [[change]] of the experiment")
    if network.several_cores:
        some = named(network.several_cores)
        what = f"{some}: all cores of a host count as one that is as fast as all together"
        yield warning("cores", what, "right where a node computes as many tasks at a time as it has cores")
    yield warning(
        "network-model",
        "bandwidths and latencies are those of the file",
        "SimGrid's default network model grants 97 % of a bandwidth and 13 times a latency",
    )


def _between(network: Network, source: str, end: str) -> list[Wire]:
    """Return the wires that a message crosses."""
    if source == end:
        return []
    a, b = _zones(network, source), _zones(network, end)
    inner = 0
    while inner < min(len(a), len(b)) and a[inner][0] is b[inner][0]:
        inner += 1
    zone, here = a[inner - 1]
    there = b[inner - 1][1]
    route = _route(network, zone, here, there)
    ahead = _between(network, source, route.leaves) if here != source else []
    behind = _between(network, route.enters, end) if there != end else []
    return [*ahead, *route.wires, *behind]


def _zones(network: Network, name: str) -> list[tuple[Zone, str]]:
    """Return the zones around an end, the outermost first, each with the end of it that stands there."""
    found = []
    zone: Zone | None = network.zone_of[name]
    while zone is not None:
        found.append((zone, name))
        name, zone = zone.name, zone.outer
    return found[::-1]


def _route(network: Network, zone: Zone, source: str, end: str) -> Route:
    """Return the route between two ends of one zone."""
    if zone.routing == "Cluster":
        middle = [zone.backbone] if zone.backbone else []
        wires = [*zone.up.get(source, []), *middle, *zone.down.get(end, [])]
        return Route(zone.element, wires, source, end)
    if zone.routing == "Full":
        route = zone.routes.get((source, end))
        if route is None:
            hint = f'add <{_tag(network, source)} src="{source}" dst="{end}">'
            raise zone.element.refuse(f"no route leads from {source} to {end}", hint)
        return route
    if zone.routing in _SHORTEST:
        return _shortest(network, zone, source, end)
    raise zone.element.refuse(f'routing="{zone.routing}" is not read', "Full, Floyd, Dijkstra or Cluster")


def _tag(network: Network, name: str) -> str:
    return "zoneRoute" if any(zone.outer and zone.name == name for zone in network.zone_of.values()) else "route"


def _shortest(network: Network, zone: Zone, source: str, end: str) -> Route:
    """Return the route over fewest links; between equals the one whose ends stand first in the file."""
    before = network.before.get((zone.name, source))
    if before is None:
        before = network.before[zone.name, source] = _fewest_links(zone, source)
    if end not in before:
        raise zone.element.refuse(f"no routes lead from {source} to {end}", "add a <route> that joins them")
    way: list[Route] = []
    while end != source:
        end, route = before[end]
        way.append(route)
    return _joined(network, zone, way[::-1])


def _fewest_links(zone: Zone, source: str) -> dict[str, tuple[str, Route]]:
    """Return each end that can be reached, with the end before it on the way there."""
    onward: dict[str, list[tuple[str, Route]]] = {}
    for (a, b), route in zone.routes.items():
        onward.setdefault(a, []).append((b, route))
    order = count()
    ahead: list[tuple[int, int, str, tuple[str, Route] | None]] = [(0, next(order), source, None)]
    before: dict[str, tuple[str, Route]] = {}
    while ahead:
        links, _, name, came = heapq.heappop(ahead)
        if name in before or (came is None and links):
            continue
        if came is not None:
            before[name] = came
        for further, route in onward.get(name, []):
            if further not in before and further != source:
                heapq.heappush(ahead, (links + len(route.wires), next(order), further, (name, route)))
    return before


def _joined(network: Network, zone: Zone, way: list[Route]) -> Route:
    """Return several routes as one, with the way through the zones between them."""
    wires = list(way[0].wires)
    for before, route in pairwise(way):
        if before.enters != route.leaves:
            wires += _between(network, before.enters, route.leaves)
        wires += route.wires
    return Route(zone.element, wires, way[0].leaves, way[-1].enters)


def text_of(platform: Platform) -> tuple[str, list[Notice]]:
    """Return a tree as a platform file of SimGrid, and what of it has no counterpart there.

    A message crosses the link of each node on its way down, and before it the send limit of each parent that has one.

    Examples
    --------
    >>> root = {"name": "r", "compute_per_s": 2.0}
    >>> leaf = {"name": "a", "parent": "r", "compute_per_s": 4.0, "receive_limit_mb_per_s": 10.0}
    >>> text, _ = text_of(Platform.from_dict({"schema_version": 1, "name": "pair", "node": [root, leaf]}))
    >>> print(text)
    <?xml version='1.0'?>
    <!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
    <!-- Crosswind: pair -->
    <platform version="4.1">
      <zone id="pair" routing="Floyd">
        <host id="r" speed="2Gf"/>
        <host id="a" speed="4Gf"/>
        <link id="to a" bandwidth="10MBps" latency="0s" sharing_policy="SHARED"/>
        <route src="r" dst="a"><link_ctn id="to a"/></route>
      </zone>
    </platform>
    <BLANKLINE>
    """
    nodes = platform.nodes
    lines = ["<?xml version='1.0'?>", '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">']
    lines.append(f"<!-- Crosswind: {platform.name.replace('--', '- -')} -->")
    lines += ['<platform version="4.1">', f'  <zone id={quoteattr(platform.name)} routing="Floyd">']
    for node in nodes:
        lines.append(f'    <host id={quoteattr(node["name"])} speed="{_plain(node["compute_per_s"])}Gf"/>')
    parents = {node.get("parent") for node in nodes}
    limits = {n["name"]: n.get("send_limit_mb_per_s") for n in nodes if n["name"] in parents}
    limits = {name: limit for name, limit in limits.items() if limit}
    for name, limit in limits.items():
        lines.append(_link(f"from {name}", float(limit or 0.0), 0.0))
    below = [node for node in nodes if node.get("parent")]
    lines += [_link(f"to {n['name']}", _limit(n), float(n.get("latency_s") or 0.0)) for n in below]
    for node in below:
        parent = str(node.get("parent"))
        crossed = [f"from {parent}"] if parent in limits else []
        links = "".join(f"<link_ctn id={quoteattr(link)}/>" for link in [*crossed, f"to {node['name']}"])
        lines.append(f"    <route src={quoteattr(parent)} dst={quoteattr(node['name'])}>{links}</route>")
    return "\n".join([*lines, "  </zone>", "</platform>", ""]), _lost(nodes)


def _limit(node: Node) -> float:
    return float(node.get("receive_limit_mb_per_s") or 0.0) * float(node.get("one_sender_share", 1.0))


def _link(name: str, mb_per_s: float, latency_s: float) -> str:
    rate, latency = f"{_plain(mb_per_s)}MBps", f"{_plain(latency_s)}s"
    return f'    <link id={quoteattr(name)} bandwidth="{rate}" latency="{latency}" sharing_policy="SHARED"/>'


def _plain(number: float) -> str:
    return repr(float(number)).removesuffix(".0")


def _lost(nodes: list[Node]) -> list[Notice]:
    fields = ("ir_receive_s_per_mb", "ir_send_s_per_mb", "receive_losses", "send_losses", "receive_limit_drop")
    lost = [node["name"] for node in nodes if any(node.get(one) for one in fields)]
    if not lost:
        return []
    what = f"{named(lost)}: SimGrid has no place for what communication costs computation"
    return [warning("interference", what, "simulated there, these nodes are faster than `crosswind plan` says")]
