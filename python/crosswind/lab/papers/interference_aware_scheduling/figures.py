"""The runs that figure 5 and its explanation need: farms on the fork graph of table 4."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from crosswind import Experiment, Point
from crosswind.lab.engine import build_digest
from crosswind.lab.papers.interference_aware_scheduling.calibration import SIZES_MB, TASKS, WORKS, Calibration, Reading

ALGORITHMS = {
    "IA:Multi": ("multi", "interference-rate"),
    "IA:Single": ("single", "interference-rate"),
    "FCFS": ("single", "arrival"),
    "CompRate": ("single", "compute"),
    "BWC": ("single", "bandwidth"),
    "RootComputes": ("single", "root-only"),
}
"""The six of section 4.1 -> ports, order of service."""
PLANNED = "planned"
"""The exact plan's rates, one send at a time: no algorithm of the paper, but what section 3.2 says can be reached."""
APPLICATIONS = [(size, work) for size in SIZES_MB for work in WORKS]

SLOW_NODE, SLOW_S = "Lab3", 2.0
"""The send time of a task of 2 MB to Lab3 in the runs of BWC, which made it fall behind CompRate (section 4.3)."""


@dataclass(frozen=True)
class Figure:
    """A figure's runs.

    Attributes
    ----------
    id, title : str
        Such as figure-5.
    settings : list of (dict, dict)
        What each point sets, and its experiment.
    """

    id: str
    title: str
    settings: list[tuple[dict[str, Any], dict[str, Any]]]


class FarmGrid:
    """The points of a figure, as `crosswind.Grid`."""

    kind = "farm"

    def __init__(self, figure: Figure) -> None:
        self.name = f"{figure.id}: {figure.title}"
        self._settings = figure.settings

    def __len__(self) -> int:
        """How many runs."""
        return len(self._settings)

    def points(self) -> Iterator[Point]:
        """Yield every run."""
        for number, (params, description) in enumerate(self._settings):
            yield replace(Experiment.from_dict(description).point(0), number=number, params=dict(params))

    def digest(self, on: str) -> str:
        """Return what identifies these runs, the build included."""
        parts = {"on": on, "settings": self._settings, "build": build_digest()}
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def all_figures(chosen: Calibration) -> list[Figure]:
    """Return every figure, in the order in which they are run."""
    return [_figure_5(chosen), _slow_sends(chosen)]


def params(reading: Reading, application: tuple[int, int], algorithm: str) -> dict[str, Any]:
    """Return what a point sets."""
    size_mb, work = application
    return {
        "row": reading.row,
        "share": reading.share,
        "size_mb": size_mb,
        "work": work,
        "algorithm": algorithm,
    }


def _figure_5(chosen: Calibration) -> Figure:
    tried = {**ALGORITHMS, PLANNED: ("single", "planned")}
    settings = [
        (params(reading, application, algorithm), _experiment(reading, application, way, chosen))
        for reading in chosen.readings
        for application in APPLICATIONS
        for algorithm, way in tried.items()
    ]
    return Figure("figure-5", "six algorithms at 18 applications", settings)


def _slow_sends(chosen: Calibration) -> Figure:
    """BWC at 2 MB where a send to Lab3 takes 2,000 ms; the order of service stays that of table 4."""
    settings = []
    for reading in chosen.readings:
        for application in APPLICATIONS:
            if application[0] == SIZES_MB[0]:
                rate = SIZES_MB[0] / SLOW_S
                reached = next(
                    n.get("one_sender_share", 1.0) for n in reading.platform["node"] if n["name"] == SLOW_NODE
                )
                change = {"at_s": 0.0, "node": SLOW_NODE, "receive_limit_mb_per_s": rate / reached}
                whole = _experiment(reading, application, ALGORITHMS["BWC"], chosen)
                settings.append((params(reading, application, "BWC"), {**whole, "change": [change]}))
    return Figure("slow-sends", f"BWC, sends to {SLOW_NODE} take {SLOW_S:g} s", settings)


def _experiment(
    reading: Reading, application: tuple[int, int], way: tuple[str, str], chosen: Calibration
) -> dict[str, Any]:
    (size_mb, work), (ports, order) = application, way
    return {
        "schema_version": 1,
        "name": f"{size_mb} MB, {work} diagonals",
        "platform": reading.platform,
        "workload": {"kind": "farm", "tasks": TASKS, "task_size_mb": size_mb, "task_work": work},
        "policy": {"order": order, "ports": ports, "buffer_tasks": chosen.buffer_tasks, "level_end": False},
    }
