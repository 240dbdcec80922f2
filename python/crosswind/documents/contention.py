"""The fields of a `contention.json` (docs/reference/files.md)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from annotated_types import Ge, Len
from typing_extensions import TypedDict

from crosswind.documents.values import Head, Notice, Number, Positive, Two


class Flows(TypedDict):
    """Which part of a link a number of flows uses."""

    flows: Annotated[int, Ge(2)]
    kind: str
    ratio: Positive
    ratio_ci95: Two | None
    samples: Annotated[int, Ge(1)]
    forms: dict[str, Number]


class Form(TypedDict):
    """A form that was fitted."""

    form: str
    parameter: str
    value: Number
    value_ci95: list[Number | None] | None
    rms: Number
    max_error: Number


class ContentionDocument(Head):
    """Which part of a link several flows use while they share it."""

    files: Annotated[list[str], Len(1)]
    by: Literal["latency", "throughput"]
    link_mb_per_s: Positive | None
    points: Annotated[list[Flows], Len(1)]
    forms: list[Form]
    effective: dict[str, Any]
    warnings: list[Notice]
