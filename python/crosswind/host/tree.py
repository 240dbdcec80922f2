"""Reading `/proc` and `/sys`, or a copy of them under another root, without ever failing.

What cannot be read is `None` here and "unknown" in a description: a container, another kernel or a missing
permission must never prevent a measurement.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

ROOT = Path("/")
UNKNOWN = "unknown"
_RANGE = re.compile(r"(\d{1,7})(?:-(\d{1,7})(?::(\d{1,7})/(\d{1,7}))?)?")


def text(root: Path, path: str) -> str | None:
    """Return the stripped content of a small file below `root`, or None where it cannot be read."""
    try:
        return (root / path).read_text(errors="replace").strip()
    except (OSError, ValueError):  # gone, forbidden, a driver that answers with an error; a name with a NUL in it
        return None


def told(root: Path, path: str) -> str:
    """Return the content of a one-line file with its white space made single, or "unknown"."""
    found = text(root, path)
    return " ".join(found.split()) if found else UNKNOWN


def number(root: Path, path: str) -> int | None:
    """Return the whole number in a file, or None."""
    found = text(root, path)
    try:
        return int(found) if found is not None else None
    except ValueError:
        return None


def names(root: Path, path: str) -> list[str]:
    """Return the names in a directory, sorted; none where it cannot be listed."""
    try:
        return sorted(entry.name for entry in (root / path).iterdir())
    except OSError:
        return []


def parse_cpus(listed: str) -> list[int]:
    """Return the CPUs of a kernel list such as `0-3,8`, or `0-7:1/2`: the first of every two. Other parts name none.

    Examples
    --------
    >>> parse_cpus("0-3,8"), parse_cpus("0-7:1/2"), parse_cpus("(null)")
    ([0, 1, 2, 3, 8], [0, 2, 4, 6], [])
    """
    cpus: list[int] = []
    for part in listed.split(","):
        if (found := _RANGE.fullmatch(part.strip())) is None:
            continue
        first, last, used, group = (int(one) if one else None for one in found.groups())
        every = range(first or 0, (last if last is not None else first or 0) + 1)
        cpus.extend(cpu for place, cpu in enumerate(every) if not group or place % group < (used or 0))
    return cpus


def cpu_ticks(root: Path) -> dict[str, list[int]]:
    """Return the ticks of `/proc/stat` by name: `cpu` (all), `cpu0`, ...; other lines are left out."""
    found = {}
    for line in (text(root, "proc/stat") or "").splitlines():
        name, *counts = line.split() or [""]
        if re.fullmatch(r"cpu\d{0,7}", name) and all(re.fullmatch(r"\d{1,20}", count) for count in counts):
            found[name] = [int(count) for count in counts]
    return found


def list_cpus(cpus: Iterable[int]) -> str:
    """CPUs as the kernel writes them.

    Examples
    --------
    >>> list_cpus([8, 0, 1, 2, 3])
    '0-3,8'
    """
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
