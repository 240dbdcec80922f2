"""The topology of a machine as hwloc exports it (`lstopo --of xml`), read as a tree of nodes and written from one.

Each core is a node. The tasks lie in the machine's memory: the root is the machine, which computes nothing. Packages,
NUMA domains and groups pass on what goes to their cores. The file says what is connected, not how fast: rates are given
with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import quoteattr

from crosswind.errors import DescriptionError, Notice, warning
from crosswind.exchange.routes import Wire, tree_of
from crosswind.exchange.xml_file import Element, elements_of
from crosswind.platform import Platform

_PASSED = (
    *("Die", "Cluster", "Tile", "Module", "MemCache", "Cache", "System"),
    *(f"L{level}{kind}Cache" for level in range(1, 6) for kind in ("", "i")),
)
"""Objects that say where cores lie, and are no nodes of their own."""
_DEVICES = ("Bridge", "PCIDev", "OSDev", "Misc")
_HINT = "export it by `lstopo --of xml FILE.xml`"


@dataclass
class _Domain:
    """A package, NUMA domain or group: where messages to its cores pass."""

    name: str
    line: int


@dataclass
class _Machine:
    """What a file says: its cores, each with the domains around it, outermost first."""

    name: str
    cores: dict[str, tuple[int, list[_Domain]]] = field(default_factory=dict)
    threads: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    not_allowed: list[str] = field(default_factory=list)
    kinds: int = 1

    def number(self, kind: str) -> str:
        """Return the next name of a kind: hwloc's logical number, in the order of the file."""
        number = self.counts.get(kind, 0)
        self.counts[kind] = number + 1
        return f"{kind}-{number}"


def read(
    path: str | Path,
    root: str | None = None,
    *,
    compute_per_s: float,
    mb_per_s: float,
    uplink_mb_per_s: float | None = None,
) -> Platform:
    """Return the tree of nodes that the topology of a machine describes.

    Parameters
    ----------
    path : str or Path
        XML of hwloc, version 1 or 2.
    root : str, optional
        The node that holds the tasks: `machine`, the default, or a core, such as `core-0`.
    compute_per_s : float
        Of each core, work units/s, >= 0.
    mb_per_s : float
        To each core from what it lies in, MB/s, > 0.
    uplink_mb_per_s : float, optional
        To each package, NUMA domain and group from what it lies in, MB/s, > 0; that of a core by default.

    Raises
    ------
    DescriptionError
        With file and line: what is no topology of one machine.
    """
    file = str(path)
    machine = _machine_of(elements_of(path, "hwloc", "a topology of hwloc"))
    names = ["machine", *machine.cores]
    root = "machine" if root is None else root
    if root not in names:
        hint = f"its nodes are {', '.join(names[:6])}"
        raise DescriptionError(f"{file}: there is no node {root}", "root", hint)
    uplink = mb_per_s if uplink_mb_per_s is None else uplink_mb_per_s
    routes = {name: _route(machine, root, name, mb_per_s, uplink) for name in machine.cores if name != root}
    rates = {"machine": 0.0, **dict.fromkeys(machine.cores, compute_per_s)}
    nodes, warnings = tree_of(file, root, {name: rates[name] for name in (root, *routes)}, routes)
    platform = Platform.from_dict({"schema_version": 1, "name": machine.name, "node": nodes})
    what = f"rates are not in {Path(path).name}: all cores compute and all links carry what was given"
    given = warning("given-rates", what, "`crosswind measure` measures what this machine computes and communicates")
    return platform.with_warnings([*warnings, given, *_warnings(machine)])


def _warnings(machine: _Machine) -> Iterator[Notice]:
    several = [name for name, threads in machine.threads.items() if threads > 1]
    if several:
        some = ", ".join(several[:3]) + (f" and {len(several) - 3} more" if len(several) > 3 else "")
        what = f"{some}: the hardware threads of a core count as one node"
        yield warning("threads", what, "compute_per_s is what all threads of a core compute together")
    if machine.kinds > 1:
        what = f"the machine has cores of {machine.kinds} kinds, and each got the same compute_per_s"
        yield warning("kinds", what, "set compute_per_s of each kind in the platform.toml")
    if machine.not_allowed:
        some = ", ".join(machine.not_allowed[:3])
        what = (
            f"{len(machine.not_allowed)} cores are left out ({some}): the exporting process was not allowed to use them"
        )
        yield warning("left-out", what, "export it without a limit (cgroup, taskset) to have all cores")


def is_hwloc(head: str) -> bool:
    """Return whether XML that begins like this is hwloc's."""
    return bool(re.search(r"<topology[\s>]|SYSTEM\s+\"hwloc2?\.dtd\"", head))


