"""A run beside the upper bound of its platform, and beside the root alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from crosswind import _core
from crosswind.documents.shared import Run
from crosswind.experiment import FarmPoint
from crosswind.run.drift import stale_warnings


def complete(summary: Mapping[str, Any], point: FarmPoint) -> Run:
    """Return a live run's summary with what the sweep set and the bounds that go with it.

    For tasks that differ the bound is that of as many tasks of mean size and work, and a warning says so: a schedule
    that gives large works to fast children can pass it.
    """
    found = {name: value for name, value in summary.items() if name != "done_s"}
    done_s = list(summary.get("done_s", ()))
    run = _core.complete_farm(point.platform._checked, point.json, json.dumps(found), point.tasks_csv, done_s)
    return judged(json.loads(run), point)


def judged(whole: Run, point: FarmPoint) -> Run:
    """Return a run with what the sweep set, and the warning that its platform's file is stale, where it is.

    A simulation runs on exactly what the file says, unless the experiment changes it in mid-run.
    """
    changes = point.description.get("change") or point.description.get("failure")
    as_described = whole.get("compute") == "simulated" and not changes
    stale = [] if as_described else stale_warnings(whole["nodes"])
    return {**whole, "params": point.params, "warnings": [*whole["warnings"], *stale]}
