r"""The log of a run of commands: a line for each command that has ended, with the columns of GNU parallel's `--joblog`.

Columns are separated by tabs; tabs, newlines and backslashes within one are written as `\t`, `\n` and `\\`.

Times are those of the last try, as its node measured them; the start is on the clock of the root. Of a command that no
node has finished they are the time when that was known, and 0.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from crosswind.errors import MeasurementError
from crosswind.run.agents import LiveFarm, Result

PARALLEL: Final = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand"
HEAD: Final = f"{PARALLEL}\tInput\tTries\tOutcome\n"
NO_STATUS: Final = -1
"""In place of an exit code, where the command did not end by itself or its end is not what failed."""

_ENDS: Final = (
    (re.compile(r"exit status: (\d+)"), "failed"),
    (re.compile(r"signal: (\d+)"), "killed"),
    (re.compile(r"over its time"), "over time"),
    (re.compile(r"over its memory"), "over memory"),
    (re.compile(r"it left "), "no output"),
    (re.compile(r"it was ended from outside|task \d+ was being computed \d+ times when an agent was lost"), "lost"),
)
"""How the text of a failure begins (crates/live/src/farm/command/mod.rs) -> the outcome."""
_TRIED: Final = re.compile(r"task (\d+) failed, was tried (\d+) times")
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


class End(NamedTuple):
    """How a command ended."""

    exit_code: int
    signal: int
    outcome: str

    @classmethod
    def of(cls, failure: str) -> End:
        """Return what the text of a failure says.

        Examples
        --------
        >>> End.of("exit status: 3; its stderr is empty")
        End(exit_code=3, signal=0, outcome='failed')
        >>> End.of("signal: 9 (SIGKILL); its stderr is empty")
        End(exit_code=0, signal=9, outcome='killed')
        """
        for pattern, outcome in _ENDS:
            if (found := pattern.match(failure)) is not None:
                number = int(found[1]) if found.groups() else NO_STATUS
                return cls(0, number, outcome) if outcome == "killed" else cls(number, 0, outcome)
        return cls(NO_STATUS, 0, "error")


class Job(NamedTuple):
    """What is known of a task before it runs."""

    command: str
    """As a shell gets it, with the user's own paths."""
    input: str
    is_value: bool


class Joblog:
    """Writes a line for each task that has ended, as its result comes.

    Parameters
    ----------
    path : path, optional
        The file. Nothing happens to it before `begin`. None: nothing is written.
    append : bool
        Keep the lines that it has.
    line : str
        The line that nodes run, by which texts of failures begin.
    job_of : callable
        What is known of a task, by its number.
    """

    def __init__(self, path: str | Path | None, *, append: bool, line: str, job_of: Callable[[int], Job]) -> None:
        self._path, self._append, self._job_of = Path(path) if path is not None else None, append, job_of
        self._prefix = f"{line}: "
        self._descriptor: int | None = None
        self._farm: LiveFarm | None = None
        self._known_events = 0
        self._tries: dict[int, int] = {}

    def begin(self, farm: LiveFarm) -> None:
        """Open the file: the run begins now."""
        if self._path is None:
            return
        self._farm = farm
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | (0 if self._append else os.O_TRUNC)
        try:
            self._descriptor = os.open(self._path, flags, 0o666)
            size = os.fstat(self._descriptor).st_size
            if size == 0:
                self._write(HEAD)
            elif os.pread(self._descriptor, 1, size - 1) != b"\n":  # a process was killed while it wrote
                self._write("\n")
        except OSError as error:
            raise self._failed(error) from None

    def take(self, result: Result) -> None:
        """Write the line of a task.

        Raises
        ------
        MeasurementError
            When the file cannot be written; `disk-full` where that is why.
        """
        if self._descriptor is None:
            return
        now = time.monotonic()
        began, seconds = (result.ran.began_s, result.ran.seconds) if result.ran is not None else (now, 0.0)
        job = self._job_of(result.task)
        end = End(0, 0, "done") if result.ok else End.of(self._said(result))
        sent = len(os.fsencode(job.input)) if job.is_value else _size(job.input)
        columns = (
            str(result.task),
            result.node,
            f"{time.time() - (now - began):.3f}",
            f"{seconds:10.3f}",
            str(sent),
            str(_size_of(result)),
            str(end.exit_code),
            str(end.signal),
            job.command,
            job.input,
            str(self._tries_of(result.task)),
            end.outcome,
        )
        try:
            self._write("\t".join(column.translate(_ESCAPES) for column in columns) + "\n")
        except OSError as error:
            raise self._failed(error) from None

    def __enter__(self) -> Joblog:
        return self

    def __exit__(self, *error: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _said(self, result: Result) -> str:
        said = result.data.decode(errors="replace") if isinstance(result.data, bytes) else ""
        return said.removeprefix(self._prefix)

    def _tries_of(self, task: int) -> int:
        assert self._farm is not None  # it has begun
        events = self._farm.events(self._known_events)
        self._known_events += len(events)
        for _, _, message in events:
            if (found := _TRIED.match(message)) is not None:
                self._tries[int(found[1])] = int(found[2])
        return self._tries.pop(task, 1)

    def _write(self, text: str) -> None:
        assert self._descriptor is not None  # it has begun
        data = os.fsencode(text)
        while data:
            data = data[os.write(self._descriptor, data) :]

    def _failed(self, error: OSError) -> MeasurementError:
        assert self._path is not None  # it was to be written
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = "free some space and continue with --resume, or put --joblog on another disk"
            return MeasurementError(f"no space left on {self._path.parent}", "disk-full", hint)
        why = (error.strerror or str(error)).lower()
        return MeasurementError(f"{self._path}: {why}", "system", "name another file for --joblog")


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 (there may be a million)
    except OSError:
        return 0


def _size_of(result: Result) -> int:
    if not result.ok:
        return 0
    return len(result.data) if isinstance(result.data, bytes) else _size(str(result.data))