def _machine_of(whole: Element) -> _Machine:
    """Return what lies where."""
    if whole.tag != "topology":
        raise whole.refuse(f"<{whole.tag}> is not read", _HINT)
    version = whole.attributes.get("version", "1.0")
    if version.split(".")[0] not in ("1", "2"):
        raise whole.refuse(
            f'version="{version}" is not read', "versions 1 and 2: `lstopo --export-xml-flags v1` writes 1"
        )
    objects = list(whole.parts("object"))
    machines = [one for one in objects if _kind(one) == "Machine"]
    if len(objects) != 1 or not machines:
        wrong = next((one for one in objects if _kind(one) != "Machine"), objects[1] if len(objects) > 1 else whole)
        raise wrong.refuse(
            "the outermost object is no single Machine", "export one machine; join several in platform.toml"
        )
    (top,) = machines
    host = next((one.text("value") for one in top.parts("info") if one.attributes.get("name") == "HostName"), "machine")
    machine = _Machine(host)
    machine.kinds = max(1, sum(1 for _ in whole.parts("cpukind")))
    allowed = _set(top, "allowed_cpuset")
    _add(machine, top, [], allowed, version.startswith("1"))
    if not machine.cores:
        what = "no core that may be used is in it" if machine.not_allowed else "no core is in it"
        raise top.refuse(what, _HINT)
    return machine


def _add(machine: _Machine, outer: Element, around: list[_Domain], allowed: int | None, is_old: bool) -> None:
    """Add the cores below an object.

    In version 2 a NUMA domain is a child of what it belongs to, in version 1 it is around its cores.
    """
    inside = [one for one in outer.parts("object") if _kind(one) not in _DEVICES]
    memories = [one for one in inside if _kind(one) == "NUMANode"] if not is_old else []
    # A Machine's or Package's only memory is that of all its cores: no domain of its own.
    if memories and _kind(outer) not in ("Machine", "Package", "Socket"):
        around = [*around, _Domain(machine.number("numa"), memories[0].line)]
    for one in inside:
        kind = _kind(one)
        if one in memories:
            continue
        if kind in ("Core", "PU"):
            _add_core(machine, one, around, allowed)
        elif kind in ("Package", "Socket"):
            _add(machine, one, [*around, _Domain(machine.number("package"), one.line)], allowed, is_old)
        elif kind in ("NUMANode", "Group"):
            name = machine.number("group" if kind == "Group" else "numa")
            _add(machine, one, [*around, _Domain(name, one.line)], allowed, is_old)
        elif kind in _PASSED:
            _add(machine, one, around, allowed, is_old)
        elif kind == "Machine":
            raise one.refuse("a Machine lies in another one", "export one machine; join several in platform.toml")
        else:
            raise one.refuse(f'type="{kind}" is not read', f"types of processors and caches, {', '.join(_DEVICES)}")


def _add_core(machine: _Machine, core: Element, around: list[_Domain], allowed: int | None) -> None:
    """Add a core, or a PU that lies in none."""
    name = machine.number("core")
    cpus = _set(core, "cpuset")
    if allowed is not None and cpus is not None and not cpus & allowed:
        machine.not_allowed.append(name)
        return
    machine.cores[name] = (core.line, around)
    machine.threads[name] = sum(_kind(one) == "PU" for one in core.parts("object"))


def _kind(one: Element) -> str:
    return one.text("type")


def _set(one: Element, name: str) -> int | None:
    """Return a set of CPUs as bits; `None` if it is not given or has no end."""
    written = one.attributes.get(name)
    if written is None or written.startswith("0xf...f"):
        return None
    if not re.fullmatch(r"(0x[0-9a-fA-F]{1,8})?(,(0x[0-9a-fA-F]{1,8})?)*", written):
        raise one.refuse(f'{name}="{written}" is no set of CPUs', "words of 32 bits, such as 0x0000000f or 0x1,0x0")
    bits = 0
    for word in written.split(","):
        bits = bits << 32 | int(word or "0", 16)
    return bits


def _route(machine: _Machine, root: str, core: str, mb_per_s: float, uplink: float) -> list[Wire]:
    """Return the wires from the root to a core: out of the root's domains, and into the core's."""
    line, around = machine.cores[core]
    down = [*((one.name, uplink, one.line) for one in around), (core, mb_per_s, line)]
    up: list[tuple[str, float, int]] = []
    if root != "machine":
        start, outer = machine.cores[root]
        shared = 0
        while shared < min(len(outer), len(around)) and outer[shared].name == around[shared].name:
            shared += 1
        up = [(f"out of {root}", mb_per_s, start)]
        up += [(f"out of {one.name}", uplink, one.line) for one in outer[shared:][::-1]]
        down = down[shared:]
    return [Wire(name, rate, 0.0, True, at) for name, rate, at in (*up, *down)]


