"""One point of an experiment on real agents: what they compute is the experiment's `execution.compute`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from crosswind.experiment import FarmPoint
from crosswind.run.agents import Launch, Limits, Work, run_farm
from crosswind.run.bounds import complete
from crosswind.run.deployment import Deployment
from crosswind.run.results import Run

if TYPE_CHECKING:
    from crosswind.watch import Watch


def run_on_agents(point: FarmPoint, trace: bool, deployment: Deployment, watch: Watch | None = None) -> Run:
    """Run one point on the agents of a deployment, one per node of the point's platform; `watch` gets its events."""
    execution = point.description["execution"]
    if isinstance(deployment, Launch) and execution["compute"] == "emulated":
        deployment = replace(deployment, shares=True)
    found, columns = run_farm(
        point.platform,
        point.description,
        Work(execution["compute"]),
        launch=deployment,
        limits=Limits(retries=execution.get("task_retries", 0), task_timeout_s=execution.get("task_timeout_s")),
        trace=trace,
        watch=watch,
    )
    summary = complete(found, point)
    if columns is None:
        return Run(summary)
    from crosswind.run.columns import traced  # numpy and pyarrow take longer to import than many a sweep takes

    return Run(summary, traced(columns, summary, point, deployment.on))
