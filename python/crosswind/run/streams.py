"""One point of an experiment of kind streams in virtual time, and the closed forms of any such point."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from crosswind import _core
from crosswind.experiment import StreamsPoint
from crosswind.run.results import StreamsRun
from crosswind.run.side_by_side import Columns, Simulator


def simulator() -> Simulator:
    """Return how streams are simulated."""
    return Simulator(simulate_streams, _put, run_of)


def simulate_streams(point: StreamsPoint) -> StreamsRun:
    """Simulate one point: T1, T2, T3; the interpreter is free meanwhile.

    Raises
    ------
    InfeasibleError
        When nothing moves any more, as with the credits as printed (`policy.literal`).
    DescriptionError
        When a job cannot run on its hosts.
    """
    return run_of(point, _core.simulate_streams(point.json))


def _put(pool: _core.Simulations, point: StreamsPoint) -> None:
    pool.streams(point.number, point.json)


def run_of(point: StreamsPoint, text: str, _: Columns = None) -> StreamsRun:
    """Return the run of a point that was simulated: its entry of `runs.json` as JSON."""
    return StreamsRun(json.loads(text) | {"params": point.params})


def complete(summary: Mapping[str, Any], point: StreamsPoint) -> StreamsRun:
    """Return a real run with what the sweep set and the closed forms that go with it.

    Beside the kernel's queues stands what the simulator predicts.
    """
    whole = json.loads(_core.complete_streams(point.json, json.dumps(summary)))
    if json.loads(point.json).get("policy", {}).get("filter") == "kernel":
        from crosswind.run.namespaces import beside

        whole["bounds"] |= beside(json.loads(_core.simulate_streams(point.json)))
    return StreamsRun(whole | {"params": point.params})
