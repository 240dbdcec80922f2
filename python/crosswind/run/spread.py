"""Points of a grid, each run by some worker of a Dask cluster. What they give is what they give here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import cloudpickle

from crosswind.cluster.client import fitting
from crosswind.errors import AgentLost
from crosswind.experiment import Point
from crosswind.run.results import AnyRun

if TYPE_CHECKING:
    from distributed import Client, Future

_AHEAD = 2  # points under way per thread of the cluster: the next waits there when one is done


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

    workers = fitting(client)
    most = _AHEAD * sum(int(worker["nthreads"]) for worker in workers.values())
    open_: dict[Future, Point] = {}
    done = as_completed(loop=client.loop)

    def performed(packed: bytes) -> AnyRun:  # travels by value: the scheduler need not have Crosswind
        import pickle

        perform, point = pickle.loads(packed)
        run: AnyRun = perform(point)
        return run

    def begin() -> None:
        for point in points:
            future = client.submit(performed, cloudpickle.dumps((perform, point)), pure=False)
            open_[future] = point
            done.add(future)
            if len(open_) >= most:
                return

    try:
        begin()
        for future in done:
            point = open_.pop(future)
            try:
                run = future.result()
            except KilledWorker as error:
                raise AgentLost(f"the workers of the Dask cluster died of a simulation: {error}", "cluster") from None
            future.release()
            yield point, run
            begin()
    finally:
        client.cancel(list(open_))
