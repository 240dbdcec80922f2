"""One point of an experiment on real agents: what they compute is the experiment's `execution.compute`."""

from __future__ import annotations

from crosswind.experiment import FarmPoint
from crosswind.run.bounds import complete
from crosswind.run.columns import traced
from crosswind.run.local import Work, run_farm
from crosswind.run.results import Run


def run_locally(point: FarmPoint, trace: bool) -> Run:
    """Run one point on this machine, one process per node of its platform."""
    work = Work(point.description["execution"]["compute"])
    found, columns = run_farm(point.platform, point.description, work, trace=trace)
    summary = complete(found, point)
    return Run(summary, traced(columns, summary, point, "local") if columns is not None else None)
