"""What tests of the study of interference-aware-scheduling grade: runs in which the six algorithms rank as claimed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from crosswind import Run, Runs
from crosswind.lab.papers.interference_aware_scheduling import fork_claims
from crosswind.lab.papers.interference_aware_scheduling.calibration import QUICK
from crosswind.lab.papers.interference_aware_scheduling.figures import all_figures
from crosswind.lab.papers.interference_aware_scheduling.rows import Rows

FEW = replace(QUICK, shares=(1.0, 0.9), aheads=())
"""The quick form with fewer readings."""
EXCEPTION = (10, 1)


def as_claimed(**changes: Any) -> Rows:
    """Return runs in which the six rank as the text says, but for changes: (application, algorithm) -> time."""
    times = {"IA:Multi": 0.5, "IA:Single": 0.6, "BWC": 0.61, "CompRate": 0.7, "FCFS": 0.8, "RootComputes": 1.0}
    runs = {}
    for figure in all_figures(FEW):
        found = []
        for params, _ in figure.settings:
            application, algorithm = (params["size_mb"], params["work"]), params["algorithm"]
            time = 1.0 if algorithm == "planned" else times[algorithm]
            if algorithm == "BWC" and application[1] <= 3:
                time = 0.62
            if application == EXCEPTION:
                time = 1.0 if algorithm == "RootComputes" else 1.0 + time
            if figure.id == "slow-sends" and application in fork_claims.BEHIND:
                time = 0.9
            time = changes.get("times", {}).get((application, algorithm, figure.id), time)
            data = {
                "params": params,
                "seed": 1,
                "makespan_s": time,
                "throughput_tasks_per_s": 1,
                "bound_tasks_per_s": 1,
            }
            found.append(Run(data))
        runs[figure.id] = Runs(figure.id, "sim", found, "", "farm")
    return Rows(runs, FEW)
