"""A run beside what no schedule could beat: the bound, and what the root alone would do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crosswind import _core
from crosswind.errors import warning
from crosswind.experiment import FarmPoint
from crosswind.run.seen import stale_warnings


def complete(summary: Mapping[str, Any], point: FarmPoint) -> dict[str, Any]:
    """Return a run's summary with what the sweep set and the bounds that go with it.

    For tasks that differ the bound is that of as many tasks of mean size and work, and a warning says so: a schedule
    that gives large works to fast children can pass it.
    """
    whole = {**summary, "params": point.params}
    if whole.get("bound_tasks_per_s") is None:
        _, size_mb, work = _core.mean_task(point.json, point.tasks_csv)
        ports = point.description["policy"]["ports"]
        bound, alone = _core.bounds(point.platform._checked, size_mb, work, ports)
        whole |= {"bound_tasks_per_s": bound, "root_only_tasks_per_s": alone}
    warnings = list(whole.get("warnings", []))
    if _differ(point.description["workload"]):
        message = "tasks differ: the bound is that of tasks of mean size and mean work"
        hint = "a schedule that suits each task to its node may pass it; compare orders with each other instead"
        warnings.append(warning("bound-of-mean-tasks", message, hint))
    if any("leaves" not in change and "joins" not in change for change in point.description.get("change", [])):
        message = "the platform changes in this run: the bound is that of the platform as it begins"
        warnings.append(warning("bound-before-changes", message, "compare with the same run without changes"))
    if joined := _joined(whole, point):
        message = f"{', '.join(joined)} joined in this run: the bound is that of the platform, which has no such node"
        warnings.append(
            warning("bound-before-changes", message, "a platform with all hosts has a bound for all of them")
        )
    warnings += stale_warnings(whole["nodes"])
    return {**whole, "warnings": warnings}


def _joined(summary: Mapping[str, Any], point: FarmPoint) -> list[str]:
    """Return the nodes that joined and that the platform does not have."""
    names = {event["node"] for event in summary.get("events", []) if event["code"] == "agent-joined"}
    return sorted(names - {node["name"] for node in point.platform.nodes}) if names else []


def _differ(workload: Mapping[str, Any]) -> bool:
    return any(not isinstance(workload.get(field), (int, float)) for field in ("task_size_mb", "task_work"))
