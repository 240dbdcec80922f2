"""Slurm's `topology.conf` (its plugin topology/tree): switches and their nodes, read as a tree and written from one.

The file says what is connected, not how fast: rates are given with it.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from crosswind.errors import DescriptionError, Notice, warning
from crosswind.exchange.hostlist import hosts
from crosswind.exchange.routes import Wire, tree_of
from crosswind.files.reading import read_bytes
from crosswind.platform import Platform

_KEYS = ("switchname", "nodes", "switches", "linkspeed")


@dataclass
class _Switch:
    line: int
    below: list[str] = field(default_factory=list)
    above: str | None = None


def read(
    path: str | Path,
    root: str | None = None,
    *,
    compute_per_s: float,
    mb_per_s: float,
    uplink_mb_per_s: float | None = None,
) -> Platform:
    """Return the tree of nodes that a `topology.conf` describes.

    Parameters
    ----------
    path : str or Path
        A `topology.conf` with lines `SwitchName=... Nodes=...` and `SwitchName=... Switches=...`.
    root : str, optional
        The node that holds the tasks; the first of the file by default.
    compute_per_s : float
        Of each node, work units/s, >= 0.
    mb_per_s : float
        Of the link of each node to its switch, MB/s, > 0.
    uplink_mb_per_s : float, optional
        Of the link of each switch to the one above it, MB/s, > 0; that of a node by default.

    Raises
    ------
    DescriptionError
        With file and line: what is no tree of switches.
    """
    file = str(path)
    switches, at = _switches(file, read_bytes(path).decode(errors="replace"))
    names = list(at)
    if root is None:
        root = names[0]
    elif root not in at:
        raise DescriptionError(f"{file}: there is no node {root}", "root", f"its nodes are {', '.join(names[:6])}")
    uplink = mb_per_s if uplink_mb_per_s is None else uplink_mb_per_s
    routes = _routes(file, root, switches, at, mb_per_s, uplink)
    nodes, warnings = tree_of(file, root, dict.fromkeys(names, compute_per_s), routes)
    platform = Platform.from_dict({"schema_version": 1, "name": Path(path).stem, "node": nodes})
    what = f"rates are not in {Path(path).name}: all nodes compute and all links carry what was given"
    given = warning("given-rates", what, "`crosswind measure cluster` measures them")
    return platform.with_warnings([*warnings, given])


def _switches(file: str, text: str) -> tuple[dict[str, _Switch], dict[str, str]]:
    """Return the switches, and each node's switch."""
    switches: dict[str, _Switch] = {}
    at: dict[str, str] = {}
    joined: dict[str, list[str]] = {}
    for line, written in _lines(text):

        def refuse(what: str, hint: str, line: int = line) -> DescriptionError:
            return DescriptionError(f"{file}:{line}: {what}", "topology", hint)

        pairs = re.findall(r"(\S+?)=(\S*)", written)
        fields = {key.lower(): value for key, value in pairs}
        unknown = [key for key, _ in pairs if key.lower() not in _KEYS]
        if not pairs or unknown or "switchname" not in fields:
            what = f"`{unknown[0] if unknown else written}` is not read"
            raise refuse(what, "SwitchName=NAME Nodes=LIST or SwitchName=NAME Switches=LIST (topology/tree)")
        for name in hosts(fields["switchname"], refuse):
            if name in switches:
                raise refuse(f"switch {name} is there already", "one line for each switch")
            switches[name] = _Switch(line)
            joined[name] = list(hosts(fields["switches"], refuse)) if "switches" in fields else []
            for node in hosts(fields["nodes"], refuse) if "nodes" in fields else ():
                if node in at:
                    raise refuse(f"node {node} is at switch {at[node]} already", "a tree has one way to each node")
                at[node] = name
    for name, below in joined.items():
        for lower in below:
            where = f"{file}:{switches[name].line}"
            if lower not in switches:
                raise DescriptionError(f"{where}: there is no switch {lower}", "topology", f"add SwitchName={lower}")
            if switches[lower].above is not None:
                what = f"{where}: switch {lower} is below {switches[lower].above} and {name}"
                raise DescriptionError(what, "topology", "a tree has one way to each switch")
            switches[lower].above = name
            switches[name].below.append(lower)
    if not at:
        raise DescriptionError(f"{file}: no node is in it", "topology", "SwitchName=NAME Nodes=LIST")
    return switches, at


