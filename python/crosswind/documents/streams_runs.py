"""What a document of kind streams-runs holds. Written by crates/schema/typed_documents.py."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from crosswind.documents.shared import Provenance
from crosswind.errors import Notice

Class: TypeAlias = Literal["parallel", "local"]


Discipline: TypeAlias = Literal["fifo", "threshold", "drr", "strict"]


JobProgram: TypeAlias = Literal["mg", "ft", "ep", "is"]


class JobOutcome(TypedDict):
    """Job outcome."""

    alone_s: float
    bytes: int
    eta_fifo: float
    eta_queued: float
    fifo_s: float
    hosts: int
    messages: int
    name: str
    program: JobProgram
    queued_s: float


class Latency(TypedDict):
    """A latency over all timed operations."""

    mean: float
    p50: float
    p99: float


class Latencies(TypedDict):
    """Latencies of the timed operations in the three measurements."""

    alone: Latency
    fifo: Latency
    queued: Latency


StreamOutcome = TypedDict(
    "StreamOutcome",
    {
        "alone_s": float,
        "bytes": int,
        "class": Class,
        "fifo_s": float,
        "latency_s": Latencies,
        "messages": int,
        "name": str,
        "queued_s": float,
        "slowdown_fifo": float,
        "slowdown_queued": float,
    },
)


StreamsKind: TypeAlias = Literal["streams"]


class StreamsRun(TypedDict):
    """Result of one run."""

    bounds: NotRequired[dict[str, float]]
    dropped: int
    frames: int
    hosts: int
    jobs: NotRequired[list[JobOutcome]]
    makespan_s: float
    params: NotRequired[dict[str, Any]]
    queue: Discipline
    seed: int
    streams: NotRequired[list[StreamOutcome]]
    warnings: NotRequired[list[Notice]]


class StreamsRunsDocument(TypedDict):
    """The runs of an experiment of kind streams."""

    digest: NotRequired[str | None]
    experiment: str
    kind: StreamsKind
    on: str
    provenance: NotRequired[Provenance | None]
    runs: list[StreamsRun]
    schema_version: int
