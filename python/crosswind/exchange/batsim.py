"""Workloads of Batsim: JSON with `jobs`, and the `profiles` that say what they do.

<https://batsim.readthedocs.io/en/latest/input-workload.html>
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from crosswind.errors import DescriptionError
from crosswind.exchange.workloads import Job
from crosswind.files.reading import parse_json

_OPERATIONS = 1e9
"""Floating-point operations of a work unit, as in platforms of SimGrid: 1 Gflop/s is 1 work unit/s."""
_OLD = {"msg_par": "parallel", "msg_par_hg": "parallel_homogeneous", "msg_par_hg_tot": "parallel_homogeneous_total"}
"""Types of profiles as Batsim called them before version 4."""


def jobs(file: str, content: bytes, work_per_s: float) -> Iterator[Job | str]:
    """Yield each job of a file, or why it is none.

    Raises
    ------
    DescriptionError
        When the file is no JSON with `jobs` and `profiles`, or a job is not as Batsim reads it.
    """
    try:
        document = parse_json(content)
    except ValueError as error:
        raise DescriptionError(f"{file}: no JSON: {error}", "syntax") from None
    profiles = document.get("profiles") if isinstance(document, dict) else None
    listed = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(profiles, dict) or not isinstance(listed, list):
        hint = "a workload of Batsim is an object with both"
        raise DescriptionError(f"{file}: no list `jobs`, or no table `profiles`", "syntax", hint)
    for place, job in enumerate(listed):
        where = f"{file}: jobs[{place}]"
        if not isinstance(job, dict):
            raise DescriptionError(f"{where} is no object", "syntax")
        submit, processors = _number(job, "subtime", where), _number(job, "res", where)
        if submit < 0 or processors < 1 or processors != int(processors):
            raise DescriptionError(f"{where}: subtime must be at least 0, res a whole number from 1", "syntax")
        name = job.get("profile")
        profile = profiles.get(name) if isinstance(name, str) else None
        if not isinstance(profile, dict):
            raise DescriptionError(f"{where}.profile is {name!r}, which is none of the profiles", "syntax")
        work = _work(profile, int(processors), work_per_s, f"{file}: profiles.{name}")
        yield work if isinstance(work, str) else Job(submit, work, int(processors))


def _work(profile: Mapping[str, Any], processors: int, work_per_s: float, where: str) -> float | str:
    """Return the work of a job on each of its processors, or why it is none that a farm has."""
    kind = profile.get("type")
    kind = _OLD.get(kind, kind) if isinstance(kind, str) else kind
    if kind == "delay":
        work = work_per_s * _number(profile, "delay", where)
    elif kind == "parallel_homogeneous":
        work = _number(profile, "cpu", where) / _OPERATIONS
    elif kind == "parallel_homogeneous_total":
        work = _number(profile, "cpu", where) / _OPERATIONS / processors
    elif kind == "parallel" and processors == 1:
        cpu = profile.get("cpu")
        if not isinstance(cpu, list) or len(cpu) != 1:
            raise DescriptionError(f"{where}.cpu must be a list of one number for a job of one processor", "syntax")
        work = _number({"cpu": cpu[0]}, "cpu", where) / _OPERATIONS
    else:
        return "several processors" if kind == "parallel" else f"a profile of type {kind}"
    if processors > 1 and "com" in profile and _number(profile, "com", where) > 0:
        return "processors that exchange messages"
    return work if work > 0 else "nothing to compute"


def _number(table: Mapping[str, Any], field: str, where: str) -> float:
    value = table.get(field)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    raise DescriptionError(f"{where}.{field} is {value!r}; it must be a number", "syntax")
