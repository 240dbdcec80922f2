"""What stands in a platform file of SimGrid (XML, version 4 and 4.1), with the line of each element."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from crosswind.exchange.hostlist import numbers
from crosswind.exchange.routes import Wire
from crosswind.exchange.xml_file import Element, elements_of

_SPEED = {"f": 1.0, "flops": 1.0}
_SPEED |= {f"{p}f": 10.0 ** (3 * n) for n, p in enumerate("kMGTPEZY", 1)}
_SPEED |= {
    f"{p}flops": 10.0 ** (3 * n)
    for n, p in enumerate(("kilo", "mega", "giga", "tera", "peta", "exa", "zetta", "yotta"), 1)
}
_BANDWIDTH = {"Bps": 1.0, "bps": 0.125}
_BANDWIDTH |= {
    f"{p}{u}": 1000.0**n * size for n, p in enumerate("kMGTPE", 1) for u, size in (("Bps", 1), ("bps", 0.125))
}
_BANDWIDTH |= {
    f"{p}i{u}": 1024.0**n * size for n, p in enumerate("KMGTPE", 1) for u, size in (("Bps", 1), ("bps", 0.125))
}
_LATENCY = {"s": 1.0, "w": 604800.0, "d": 86400.0, "h": 3600.0, "m": 60.0}
_LATENCY |= {"ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12}
_UNITS = {"speed": _SPEED, "bandwidth": _BANDWIDTH, "latency": _LATENCY}


def quantity(element: Element, name: str, kind: str, otherwise: str | None = None) -> float:
    """Return a speed in flop/s, a bandwidth in bytes/s or a latency in s."""
    text = element.text(name, otherwise).split(",")[0].strip()
    units = _UNITS[kind]
    found = re.fullmatch(r"([0-9.]+(?:[eE][-+]?[0-9]+)?)\s*([A-Za-z]*)", text)
    unit = found[2] if found else ""
    try:
        value = float(found[1]) * (units[unit] if unit else 1.0) if found else float("nan")
    except (ValueError, KeyError):
        value = float("nan")
    lowest = 0.0 if kind == "latency" else 1e-300
    if not lowest <= value < float("inf") and not (kind == "speed" and value == 0):
        most = ", ".join(list(units)[:6])
        raise element.refuse(
            f'{name}="{text}" is no {kind}',
            f"a number {'>' if kind == 'bandwidth' else '>='} 0 with a unit: {most}, ...",
        )
    return value


@dataclass
class Route:
    """The links between two ends, and for zones the hosts or routers where messages leave and enter."""

    element: Element
    wires: list[Wire]
    leaves: str = ""
    enters: str = ""


@dataclass
class Zone:
    """A part of the network with a way of its own to find routes."""

    element: Element
    name: str
    routing: str
    outer: Zone | None
    ends: set[str] = field(default_factory=set)
    routes: dict[tuple[str, str], Route] = field(default_factory=dict)
    up: dict[str, list[Wire]] = field(default_factory=dict)
    down: dict[str, list[Wire]] = field(default_factory=dict)
    backbone: Wire | None = None

    def add_route(self, route: Route, back: Route | None, source: str, end: str) -> None:
        """Add a route, and the one back."""
        for a, b, one in ((source, end, route), (end, source, back)):
            if one is not None and (one is route or (a, b) not in self.routes):
                self.routes[a, b] = one


@dataclass
class Network:
    """What the file describes.

    Attributes
    ----------
    hosts : dict
        Name -> speed of all its cores, flop/s, in the order of the file.
    zone_of : dict
        Host, router or zone -> the zone that it stands in.
    left_out : dict
        What is not read -> the first element that has it.
    several_cores : list of str
        Hosts with more than one core.
    wires : dict
        Link -> direction (empty where both share) -> wire.
    before : dict
        Zone and end -> what stands before each other end on the way of fewest links there.
    """

    hosts: dict[str, float] = field(default_factory=dict)
    zone_of: dict[str, Zone] = field(default_factory=dict)
    left_out: dict[str, Element] = field(default_factory=dict)
    several_cores: list[str] = field(default_factory=list)
    wires: dict[str, dict[str, Wire]] = field(default_factory=dict)
    before: dict[tuple[str, str], dict[str, tuple[str, Route]]] = field(default_factory=dict)

    def add(self, element: Element, zone: Zone, name: str) -> str:
        """Note an end of routes."""
        if name in self.zone_of:
            raise element.refuse(f"{name} is there already", "give each host, router and zone a name of its own")
        self.zone_of[name] = zone
        zone.ends.add(name)
        return name

    def add_host(self, element: Element, zone: Zone, name: str) -> None:
        """Note a host."""
        cores = element.text("core", "1")
        if not cores.isdecimal() or int(cores) < 1:
            raise element.refuse(f'core="{cores}" is no number of cores', "1 or more")
        self.hosts[self.add(element, zone, name)] = quantity(element, "speed", "speed") * int(cores)
        if int(cores) > 1:
            self.several_cores.append(name)

    def add_link(self, element: Element, name: str, mb_per_s: float, latency_s: float, sharing: str) -> None:
        """Note a link: a wire for each direction where these do not share, else one."""
        if sharing == "WIFI":
            raise element.refuse("WIFI links have no counterpart", "describe it with a bandwidth of its own")
        names = {"UP": f"{name}_UP", "DOWN": f"{name}_DOWN"} if sharing in ("SPLITDUPLEX", "FULLDUPLEX") else {"": name}
        shared = sharing != "FATPIPE"
        if name in self.wires:
            raise element.refuse("a link of that name is there already", "give each link a name of its own")
        self.wires[name] = {way: Wire(wire, mb_per_s, latency_s, shared, element.line) for way, wire in names.items()}


_LEFT_OUT = {"speed_file", "availability_file", "state_file", "bandwidth_file", "latency_file"}


def network_of(path: str | Path) -> Network:
    """Return the network that a file describes.

    Raises
    ------
    DescriptionError
        With file and line: what has no counterpart in a tree of nodes, or is wrong.
    """
    platform = elements_of(path, "simgrid", "a platform file of SimGrid")
    if platform.tag != "platform":
        raise platform.refuse("no platform of SimGrid", "its outermost element is <platform>")
    version = platform.text("version", "0")
    if version not in ("4", "4.0", "4.1"):
        what = f'version="{version}" is not read'
        raise platform.refuse(what, "`simgrid_update_xml FILE`, a part of SimGrid, brings it to version 4.1")
    network = Network()
    for element in platform.inside:
        if element.tag in ("zone", "AS"):
            _read_zone(network, element, None)
        elif element.tag == "cluster":
            _read_cluster(network, element, None)
        elif element.tag in ("cabinet", "peer", "include"):
            raise element.refuse("stands outside of a zone", "put it into a <zone>")
        elif element.tag in ("trace", "trace_connect"):
            network.left_out.setdefault("profiles of speed, bandwidth or failures", element)
    if not network.hosts:
        raise platform.refuse("no host is in it", "is it a deployment file?")
    return network


def _read_zone(network: Network, element: Element, outer: Zone | None) -> None:
    name = element.text("id")
    zone = Zone(element, name, element.text("routing"), outer)
    if outer is not None:
        network.add(element, outer, name)
    later: list[Element] = []
    for one in element.inside:
        network_part(network, zone, one, later)
    for one in later:
        _read_route(network, zone, one)


def network_part(network: Network, zone: Zone, one: Element, later: list[Element]) -> None:
    """Read one element of a zone; those that name others are left for later."""
    if _LEFT_OUT & one.attributes.keys() or one.tag in ("trace", "trace_connect"):
        network.left_out.setdefault("profiles of speed, bandwidth or failures", one)
    match one.tag:
        case "zone" | "AS":
            _read_zone(network, one, zone)
        case "host":
            network.add_host(one, zone, one.text("id"))
        case "router":
            network.add(one, zone, one.text("id"))
        case "link":
            rate, latency = quantity(one, "bandwidth", "bandwidth"), quantity(one, "latency", "latency", "0")
            network.add_link(one, one.text("id"), rate / 1e6, latency, one.text("sharing_policy", "SHARED"))
        case "backbone":
            rate, latency = quantity(one, "bandwidth", "bandwidth"), quantity(one, "latency", "latency")
            zone.backbone = Wire(one.text("id"), rate / 1e6, latency, True, one.line)
        case "cluster" | "cabinet":
            _read_cluster(network, one, zone)
        case "route" | "ASroute" | "zoneRoute" | "host_link":
            later.append(one)
        case "prop" | "storage_type" | "storage" | "disk" | "trace" | "trace_connect":
            pass
        case _:
            raise one.refuse("has no counterpart in a tree of nodes", "replace it by hosts, links and routes")


def _read_cluster(network: Network, one: Element, outer: Zone | None) -> None:
    if one.text("topology", "FLAT") != "FLAT":
        what = f"a {one.text('topology')} has several ways between two hosts"
        raise one.refuse(what, 'a tree has one: topology="FLAT", or hosts, links and routes')
    name, prefix, suffix = one.text("id"), one.text("prefix"), one.text("suffix")
    if one.tag == "cluster" or outer is None:
        zone = Zone(one, name, "Cluster", outer)
        if outer is not None:
            network.add(one, outer, name)
        network.add(one, zone, one.attributes.get("router_id") or f"{prefix}{name}_router{suffix}")
        if one.attributes.get("bb_bw"):
            rate, latency = quantity(one, "bb_bw", "bandwidth"), quantity(one, "bb_lat", "latency", "0")
            shared = one.text("bb_sharing_policy", "SHARED") != "FATPIPE"
            zone.backbone = Wire(f"{name}_backbone", rate / 1e6, latency, shared, one.line)
    else:
        zone = outer
    if zone.routing != "Cluster":
        raise one.refuse(f'stands in a zone of routing="{zone.routing}"', 'its zone needs routing="Cluster"')
    rate, latency = quantity(one, "bw", "bandwidth") / 1e6, quantity(one, "lat", "latency")
    sharing = one.text("sharing_policy", "SPLITDUPLEX")
    limiter = quantity(one, "limiter_link", "bandwidth") / 1e6 if one.attributes.get("limiter_link") else None
    for number in numbers(one.text("radical"), one.refuse):
        host = f"{prefix}{number}{suffix}"
        link = f"{name}_link_{number}" if one.tag == "cluster" else f"link_{host}"
        network.add_host(one, zone, host)
        network.add_link(one, link, rate, latency, sharing)
        wires = network.wires[link]
        both = [Wire(f"{link}_limiter", limiter, 0.0, True, one.line)] if limiter else []
        zone.up[host] = [*both, wires.get("UP") or wires[""]]
        zone.down[host] = [wires.get("DOWN") or wires[""], *both]


def _read_route(network: Network, zone: Zone, one: Element) -> None:
    if one.tag == "host_link":
        host = one.text("id")
        zone.up[host] = [_wire(network, one, one.text("up"), "UP")]
        zone.down[host] = [_wire(network, one, one.text("down"), "DOWN")]
        return
    source, end = one.text("src"), one.text("dst")
    for name in (source, end):
        if network.zone_of.get(name) is not zone:
            raise one.refuse(f"{name} is not in zone {zone.name}", "routes lie between ends of one zone")
    crossed = [(link, link.text("id"), link.text("direction", "NONE")) for link in one.parts("link_ctn")]
    there = [_wire(network, *link) for link in crossed]
    opposite = {"UP": "DOWN", "DOWN": "UP"}
    back = [_wire(network, link, name, opposite.get(way, way)) for link, name, way in reversed(crossed)]
    leaves, enters = one.attributes.get("gw_src", ""), one.attributes.get("gw_dst", "")
    for name in (leaves, enters):
        if one.tag != "route" and name not in network.zone_of:
            raise one.refuse(f"there is no gateway {name or '(no name)'}", "gw_src and gw_dst name a host or router")
    symmetrical = one.text("symmetrical", "YES").upper() != "NO"
    zone.add_route(
        Route(one, there, leaves, enters), Route(one, back, enters, leaves) if symmetrical else None, source, end
    )


def _wire(network: Network, element: Element, name: str, way: str) -> Wire:
    ways = network.wires.get(name)
    link, _, end = name.rpartition("_")
    if ways is None and end in network.wires.get(link, {}):
        ways, way = network.wires[link], end
    if ways is None:
        raise element.refuse(f"there is no link {name}", "its zone has no <link> of that name before this line")
    if "" in ways:
        return ways[""]
    if way not in ways:
        raise element.refuse(f"{name} has two directions", 'write direction="UP" or direction="DOWN"')
    return ways[way]


def named(names: Iterable[str], most: int = 3) -> str:
    """Return some of many names as text."""
    names = list(names)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
