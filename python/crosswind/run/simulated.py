"""One point of an experiment in virtual time."""

from __future__ import annotations

import json
from typing import Any

from crosswind import _core
from crosswind.experiment import Point
from crosswind.run.columns import activities
from crosswind.run.results import Run
from crosswind.run.trace import SCHEMA_VERSION, Trace


def simulate(point: Point, trace: bool) -> Run:
    """Simulate one point; the interpreter is free meanwhile, so that threads simulate side by side."""
    text, columns = _core.simulate(point.platform._checked, point.json, tasks_csv=point.tasks_csv, trace=trace)
    summary: dict[str, Any] = {"params": point.params, **json.loads(text)}
    if columns is None:
        return Run(summary)
    header = {
        "schema_version": SCHEMA_VERSION,
        "experiment": point.description["name"],
        "on": "sim",
        "platform": point.platform.to_dict(),
        "run": summary,
    }
    return Run(summary, Trace(activities(columns, point.platform), header))
