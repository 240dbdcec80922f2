"""Our end of the watchdog: it is told beforehand what may be stopped, and until when."""

from __future__ import annotations

import contextlib
import mmap
import os
import select
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from crosswind.cost import watching
from crosswind.errors import MeasurementError

_PATIENCE_S = 30.0


class Watchdog:
    """A process that continues what we stopped however we end: ctrl-C, an error, SIGKILL, or stopped ourselves."""

    def __init__(self) -> None:
        memory = os.memfd_create("crosswind-due")
        os.ftruncate(memory, mmap.PAGESIZE)
        self._due = memoryview(mmap.mmap(memory, mmap.PAGESIZE)).cast(watching.DUE)
        command = [sys.executable, "-I", "-S", str(Path(watching.__file__)), str(memory)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[memory], start_new_session=True
        )
        os.close(memory)
        assert self._process.stdout is not None  # it was asked for
        ready = select.select([self._process.stdout], [], [], _PATIENCE_S)[0] and self._process.stdout.readline()
        if not ready:
            self.close()
            raise MeasurementError("the watchdog could not be started, and nothing is stopped without it", "unwatched")
        self._known: set[int] = set()

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def knows(self, pids: Iterable[int] = (), *, group: Path | None = None, ends: int | None = None) -> None:
        """Tell what may be stopped or frozen from now on, and which process group ends with us.

        Raises
        ------
        MeasurementError
            When it is gone: then nothing may be stopped.
        """
        if new := set(pids) - self._known:
            self._say("pids " + " ".join(map(str, sorted(new))))
            self._known |= new
        if group is not None:
            self._say(f"group {group}")
        if ends is not None:
            self._say(f"end {ends}")

    def stopped_until(self, due_ns: int) -> None:
        """Note that something is about to be stopped, and when it is to go on (CLOCK_MONOTONIC, ns); 0: nothing is."""
        self._due[0] = due_ns

    def check(self) -> None:
        """Make sure that it is there.

        Raises
        ------
        MeasurementError
            When it was ended.
        """
        if self._process.poll() is not None:
            raise MeasurementError("the watchdog was ended, and nothing is stopped without it", "unwatched")

    def _say(self, line: str) -> None:
        self.check()
        assert self._process.stdin is not None  # it was asked for
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise MeasurementError("the watchdog was ended, and nothing is stopped without it", "unwatched") from None

    def close(self) -> None:
        """Tell it that all is undone, and wait for its end."""
        with contextlib.suppress(MeasurementError):
            self._say("bye")
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None  # both were asked for
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        self._process.wait()

    def __enter__(self) -> Watchdog:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
