"""Earlier checks of a node, a file each in one directory: what a check is held against when there is no baseline.

Two questions are asked of each measure. Is it worse than the median of the last checks? That finds what changed since
yesterday. Is it worse than in the first checks? That finds what gets worse by a little from check to check: the median
of the last ones follows a trend, and so does their spread.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median

from crosswind.check.decision import FALSE_DRAINS, LOOKS, Judged, Reading, judge, lost_part, middle, unknown
from crosswind.check.network import is_always_measured
from crosswind.check.outliers import MEDIAN_OF_MEAN, SIGMA_OF_MAD, among, around, worst_first
from crosswind.check.result import Check
from crosswind.errors import DescriptionError, Notice, warning
from crosswind.files.atomic import made
from crosswind.statistics.interval import reach

LEAST_PAST, MOST_PAST = 5, 50
"""Earlier checks on a quiet host that are needed, and how many of the last ones count."""
FIRST = 5
"""Checks on a quiet host, from the first one on, that a node's later speed is held against."""
_FREEDOM_OF_MAD = 0.37
"""Degrees of freedom per value of a spread that is a median of distances: its efficiency for normal values."""


def earlier(directory: str | Path, node: str) -> tuple[list[Check], list[Notice]]:
    """Return the node's checks in a directory by their times, and files that cannot be read.

    These are the last 50, and the first 5 on a quiet host. A missing directory has none. One file
    that was cut off, is of a later version, or is no regular file does not end all checks after it.
    """
    last, tried, told = dict[Path, Check](), set[Path](), list[Notice]()
    paths = sorted(Path(directory).glob(f"{file_name(node)}-*.json"))

    def read(paths: Iterable[Path]) -> Iterable[Check]:
        for path in paths:
            tried.add(path)
            try:
                found = Check.load(path, links="none")
            except DescriptionError as error:
                told.append(warning("not-read", f"an earlier check is left out: {error}", "delete the file"))
                continue
            if found.node == node:
                last[path] = found
                yield found

    for count, _ in enumerate(read(reversed(paths)), 1):
        if count == MOST_PAST:
            break
    left = [path for path in paths if path not in tried]
    for count, _ in enumerate((one for one in read(left) if not one.busy), 1):
        if count == FIRST:
            break
    told.sort(key=lambda one: one["message"])
    return sorted(last.values(), key=lambda one: str(one.document["at"])), told


def keep(directory: str | Path, found: Check) -> Path:
    """Write a check into a directory, which is created if missing; return its file."""
    path = made(directory) / f"{file_name(found.node)}-{re.sub(r'[^0-9TZ]', '', found.document['at'])}.json"
    found.save(path)
    return path


def quiet(past: Sequence[Check]) -> list[Check]:
    """Return the checks whose host was not busy."""
    return [one for one in past if not one.busy]


def against(now: Check, past: Sequence[Check]) -> list[Judged]:
    """Hold a check's measures against those of earlier ones on a host that was not busy; the worst first.

    Empty where there are fewer than 5.
    """
    usable = quiet(past)
    if len(usable) < LEAST_PAST:
        return []
    judged = []
    for name, reading in now.readings.items():
        before = [one.readings[name] for one in usable if name in one.readings]
        measures = len(now.readings)
        found = among(name, reading, before[-MOST_PAST:], now.tolerance, measures, busy=now.busy)
        judged.append(since_the_first(found, reading, before, now.tolerance, measures, busy=now.busy))
    always = set.intersection(*(set(one.readings) for one in usable)) - set(now.readings)
    missing = [name for name in sorted(always) if is_always_measured(name)]
    judged += [unknown(name, usable[-1].readings[name], now.tolerance, now.why_missing(name)) for name in missing]
    return sorted(judged, key=worst_first)


def since_the_first(
    found: Judged, now: Reading, before: Sequence[Reading], tolerance: float, measures: int = 1, *, busy: bool = False
) -> Judged:
    """Return a verdict that also holds a measure against the first checks.

    It is not healthy where it has lost more than is permitted since then. It is sick where that is certain of this
    check, and of the median of the last 5: the scatter of checks follows from the differences from one to the next, in
    which a trend hardly shows.

    Parameters
    ----------
    found : Judged
        Against the last checks.
    now : Reading
    before : sequence of Reading
        Of earlier checks on a quiet host, in the order of time.
    tolerance, measures, busy
        As in `among`.
    """
    before = [other for other in before if other.known and other.unit == now.unit]
    if found.outcome == "sick" or not now.known or len(before) < FIRST:
        return found
    share = now.unit == "share"
    means = [middle(other, share)[0] for other in (*before, now)]
    steps = [abs(after - one) for one, after in pairwise(means)]
    spread = SIGMA_OF_MAD * median(steps) / math.sqrt(2.0)
    was, is_now = median(means[:FIRST]), median(means[-FIRST:])
    error = MEDIAN_OF_MEAN * spread / math.sqrt(FIRST)
    judged = judge(found.name, now, around(now, was, error), tolerance, measures, busy=busy)
    if not judged.loss > judged.tolerance:
        return found
    sure = reach(_FREEDOM_OF_MAD * len(steps), 1 - FALSE_DRAINS / (measures * LOOKS)) * math.sqrt(2.0) * error
    least = (is_now - was if share else was - is_now) - sure
    lasting = (least if share else lost_part(least)) > judged.tolerance
    if judged.outcome == "sick" and lasting and len(before) >= 2 * FIRST:
        return replace(judged, why=f"against its first {FIRST} checks")
    why = judged.why if busy and judged.why else f"worse than in its first {FIRST} checks"
    return replace(judged, outcome="unknown", why=why)


def file_name(node: str) -> str:
    """Return a node's name as it stands in names of files."""
    return re.sub(r"[^\w.-]", "_", node)
