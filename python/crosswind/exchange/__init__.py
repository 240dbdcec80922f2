"""Platforms of other tools: SimGrid's XML, hwloc's XML and Slurm's `topology.conf`, read and written."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from crosswind.errors import DescriptionError, Notice
from crosswind.files.atomic import write_text
from crosswind.files.reading import read_bytes
from crosswind.platform import Platform

Format = Literal["platform", "simgrid", "slurm", "hwloc"]
_HEAD = 65536


def format_of(path: str | Path) -> Format:
    """Return what a file is: XML, of hwloc if it has a `<topology`, or `SwitchName=` of Slurm; else by its name."""
    head = read_bytes(path)[:_HEAD].decode(errors="replace").lstrip("\ufeff \t\r\n")
    if head.startswith("<"):
        from crosswind.exchange.hwloc import is_hwloc

        return "hwloc" if is_hwloc(head) else "simgrid"
    lines = [line.strip().lower() for line in head.splitlines()]
    return "slurm" if any(line.startswith("switchname") for line in lines) else format_named(path)


def format_named(path: str | Path) -> Format:
    """Return the format of a file by its name: `.hwloc.xml`, other `.xml`, `topology.conf`, else `platform.toml`."""
    name = Path(path).name.lower()
    if name.endswith(".hwloc.xml"):
        return "hwloc"
    return "simgrid" if name.endswith(".xml") else "slurm" if name.endswith(".conf") else "platform"


def import_platform(
    path: str | Path,
    *,
    root: str | None = None,
    compute_per_s: float | None = None,
    mb_per_s: float | None = None,
    uplink_mb_per_s: float | None = None,
) -> Platform:
    """Return a platform from a file of Crosswind, SimGrid, hwloc or Slurm.

    Parameters
    ----------
    path : str or Path
        `platform.toml`, SimGrid's XML (version 4, 4.1), hwloc's XML (`lstopo --of xml`), or Slurm's `topology.conf`.
    root : str, optional
        The host that holds the tasks; by default the first of the file, of hwloc's the machine. A `platform.toml` has
        its root.
    compute_per_s, mb_per_s, uplink_mb_per_s : float, optional
        For `topology.conf` and hwloc's XML, which say no rates: of each node (core) in work units/s, of its link and of
        a switch's (package's, NUMA domain's, group's) link to the next in MB/s.

    Raises
    ------
    DescriptionError
        With file and line: what has no counterpart in a tree of nodes, or is wrong.
    """
    from crosswind.exchange import hwloc, simgrid, slurm

    kind = format_of(path)
    rates = {"compute_per_s": compute_per_s, "mb_per_s": mb_per_s, "uplink_mb_per_s": uplink_mb_per_s}
    given = [name for name, value in rates.items() if value is not None]
    if kind in ("slurm", "hwloc"):
        if compute_per_s is None or mb_per_s is None:
            of = "topology.conf" if kind == "slurm" else "a topology of hwloc"
            what = f"{path}: {of} says no rates: what do nodes compute, and what do their links carry?"
            raise DescriptionError(what, "rates", "give compute_per_s and mb_per_s, such as 1 and 1250 (10 Gbit/s)")
        read = slurm.read if kind == "slurm" else hwloc.read
        return read(path, root, compute_per_s=compute_per_s, mb_per_s=mb_per_s, uplink_mb_per_s=uplink_mb_per_s)
    if given:
        raise DescriptionError(f"{given[0]}: {path} says its rates itself", "rates", f"leave {given[0]} away")
    if kind == "simgrid":
        return simgrid.read(path, root)
    if root is not None:
        raise DescriptionError(f"root: {path} has its root", "root", "leave root away")
    return Platform.load(path)


def export_platform(platform: Platform, path: str | Path) -> list[Notice]:
    """Write a platform as XML of hwloc (`*.hwloc.xml`) or SimGrid (`*.xml`), `topology.conf` (`*.conf`), else as TOML.

    Returns
    -------
    list of dict
        What that format has no place for.
    """
    text, lost = text_for(platform, format_named(path))
    write_text(text, path)
    return lost


def text_for(platform: Platform, kind: Format) -> tuple[str, list[Notice]]:
    """Return a platform as text in a format, and what of it that format has no place for."""
    from crosswind.exchange import hwloc, simgrid, slurm

    if kind == "simgrid":
        return simgrid.text_of(platform)
    if kind == "hwloc":
        return hwloc.text_of(platform)
    return slurm.text_of(platform) if kind == "slurm" else (platform.to_toml(), [])
