"""Points of a grid, run by the workers of a Dask cluster, several to a task. What they give is what they give here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import cloudpickle

from crosswind.cluster.client import fitting
from crosswind.errors import AgentLost
from crosswind.experiment import Point
from crosswind.run.results import AnyRun

if TYPE_CHECKING:
    from distributed import Client, Future

_AHEAD = 2  # tasks under way per thread of the cluster: the next waits there when one is done
_TASK_S = 0.25  # what a task should take: Dask needs a millisecond or more for each, a small simulation less than one
_MOST_IN_A_TASK = 1000


class Performed(NamedTuple):
    """The results of the points of a task."""

    runs: list[AnyRun]
    """Of the first points: all of them, or those before the error."""
    error: BaseException | None
    seconds: float
    """What they took, on one thread."""


def spread(client: Client, points: Iterator[Point], perform: Callable[[Any], AnyRun]) -> Iterator[tuple[Point, AnyRun]]:
    """Yield each point with its run as it is done; those under way are cancelled when the caller stops.

    Raises
    ------
    DescriptionError
        When a worker does not fit to this process.
    AgentLost
        When the cluster goes away. What was yielded before is the caller's to keep.
    """
    from distributed import as_completed
    from distributed.scheduler import KilledWorker

    workers = fitting(client).fit
    most = _AHEAD * sum(int(worker["nthreads"]) for worker in workers.values())
    open_: dict[Future, list[Point]] = {}
    done = as_completed(loop=client.loop)
    size = 1

    def performed(packed: bytes) -> Performed:  # travels by value: the scheduler need not have Crosswind
        import pickle

        from crosswind.run.spread import perform_all

        return perform_all(*pickle.loads(packed))

    def begin() -> None:
        while len(open_) < most and (batch := list(islice(points, size))):
            future = client.submit(performed, cloudpickle.dumps((perform, batch)), pure=False)
            open_[future] = batch
            done.add(future)

    try:
        begin()
        for future in done:
            batch = open_.pop(future)
            try:
                found = future.result()
            except KilledWorker as error:
                raise AgentLost(f"the workers of the Dask cluster died of a simulation: {error}", "cluster") from None
            future.release()
            yield from zip(batch, found.runs, strict=False)
            if found.error is not None:
                raise found.error
            size = fitting_size(len(batch), found.seconds)
            begin()
    finally:
        client.cancel(list(open_))


def perform_all(perform: Callable[[Any], AnyRun], points: Sequence[Point]) -> Performed:
    """Run points one after the other, up to the first that fails. Runs on a worker."""
    begun, runs = time.perf_counter(), []
    error: BaseException | None = None
    try:
        for point in points:
            runs.append(perform(point))
    except Exception as raised:  # raised where the points come from, once the runs before it are kept
        error = raised
    return Performed(runs, error, time.perf_counter() - begun)


def fitting_size(points: int, seconds: float) -> int:
    """Return how many points the next task should have, from the points and the duration of the last one.

    Examples
    --------
    >>> fitting_size(1, 10.0), fitting_size(1, 0.001), fitting_size(100, 0.0)
    (1, 250, 1000)
    """
    return max(1, min(_MOST_IN_A_TASK, int(_TASK_S * points / max(seconds, 1e-9))))
