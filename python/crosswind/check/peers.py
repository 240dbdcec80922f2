"""The newest check of each other node, a file a node in a directory that all nodes share: no baseline is stored."""

from __future__ import annotations

import time
from calendar import timegm
from collections.abc import Sequence
from pathlib import Path

from crosswind.check.decision import Judged, unknown
from crosswind.check.history import file_name
from crosswind.check.outliers import among, group_of, worst_first
from crosswind.check.result import Check
from crosswind.errors import DescriptionError, Notice, warning
from crosswind.files.atomic import made

LEAST_PEERS, MOST_PEERS = 3, 200
"""Other nodes of the same kind that are needed, and how many count: those that were checked last."""
MOST_AGE_S = 30 * 86400.0
"""An older check says little of a node of today."""


def newest(directory: str | Path, node: str, now_s: float | None = None) -> tuple[list[Check], list[Notice]]:
    """Return the newest check of each other node in a directory, the latest first, and files that cannot be read.

    Those older than 30 days, and of a node that was busy, are left out. A missing directory has none.
    """
    now_s = time.time() if now_s is None else now_s
    found, told = list[Check](), list[Notice]()
    for path in sorted(Path(directory).glob("*.json")):
        if path.stem == file_name(node):
            continue
        try:
            one = Check.load(path, links="none")
            age_s = now_s - timegm(time.strptime(one.document["at"], "%Y-%m-%dT%H:%M:%SZ"))
        except (DescriptionError, ValueError) as error:
            told.append(warning("not-read", f"another node's check is left out: {error}", f"delete {path}"))
            continue
        if one.node != node and not one.busy and age_s <= MOST_AGE_S:
            found.append(one)
    found.sort(key=lambda one: str(one.document["at"]), reverse=True)
    return found[:MOST_PEERS], told


def keep(directory: str | Path, found: Check) -> Path:
    """Write a check as the newest of its node; the file appears complete, or not at all."""
    path = made(directory) / f"{file_name(found.node)}.json"
    found.save(path)
    return path


def alike(now: Check, peers: Sequence[Check]) -> list[Check]:
    """Return the peers of the same kind: the same processor, and as many CPUs."""
    return [one for one in peers if _kind(one) == _kind(now)]


def against(now: Check, peers: Sequence[Check]) -> list[Judged]:
    """Hold a check's measures against those of other nodes of the same kind; the worst first.

    Empty where there are fewer than 3. A measure of one CPU is held against all CPUs of the others.
    """
    others = alike(now, peers)
    if len(others) < LEAST_PEERS:
        return []
    judged = []
    for name, reading in now.readings.items():
        group = group_of(name)
        of_each = [[theirs for known, theirs in one.readings.items() if group_of(known) == group] for one in others]
        having = sum(map(bool, of_each))
        if having < LEAST_PEERS:
            why = f"{having} other nodes have it, {LEAST_PEERS} are needed"
            judged.append(unknown(name, reading, now.tolerance, why))
            continue
        every = [theirs for each in of_each for theirs in each]
        judged.append(among(name, reading, every, now.tolerance, len(now.readings), busy=now.busy))
    return sorted(judged, key=worst_first)


def _kind(one: Check) -> tuple[object, object]:
    return one.document["host"].get("cpu"), one.document["host"].get("cpus")