def _lines(text: str) -> list[tuple[int, str]]:
    found, before, first = [], "", 0
    for number, line in enumerate(text.splitlines(), 1):
        plain = line.split("#")[0].strip()
        first = first or number
        if plain.endswith("\\"):
            before += plain[:-1] + " "
            continue
        if before + plain:
            found.append((first, (before + plain).strip()))
        before, first = "", 0
    return found


def _routes(
    file: str, root: str, switches: dict[str, _Switch], at: dict[str, str], mb_per_s: float, uplink: float
) -> dict[str, list[Wire]]:
    """Return the wires from the root to each node: out of it, from switch to switch, and down."""
    ways = {at[root]: [Wire(at[root], mb_per_s, 0.0, True, switches[at[root]].line)]}
    ahead = deque(ways)
    while ahead:
        name = ahead.popleft()
        switch = switches[name]
        next_to = [(one, one) for one in switch.below]
        if switch.above:
            next_to.append((switch.above, name))
        for other, lower in next_to:
            if other not in ways:
                ways[other] = [*ways[name], Wire(other, uplink, 0.0, True, switches[lower].line)]
                ahead.append(other)
    for node, above in at.items():
        if above not in ways:
            what = f"{file}:{switches[above].line}: no switch joins {node} and {root}"
            raise DescriptionError(what, "topology", "add a switch above both")
    return {
        node: [*ways[above], Wire(f"link of {node}", mb_per_s, 0.0, True, switches[above].line)]
        for node, above in at.items()
        if node != root
    }


def text_of(platform: Platform) -> tuple[str, list[Notice]]:
    """Return a tree as a `topology.conf`: a switch for each node that has others below it.

    Nodes that compute nothing are switches themselves. Slurm permits nodes or switches below a switch, not both: nodes
    beside switches get one of their own.

    Examples
    --------
    >>> root = {"name": "r", "compute_per_s": 2.0}
    >>> leaf = {"name": "a", "parent": "r", "compute_per_s": 4.0, "receive_limit_mb_per_s": 10.0}
    >>> text, _ = text_of(Platform.from_dict({"schema_version": 1, "name": "pair", "node": [root, leaf]}))
    >>> print(text)
    # Crosswind: pair
    SwitchName=switch-r Nodes=r,a
    <BLANKLINE>
    """
    nodes = platform.nodes
    below: dict[str, list[str]] = {}
    for node in nodes:
        if node.get("parent"):
            below.setdefault(str(node["parent"]), []).append(node["name"])
    computes = {node["name"]: node["compute_per_s"] > 0 or not node.get("parent") for node in nodes}
    called = {name: f"switch-{name}" if computes[name] else name for name in below}
    used = set(called.values())
    odd = [node["name"] for node in nodes if not re.fullmatch(r"[A-Za-z0-9_.-]+", node["name"])]
    if odd:
        what = f"{odd[0]!r} cannot be the name of a node in topology.conf"
        raise DescriptionError(what, "topology", "letters, digits, `.`, `_` and `-`")
    lines = [f"# Crosswind: {' '.join(platform.name.split())}"]
    for name, inside in below.items():
        leaves = [name] * computes[name] + [one for one in inside if one not in below and computes[one]]
        further = [called[one] for one in inside if one in below]
        of_leaves = called[name]
        if leaves and further:
            of_leaves = f"{called[name]}-nodes"
            while of_leaves in used:
                of_leaves += "-"
            used.add(of_leaves)
            further.insert(0, of_leaves)
        if leaves:
            lines.append(f"SwitchName={of_leaves} Nodes={','.join(leaves)}")
        if further:
            lines.append(f"SwitchName={called[name]} Switches={','.join(further)}")
    if not below:
        lines.append(f"SwitchName=switch-{nodes[0]['name']} Nodes={nodes[0]['name']}")
    what = "topology.conf has no place for rates: what nodes compute and links carry is left out"
    return "\n".join([*lines, ""]), [warning("left-out", what, "keep the platform.toml beside it")]
