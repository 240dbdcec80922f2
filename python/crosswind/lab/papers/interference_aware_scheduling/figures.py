"""The runs that figure 5 and its explanation need: farms on the fork graph of table 4."""

from __future__ import annotations

from crosswind.documents import Document
from crosswind.lab.papers.figure import Figure
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


def all_figures(chosen: Calibration) -> list[Figure]:
    """Return every figure, in the order in which they are run."""
    return [_figure_5(chosen), _slow_sends(chosen)]


def params(reading: Reading, application: tuple[int, int], algorithm: str) -> Document:
    """Return what a point sets."""
    size_mb, work = application
    return {
        "row": reading.row,
        "share": reading.share,
        "ahead": reading.ahead,
        "size_mb": size_mb,
        "work": work,
        "algorithm": algorithm,
    }


def _figure_5(chosen: Calibration) -> Figure:
    tried = {**ALGORITHMS, PLANNED: ("single", "planned")}
    settings = [
        (params(reading, application, algorithm), _experiment(reading, application, way))
        for reading in chosen.readings
        for application in APPLICATIONS
        for algorithm, way in tried.items()
    ]
    return Figure("figure-5", "six algorithms at 18 applications", settings, "farm")


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
                whole = _experiment(reading, application, ALGORITHMS["BWC"])
                settings.append((params(reading, application, "BWC"), {**whole, "change": [change]}))
    return Figure("slow-sends", f"BWC, sends to {SLOW_NODE} take {SLOW_S:g} s", settings, "farm")


def _experiment(reading: Reading, application: tuple[int, int], way: tuple[str, str]) -> Document:
    (size_mb, work), (ports, order) = application, way
    return {
        "schema_version": 1,
        "name": f"{size_mb} MB, {work} diagonals",
        "platform": reading.platform,
        "workload": {"kind": "farm", "tasks": TASKS, "task_size_mb": size_mb, "task_work": work},
        "policy": {"order": order, "ports": ports, "buffer_tasks": reading.ahead, "level_end": False},
    }
