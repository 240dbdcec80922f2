"""Times of iterations that a command writes to a file or prints, and how well the mean of a run is known.

Iterations of one run are alike: they share a placement, and what is slow in one is often slow in the next. So the
autocorrelation says how many independent ones they are worth, and a mean over blocks is never surer than that.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from crosswind.blame.shares import Floats
from crosswind.errors import CrosswindError, DescriptionError

PATTERN = "re:"
LEAST = 10
"""Iterations of a run, below which neither warm-up nor autocorrelation can be found."""
NEARLY = 1.2
"""Multiple of the least variance of a mean up to which a shorter warm-up is taken."""
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
HINT = "--iterations iterations.txt, or --iterations 're:step took (?P<ms>[0-9.]+) ms'"
_SHELL = 'out=$1; shift; exec "$@" >"$out" 2>&1'


class Source(Protocol):
    """Where iteration times come from."""

    def command(self, command: Sequence[str]) -> list[str]:
        """Return the command as it is run."""
        ...

    def on_end(self) -> None:
        """Read what the run that has just ended wrote, however it ended; what it printed goes to stderr."""
        ...

    def taken(self) -> list[float]:
        """Return the iteration times of that run, s."""
        ...


def source(text: str, directory: str) -> Source:
    """Return what reads iteration times: `re:PATTERN` of the output, else a file that each run writes.

    Raises
    ------
    DescriptionError
        When the pattern is none, or the file is there already.
    """
    if text.startswith(PATTERN):
        return _Output(_pattern(text), text, Path(directory) / "output")
    path = Path(text)
    if not text or path.exists():
        what = "exists" if text else "empty"
        message = (
            f"--iterations is {text!r}: {what}; it must be a file that each run makes, and that is removed after it"
        )
        raise DescriptionError(message, "iterations", HINT)
    return _File(path)


def _pattern(text: str) -> re.Pattern[str]:
    try:
        found = re.compile(text.removeprefix(PATTERN), re.MULTILINE)
    except re.error as error:
        raise DescriptionError(f"--iterations is {text!r}: {error}", "iterations", HINT) from None
    names = list(found.groupindex)
    if found.groups != 1 or any(name not in UNITS for name in names):
        message = f"--iterations is {text!r}; it must have one group, the time, in s or named {', '.join(UNITS)}"
        raise DescriptionError(message, "iterations", HINT)
    return found


@dataclass
class _File:
    path: Path
    _written: str | None = None

    def command(self, command: Sequence[str]) -> list[str]:
        return list(command)

    def on_end(self) -> None:
        self._written = self.path.read_text(errors="replace") if self.path.is_file() else None
        self.path.unlink(missing_ok=True)

    def taken(self) -> list[float]:
        if self._written is None:
            message = f"--iterations is {str(self.path)!r}, which the command did not write"
            raise CrosswindError(message, "no-iterations", "a time in s a line")
        lines = [line.partition("#")[0].strip() for line in self._written.splitlines()]
        numbered = [(f"line {number}", line, 1.0) for number, line in enumerate(lines, 1) if line]
        return _times(numbered, str(self.path))


@dataclass
class _Output:
    pattern: re.Pattern[str]
    text: str
    path: Path
    _printed: str = ""

    def command(self, command: Sequence[str]) -> list[str]:
        return ["/bin/sh", "-c", _SHELL, "sh", str(self.path), *command]  # the shell becomes the command

    def on_end(self) -> None:
        self._printed = self.path.read_text(errors="replace") if self.path.exists() else ""
        self.path.unlink(missing_ok=True)
        sys.stderr.write(self._printed)
        sys.stderr.flush()

    def taken(self) -> list[float]:
        unit = UNITS[next(iter(self.pattern.groupindex), "s")]
        found = [(f"{one[0]!r}", one[1] or "", unit) for one in self.pattern.finditer(self._printed)]
        return _times(found, self.text)


def _times(found: Sequence[tuple[str, str, float]], text: str) -> list[float]:
    """Return times in s; refuse what is none, and too few.

    Raises
    ------
    CrosswindError
        With the place of the first value that is no time.
    """
    times = []
    for where, word, unit in found:
        try:
            times.append(unit * float(word))
        except ValueError:
            times.append(-1.0)
        if not 0.0 < times[-1] < float("inf"):
            message = f"--iterations {text}: {where} has {word.strip()!r}; it must be a time greater than 0"
            raise CrosswindError(message, "no-iterations", HINT)
    if len(times) < LEAST:
        message = f"--iterations {text}: {len(times)} iterations in a run; at least {LEAST} are needed"
        raise CrosswindError(message, "no-iterations", "let the command do more of them, or time whole runs")
    return times


class Settled(NamedTuple):
    """Means of runs without their warm-up; arrays of shape (blocks, variants).

    Attributes
    ----------
    warm_up : int
        Iterations that are left out at the start of each run.
    means, errors : array
        Mean iteration time and its standard error from the run's own iterations, s.
    worth : array
        How many independent iterations those of a run are worth, at least 1.
    """

    warm_up: int
    means: Floats
    errors: Floats
    worth: Floats


def settled(runs: dict[str, list[list[float]]], undisturbed: str) -> Settled:
    """Return what runs come to: the same warm-up is left out of each, and found in the undisturbed ones only.

    A warm-up that each run chose for itself would leave out what disturbs its first iterations.
    """
    shortest = min(len(run) for of in runs.values() for run in of)
    cut = warm_up(np.mean([run[:shortest] for run in runs[undisturbed]], axis=0))
    rows = [[np.array(run[cut:]) for run in of] for of in runs.values()]
    means = np.array([[run.mean() for run in of] for of in rows]).T
    worth = np.array([[independent(run) for run in of] for of in rows]).T
    variances = np.array([[run.var(ddof=1) for run in of] for of in rows]).T
    return Settled(cut, means, np.sqrt(variances / worth), worth)


def warm_up(times: Floats) -> int:
    """Return how many iterations to leave out: the fewest without which the rest is nearly steadiest; at most half.

    White's MSER rule (1997), on the mean course of several runs. The least itself moves with the noise, far to the
    right at times: what is left out for a tenth of the error may hold a disturbance.

    Examples
    --------
    >>> warm_up(np.array([9.0, 5.0, 1.0, 1.1, 0.9, 1.0, 1.1, 1.0, 0.9, 1.0, 1.1, 0.9]))
    2
    """
    errors = np.array([times[cut:].var() / len(times[cut:]) for cut in range(len(times) // 2 + 1)])
    return int(np.argmax(errors <= NEARLY * errors.min()))


def independent(times: Floats) -> float:
    """Return how many independent iterations these are worth, by their autocorrelation; from 1 to as many as they are.

    Correlations are summed by pairs of lags as long as these are positive (Geyer's initial sequence, 1992).

    Examples
    --------
    >>> independent(np.array([1.0, 2.0] * 50)), round(independent(np.repeat([1.0, 2.0, 1.5, 3.0, 1.2], 20)))
    (100.0, 7)
    """
    count, away = len(times), times - times.mean()
    power = np.abs(np.fft.rfft(away, 2 * count)) ** 2
    covariances = np.fft.irfft(power)[:count]
    if not covariances[0] > 0.0:
        return float(count)
    paired = covariances[: count // 2 * 2].reshape(-1, 2).sum(axis=1) / covariances[0]
    ends = np.flatnonzero(paired <= 0.0)
    inflation = 2.0 * float(paired[: ends[0] if len(ends) else len(paired)].sum()) - 1.0
    return float(min(max(count / max(inflation, 1.0), 1.0), count))
