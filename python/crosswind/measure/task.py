"""The user's own work: a command as the probe takes it, and whether one run is short enough for the time limit."""

from __future__ import annotations

import contextlib
import math
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable

from crosswind.errors import MeasurementError
from crosswind.measure.design import LADDER, UNITS_PER_BLOCK
from crosswind.terminal.command_line import SHELL, words_of

BLOCKS_BEFORE = 10
"""Blocks of a channel before its first cycle: traffic that warms up, and the top of its ladder."""
BARE_BLOCKS = 3
SECOND_RUN = 0.1
"""A first run that took less than this part of the time limit is done again."""
FEWEST_CYCLES = 5

Task = str | Callable[[], object]


def for_probe(text: str, *, shell: bool = False) -> str:
    r"""Return a command as the probe takes it, which has a shell run what holds a character of a shell's.

    Raises
    ------
    DescriptionError
        When there is no such program, or it has shell syntax without a shell.

    Examples
    --------
    >>> for_probe("true 1"), for_probe("true 'a b'"), for_probe("true | cat", shell=True)
    ('true 1', "exec true 'a b'", 'true | cat\n')
    """
    words = words_of(text, "--task", shell=shell)
    if shell:
        return f"{text}\n"  # the probe has a shell run what holds the end of a line
    joined = shlex.join(words)
    return joined if joined == " ".join(words) and joined.split() == words else f"exec {joined}"


def fewest_runs(channels: int) -> int:
    """Return how many runs a measurement of `channels` takes, at least.

    Examples
    --------
    >>> fewest_runs(1), fewest_runs(2)
    (190, 365)
    """
    return UNITS_PER_BLOCK * (BARE_BLOCKS + channels * (BLOCKS_BEFORE + FEWEST_CYCLES * len(LADDER)))


def refuse_slow(task: Task, channels: int, max_seconds: float, *, shell: bool = False) -> None:
    """Time one run, and refuse a task of which too few runs fit into a measurement.

    A first run that is too slow is done again, since it may have read a file from a disk.

    Raises
    ------
    MeasurementError
        With the time of a run, and the time that a measurement would take.
    """
    longest_s = max_seconds / fewest_runs(channels)
    took_s = _timed(task, max_seconds, shell)
    if longest_s < took_s < SECOND_RUN * max_seconds:
        took_s = min(took_s, _timed(task, max_seconds, shell))
    if took_s > longest_s:
        needed = "" if took_s >= max_seconds else f", {fewest_runs(channels) * took_s:.0f} s"
        message = f"one run of --task takes {'over ' * (took_s >= max_seconds)}{took_s:.2g} s; a measurement takes at "
        message += f"least {fewest_runs(channels)} runs{needed}, and --max-seconds is {max_seconds:g}"
        hint = "a smaller input: 1 to 20 ms are best" + ("; or a longer --max-seconds" if needed else "")
        raise MeasurementError(message, "slow-task", hint)


def _timed(task: Task, most_s: float, shell: bool) -> float:
    begun = time.monotonic()
    if callable(task):
        with contextlib.suppress(Exception):  # the probe runs it as well, and says how it failed
            task()
        return time.monotonic() - begun
    words = [SHELL, "-c", task] if shell else words_of(task, "--task")
    null = subprocess.DEVNULL
    process = subprocess.Popen(words, stdin=null, stdout=null, stderr=null, process_group=0)
    try:
        process.wait(most_s)
    except subprocess.TimeoutExpired:
        return math.inf if most_s <= 0.0 else most_s
    finally:
        if process.returncode is None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return time.monotonic() - begun
