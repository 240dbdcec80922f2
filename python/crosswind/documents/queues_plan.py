"""The fields of a plan of queues (docs/reference/files.md)."""

from __future__ import annotations

from typing import Annotated, Any

from annotated_types import Ge
from typing_extensions import TypedDict

from crosswind.documents.values import Number


class Slowdowns(TypedDict):
    """How much longer the slowest stream of each class takes than alone."""

    parallel_slowdown: Number
    local_slowdown: Number


class Tried(Slowdowns):
    """A setting of the queues, with its outcome."""

    holds: bool


class QueuesPlanDocument(Slowdowns):
    """Thresholds and credits of two queues."""

    experiment: str
    local_slowdown_limit: Annotated[Number, Ge(1)]
    seeds: Annotated[int, Ge(1)]
    policy: dict[str, Any]
    fifo: Slowdowns
    promise: dict[str, Any]
    tried: list[Tried]
