"""A process that takes a kernel filter back when the one that set it ends, however that ends.

It is started before anything is changed, leads a session of its own and waits for the end of its standard input, which
the kernel sees to even on SIGKILL.

    python -m crosswind.filter.kernel STATE_FILE PID STARTED
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from crosswind.errors import CrosswindError
from crosswind.filter.kernel import apply, state

READY = b"ready\n"


class Watchdog:
    """The watchdog of this process for one state file; ends with `close`, or with this process."""

    def __init__(self, path: Path) -> None:
        owner = state.Process.here()
        words = [sys.executable, "-m", "crosswind.filter.kernel", str(path), str(owner.pid), str(owner.started)]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, cwd="/"
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != READY:
            self.close()
            raise CrosswindError("the watchdog did not start; nothing was changed", "watchdog")

    @property
    def pid(self) -> int:
        """Number of its process."""
        return self._process.pid

    @property
    def lives(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def close(self) -> None:
        """End it; it takes back what is still set."""
        for end in (self._process.stdin, self._process.stdout):
            if end is not None:
                end.close()
        self._process.wait()


def main() -> int:
    """Wait, then take back what the owner left; the exit code."""
    path, owner = Path(sys.argv[1]), state.Process(int(sys.argv[2]), int(sys.argv[3]))
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP):
        signal.signal(one, signal.SIG_IGN)
    os.write(1, READY)
    while os.read(0, 1):
        pass
    there = state.read(path)
    if there is None or there.owner != owner:
        return 0
    try:
        print(f"crosswind filter ended without taking back: {apply.undo(there)}", file=sys.stderr)
    except (CrosswindError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0
