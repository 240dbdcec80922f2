"""The watchdog's process: continues what was stopped when the process that stopped it is no more, however it ended.

Run by its path with a bare interpreter, so it imports nothing of Crosswind. It leads a session of its own, is deaf to
what a terminal sends, and waits for its standard input to end, which the kernel sees to even on SIGKILL. Twice a second
it also looks whether something should have been continued long ago: a process that is stopped itself continues none.

Lines that it takes: `pids N ...` (what may be stopped), `group DIRECTORY` (what may be frozen), `end N` (a process
group to end with us), `bye` (all is undone).
"""

from __future__ import annotations

import contextlib
import mmap
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Final

LOOK_S = 0.5
LATE_NS = 1_000_000_000
DUE: Final = "q"  # one 64-bit load or store each: ns of CLOCK_MONOTONIC; 0: nothing is stopped
PATIENCE_S = 2.0


class Known:
    """What may have to be undone."""

    def __init__(self) -> None:
        self.pids: set[int] = set()
        self.groups: set[str] = set()
        self.ends: set[int] = set()

    def hear(self, line: str) -> bool:
        """Take one line; False: all is undone and nothing is left to do."""
        word, _, rest = line.strip().partition(" ")
        if word == "pids":
            self.pids.update(map(int, rest.split()))
        elif word == "group":
            self.groups.add(rest)
        elif word == "end":
            self.ends.add(int(rest))
        return word != "bye"

    def continue_all(self) -> None:
        """Thaw and continue everything; to do so twice does no harm."""
        for group in self.groups:
            with contextlib.suppress(OSError):
                Path(group, "cgroup.freeze").write_text("0")
        for pid in self.pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGCONT)

    def end(self) -> None:
        """End what was started for the measurement."""
        for number, wait_s in ((signal.SIGTERM, PATIENCE_S), (signal.SIGKILL, 0.0)):
            for group in self.ends:
                with contextlib.suppress(OSError):
                    os.killpg(group, number)
                    time.sleep(wait_s)


def main() -> None:
    """Watch until the pipe ends."""
    for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    due = memoryview(mmap.mmap(int(sys.argv[1]), mmap.PAGESIZE)).cast(DUE)
    known, rest = Known(), b""
    os.write(1, b"ready\n")
    while True:
        if not select.select([0], [], [], LOOK_S)[0]:
            due_ns = due[0]
            if due_ns and time.monotonic_ns() > due_ns + LATE_NS:
                known.continue_all()
            continue
        heard = os.read(0, 1 << 16)
        if not heard:
            break
        *lines, rest = (rest + heard).split(b"\n")
        for line in lines:
            if not known.hear(line.decode()):
                return
    known.continue_all()
    known.end()


if __name__ == "__main__":
    main()
