"""Processes as `/proc` shows them: which descends from which, where it may run, how much CPU time it has had."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from crosswind import _core

PROC = Path("/proc")
_KERNEL_THREAD = 0x00200000  # PF_KTHREAD, include/linux/sched.h
_OF_CHILDREN, _STARTED = slice(13, 15), 19  # of `stat`: cutime, cstime; starttime
_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")
_SCHEDULED = 2  # CPUCLOCK_SCHED, include/linux/posix-timers.h: of all threads, ended ones included


def stat(pid: int) -> list[str] | None:
    """Return the fields of `/proc/PID/stat` after the name (state, parent, ...), or None when it is gone."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def state(pid: int) -> str | None:
    """Return its state, such as "R" (runs), "T" (stopped by a signal) or "Z" (ended), or None when it is gone."""
    fields = stat(pid)
    return fields[0] if fields else None


def name(pid: int) -> str:
    """Return the name of a process, or "?"."""
    try:
        return (PROC / str(pid) / "comm").read_text(errors="replace").strip()
    except OSError:
        return "?"


def kill_group(pid: int) -> None:
    """Kill the processes of a group, which may have ended."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def end_by(process: subprocess.Popen[bytes], until: float) -> None:
    """Wait for a process that was asked to end, and kill its group at `until`, on the clock `time.monotonic`."""
    try:
        process.wait(max(until - time.monotonic(), 0.0))
    except subprocess.TimeoutExpired:
        kill_group(process.pid)
        process.wait()


def is_kernel_thread(pid: int) -> bool:
    """Whether it is a thread of the kernel."""
    found = stat(pid)
    return found is not None and bool(int(found[6]) & _KERNEL_THREAD)


def has_ended(pid: int) -> bool:
    """Whether it is gone, or ended and not yet waited for."""
    return state(pid) in (None, "Z", "X")


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


def started(pid: int) -> int | None:
    """Return when a process began, ticks since boot, or None when it is gone; with its number that is its identity."""
    fields = stat(pid)
    return int(fields[_STARTED]) if fields and len(fields) > _STARTED else None


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


def total_s(pids: Iterable[int]) -> float:
    """Return the CPU time of these processes since their start, with the children that they have waited for, s.

    What a child used is in it from the moment its parent has waited for it, however short its life was. The part of
    the children is in ticks of the kernel (1/100 s for each process that has some).
    """
    total = 0.0
    for pid in pids:
        try:
            own_s = time.clock_gettime(_clock(pid))
        except OSError:
            continue
        fields = stat(pid)
        total += own_s + (sum(map(int, fields[_OF_CHILDREN])) * _TICK_S if fields else 0.0)
    return total


def _clock(pid: int) -> int:
    return (~pid << 3) | _SCHEDULED


class CpuTime:
    """CPU time that a changing set of processes has used, in ns; ended ones keep their part.

    Those of the first set count from then on, what is born later counts from its birth.
    """

    def __init__(self) -> None:
        self._clocks: dict[int, tuple[int, int]] = {}  # pid -> its clock, what it had when it joined
        self._latest: dict[int, int] = {}
        self._ended_ns = 0
        self._begun_s: float | None = None  # on the clock since boot

    def watch(self, pids: set[int]) -> None:
        """Count these processes from now on; those that were counted stay until they end."""
        begun_s = self._begun_s
        if begun_s is None:
            self._begun_s = time.clock_gettime(time.CLOCK_BOOTTIME)
        for pid in pids - self._clocks.keys():
            clock = _clock(pid)
            try:
                before = time.clock_gettime_ns(clock)
            except OSError:  # it has ended meanwhile
                continue
            self._clocks[pid] = (
                clock,
                0 if begun_s is not None and (started(pid) or 0) * _TICK_S >= begun_s - _TICK_S else before,
            )
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
