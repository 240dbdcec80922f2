"""What uses the processor now: the difference of two readings of `/proc`."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from crosswind.host.tree import ROOT, cpu_ticks, names, text

_KINDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


@dataclass(frozen=True)
class Process:
    """A process and what it used.

    Attributes
    ----------
    pid : int
        Its number.
    name : str
        What the kernel calls it (at most 15 characters).
    cpu_s : float
        CPU time of all its threads, s.
    cpu : int
        CPU on which its first thread ran last.
    """

    pid: int
    name: str
    cpu_s: float
    cpu: int


@dataclass(frozen=True)
class Activity:
    """What happened between two snapshots.

    Attributes
    ----------
    seconds : float
        Time between them.
    shares : dict
        CPU number -> kind (user, nice, system, idle, iowait, irq, softirq, steal) -> share of the time, 0..1.
    processes : tuple of Process
        Those that used any CPU time, the busiest first.
    present : tuple of Process
        All that were there at the end, with their CPU time since they began.
    """

    seconds: float
    shares: dict[int, dict[str, float]]
    processes: tuple[Process, ...]
    present: tuple[Process, ...] = ()

    def busy(self, cpu: int) -> float:
        """Share of the time in which a CPU was not idle, 0..1, steal not counted."""
        share = self.shares.get(cpu, {})
        return sum(share.get(kind, 0.0) for kind in ("user", "nice", "system", "irq", "softirq"))

    def mean(self, kind: str, cpus: Collection[int] | None = None) -> float:
        """Mean share of a kind over some CPUs (default: all), 0..1."""
        taken = [share[kind] for cpu, share in self.shares.items() if cpus is None or cpu in cpus]
        return sum(taken) / len(taken) if taken else 0.0


@dataclass(frozen=True)
class Snapshot:
    """Counters at one moment; take two and ask the later for its `since`.

    Attributes
    ----------
    at_s : float
        Monotonic time.
    ticks : dict
        CPU number -> ticks by kind.
    processes : dict
        (pid, start) -> Process with its CPU time so far; the start guards against a pid used again.
    """

    at_s: float
    ticks: dict[int, tuple[int, ...]]
    processes: dict[tuple[int, int], Process]

    @classmethod
    def take(cls, root: Path = ROOT, *, processes: bool = True) -> Snapshot:
        """Read the counters of every CPU, and of every process that can be seen."""
        ticks = {}
        for name, counts in cpu_ticks(root).items():
            if name != "cpu":
                padded = counts[: len(_KINDS)]
                ticks[int(name[3:])] = tuple(padded + [0] * (len(_KINDS) - len(padded)))
        per_s = os.sysconf("SC_CLK_TCK")
        found = {}
        for pid in (int(name) for name in names(root, "proc") if processes and name.isdigit()):
            stat = text(root, f"proc/{pid}/stat")
            if stat is None or ")" not in stat:
                continue  # it has ended meanwhile
            before, _, after = stat.rpartition(")")  # a name may hold spaces and parentheses
            try:
                rest = after.split()
                used = (int(rest[11]) + int(rest[12])) / per_s
                found[pid, int(rest[19])] = Process(pid, before.partition("(")[2], used, int(rest[36]))
            except (ValueError, IndexError):
                continue  # a sandbox that fills in only a part of it
        return cls(time.monotonic(), ticks, found)

    def since(self, earlier: Snapshot) -> Activity:
        """Return what happened from `earlier` to this snapshot; processes that ended in between are not seen.

        A counter that went back (the kernel's idle and iowait do, most of all when a CPU was off in between) counts as
        0. A CPU that `earlier` does not have is not known.
        """
        shares = {}
        for cpu, now in self.ticks.items():
            if cpu not in earlier.ticks:
                continue
            spent = [max(b - a, 0) for a, b in zip(earlier.ticks[cpu], now, strict=True)]
            total = sum(spent)
            shares[cpu] = {kind: ticks / total if total else 0.0 for kind, ticks in zip(_KINDS, spent, strict=True)}
        used = []
        for key, process in self.processes.items():
            before = earlier.processes.get(key)
            cpu_s = process.cpu_s - (before.cpu_s if before else 0.0)
            if cpu_s > 0:
                used.append(Process(process.pid, process.name, cpu_s, process.cpu))
        used.sort(key=lambda process: (-process.cpu_s, process.pid))
        return Activity(self.at_s - earlier.at_s, shares, tuple(used), tuple(self.processes.values()))
