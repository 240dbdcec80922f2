"""Which priorities this process may give to its threads."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path

from crosswind.host.tree import ROOT, text

_CAP_SYS_NICE = 23


def may_be_raised(root: Path = ROOT) -> bool:
    """Whether any priority may be had, by privilege."""
    for line in (text(root, "proc/self/status") or "").splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> _CAP_SYS_NICE & 1)
    return False


def lowest_nice(root: Path = ROOT, limit: Callable[[int], tuple[int, int]] = resource.getrlimit) -> int:
    """Return the lowest nice level that may be had, -20 to 19, by privilege or by the limit."""
    nice, _ = limit(resource.RLIMIT_NICE)
    if may_be_raised(root) or nice in (resource.RLIM_INFINITY, 40):
        return -20
    return min(19, 20 - nice)
