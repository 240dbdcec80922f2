"""Which warnings matter most: those that withdraw the answer come first, those about figures of detail last."""

from __future__ import annotations

import re
from collections.abc import Sequence

from crosswind.errors import Notice

_WITHDRAW = (
    *("jit-compiles", "too-few-points", "partial", "not-stopped", "needed", "no-rank", "missing-ranks", "not-injected"),
    *("events-lost", "recording-full", "records-lost", "unfinished-ranks", "sweep-incomplete"),
    *("same-machine", "loopback", "not-quiet", "busy-host", "overlap-not-quiet", "not-settled"),
    *("busy-baseline", "rate-not-reached", "peer-not-measured", "send-not-measured", "not-calibrated"),
    *("not-linear", "uneven-speed", "drift"),
)
"""Codes of warnings that may make the answer wrong where the reader uses it, the worst first."""
_DETAIL = (
    *("overlap-own-nice", "idle-cost", "about-zero", "catching-up", "hidden", "costs-not-separable", "cost-model"),
    *("leftovers-removed",),
)
"""Codes of warnings about figures that only the details show, or that the answer has corrected for."""


def most_consequential(warnings: Sequence[Notice]) -> list[Notice]:
    """Return warnings in the order of what they change for the reader; alike ones stay in their order.

    Examples
    --------
    >>> [one["code"] for one in most_consequential([{"code": "idle-cost"}, {"code": "other"}, {"code": "loopback"}])]
    ['loopback', 'other', 'idle-cost']
    """
    return sorted(warnings, key=lambda one: _place(one.get("code", "")))


def of_each_kind(warnings: Sequence[Notice]) -> list[Notice]:
    """Return them in that order, and of those that differ in numbers only the first.

    Examples
    --------
    >>> alike = [{"code": "late", "message": f"rank {rank} began late"} for rank in range(3)]
    >>> [one["message"] for one in of_each_kind(alike)]
    ['rank 0 began late']
    """
    first: dict[str, Notice] = {}
    for one in most_consequential(warnings):
        first.setdefault(re.sub(r"[\d.]+", "#", one["message"]), one)
    return list(first.values())


def _place(code: str) -> int:
    if code in _WITHDRAW:
        return _WITHDRAW.index(code)
    return len(_WITHDRAW) + (1 + _DETAIL.index(code) if code in _DETAIL else 0)
