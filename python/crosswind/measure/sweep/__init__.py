"""Sweeps: the same measurement again and again with one argument varied, into a directory that can be taken up again.

A directory holds `sweep.json` and one `ARGUMENT-VALUE.parquet` per value that is complete.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from crosswind.documents import Arguments
from crosswind.errors import AgentLost, DescriptionError
from crosswind.host.description import describe
from crosswind.measure.sweep.index import NAME, Index, new_index
from crosswind.measure.sweep.kinds import KINDS, Value, kind_of, parse_values
from crosswind.measure.sweep.result import Sweep, complete
from crosswind.measurement import Measurement
from crosswind.terminal.progress import duration

__all__ = ["KINDS", "Sweep", "Value", "measure_sweep", "parse_values"]

Progress = Callable[[float, str], None]


def measure_sweep(
    kind: str,
    directory: str | Path,
    values: Sequence[Value] | None = None,
    *,
    resume: bool = True,
    force: bool = False,
    progress: Progress | None = None,
    measure: Callable[..., Measurement] | None = None,
    **measure_arguments: Any,
) -> Sweep:
    """Measure once for each value of one argument.

    The points are measured in an order shuffled by the seed, so that a drift of the machine does not look like an
    effect of the value. Each is written when it is complete; ctrl-C ends the sweep and keeps those that are. Called
    again, it measures what is missing; more values may be asked for then, other arguments not.

    Parameters
    ----------
    kind : str
        footprint (argument `matrix`, 8..4096 rows), message-size (`message_bytes`, 1,000..64,000,000 bytes), streams
        (`streams`, 1..64), wait (`wait`: event, poll), placement (`placement`: same-core, other-core, free) or runtime
        (`runtime`: java, python, go, node with options, or commands).
    directory : str or Path
        Made where it does not exist.
    values : sequence of int or str, optional
        What to measure; by default the kind's usual values, or those of the sweep that is taken up.
    resume : bool
        Keep complete points of the same sweep; otherwise they are measured again.
    force : bool
        Without `resume`: replace another sweep, or an index that cannot be read; else they are refused.
    progress : callable, optional
        Called with the fraction of the whole sweep (0 to 1) and what is being done, with the time left once a point is
        finished.
    measure : callable, optional
        Makes one measurement; `crosswind.measure.measure` by default.
    **measure_arguments
        Passed on to `measure`; the swept argument is overridden.

    Returns
    -------
    Sweep
        Its `complete` is false when it was interrupted.

    Raises
    ------
    DescriptionError
        For an unknown kind, a value that is not permitted, or a directory with another sweep, naming what differs.
    AgentLost
        When a peer went away; the points so far are kept.
    """
    what = kind_of(kind)
    if what.argument == "matrix" and measure_arguments.get("kernel", "diagonals") != "diagonals":
        hint = "leave --kernel out"
        raise DescriptionError("the footprint sweep varies the matrix, which only `diagonals` has", "sweep", hint)
    if what.argument == "matrix" and measure_arguments.get("task") is not None:
        raise DescriptionError("the footprint sweep varies the matrix, but a task of your own computes", "sweep")
    directory, probe = Path(directory), measure or _probe()
    asked = new_index(what, values, measure_arguments, describe(interfaces=()))
    with _alone_in(directory):
        if not resume:
            _forget(directory, asked, force)
        index = _taken_up(asked, directory, values is None) if (directory / NAME).exists() else asked
        index.save(directory)
        with suppress(KeyboardInterrupt):  # what is complete is on disk, and `Sweep.complete` shows it
            _measure_missing(index, directory, probe, measure_arguments, progress)
    return Sweep.load(directory)


def _probe() -> Callable[..., Measurement]:
    from crosswind.measure import measure

    return measure


def _forget(directory: Path, asked: Index, force: bool) -> None:
    """Remove a sweep's index and points, and nothing else; another sweep's only when forced."""
    if not (directory / NAME).exists():
        return
    try:
        there = Index.load(directory)
        if not force and _points_of(there, directory):
            there.taken_up_by(asked, directory)
        for file in _points_of(there, directory):
            file.unlink()
    except DescriptionError:
        if not force:
            raise
        # Without a readable index nothing says which points are its own.
    (directory / NAME).unlink()


def _points_of(index: Index, directory: Path) -> list[Path]:
    return [file for value in index.values if (file := index.file(directory, value)).exists()]


def _taken_up(asked: Index, directory: Path, usual: bool) -> Index:
    there = Index.load(directory)
    if not _points_of(there, directory):
        return asked  # nothing was measured with other arguments: they may have been what was wrong
    taken = there.taken_up_by(asked, directory)
    return there if usual else taken


def _measure_missing(
    index: Index,
    directory: Path,
    measure: Callable[..., Measurement],
    arguments: Arguments,
    progress: Progress | None,
) -> None:
    """Measure, in the index's order, every value whose file is not complete."""
    argument = kind_of(index.swept).argument
    there = {value: complete(index.file(directory, value)) for value in index.values}
    overall = _Overall(len(there), [found.header["elapsed_s"] for found in there.values() if found], progress)
    for value in (value for value, found in there.items() if found is None):
        point = f"{argument} {value}"
        overall.tell(0.0, point)
        start = time.monotonic()
        found = measure(
            **{**arguments, argument: value},
            progress=lambda fraction, message, at=point: overall.tell(fraction, f"{at}: {message}"),
        )
        if found.header["ended"] == "peer-lost":
            kept = f"{overall.done} of {len(there)} points are kept"
            raise AgentLost(
                f"the peer went away at {point}; {kept}", "peer-lost", "start it again, then the same command"
            )
        if found.partial:
            return
        found.save(index.file(directory, value))
        overall.finished(time.monotonic() - start)


class _Overall:
    """Progress over the whole sweep; the time left is that of the finished points, on average.

    How far the present point has come says little: it ends when it has settled.
    """

    def __init__(self, points: int, finished_s: list[float], progress: Progress | None) -> None:
        self._points = points
        self._finished_s = finished_s
        self._progress = progress

    @property
    def done(self) -> int:
        """Points that are complete."""
        return len(self._finished_s)

    def finished(self, seconds: float) -> None:
        """Count a point that took some time."""
        self._finished_s.append(seconds)

    def tell(self, fraction: float, message: str) -> None:
        """Tell how far the present point has come, 0..1, and what is being done."""
        if self._progress is None:
            return
        fraction = min(max(fraction, 0.0), 1.0)
        left = ""
        if self._finished_s:
            each_s = sum(self._finished_s) / self.done
            left = f", about {duration((self._points - self.done - fraction) * each_s)} left"
        self._progress(
            (self.done + fraction) / self._points, f"point {self.done + 1} of {self._points}{left}, {message}"
        )


@contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """Hold a directory for this sweep: two at once would overwrite and disturb each other.

    Raises
    ------
    DescriptionError
        When it is no directory that can be written to, or another sweep holds it.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        held = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise DescriptionError(
            f"{directory}: is no usable directory: {error.strerror}", "out", "name another"
        ) from None
    try:
        _lock(held, directory)
        yield
    finally:
        os.close(held)


def _lock(held: int, directory: Path) -> None:
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        hint = "wait for it, or name another directory"
        raise DescriptionError(f"{directory}: another sweep is being measured into it", "sweep-busy", hint) from None
