"""Control groups, version 1 and 2: how much CPU this process may have.

A quota makes two cores one: computing slows while receiving on another core, without a byte of interference.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from crosswind.host.tree import ROOT, text


def groups(controller: str, root: Path = ROOT, process: str = "self") -> list[Path]:
    """Directories of a process's group and its ancestors for a controller, the innermost first.

    Parameters
    ----------
    controller : str
        "cpu", "cpuset", "memory"; looked for in version 1 and in version 2's single hierarchy.
    root : Path
        Where `proc` and `sys` lie.
    process : str
        Its number; default: this process.

    Returns
    -------
    list of Path
        Below `root`; empty where no such hierarchy is mounted (as in `ip netns exec`, which mounts a bare `/sys`).
    """
    own: dict[str, str] = {}
    for line in (text(root, f"proc/{process}/cgroup") or "").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        own.update(dict.fromkeys(controllers.split(","), path))
    found: list[Path] = []
    for mount in mounts(root):
        if mount.kind == "cgroup2" and "" in own:
            path = own[""]
        elif mount.kind == "cgroup" and controller in mount.options.split(",") and controller in own:
            path = own[controller]
        else:
            continue
        mounted, at = PurePosixPath(mount.inside), root / mount.at.lstrip("/")
        inside = PurePosixPath(path)
        # In a container the mount shows only a part of the hierarchy: the group's path counts from that part.
        below = inside.relative_to(mounted) if inside.is_relative_to(mounted) else PurePosixPath()
        found.extend(at / step for step in (below, *below.parents))
    return found


@dataclass(frozen=True)
class Mount:
    """A mounted file system: which part of it (`inside`) is mounted `at` which path, its `kind` and `options`."""

    inside: str
    at: str
    kind: str
    options: str


def mounts(root: Path = ROOT) -> Iterator[Mount]:
    """Yield what `/proc/self/mountinfo` lists; lines that are no mounts are left out."""
    for line in (text(root, "proc/self/mountinfo") or "").splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) >= 5 and len(kind) >= 3:
            yield Mount(_plain(fields[3]), _plain(fields[4]), kind[0], kind[2])


def _plain(listed: str) -> str:
    r"""Return a path without the escapes of a kernel list: a blank is listed as `\040`."""
    return re.sub(r"\\([0-3][0-7]{2})", lambda octal: chr(int(octal[1], 8)), listed)


def unified_mount(root: Path = ROOT) -> Path | None:
    """Return where control groups of version 2 are mounted, or None.

    Some programs mount them a second time for themselves (Cilium below `/run`): where `/sys/fs/cgroup` is a mount of
    them, or holds one (`/sys/fs/cgroup/unified`), that is the one that paths are given by.
    """
    every = [mount for mount in mounts(root) if mount.kind == "cgroup2"]
    every.sort(key=lambda mount: (not PurePosixPath(mount.at).is_relative_to("/sys/fs/cgroup"), mount.inside != "/"))
    return root / every[0].at.lstrip("/") if every else None


@dataclass(frozen=True)
class Quota:
    """A CPU quota: `cpus` (greater than 0; infinity: none) and the directory of the `group` that sets it."""

    cpus: float
    group: Path


def cpu_quota(root: Path = ROOT) -> Quota | None:
    """CPUs that this process may use at most: the tightest quota of its group and all its ancestors.

    Returns
    -------
    Quota or None
        None if unknown, because no hierarchy with CPU quotas is mounted.
    """
    tightest: Quota | None = None
    for group in groups("cpu", root):
        found = quota_of(group)
        if found is not None and (tightest is None or found < tightest.cpus):
            tightest = Quota(found, group)
    return tightest


def usable_cpus(root: Path = ROOT) -> int:
    """Return how many CPUs this process may keep busy at a time: those of its affinity, or fewer by a quota.

    A quota of 0.5 CPUs is one CPU for half of the time.
    """
    affinity, quota = len(os.sched_getaffinity(0)), cpu_quota(root)
    allowed = affinity if quota is None or math.isinf(quota.cpus) else math.ceil(quota.cpus - 0.01)
    return max(1, min(affinity, allowed))


def quota_of(group: Path) -> float | None:
    """CPUs that one group allows, None where it is no group that could tell."""
    whole = text(group, "cpu.max")
    if whole is not None:  # version 2: "max 100000" or "150000 100000"
        quota, _, period = whole.partition(" ")
    elif (group / "cpu.cfs_quota_us").exists():
        quota, period = text(group, "cpu.cfs_quota_us") or "", text(group, "cpu.cfs_period_us") or ""
    else:  # a root group has no quota file: where the hierarchy is there at all, it sets none
        return math.inf if (group / "cgroup.procs").exists() else None
    try:
        return math.inf if quota in ("max", "-1") else int(quota) / int(period or "100000")
    except (ValueError, ZeroDivisionError):
        return None


def throttled(root: Path = ROOT) -> int | None:
    """How often the quota has stopped this process's group since the group began; None if unknown."""
    for group in groups("cpu", root):
        for line in (text(group, "cpu.stat") or "").splitlines():
            name, _, count = line.partition(" ")
            if name == "nr_throttled" and count.strip().isdecimal():
                return int(count)
    return None
