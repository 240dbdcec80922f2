"""Absences of ranks that a quota of CPU time caused, whatever had the processor meanwhile.

The kernel's trace shows a thread that could run and did not, and what ran on its processor. It does not show that the
thread was not permitted to run. How often and for how long a control group was held back is counted by the kernel; an
absence as long as a usual period of that, while the count grew, is the quota's.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crosswind.host import cgroup
from crosswind.host.tree import ROOT, text
from crosswind.recorder.summary import Cause

QUOTA = "quota"
ABSENCE = np.dtype(
    [("t0", "<u8"), ("t1", "<u8"), ("tid", "<u4"), ("kind", "<u2"), ("cpu", "<u2"), ("cause", "<u4"), ("rest", "V12")]
)
_PREEMPTED, _WITHHELD = 0, 3
_APART_NS = 20_000
"""Pieces of one absence are no further apart: shorter ones between them are not listed."""
_SHORTEST_NS = 2_000_000


class Sample(NamedTuple):
    """Counters of groups at one time (monotonic ns): for how many ns each was held back, in how many periods."""

    ns: int
    held: dict[str, tuple[int, int]]


class Quotas:
    """What the kernel has counted of the groups around each process that have a quota, at each look."""

    def __init__(self) -> None:
        self._around: dict[int, tuple[str, list[Path]]] = {}
        self._samples: dict[int, list[Sample]] = {}

    def look(self, processes: Iterable[int]) -> None:
        """Read the counters of the groups around these processes."""
        for pid in processes:
            counted = {str(group): _held_back(group) for group in self._groups(pid)}
            if held := {group: held for group, held in counted.items() if held is not None}:
                self._samples.setdefault(pid, []).append(Sample(time.monotonic_ns(), held))

    def _groups(self, pid: int) -> list[Path]:
        """Return the groups around a process that have a quota. Programs move into groups while they run."""
        listed = text(ROOT, f"proc/{pid}/cgroup")
        if listed is None:  # it has ended, its groups have not
            return self._around.get(pid, ("", []))[1]
        if self._around.get(pid, ("", []))[0] != listed:
            around = cgroup.groups("cpu", process=str(pid))
            self._around[pid] = listed, [one for one in around if math.isfinite(cgroup.quota_of(one) or math.inf)]
        return self._around[pid][1]

    def explain(self, pid: int, start_ns: int, end_ns: int, *, idle: bool) -> str | None:
        """Return the group whose quota explains an absence; None if none does.

        Parameters
        ----------
        pid : int
            The process.
        start_ns, end_ns : int
            The absence, monotonic ns.
        idle : bool
            Whether the processor was idle. If not, only an absence as long as a period without time is the quota's.
        """
        samples = self._samples.get(pid, [])
        last = min(bisect_left([one.ns for one in samples], end_ns), len(samples) - 1)
        if last < 0:
            return None
        first = bisect_right([one.ns for one in samples], start_ns) - 1
        before = samples[first].held if 0 <= first < last else {}
        if first == last:  # it was looked at before the absence began, and never again
            return None
        best, most = None, 0
        for group, held in samples[last].held.items():
            ns, count = (now - then for now, then in zip(held, before.get(group, (0, 0)), strict=True))
            usual = ns / count / 2 if count > 0 else math.inf  # less than half of it is something else's
            long = count > 0 if idle else end_ns - start_ns >= max(usual, _SHORTEST_NS)
            if long and ns > most:
                best, most = group, ns
        return best


def _held_back(group: Path) -> tuple[int, int] | None:
    """Return for how many ns a group was held back, and in how many periods; None where it is gone."""
    listed = text(group, "cpu.stat")
    if listed is None:
        return None
    counted = dict(line.split(" ", 1) for line in listed.splitlines() if " " in line)
    ns = int(counted.get("throttled_time", 0)) or 1000 * int(counted.get("throttled_usec", 0))
    return ns, int(counted.get("nr_throttled", 0))


def attributed(
    quotas: Quotas, intervals: dict[int, bytes], causes: list[Cause]
) -> tuple[dict[int, bytes], list[Cause]]:
    """Return the absences of each process and their causes, with what a quota explains as the quota's."""
    causes = list(causes)
    places: dict[str, int] = {}
    changed = {}
    for pid, data in intervals.items():
        rows = np.frombuffer(data, ABSENCE).copy()
        for tid in np.unique(rows["tid"]):
            own = np.flatnonzero((rows["tid"] == tid) & np.isin(rows["kind"], (_PREEMPTED, _WITHHELD)))
            starts, ends = rows["t0"][own].astype(np.int64), rows["t1"][own].astype(np.int64)
            cuts = np.flatnonzero(starts[1:] - ends[:-1] > _APART_NS) + 1
            for piece in np.split(np.arange(len(own)), cuts):
                if not len(piece):
                    continue
                idle = bool(np.all(rows["kind"][own[piece]] == _WITHHELD))
                group = quotas.explain(pid, int(starts[piece[0]]), int(ends[piece[-1]]), idle=idle)
                if group is None:
                    continue
                if group not in places:
                    places[group] = len(causes)
                    causes.append({"name": QUOTA, "pid": None, "cgroup": group})
                rows["kind"][own[piece]], rows["cause"][own[piece]] = _WITHHELD, places[group]
        changed[pid] = rows.tobytes()
    every = [np.frombuffer(data, ABSENCE) for data in changed.values()]
    rows = np.concatenate(every) if every else np.empty(0, ABSENCE)
    lengths = (rows["t1"] - rows["t0"]).astype(np.float64) / 1e9
    known = rows["cause"] < len(causes)
    sums = np.bincount(rows["cause"][known], lengths[known], len(causes))
    return changed, [{**cause, "seconds": float(total)} for cause, total in zip(causes, sums, strict=True)]
