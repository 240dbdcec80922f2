"""The header of a `gpu.parquet` (docs/reference/files.md)."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from annotated_types import Ge
from typing_extensions import TypedDict

from crosswind.documents.values import NotNegative


class Pair(TypedDict):
    """A kernel and the traffic beside it."""

    kernel: str
    unit: str
    traffic: str
    path: str
    by: str
    memory: str
    chunk_bytes: Annotated[int, Ge(0)]
    alone_mb_per_s: NotNegative | None
    beside_mb_per_s: NotNegative | None
    top_mb_per_s: NotNegative | None
    cycles: Annotated[int, Ge(0)]


class OwnTask(TypedDict):
    """A task of the user's own, and what one call takes."""

    name: str
    gpu_s: NotNegative
    host_s: NotNegative


class GpuMeasurementHeader(TypedDict):
    """How the blocks of a measured GPU came about."""

    schema_version: NotRequired[int]
    version: str
    asked: NotRequired[Any]
    started: str
    device: dict[str, object]
    pairs: list[Pair]
    seed: int
    ended: str
    elapsed_s: NotNegative
    task: NotRequired[OwnTask]
