"""Processes as `/proc` shows them: which descends from which, where it may run, how much CPU time it has had."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from crosswind import _core

PROC = Path("/proc")
_KERNEL_THREAD = 0x00200000  # PF_KTHREAD, include/linux/sched.h
_SCHEDULED = 2  # CPUCLOCK_SCHED, include/linux/posix-timers.h: of all threads, ended ones included


def stat(pid: int) -> list[str] | None:
    """Return the fields of `/proc/PID/stat` after the name (state, parent, ...), or None when it is gone."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def name(pid: int) -> str:
    """Return the name of a process, or "?"."""
    try:
        return (PROC / str(pid) / "comm").read_text(errors="replace").strip()
    except OSError:
        return "?"


def is_kernel_thread(pid: int) -> bool:
    """Whether it is a thread of the kernel."""
    found = stat(pid)
    return found is not None and bool(int(found[6]) & _KERNEL_THREAD)


def has_ended(pid: int) -> bool:
    """Whether it is gone, or ended and not yet waited for."""
    found = stat(pid)
    return found is None or found[0] in "ZX"


def leader(pid: int) -> int:
    """Return the process of a thread's number: the number itself, if it is a process's."""
    try:
        lines = (PROC / str(pid) / "status").read_text(errors="replace").splitlines()
    except OSError:
        return pid
    return next((int(line.split()[1]) for line in lines if line.startswith("Tgid:")), pid)


def ancestors(pid: int) -> list[int]:
    """Return its parent, that one's parent, and so on."""
    found: list[int] = []
    while (fields := stat(pid)) is not None and (pid := int(fields[1])) > 0:
        found.append(pid)
    return found


def with_descendants(roots: Iterable[int]) -> set[int]:
    """Return these processes and all that descend from them."""
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        if (pid := waiting.pop()) in found:
            continue
        found.add(pid)
        waiting += _children(pid)
    return found


def _children(pid: int) -> list[int]:
    if not _lists_children:
        return [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit() and _parent(int(entry.name)) == pid]
    found: list[int] = []
    for task in threads(pid):
        try:
            found += [int(word) for word in (PROC / str(pid) / "task" / str(task) / "children").read_text().split()]
        except OSError:
            continue
    return found


def _parent(pid: int) -> int:
    fields = stat(pid)
    return int(fields[1]) if fields else 0


_lists_children = (PROC / "thread-self" / "children").exists()


def threads(pid: int) -> list[int]:
    """Return the threads of a process; none when it is gone."""
    try:
        return [int(entry) for entry in os.listdir(f"/proc/{pid}/task")]  # noqa: PTH208 (in the loop of blocks)
    except OSError:
        return []


def cpus_of(pids: Iterable[int]) -> set[int]:
    """Return the CPUs on which any thread of these processes may run."""
    found: set[int] = set()
    for pid in pids:
        for thread in threads(pid):
            try:
                found |= os.sched_getaffinity(thread)
            except OSError:
                continue
    return found


def is_ready(pids: Iterable[int]) -> bool:
    """Whether any thread of these processes runs, or would if it had a CPU."""
    for pid in pids:
        for thread in threads(pid):
            try:
                text = (PROC / str(pid) / "task" / str(thread) / "stat").read_text(errors="replace")
            except OSError:
                continue
            if text.rpartition(")")[2].split()[:1] == ["R"]:
                return True
    return False


def waiting_s(pids: Iterable[int]) -> float:
    """Return how long the threads of these processes were ready to run and waited for a CPU, s since their start."""
    total = 0
    for pid in pids:
        for thread in threads(pid):
            try:
                total += int((PROC / str(pid) / "task" / str(thread) / "schedstat").read_text().split()[1])
            except (OSError, IndexError, ValueError):
                continue
    return total * 1e-9


class CpuTime:
    """CPU time that a changing set of processes has used since each joined it, in ns; ended ones keep their part."""

    def __init__(self) -> None:
        self._clocks: dict[int, tuple[int, int]] = {}  # pid -> its clock, what it had when it joined
        self._latest: dict[int, int] = {}
        self._ended_ns = 0

    def watch(self, pids: set[int]) -> None:
        """Count these processes from now on; those that were counted stay until they end."""
        for pid in pids - self._clocks.keys():
            clock = (~pid << 3) | _SCHEDULED
            try:
                self._clocks[pid] = (clock, time.clock_gettime_ns(clock))
            except OSError:  # it has ended meanwhile
                continue
            self._latest[pid] = 0

    def forget(self, pids: set[int]) -> None:
        """Take away these processes with all that they have used."""
        for pid in pids & self._clocks.keys():
            del self._clocks[pid], self._latest[pid]

    def ns(self) -> int:
        """Return what all have used so far, ns; up to this moment, not to the last tick (up to 4 ms ago at 250 Hz)."""
        _core.account_for(list(self._clocks))
        for pid, (clock, before) in list(self._clocks.items()):
            try:
                self._latest[pid] = time.clock_gettime_ns(clock) - before
            except OSError:
                self._ended_ns += self._latest.pop(pid)
                del self._clocks[pid]
        return self._ended_ns + sum(self._latest.values())
