"""One point of a farm's experiment in virtual time."""

from __future__ import annotations

import json
from functools import partial

from crosswind import _core
from crosswind.experiment import FarmPoint
from crosswind.run.bounds import judged
from crosswind.run.results import Run
from crosswind.run.side_by_side import Columns, Simulator


def simulator(trace: bool) -> Simulator:
    """Return how farms are simulated, with or without a trace of each."""
    return Simulator(partial(simulate, trace=trace), partial(_put, trace=trace), run_of)


def simulate(point: FarmPoint, trace: bool) -> Run:
    """Simulate one point; the interpreter is free meanwhile."""
    platform, tasks = point.platform._checked, point.tasks_csv
    if point.policy is None:
        text, columns = _core.simulate(platform, point.json, tasks_csv=tasks, trace=trace)
    else:
        policy = point.policy.load()
        text, columns = _core.simulate_own(platform, point.json, policy, tasks_csv=tasks, trace=trace)
    return run_of(point, text, columns)


def _put(pool: _core.Simulations, point: FarmPoint, trace: bool) -> None:
    pool.farm(point.number, point.platform._checked, point.json, tasks_csv=point.tasks_csv, trace=trace)


def run_of(point: FarmPoint, text: str, columns: Columns) -> Run:
    """Return the run of a point that was simulated: its entry of `runs.json` as JSON, and the columns of its trace."""
    summary = judged(json.loads(text), point)
    if columns is None:
        return Run(summary)
    from crosswind.run.columns import traced  # numpy and pyarrow take longer to import than many a sweep takes

    return Run(summary, traced(columns, summary, point, "sim"))
