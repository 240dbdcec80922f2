"""The fields of a plan of queues (docs/reference/files.md)."""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Ge
from typing_extensions import TypedDict

from crosswind.documents.values import Head, Number


class Slowdowns(TypedDict):
    """How much longer the slowest stream of each class takes than alone."""

    parallel_slowdown: Number
    local_slowdown: Number


class Setting(TypedDict):
    """A setting of the queues."""

    queue: Literal["threshold", "drr"]
    threshold: int
    credits: Literal["none", "receiver"]
    receive_threshold: int | None


class Tried(Setting, Slowdowns):
    """A setting of the queues, with its outcome."""

    holds: bool


class Holding(TypedDict):
    """Up to which threshold a local stream's slowdown stays below the limit, whatever the parallel class sends."""

    name: str
    threshold: int
    beside: list[str]


class Promise(TypedDict):
    """What the local class has at least, in closed form, whatever the parallel class sends."""

    longest_wait_s: Number
    least_share: Number
    credit_wait_s: Number | None
    streams: list[Holding]


class QueuesPlanDocument(Head, Slowdowns):
    """Thresholds and credits of two queues."""

    experiment: str
    local_slowdown_limit: Annotated[Number, Ge(1)]
    seeds: Annotated[int, Ge(1)]
    policy: dict[str, str | int]
    fifo: Slowdowns
    promise: Promise
    tried: list[Tried]
