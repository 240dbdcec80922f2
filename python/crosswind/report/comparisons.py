"""Runs sorted for comparison: which differ only in the order of service, and which were both predicted and run."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from statistics import fmean
from typing import Any

from crosswind.documents import Row
from crosswind.report.words import plain
from crosswind.run.fastest import Fastest, fastest
from crosswind.run.results import Run, Runs, mean_of_bound
from crosswind.statistics.interval import span

SERIES = "policy.order"
LIVE = ("local", "dask", "hosts")
"""Where real agents run."""
APART = ("platform", "policy.ports", "execution.compute", "execution.time_scale")
"""What makes another figure rather than another place in one."""
TOLD_BY_RUN = {"policy.order": "order", "policy.ports": "ports"}
"""Paths whose value every run records itself, swept or not."""
ALIKE = 0.05
"""Bounds further apart than this are of other tasks, or of another platform."""
UNITS = {"task_size_mb": "MB", "result_size_mb": "MB result", "task_work": "work", "tasks": "tasks", "seed": "seed"}


@dataclass
class Group:
    """Runs of one figure: alike but for the order and the application.

    Attributes
    ----------
    number : int
        Place among the groups of an experiment.
    on, name, title : str
        Where they ran; what they have in common; what an application is.
    relative : bool
        Whether makespans are parts of what the root alone needs.
    rows : list of dict
        `application`, `series`, `middle`, `low`, `high` (95 % interval of the mean over repetitions), `bound`,
        `of_bound`, one per application and order.
    points : list of str
        What each row is a run of, as in `Pair.point`.
    fastest : list of Fastest
        The fastest orders of each application.
    repetitions : int
        Most runs of a row.
    """

    number: int
    on: str
    name: str
    title: str
    relative: bool
    rows: list[Row] = field(default_factory=list)
    points: list[str] = field(default_factory=list)
    fastest: list[Fastest] = field(default_factory=list)
    repetitions: int = 1

    @property
    def applications(self) -> list[str]:
        """What was run, in the order of the grid."""
        return list(dict.fromkeys(row["application"] for row in self.rows))

    @property
    def series(self) -> list[str]:
        """The orders, in the order of the grid."""
        return list(dict.fromkeys(row["series"] for row in self.rows))


@dataclass(frozen=True)
class Pair:
    """A point that was both predicted and run; makespans in seconds of the platform, means over repetitions.

    `planned_s` is the least that the plan's bound permits, `of_bound` the part of the bound that the run reaches; None
    where the work of the tasks is not known.
    """

    point: str
    on: str
    name: str
    planned_s: float | None
    predicted_s: float
    run_s: float
    compute: str
    of_bound: float | None = None

    @property
    def difference(self) -> float:
        """By how much the run took longer, as a part of what was predicted."""
        return self.run_s / self.predicted_s - 1.0


def groups_of(runs: Runs[Run]) -> list[Group]:
    """Return the runs in groups that differ only in order and application."""
    paths = list(dict.fromkeys(path for run in runs for path in run.params))
    apart = [path for path in paths if path in APART]
    inside = [path for path in paths if path not in APART and path not in (SERIES, "seed")]
    relative = all(run.of_root_only is not None for run in runs)
    title = " / ".join(UNITS.get(path.split(".")[-1], path.split(".")[-1]) for path in inside) or "application"
    groups = []
    for number, (key, grouped) in enumerate(_gathered(runs, apart).items(), 1):
        group = Group(number, runs.on, key, title, relative)
        for application, alike in _gathered(grouped, inside, names=False).items():
            by_order = _by_order(alike)
            for series, repeated in by_order.items():
                group.rows.append(_row(application or "all", series, repeated, relative))
                group.points.append(_point(repeated[0]))
                group.repetitions = max(group.repetitions, len(repeated))
            group.fastest.append(fastest(by_order, exact=runs.on == "sim"))
        groups.append(group)
    return groups


def pairs_of(several: Sequence[Runs[Run]]) -> list[Pair]:
    """Return the points that stand both in runs on sim and in runs for real, once for each place where they ran."""
    predicted = _means(several, "sim")
    places = [on for on in LIVE if any(runs.on == on for runs in several)]
    pairs = []
    for on in places:
        for point, (alike, seconds) in _means(several, on).items():
            run = alike[0]
            if point in predicted and _alike(predicted[point][0][0], run):
                own = {path: value for path, value in run.params.items() if not path.startswith("execution.")}
                name = ", ".join(shown_param(path, value) for path, value in own.items()) or str(run.data["order"])
                name += f", {on}" if len(places) > 1 else ""
                compute, planned = str(run.data["compute"]), _planned_s(predicted[point][0][0])
                pairs.append(
                    Pair(point, on, name, planned, predicted[point][1], seconds, compute, mean_of_bound(alike))
                )
    return pairs


def shown_param(path: str, value: Any) -> str:
    """Return a swept value with its name, as short as possible.

    Examples
    --------
    >>> shown_param("policy.order", "planned"), shown_param("workload.task_size_mb", 2.0), shown_param("seed", 7)
    ('planned', '2 MB', 'seed 7')
    """
    word = path.rsplit(".", maxsplit=1)[-1]
    if word == "platform":
        return PurePath(value).stem.replace("_", " ") if isinstance(value, str) else str(value.get("name", "platform"))
    if isinstance(value, str):
        return f"{value} {word}" if word == "ports" else value
    if word == "seed":
        return f"seed {value}"
    return f"{shown_value(value)} {UNITS.get(word, word)}"


def shown_value(value: Any) -> str:
    """Return a swept value as it stands on an axis.

    Examples
    --------
    >>> shown_value(5.0), shown_value({"distribution": "uniform", "low": 1, "high": 2})
    ('5', 'uniform 1 2')
    """
    if isinstance(value, Mapping):
        return " ".join(shown_value(item) for item in value.values())
    return plain(float(value)) if isinstance(value, (int, float)) else str(value)


def _gathered(runs: Iterable[Run], paths: Sequence[str], names: bool = True) -> dict[str, list[Run]]:
    gathered: dict[str, list[Run]] = {}
    for run in runs:
        if names:
            key = ", ".join(shown_param(path, run.params[path]) for path in paths if path in run.params)
        else:
            key = "/".join(shown_value(run.params[path]) for path in paths if path in run.params)
        gathered.setdefault(key, []).append(run)
    return gathered


def _by_order(runs: Iterable[Run]) -> dict[str, list[Run]]:
    gathered: dict[str, list[Run]] = {}
    for run in runs:
        gathered.setdefault(str(run.data["order"]), []).append(run)
    return gathered


def _row(application: str, series: str, runs: Sequence[Run], relative: bool) -> Row:
    values = [float(run.of_root_only or 0.0) if relative else run.makespan_s for run in runs]
    bounds = [run.bound_of_root_only if relative else _planned_s(run) for run in runs]
    known = [bound for bound in bounds if bound is not None]
    middle, low, high = span(values)
    return {
        "application": application,
        "series": series,
        "middle": middle,
        "low": low,
        "high": high,
        "bound": fmean(known) if known else None,
        "of_bound": mean_of_bound(runs),
    }


def _planned_s(run: Run) -> float | None:
    """Return the least makespan that the bound permits, s."""
    return run.data["tasks"] / run.bound_tasks_per_s if run.bound_tasks_per_s else None


def _means(several: Sequence[Runs[Run]], on: str) -> dict[str, tuple[list[Run], float]]:
    gathered: dict[str, list[Run]] = {}
    for runs in several:
        for run in runs if runs.on == on else []:
            gathered.setdefault(_point(run), []).append(run)
    return {point: (alike, fmean(run.makespan_s for run in alike)) for point, alike in gathered.items()}


def _alike(predicted: Run, run: Run) -> bool:
    """Whether two runs of a point had about the same work to do: a value that was set is in no file of runs.

    The bound shows it: it follows from platform and tasks, and differs little between draws of random tasks.
    """
    one, other = predicted.bound_tasks_per_s, run.bound_tasks_per_s
    return one is None or other is None or math.isclose(one, other, rel_tol=ALIKE)


def _point(run: Run) -> str:
    """Return what was run, whether it was swept or set: runs of one point differ in place and seed alone."""
    swept = {path: value for path, value in run.params.items() if not path.startswith("execution.") and path != "seed"}
    data: Mapping[str, Any] = run.data
    told = {path: data[name] for path, name in TOLD_BY_RUN.items()}
    return json.dumps({**swept, **told, "tasks": data["tasks"]}, sort_keys=True)
