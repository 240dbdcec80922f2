"""The host as a measurement's header holds it, and what distinguishes it from others."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crosswind.host import network, processor
from crosswind.host.tree import ROOT, UNKNOWN, told

if TYPE_CHECKING:
    from crosswind.documents.measurement import Host


def describe(compute_cpus: Sequence[int] = (), interfaces: Sequence[str] | None = None, *, root: Path = ROOT) -> Host:
    """Describe this host as the `host` of a measurement's header.

    Parameters
    ----------
    compute_cpus : sequence of int
        CPUs whose caches, governor and steal are described; the allowed ones when empty.
    interfaces : sequence of str, optional
        Interfaces to describe, such as `interface_to(peer)`; loopback and those of the default routes by default.
    root : Path
        Where `proc`, `sys` and `boot` lie.

    Returns
    -------
    dict
        name, cpu (model), cpus (online), kernel (release) and settings: str -> str, "unknown" where one could not
        be read. The names of the settings are those of docs/reference/files.md.

    Examples
    --------
    >>> sorted(describe())
    ['cpu', 'cpus', 'kernel', 'name', 'settings']
    """
    return {
        "name": told(root, "proc/sys/kernel/hostname"),
        "cpu": processor.model(root),
        "cpus": len(processor.online_cpus(root)),
        "kernel": told(root, "proc/sys/kernel/osrelease"),
        "settings": processor.settings(compute_cpus, root) | network.settings(interfaces, root) | versions(),
    }


def versions() -> dict[str, str]:
    """Versions of what takes part: `version_crosswind`, `version_python`, `version_numpy`, `version_libc`."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"version_python": platform.python_version(), "version_libc": " ".join(platform.libc_ver()) or UNKNOWN}
    for package in ("crosswind", "numpy"):
        try:
            found[f"version_{package}"] = version(package)
        except PackageNotFoundError:
            found[f"version_{package}"] = UNKNOWN
    return found


def machine(root: Path = ROOT) -> str:
    """Return a word that two processes have in common when they run on the same booted kernel, containers included.

    The kernel's boot id, so that two ends of a veth pair or two containers can tell that they share a machine.
    """
    return told(root, "proc/sys/kernel/random/boot_id")
