"""Points simulated at a time, by threads that hold no Python: here a point is made, and its run read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from crosswind import _core
from crosswind.experiment import Point
from crosswind.run.results import AnyRun

Perform = Callable[[Any], AnyRun]
Columns = dict[str, bytes] | None

_AHEAD = 4  # points that a thread finds waiting, at most, while Python makes others


@dataclass(frozen=True)
class Simulator:
    """How the points of one kind of experiment are simulated."""

    simulate: Perform
    """One point, on the calling thread."""
    put: Callable[[_core.Simulations, Any], None]
    """One point, on whichever thread is free."""
    run_of: Callable[[Any, str, Columns], AnyRun]
    """The run of a point: its entry of `runs.json` as JSON, and the columns of its trace."""


def simulated(points: Iterator[Point], simulator: Simulator, threads: int) -> Iterator[tuple[Point, AnyRun]]:
    """Yield each point with its run as it is done, `threads` at a time; those under way end when the caller stops.

    Raises
    ------
    CrosswindError
        The first error of a point. What was yielded before is the caller's to keep.
    """
    pool = _core.Simulations(threads)
    waiting: dict[int, Point] = {}
    try:
        while True:
            while len(waiting) < (1 + _AHEAD) * threads and (point := next(points, None)) is not None:
                waiting[point.number] = point
                simulator.put(pool, point)
            if not waiting or (done := pool.next()) is None:
                return
            number, text, columns = done
            point = waiting.pop(number)
            yield point, simulator.run_of(point, text, columns)
    finally:
        pool.close()
