"""One run of a command: how long it took by the clock, and how much CPU time it and what it waited for used."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence

from crosswind.errors import DescriptionError, MeasurementError

_LOOK_S = 0.05


def words_of(text: str, name: str) -> list[str]:
    """Return program and arguments of a command.

    Raises
    ------
    DescriptionError
        When there is no such program.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise DescriptionError(f"{name} is {text!r}: {error}", "command") from None
    if not words or shutil.which(words[0]) is None:
        hint = "commands run without a shell; `sh -c '...'` is one"
        raise DescriptionError(f"{name} is {text!r}; there is no such program", "command", hint)
    return words


def run_once(words: Sequence[str], asked_to_end: Callable[[], bool] = lambda: False) -> tuple[float, float]:
    """Run a command; return wall s and CPU s. What it prints is dropped; when asked to end, it is ended.

    Raises
    ------
    MeasurementError
        When it ends with another status than 0.
    """
    begun = time.perf_counter()
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0
    )
    try:
        descriptor = os.pidfd_open(process.pid)
        try:
            ended = _waited(descriptor, asked_to_end)
        finally:
            os.close(descriptor)
        wall_s = time.perf_counter() - begun
        if not ended:
            return wall_s, 0.0
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    finally:
        if process.returncode is None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.returncode != 0:
        message = f"{shlex.join(words)} ended with status {process.returncode}"
        raise MeasurementError(message, "command-failed", "a command that fails is not timed: try it by itself")
    return wall_s, usage.ru_utime + usage.ru_stime


def _waited(descriptor: int, asked_to_end: Callable[[], bool]) -> bool:
    """Wait for the end of a process; False: we were asked to end first."""
    import select

    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while not poll.poll(1e3 * _LOOK_S):
        if asked_to_end():
            return False
    return True
