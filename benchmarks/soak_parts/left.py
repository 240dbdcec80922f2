"""A place for all that a soak makes, and the count of what is left of it."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

from crosswind.run.spool import take_away_abandoned

MARK = "CROSSWIND_SOAK"
PATIENCE_S = 10.0
"""For what ends by itself once its root is gone."""
DISK_MB = 64
_CGROUPS = Path("/sys/fs/cgroup")


class Ground:
    """The directory of temporary files, and a mark in the environment of every process, while this is entered.

    Parameters
    ----------
    disk : bool
        Whether the directory is a file system of its own, of `DISK_MB`, which can be filled. It needs root.
    """

    def __init__(self, *, disk: bool) -> None:
        self.mark = secrets.token_hex(8)
        self.path = Path(tempfile.mkdtemp(prefix="soak-"))
        self._disk = disk
        self._before = self._of_the_machine()
        self._filling = self.path / "filling"

    def __enter__(self) -> Ground:
        if self._disk:
            size = f"size={DISK_MB}m"
            subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(self.path)], check=True)
        self._environment = {name: os.environ.get(name) for name in (MARK, "TMPDIR")}
        os.environ.update({MARK: self.mark, "TMPDIR": str(self.path)})
        tempfile.tempdir = None  # it is looked up again
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name, value in self._environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        tempfile.tempdir = None
        for pid in self.processes():  # counted already
            os.kill(pid, 9)
        if self._disk:
            subprocess.run(["umount", "-l", str(self.path)], check=True)
        shutil.rmtree(self.path, ignore_errors=True)

    def fill(self) -> None:
        """Leave no byte of the disk free."""
        with self._filling.open("ab", buffering=0) as file:
            try:
                while file.write(bytes(1 << 20)):
                    pass
            except OSError:
                return

    def free(self) -> None:
        """Give the disk back."""
        self._filling.unlink(missing_ok=True)

    def processes(self, mark: str | None = None) -> list[int]:
        """Return the processes that carry the mark, this one left out."""
        wanted, found = f"{MARK}={mark or self.mark}".encode(), []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                if wanted in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    def gone(self) -> tuple[float, list[str]]:
        """Wait until no process is left; how long that took, s, and the command lines of those that stay."""
        begun = time.monotonic()
        while (left := self.processes()) and time.monotonic() < begun + PATIENCE_S:
            time.sleep(0.05)
        return time.monotonic() - begun, [_command_of(pid) for pid in left]

    def left(self) -> dict[str, list[str]]:
        """Return what is left behind, by kind.

        A root that is killed with -9 cannot remove its spool: the next run on the machine does. That is done
        here, and what stays after it is counted.
        """
        _, processes = self.gone()
        take_away_abandoned()
        spools = [*self.path.glob("crosswind-spool-*"), *self.path.glob("crosswind-[0-9]*-*")]
        now = self._of_the_machine()
        changed = {kind: sorted(set(now[kind]) - set(found)) for kind, found in self._before.items()}
        return {"processes": processes, "spools": sorted(str(path) for path in spools), **changed}

    def logs(self) -> int:
        """Count directories of logs: kept on purpose where a run had events, or its root was killed."""
        return len(list(self.path.glob("crosswind-logs-*")))

    def _of_the_machine(self) -> dict[str, list[str]]:
        cgroups = [str(path) for path in _CGROUPS.glob("**/*crosswind*/") if path.is_dir()]
        cgroups += [str(path) for path in _CGROUPS.glob("**/*xwsoak*/")]
        mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
        own = str(self.path)
        return {
            "cgroups": cgroups,
            "mounts": [mount for mount in mounts if "xwsoak" in mount or mount.startswith(own + "/")],
            "network namespaces": [line for line in _said("ip", "netns", "list") if line.startswith("xwsoak")],
            "tc settings": _said("tc", "qdisc", "show"),
        }


def _said(*words: str) -> list[str]:
    try:
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout.splitlines()
    except FileNotFoundError:
        return []


def _command_of(pid: int) -> str:
    try:
        return f"{pid}: " + Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return f"{pid}: gone meanwhile"
