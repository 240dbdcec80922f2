"""The fields of a plan of queues (docs/reference/files.md)."""

from __future__ import annotations

from typing import Annotated, Any

from annotated_types import Ge
from typing_extensions import TypedDict

from crosswind.files.shape import Number


class SlowdownsShape(TypedDict):
    """How much longer the slowest stream of each class takes than alone."""

    parallel_slowdown: Number
    local_slowdown: Number


class TriedShape(SlowdownsShape):
    """A setting of the queues, with its outcome."""

    holds: bool


class QueuesPlanShape(SlowdownsShape):
    """Thresholds and credits of two queues."""

    experiment: str
    local_slowdown_limit: Annotated[Number, Ge(1)]
    seeds: Annotated[int, Ge(1)]
    policy: dict[str, Any]
    fifo: SlowdownsShape
    promise: dict[str, Any]
    tried: list[TriedShape]
