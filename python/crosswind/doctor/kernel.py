"""Settings of the kernel that take a CPU's time now and then, or let a CPU sleep deeply."""

from __future__ import annotations

from pathlib import Path

from crosswind.doctor.finding import Finding
from crosswind.host import processor
from crosswind.host.tree import ROOT, UNKNOWN, names, number, parse_cpus, told

SLOW_WAKE_US = 50
"""From here on, waking a CPU is a part of a message's time on a fast network (10 to 100 us) that matters."""
_CPU = "sys/devices/system/cpu"
_NONE = ("(null)", "", UNKNOWN)


def huge_pages(root: Path = ROOT) -> list[Finding]:
    """Whether the kernel makes huge pages of a program's memory unasked."""
    mode = processor.huge_pages(root)
    if mode == UNKNOWN:
        return []
    if mode != "always":
        return [Finding("huge-pages", "ok", f"transparent huge pages: {mode}")]
    seen = "transparent huge pages are always on: khugepaged and compaction take CPU time now and then"
    hint = "`echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled`"
    return [Finding("huge-pages", "note", seen, hint)]


def numa_balancing(root: Path = ROOT) -> list[Finding]:
    """Whether the kernel moves pages between NUMA nodes."""
    nodes = parse_cpus(told(root, "sys/devices/system/node/online"))
    if len(nodes) < 2 or not number(root, "proc/sys/kernel/numa_balancing"):
        return []
    seen = f"automatic NUMA balancing is on, with {len(nodes)} nodes: it moves pages, and takes faults to see where"
    hint = "`sudo sysctl kernel.numa_balancing=0`, or bind CPUs and memory: `numactl --cpunodebind 0 --membind 0 ...`"
    return [Finding("numa-balancing", "note", seen, hint)]


def idle_states(root: Path = ROOT) -> list[Finding]:
    """How long a sleeping CPU takes to wake, by the deepest state that is permitted."""
    cpus = processor.allowed_cpus(root)
    at = f"{_CPU}/cpu{cpus[0] if cpus else 0}/cpuidle"
    latencies = {
        told(root, f"{at}/{state}/name"): number(root, f"{at}/{state}/latency") or 0
        for state in names(root, at)
        if state.startswith("state") and not number(root, f"{at}/{state}/disable")
    }
    if not latencies:
        return []
    name, latency_us = max(latencies.items(), key=lambda item: item[1])
    seen = f"a sleeping CPU takes up to {latency_us} us to wake ({name})"
    if latency_us < SLOW_WAKE_US:
        return [Finding("idle-states", "ok", seen)]
    hint = f"`sudo cpupower idle-set --disable-by-latency {SLOW_WAKE_US}`, until the next boot"
    return [Finding("idle-states", "note", f"{seen}: what arrives meanwhile is late by that", hint)]


def without_ticks(root: Path = ROOT) -> list[Finding]:
    """Whether there are CPUs without the timer's tick that we could use."""
    kept = told(root, f"{_CPU}/nohz_full")
    if kept in _NONE:
        return []
    seen = f"CPUs {kept} have no timer tick while one thread computes there (nohz_full)"
    return [Finding("nohz-full", "note", seen, f"`taskset -c {kept} crosswind ...` to measure on them")]
