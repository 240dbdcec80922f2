"""Runs of a command, by a process that ends what they leave behind: how long each took, and the CPU time it used."""

from __future__ import annotations

import json
import select
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from crosswind.errors import MeasurementError

_LOOK_S = 0.05


class LateError(Exception):
    """A run had not ended when its time was over; it was ended."""


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes
    ----------
    wall_s, cpu_s : float
        How long it took, and the CPU time that it and what it waited for used, s.
    left : list of str
        Names of the processes that it left behind, which were ended.
    """

    wall_s: float
    cpu_s: float
    left: list[str]


class Runner:
    """Runs commands one after the other; what they print is dropped."""

    def __enter__(self) -> Runner:
        """Start the process that runs them, in a group of its own: ctrl-C is for us."""
        script = str(Path(__file__).with_name("runner.py"))
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it, with what runs."""
        self._process.terminate()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()

    def run(
        self,
        words: Sequence[str],
        asked_to_end: Callable[[], bool] = lambda: False,
        until: float | None = None,
        *,
        ignore_failure: bool = False,
    ) -> Run | None:
        """Run a command; None: we were asked to end first.

        Parameters
        ----------
        words : sequence of str
            Program and arguments.
        asked_to_end : callable
            Asked every 50 ms.
        until : float, optional
            The latest end, by the clock `time.monotonic`, s.
        ignore_failure : bool
            Count a run that ends with another status than 0.

        Raises
        ------
        LateError
            When it did not end by then.
        MeasurementError
            When it cannot be started, or ends with another status than 0.
        """
        assert self._process.stdin is not None and self._process.stdout is not None  # noqa: PT018 (both are pipes)
        self._process.stdin.write(json.dumps(list(words)).encode("ascii") + b"\n")
        self._process.stdin.flush()
        poll = select.poll()
        poll.register(self._process.stdout, select.POLLIN)
        while not poll.poll(1e3 * _LOOK_S):
            if asked_to_end():
                return None
            if until is not None and time.monotonic() > until:
                raise LateError
        answer = json.loads(self._process.stdout.readline() or '{"error": "what runs the commands was ended"}')
        if "error" in answer:
            raise MeasurementError(f"{shlex.join(words)} cannot be run: {answer['error']}", "command-failed")
        if answer["status"] != 0 and not ignore_failure:
            message = f"{shlex.join(words)} ended with status {answer['status']}"
            raise MeasurementError(message, "command-failed", "a command that fails is not timed: try it by itself")
        return Run(answer["wall_s"], answer["cpu_s"], answer["left"])
