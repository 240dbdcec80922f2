"""Runs whose tasks arrive over time: how long tasks were there, from their arrival to their end."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

from crosswind.cli.answer import Answer, Section
from crosswind.cli.console import number_of
from crosswind.cli.run_tables import paths_of, short_names, tables_of
from crosswind.run.results import shown_value
from crosswind.statistics.digits import half_of, plain, with_half
from crosswind.statistics.interval import span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crosswind.documents.shared import Flow, UserFlow
    from crosswind.run.results import Run, Runs

NOTE = "flow time: from a task's arrival to its end. slowdown: flow time over the time alone on the node fastest for it"


def has_flows(done: Runs[Any]) -> bool:
    """Whether every run has flow times."""
    return done.kind == "farm" and all(run.flow is not None for run in done)


def flow_answer(done: Runs[Run], most: int) -> Answer:
    """Return the flow times of runs that all have them, at most `most` rows."""
    points = sorted(done.by_point(), key=_mean)
    paths = paths_of(done)
    first, last = points[0], points[-1]
    line = f"A task took {_seconds(first)} s from its arrival to its end, {_slowdown(first)} times as long as alone."
    if len(points) > 1:
        ends = (f"{_seconds(point)} s ({_named(point, paths)})" for point in (first, last))
        line = f"Mean flow time {' to '.join(ends)}."
    lines = [line, *_late(points)]
    late = any(flow.get("late") is not None for point in points for flow in _flows(point))
    columns = [(name, "left") for name in short_names(paths)] or [("tasks", "right")]
    columns += [("flow s", "right"), ("95 % below", "right"), ("slowdown", "right")]
    columns += [("tasks late", "right")] if late else [("longest s", "right")]
    rows = [_row(point, paths, late) for point in points[:most]]
    tables = [Section(columns, rows)]
    notes = [NOTE]
    if len(points) == 1 and _flows(points[0])[0].get("users"):
        lines.append(_fairness(_flows(points[0])))
        tables.append(_users(_flows(points[0]), most))
        lines += _over_time(points[0])
        notes.append("Jain's index: 1 if all users have the same mean slowdown, 1 / users if one has all of it")
    return Answer(lines, tables, notes, tables_of(done, most), rest="Makespans")


def _fairness(flows: Sequence[Flow]) -> str:
    users = len(flows[0].get("users", []))
    index = fmean(float(flow.get("jain") or 0.0) for flow in flows)
    return f"Among {number_of(users, 'user')} Jain's index of the slowdowns is {index:.3f}."


def _over_time(point: Sequence[Run]) -> list[str]:
    """Return the sentence on fairness over time; of several seeds the mean, and the least fair window of all."""
    found = [one for run in point for one in run.fairness if one["of"] == "users"]
    if not found:
        return []
    mean, least = fmean(one["mean"] for one in found), min(one["least"] for one in found)
    window = plain(fmean(one["window_s"] for one in found))
    return [
        f"Over time, in windows of {window} s, the index of the work done for each is {mean:.3f}, at least {least:.3f}."
    ]


def _users(flows: Sequence[Flow], most: int) -> Section:
    """Return what each user's tasks had, the largest slowdown first; of several seeds the means."""
    columns = [("user", "left"), ("tasks", "right"), ("flow s", "right"), ("slowdown", "right"), ("done s", "right")]
    found: dict[str, list[UserFlow]] = {}
    for flow in flows:
        for user in flow.get("users", []):
            found.setdefault(user["name"], []).append(user)
    means = {
        name: [fmean(float(one[field]) for one in all_) for field in ("tasks", "mean_s", "mean_slowdown", "done_s")]
        for name, all_ in found.items()
    }
    worst = sorted(means, key=lambda name: -means[name][2])[:most]
    rows = [[name, f"{means[name][0]:,.0f}", *(plain(value) for value in means[name][1:])] for name in worst]
    return Section(columns, rows)


def _row(point: Sequence[Run], paths: list[str], late: bool) -> list[str]:
    flows = _flows(point)
    names = [shown_value(point[0].params.get(path, "")) for path in paths] or [f"{point[0].data['tasks']:,}"]
    last = fmean(int(flow.get("late") or 0) for flow in flows) if late else max(flow["most_s"] for flow in flows)
    return [
        *names,
        _seconds(point),
        plain(fmean(flow["p95_s"] for flow in flows)),
        _slowdown(point),
        plain(last),
    ]


def _flows(point: Sequence[Run]) -> list[Flow]:
    return [run.flow for run in point if run.flow is not None]


def _mean(point: Sequence[Run]) -> float:
    return fmean(flow["mean_s"] for flow in _flows(point))


def _seconds(point: Sequence[Run]) -> str:
    means = [flow["mean_s"] for flow in _flows(point)]
    if len(means) == 1:
        return plain(means[0])
    mean, *ends = span(means)
    return with_half(mean, half_of(mean, ends))


def _slowdown(point: Sequence[Run]) -> str:
    return plain(fmean(flow["mean_slowdown"] for flow in _flows(point)))


def _named(point: Sequence[Run], paths: list[str]) -> str:
    values = [shown_value(point[0].params.get(path, "")) for path in paths]
    return ", ".join(f"{name} {value}" for name, value in zip(short_names(paths), values, strict=True))


def _late(points: Sequence[Sequence[Run]]) -> list[str]:
    """Return the sentence on deadlines, of one point alone."""
    flows = _flows(points[0])
    late = [flow["late"] for flow in flows if flow.get("late") is not None]
    if len(points) > 1 or not late:
        return []
    worst = max(float(flow.get("most_tardiness_s") or 0.0) for flow in flows)
    if not any(late):
        return ["Every task with a deadline was done in time."]
    mean = fmean(int(one or 0) for one in late)
    tasks = number_of(int(mean), "task") if len(late) == 1 else f"In the mean of the runs {plain(mean)} tasks"
    return [f"{tasks} ended after the deadline, by at most {plain(worst)} s."]
