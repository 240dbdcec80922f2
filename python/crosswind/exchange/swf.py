"""The Standard Workload Format (version 2): one job a line, 18 numbers; -1 is a value that is not known.

<https://www.cs.huji.ac.il/labs/parallel/workload/swf.html>
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from crosswind.errors import DescriptionError
from crosswind.exchange.workloads import Job

_FIELDS = 18
_SUBMIT, _RUN, _ALLOCATED, _REQUESTED, _STATUS = 1, 3, 4, 7, 10
_PARTIAL = (2, 3, 4)
"""Statuses of a part of a job that was checkpointed or swapped out; the job has a line of its own."""
_NAMES = {_SUBMIT: "submit time", _RUN: "run time", _ALLOCATED: "processors", _REQUESTED: "requested processors"}
_NAMES |= {_STATUS: "status"}


def jobs(file: str, content: bytes, work_per_s: float) -> Iterator[Job | str]:
    """Yield each job of a file, or why it is none.

    Raises
    ------
    DescriptionError
        With the line: what is no number, or no line of 18 fields.
    """
    for number, raw in enumerate(content.split(b"\n"), 1):
        line = raw.strip()
        if not line or line.startswith(b";"):
            continue
        cells = line.split()
        if len(cells) != _FIELDS:
            what = f"{file}:{number}: the line has {len(cells)} fields"
            what += f"; a job of the Standard Workload Format has {_FIELDS}"
            raise DescriptionError(what, "syntax", "comments begin with ;")
        submit, run, allocated, requested, status = (_number(file, number, cells, at) for at in _NAMES)
        processors = allocated if allocated > 0 else requested
        if submit < 0:
            yield "no submit time"
        elif status in _PARTIAL:
            yield "part of a job that was interrupted"
        elif run <= 0:
            yield "no run time"
        elif processors < 1:
            yield "no number of processors"
        else:
            yield Job(submit, run * work_per_s, int(processors))


def _number(file: str, line: int, cells: list[bytes], at: int) -> float:
    try:
        value = float(cells[at])
    except ValueError:
        value = math.nan
    if math.isfinite(value):
        return value
    shown = cells[at][:40].decode(errors="replace")
    raise DescriptionError(f"{file}:{line}: {_NAMES[at]} is {shown!r}; it must be a number", "syntax")
