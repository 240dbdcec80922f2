"""What a document of kind program-runs holds. Written by crates/schema/typed_documents.py."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from crosswind.documents.shared import ComputedBy, Provenance
from crosswind.errors import Notice

ProgramKind: TypeAlias = Literal["program"]


class Spread(TypedDict):
    """Statistics of a quantity over all ranks."""

    max: float
    mean: float
    min: float


Transfers: TypeAlias = Literal["recorded", "network"]


class RecordedTimes(TypedDict):
    """Times of a recording, and of its undisturbed replay with transfers as recorded."""

    away_s: float
    recorded_s: float
    replayed_s: float
    transfers: Transfers


class Switches(TypedDict):
    """Measured switches from one job to another, until the first job was done."""

    count: int
    late_max_s: float
    late_mean_s: float
    quantum_s: float
    skew_max_s: float
    skew_mean_s: float


class ProgramRun(TypedDict):
    """Result of one run of a parallel program."""

    away_s: Spread
    bounds: NotRequired[dict[str, float]]
    busy_s: Spread
    compute: NotRequired[ComputedBy]
    coscheduled_s: float
    dedicated_s: float
    disturbance: NotRequired[str | None]
    makespan_s: float
    messages: int
    packets: int
    params: NotRequired[dict[str, Any]]
    program: str
    ranks: int
    recorded: NotRequired[RecordedTimes | None]
    seed: int
    slowdown: float
    slowdown_dedicated: float
    stalled_s: float
    switches: NotRequired[Switches | None]
    warnings: NotRequired[list[Notice]]


class ProgramRunsDocument(TypedDict):
    """The runs of an experiment of kind program."""

    digest: NotRequired[str | None]
    experiment: str
    kind: ProgramKind
    on: str
    provenance: NotRequired[Provenance | None]
    runs: list[ProgramRun]
    schema_version: int