def text_of(platform: Platform) -> tuple[str, list[Notice]]:
    """Return a tree as a topology of hwloc, which `lstopo -i` shows.

    It has a core for each node that computes, and a group for each that has others below it.

    Examples
    --------
    >>> root = {"name": "r", "compute_per_s": 2.0}
    >>> leaf = {"name": "a", "parent": "r", "compute_per_s": 4.0, "receive_limit_mb_per_s": 10.0}
    >>> text, _ = text_of(Platform.from_dict({"schema_version": 1, "name": "pair", "node": [root, leaf]}))
    >>> [line.split()[1:3] for line in text.splitlines() if "Core" in line]
    [['type="Core"', 'os_index="0"'], ['type="Core"', 'os_index="1"']]
    """
    below: dict[str | None, list[str]] = {}
    computes = {node["name"]: node["compute_per_s"] > 0 for node in platform.nodes}
    for node in platform.nodes:
        below.setdefault(node.get("parent"), []).append(node["name"])
    cpus: dict[str, tuple[int, int]] = {}
    cores = _numbered(below, computes, cpus)
    (root,) = below[None]
    if not cores:
        raise DescriptionError(f"{platform.name!r}: no node computes", "hwloc", "a topology has at least one core")
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<!DOCTYPE topology SYSTEM "hwloc2.dtd">']
    lines += [f"<!-- Crosswind, for hwloc: {platform.name.replace('--', '- -')} -->", '<topology version="2.0">']
    writer = _Writer(lines)
    writer.open("Machine", (0, cores), ' os_index="0"', allowed=True)
    writer.info("HostName", platform.name)
    writer.memory(cores)
    pending: list[str | None] = [root]
    while pending:
        name = pending.pop()
        if name is None:
            writer.close()
            continue
        first, count = cpus[name]
        if not count:
            continue
        inner = name in below
        if inner and name != root:
            writer.open("Group", (first, count), f' name={quoteattr(name)} dont_merge="1"')
            pending.append(None)
        if computes[name]:
            writer.core(first, name)
        pending.extend(below.get(name, [])[::-1])
    writer.close()
    lines += ["</topology>", ""]
    what = "a topology of hwloc has no place for rates: what nodes compute and links carry is left out"
    return "\n".join(lines), [warning("left-out", what, "keep the platform.toml beside it")]


def _numbered(below: dict[str | None, list[str]], computes: dict[str, bool], cpus: dict[str, tuple[int, int]]) -> int:
    """Return the number of cores; `cpus` gets for each node its first core, and how many it has with those below."""
    cores = 0
    pending = [(name, False) for name in below[None]]
    while pending:
        name, is_over = pending.pop()
        if is_over:
            cpus[name] = (cpus[name][0], cores - cpus[name][0])
            continue
        cpus[name] = (cores, 0)
        cores += computes[name]
        pending.append((name, True))
        pending.extend((one, False) for one in below.get(name, [])[::-1])
    return cores


class _Writer:
    """Objects of a topology, with the sets of CPUs that hwloc wants for each."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self._depth, self._id = 1, 0

    def _object(self, kind: str, cpus: tuple[int, int], more: str, end: str, *, allowed: bool = False) -> None:
        self._id += 1
        first, count = cpus
        bits = _bits(first, count)
        sets = f' cpuset="{bits}" complete_cpuset="{bits}"' + f' allowed_cpuset="{bits}"' * allowed
        sets += ' nodeset="0x00000001" complete_nodeset="0x00000001"' + ' allowed_nodeset="0x00000001"' * allowed
        self.lines.append(f'{"  " * self._depth}<object type="{kind}"{more}{sets} gp_index="{self._id}"{end}')

    def open(self, kind: str, cpus: tuple[int, int], more: str, *, allowed: bool = False) -> None:
        self._object(kind, cpus, more, ">", allowed=allowed)
        self._depth += 1

    def close(self) -> None:
        self._depth -= 1
        self.lines.append(f"{'  ' * self._depth}</object>")

    def info(self, name: str, value: str) -> None:
        self.lines.append(f"{'  ' * self._depth}<info name={quoteattr(name)} value={quoteattr(value)}/>")

    def memory(self, cores: int) -> None:
        """Write the one NUMA node that hwloc asks for."""
        self._object("NUMANode", (0, cores), ' os_index="0"', "/>")

    def core(self, number: int, name: str) -> None:
        self.open("Core", (number, 1), f' os_index="{number}"')
        self.info("Node", name)
        self._object("PU", (number, 1), f' os_index="{number}"', "/>")
        self.close()


def _bits(first: int, count: int) -> str:
    """Return the CPUs from `first` on as hwloc writes sets: words of 32 bits, the highest first."""
    bits = (1 << count) - 1 << first
    words: list[str] = []
    while bits or not words:
        words.append(f"0x{bits & 0xFFFFFFFF:08x}")
        bits >>= 32
    return ",".join(words[::-1])
