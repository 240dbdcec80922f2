"""One point of an experiment in virtual time."""

from __future__ import annotations

import json

from crosswind import _core
from crosswind.experiment import FarmPoint
from crosswind.run.bounds import judged
from crosswind.run.results import Run


def simulate(point: FarmPoint, trace: bool) -> Run:
    """Simulate one point; the interpreter is free meanwhile, so that threads simulate side by side."""
    text, columns = _core.simulate(point.platform._checked, point.json, tasks_csv=point.tasks_csv, trace=trace)
    summary = judged(json.loads(text), point)
    if columns is None:
        return Run(summary)
    from crosswind.run.columns import traced  # numpy and pyarrow take longer to import than many a sweep takes

    return Run(summary, traced(columns, summary, point, "sim"))
