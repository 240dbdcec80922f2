"""Copies of `/proc` and `/sys` with exactly what a test needs in them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

ONE_GROUP_V2 = {
    "proc/self/cgroup": "0::/user.slice/job\n",
    "proc/self/mountinfo": "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
}


def plant(root: Path, files: Mapping[str, str]) -> Path:
    """Write files below `root`, and return it."""
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)
    return root


def stat(*cpus: tuple[int, ...]) -> str:
    """`/proc/stat` with (user, nice, system, idle, iowait, irq, softirq, steal) ticks of each CPU."""
    lines = [f"cpu{n} {' '.join(map(str, ticks))} 0 0" for n, ticks in enumerate(cpus)]
    total = " ".join(str(sum(column)) for column in zip(*cpus, strict=True))
    return "\n".join([f"cpu  {total} 0 0", *lines, "intr 0", ""])


def process(pid: int, name: str, user: int, system: int, start: int, cpu: int = 0) -> dict[str, str]:
    """`/proc/PID/stat` of a process that has used so many ticks."""
    fields = ["S", *["0"] * 10, str(user), str(system), *["0"] * 6, str(start), *["0"] * 16, str(cpu)]
    return {f"proc/{pid}/stat": f"{pid} ({name}) {' '.join(fields)} 0 0\n"}
