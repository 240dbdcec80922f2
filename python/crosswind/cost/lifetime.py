"""How long a process has lived, and the CPU time that it has used since: what the kernel has counted for us."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from crosswind.host import processes

_OWN, _STARTED = slice(11, 15), 19  # of `processes.stat`: utime, stime, cutime, cstime; starttime


def lifetime(members: Iterable[int], roots: Iterable[int], group: Path | None = None) -> tuple[float, float]:
    """Return age and CPU time, s, of processes with the children that they have waited for; (0, 0): unknown.

    The age is that of the youngest root, or of a group's oldest process: its CPU time is counted since the group was
    made, so that the duty is rather too high than too low.
    """
    ticks, now_s = os.sysconf("SC_CLK_TCK"), time.clock_gettime(time.CLOCK_BOOTTIME)
    found = {pid: fields for pid in {*members, *roots} if (fields := processes.stat(pid)) is not None}
    ages = {pid: now_s - int(fields[_STARTED]) / ticks for pid, fields in found.items()}
    used_s = sum(sum(map(int, fields[_OWN])) for fields in found.values()) / ticks
    if group is not None:
        return (max(ages.values()), counted) if ages and (counted := group_used_s(group)) is not None else (0.0, 0.0)
    return (min(ages[pid] for pid in roots), used_s) if all(pid in ages for pid in roots) else (0.0, 0.0)


def group_used_s(group: Path) -> float | None:
    """Return the CPU time of a control group since it was made, s, or None."""
    try:
        words = (group / "cpu.stat").read_text().split()
        return 1e-6 * int(words[words.index("usage_usec") + 1])
    except (OSError, ValueError, IndexError):
        return None
