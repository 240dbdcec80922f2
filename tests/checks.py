"""Checks that never took place, as their files would hold them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from typing import Any

from crosswind.check.cluster_result import ClusterCheck
from crosswind.check.decision import Reading
from crosswind.check.result import Check

SETTINGS = {"governor": "performance", "huge_pages": "madvise"}


def checked(
    *,
    memory: float = 100.0,
    noise: float = 0.01,
    others: float = 0.0,
    settings: dict[str, str] | None = None,
    base: Check | None = None,
    node: str = "node1",
    **changed: Any,
) -> Check:
    """Return a check with a memory rate (1/s) and noise (0 to 1) that scatter by 1 %."""
    wiggle = [0.99, 1.01, 1.0, 1.005, 0.995, 1.0]
    readings = {
        "memory cpu 0": Reading(tuple(memory * part for part in wiggle)),
        "noise": Reading(tuple(noise * part for part in wiggle), "share", excusable=True, part=0.5),
    }
    host = {"name": node, "cpu": "a CPU", "cpus": 1, "kernel": "6.1", "settings": settings or SETTINGS}
    document = {
        "schema_version": 1,
        "kind": "check",
        "crosswind": "0.0.0",
        "at": "2026-01-01T00:00:00Z",
        "host": host,
        "tolerance": 0.1,
        "readings": {name: reading.to_dict() for name, reading in readings.items()},
        "tops_mb_per_s": {},
        "load": {"others": others, "steal": 0.0},
        "hidden": None,
        "took_s": 24.0,
        "interrupted": False,
        "warnings": [],
    }
    return Check(document | changed, base)


def of_a_cluster(hosts: str = "abc", rates: Mapping[str, float] | None = None) -> ClusterCheck:
    """Return the check of a cluster without a baseline; rates, MB/s, of links such as "ab", all others 100 MB/s."""
    rates = rates or {}
    document = {
        "schema_version": 1,
        "kind": "cluster-check",
        "crosswind": "0.0.0",
        "at": "2026-01-01T00:00:00Z",
        "cluster": "tcp://s:1",
        "hosts": dict.fromkeys(hosts, "10.0.0.1"),
        "tolerance": 0.1,
        "checks": {host: checked(node=host).document for host in hosts},
        "links": [
            {"from": a, "to": b, "receive_limit_mb_per_s": rates.get(a + b, 100.0)} for a, b in permutations(hosts, 2)
        ],
        "failed": {},
        "took_s": 30.0,
        "interrupted": False,
    }
    return ClusterCheck(document)
