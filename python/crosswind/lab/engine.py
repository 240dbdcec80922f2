"""What the papers need of the extension module beyond the public API; no other module of the lab imports it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from crosswind import Platform, _core
from crosswind._core import EXACT_BUDGET, lpt_ratio_bound, makespan, three_point, tight_family
from crosswind.documents import Document

__all__ = [
    "EXACT_BUDGET",
    "build_digest",
    "effective_ratio",
    "fork_throughput",
    "lpt_ratio_bound",
    "makespan",
    "simulate_overlap",
    "skeleton",
    "three_point",
    "tight_family",
]


@cache
def build_digest() -> str:
    """Return what identifies the build that simulates: hexadecimal SHA-256 of the extension module."""
    return hashlib.sha256(Path(str(_core.__file__)).read_bytes()).hexdigest()


def fork_throughput(fork: Platform, task_size_mb: float, task_work: float, order: str) -> float:
    """Return the steady rate of a fork under an order of service with single ports, tasks/s."""
    checked = _core.Platform.from_json(json.dumps(fork.to_dict()).encode(), "platform")
    return _core.fork_throughput(checked, task_size_mb, task_work, order)


def effective_ratio(form: Mapping[str, Any], flows: int) -> float:
    """Return which part of a link `flows` flows use while they congest it (delta), 0 to 1."""
    return _core.effective_ratio(json.dumps(dict(form)), flows)[0]


def simulate_overlap(settings: Mapping[str, Any]) -> Document:
    """Return the times of a ping beside burners; fields of both are in `crates/schema/src/simulated_overlap.rs`.

    Raises
    ------
    DescriptionError
        When a setting is out of its range.
    """
    found: Document = json.loads(_core.simulate_overlap(json.dumps(settings)))
    return found


@cache
def skeleton(program: str, hosts: int, parameters: str) -> Document:
    """Return `messages`, `bytes` and `compute_s` of a NAS kernel on `hosts` hosts; `parameters` is JSON."""
    found: Document = json.loads(_core.skeleton(program, hosts, parameters))
    return found
