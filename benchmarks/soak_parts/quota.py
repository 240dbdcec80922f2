"""A part of a CPU for all that a soak has started."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from soak_parts.left import Ground

QUOTA_US = 10_000
"""CPU time of all processes together in each 100 ms, while there is a quota."""
_CPU = Path("/sys/fs/cgroup/cpu")


class Quota:
    """A control group with a limit of CPU time, where one can be made."""

    def __init__(self, ground: Ground) -> None:
        self._ground, self._path = ground, _CPU / f"xwsoak-{os.getpid()}"
        with contextlib.suppress(OSError):
            self._path.mkdir()
        self.is_there = (self._path / "cpu.cfs_quota_us").exists()

    def begin(self) -> None:
        """Put all that runs by now under the limit."""
        (self._path / "cpu.cfs_quota_us").write_text(str(QUOTA_US))
        self._move(self._path)

    def lift(self) -> None:
        """Let it run as before."""
        (self._path / "cpu.cfs_quota_us").write_text("-1")

    def _move(self, group: Path) -> None:
        for pid in self._ground.processes():
            with contextlib.suppress(OSError):  # it ends
                (group / "cgroup.procs").write_text(str(pid))

    def remove(self) -> None:
        """Take the group away."""
        if self.is_there:
            self.lift()
            self._move(_CPU)
            self._path.rmdir()
