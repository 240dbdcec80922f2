"""What a document of kind disturbance holds. Written by crates/schema/typed_documents.py."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

Distribution: TypeAlias = dict[str, Any]


Amount: TypeAlias = float | Distribution


RecordedInterval: TypeAlias = list[float | int]


SkewDrawn: TypeAlias = Literal["per-rank", "per-quantum"]


Phases: TypeAlias = Literal["spread", "aligned", "drifting"]


class RecordedCpu(TypedDict):
    """The recording of one CPU."""

    cpu: int
    intervals: list[RecordedInterval]


Source: TypeAlias = dict[str, Any]


class DisturbanceDocument(TypedDict):
    """When each rank's processor is taken away, and by what."""

    cache_cost_s: NotRequired[float]
    name: str
    schema_version: int
    source: NotRequired[list[Source]]
    switch_cost_s: NotRequired[float]
