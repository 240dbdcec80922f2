"""Earlier checks of a node, a file each in one directory: what a check is held against when there is no baseline."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from crosswind.check.decision import Judged, not_measured
from crosswind.check.network import is_always_measured
from crosswind.check.outliers import among, worst_first
from crosswind.check.result import Check
from crosswind.errors import DescriptionError, Told, warning
from crosswind.files.stored import made

LEAST_PAST, MOST_PAST = 5, 50
"""So many earlier checks must there be, of a host that was not busy; the last ones are held against."""


def earlier(directory: str | Path, node: str) -> tuple[list[Check], list[Told]]:
    """Return the node's checks in a directory by their times, at most the last 50, and files that cannot be read.

    There are none when the directory is not there. One file that was cut off, or is of a later version, does not end
    all checks after it.
    """
    found, told = list[Check](), list[Told]()
    for path in sorted(Path(directory).glob(f"{_name(node)}-*.json")):
        try:
            found.append(Check.load(path))
        except DescriptionError as error:
            told.append(warning("not-read", f"an earlier check is left out: {error}", "delete the file"))
    mine = [one for one in found if one.node == node]
    return sorted(mine, key=lambda one: str(one.document["at"]))[-MOST_PAST:], told


def keep(directory: str | Path, found: Check) -> Path:
    """Write a check into a directory, which is made where it is not there; its file."""
    path = made(directory) / f"{_name(found.node)}-{re.sub(r'[^0-9TZ]', '', found.document['at'])}.json"
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
    judged = [
        among(
            name,
            reading,
            [one.readings[name] for one in usable if name in one.readings],
            now.tolerance,
            len(now.readings),
            busy=now.busy,
        )
        for name, reading in now.readings.items()
    ]
    always = set.intersection(*(set(one.readings) for one in usable)) - set(now.readings)
    missing = [name for name in sorted(always) if is_always_measured(name)]
    judged += [not_measured(name, usable[-1].readings[name], now.tolerance) for name in missing]
    return sorted(judged, key=worst_first)


def _name(node: str) -> str:
    return re.sub(r"[^\w.-]", "_", node)
