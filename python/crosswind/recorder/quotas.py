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
from typing import Any

import numpy as np

from crosswind.host import cgroup
from crosswind.host.tree import text

QUOTA = "quota"
ABSENCE = np.dtype(
    [("t0", "<u8"), ("t1", "<u8"), ("tid", "<u4"), ("kind", "<u2"), ("cpu", "<u2"), ("cause", "<u4"), ("rest", "V12")]
)
_PREEMPTED, _WITHHELD = 0, 3
_APART_NS = 20_000
"""Pieces of one absence are no further apart: shorter ones between them are not listed."""
_SHORTEST_NS = 2_000_000


class Quotas:
    """What the kernel has counted of the groups around each process that have a quota, at each look."""

    def __init__(self) -> None:
        self._groups: dict[int, list[Path]] = {}
        self._looks: dict[int, list[tuple[int, int, int]]] = {}

    def look(self, processes: Iterable[int]) -> None:
        """Read the counters of the groups around these processes."""
        for pid in processes:
            if pid not in self._groups:
                around = cgroup.groups("cpu", process=str(pid))
                self._groups[pid] = [one for one in around if math.isfinite(cgroup.quota_of(one) or math.inf)]
            if self._groups[pid]:
                held = [_held_back(group) for group in self._groups[pid]]
                look = time.monotonic_ns(), sum(ns for ns, _ in held), sum(count for _, count in held)
                self._looks.setdefault(pid, []).append(look)

    def explain(self, pid: int, start_ns: int, end_ns: int) -> bool:
        """Whether a quota explains an absence."""
        looks = self._looks.get(pid, [])
        first = max(bisect_right(looks, (start_ns, math.inf)) - 1, 0)
        last = min(bisect_left(looks, (end_ns,)), len(looks) - 1)
        if first >= last:
            return False
        ns, count = (looks[last][at] - looks[first][at] for at in (1, 2))
        usual = ns / count / 2 if count > 0 else math.inf  # less than half of it is something else's
        return end_ns - start_ns >= max(usual, _SHORTEST_NS)


def _held_back(group: Path) -> tuple[int, int]:
    """Return for how many ns a group was held back, and in how many periods."""
    counted = dict(line.split(" ", 1) for line in (text(group, "cpu.stat") or "").splitlines() if " " in line)
    ns = int(counted.get("throttled_time", 0)) or 1000 * int(counted.get("throttled_usec", 0))
    return ns, int(counted.get("nr_throttled", 0))


def attributed(
    quotas: Quotas, intervals: dict[int, bytes], causes: list[dict[str, Any]]
) -> tuple[dict[int, bytes], list[dict[str, Any]]]:
    """Return the absences of each process and their causes, with what a quota explains as the quota's."""
    names = [cause["name"] for cause in causes]
    quota = names.index(QUOTA) if QUOTA in names else len(causes)
    changed = {}
    for pid, data in intervals.items():
        rows = np.frombuffer(data, ABSENCE).copy()
        for tid in np.unique(rows["tid"]):
            own = np.flatnonzero((rows["tid"] == tid) & np.isin(rows["kind"], (_PREEMPTED, _WITHHELD)))
            starts, ends = rows["t0"][own].astype(np.int64), rows["t1"][own].astype(np.int64)
            cuts = np.flatnonzero(starts[1:] - ends[:-1] > _APART_NS) + 1
            for piece in np.split(np.arange(len(own)), cuts):
                if len(piece) and quotas.explain(pid, int(starts[piece[0]]), int(ends[piece[-1]])):
                    rows["kind"][own[piece]], rows["cause"][own[piece]] = _WITHHELD, quota
        changed[pid] = rows.tobytes()
    causes = [*causes] if quota < len(causes) else [*causes, {"name": QUOTA, "pid": None, "cgroup": ""}]
    every = [np.frombuffer(data, ABSENCE) for data in changed.values()]
    rows = np.concatenate(every) if every else np.empty(0, ABSENCE)
    lengths = (rows["t1"] - rows["t0"]).astype(np.float64) / 1e9
    known = rows["cause"] < len(causes)
    sums = np.bincount(rows["cause"][known], lengths[known], len(causes))
    return changed, [cause | {"seconds": float(total)} for cause, total in zip(causes, sums, strict=True)]
