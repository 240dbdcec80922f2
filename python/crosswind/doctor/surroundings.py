"""Whether we have the memory, the permissions, the limits and the programs."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Callable
from pathlib import Path

from crosswind.doctor.finding import Finding
from crosswind.host import priority
from crosswind.host.tree import ROOT, text

# The triad kernel's stream and the largest matrix (4096 x 4096 int32, twice) take less than half of this.
ENOUGH_MB = 512
PRESSURE_PERCENT = 1.0
ENOUGH_FILES = 1024
_PROGRAMS = {
    "ethtool": ("to change offloads", "ethtool"),
    "iperf3": ("for the benchmark of the traffic generator", "iperf3"),
    "chromium": ("for the browser test of the report", "chromium"),
}


def memory(root: Path = ROOT) -> Finding:
    """Whether memory is short: a page fault in the kernel would be taken for interference."""
    kb = {}
    for line in (text(root, "proc/meminfo") or "").splitlines():
        name, _, value = line.partition(":")
        if value.split():
            kb[name] = int(value.split()[0])
    if "MemAvailable" not in kb:
        return Finding("memory", "note", "available memory cannot be read")
    free_mb = kb["MemAvailable"] * 1024 / 1e6
    swapped_mb = (kb.get("SwapTotal", 0) - kb.get("SwapFree", 0)) * 1024 / 1e6
    pressure = _pressure(root)
    seen = f"{free_mb:.0f} MB available, {swapped_mb:.0f} MB swapped out"
    seen += "" if pressure is None else f", processes waited for memory {pressure:.1f} % of the last 10 s"
    if free_mb < ENOUGH_MB or (pressure or 0.0) >= PRESSURE_PERCENT:
        return Finding("memory", "warning", seen, "end what uses it: `ps -eo pid,rss,comm --sort=-rss | head`")
    return Finding("memory", "ok", seen)


def _pressure(root: Path) -> float | None:
    """Per cent of the last 10 s in which some process waited for memory."""
    for line in (text(root, "proc/pressure/memory") or "").splitlines():
        if line.startswith("some avg10="):
            return float(line.split()[1].partition("=")[2])
    return None


def permissions(root: Path = ROOT, limit: Callable[[int], tuple[int, int]] = resource.getrlimit) -> list[Finding]:
    """Whether negative nice levels and real-time scheduling are permitted."""
    capable = priority.may_be_raised(root)
    rtprio, _ = limit(resource.RLIMIT_RTPRIO)
    lowest = priority.lowest_nice(root, limit)
    found = []
    if lowest < 0:
        found.append(Finding("nice", "ok", f"nice levels down to {lowest} are permitted"))
    else:
        hint = "`sudo prlimit --pid $$ --nice=40:40` in the shell that will measure"
        found.append(
            Finding("nice", "note", "nice levels below 0 are not permitted: --nice and --traffic-nice 0..19", hint)
        )
    if capable or rtprio:
        found.append(Finding("real-time", "ok", "real-time scheduling is permitted"))
    else:
        hint = "`sudo prlimit --pid $$ --rtprio=1:1` in the shell that will measure"
        found.append(
            Finding(
                "real-time",
                "note",
                "real-time scheduling is not permitted; only `crosswind inject` is better with it",
                hint,
            )
        )
    return found


def open_files(limit: Callable[[int], tuple[int, int]] = resource.getrlimit) -> Finding:
    """Whether many peers and streams may be open at once."""
    soft, hard = limit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= ENOUGH_FILES:
        return Finding("open-files", "ok", f"{'any number of' if soft < 0 else soft} files may be open")
    hint = f"`ulimit -n {ENOUGH_FILES if hard < 0 else min(hard, ENOUGH_FILES)}` in the shell that will measure"
    return Finding("open-files", "warning", f"only {soft} files may be open: peers x streams x 2 must stay below", hint)


def programs(find: Callable[[str], str | None] = shutil.which) -> list[Finding]:
    """Which optional programs are missing; nothing is needed to measure."""
    found = []
    for name, (purpose, package) in _PROGRAMS.items():
        at = find(name)
        if at:
            found.append(Finding(f"program-{name}", "ok", f"{name} is {at}"))
        else:
            seen = f"{name} is not installed ({purpose}; not needed to measure)"
            found.append(Finding(f"program-{name}", "note", seen, f"`sudo apt install {package}`"))
    return found


def runtimes_at_start(find: Callable[[str], str | None] = shutil.which) -> list[Finding]:
    """Tell that runtimes on this host decide by the CPUs that they see when they start, where there are such."""
    there = [name for name in ("java", "go") if find(name)]
    if not there:
        return []
    found = " and ".join(there)
    return [
        Finding(
            "runtime-ergonomics",
            "note",
            f"{found}: decided by the CPUs seen at the start; on one, a JVM takes the serial collector and"
            " one carrier, Go GOMAXPROCS 1",
            "`crosswind measure --runtime java --pin threads` starts it on all of them, and pins it then",
        )
    ]
