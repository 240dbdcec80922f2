"""The fields of blames, of a program, of a command and of a recording, and of an injection."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from annotated_types import Ge, Len
from pydantic import AfterValidator
from typing_extensions import TypedDict

from crosswind.documents.values import Notice, NotNegative, Number, Positive, Two, of_one_length

Count = Annotated[int, Ge(0)]


class _Fields(TypedDict):
    schema_version: int
    kind: Literal["command-blame"]
    disturbance: str
    causes: list[dict[str, Any]]
    kept: list[str]
    command: Annotated[list[str], Len(1)]
    elapsed_s: dict[str, Annotated[list[Positive], Len(2)]]
    interrupted: bool
    warnings: list[Notice]
    iterations_s: NotRequired[dict[str, list[Annotated[list[Positive], Len(2)]]]]


def _consistent(document: Any) -> Any:
    causes = [row.get("cause") for row in document["causes"]]
    needed = ["undisturbed", "disturbed", *(f"without {cause}" for cause in causes)]
    if sorted(needed) != sorted(document["elapsed_s"]):
        raise ValueError(f"elapsed_s has {', '.join(document['elapsed_s'])}; its causes need {', '.join(needed)}")
    of_one_length(document["elapsed_s"], tuple(needed))
    if "iterations_s" in document:
        if sorted(needed) != sorted(document["iterations_s"]):
            raise ValueError(
                f"iterations_s has {', '.join(document['iterations_s'])}; it must have {', '.join(needed)}"
            )
        runs = document["elapsed_s"]["undisturbed"]
        of_one_length(document["iterations_s"] | {"elapsed_s": runs}, (*needed, "elapsed_s"))
    return document


CommandBlameDocument = Annotated[_Fields, AfterValidator(_consistent)]


class Ends(TypedDict):
    """A mean with its 95 % interval; null ends: not known."""

    mean: Number
    low: Number | None
    high: Number | None


class ByCause(TypedDict):
    """What one cause costs."""

    cause: str
    part: Number | None
    shared_s: Ends | None
    removed_s: Ends
    alone_s: Ends


class BlameDocument(TypedDict):
    """What each cause of a disturbance costs a program in virtual time."""

    experiment: str
    on: str
    digest: NotRequired[str]
    seeds: list[int]
    causes: Annotated[list[str], Len(1)]
    makespan_s: Ends
    undisturbed_s: Ends
    cost_s: Ends
    together_s: Ends
    aligned_s: Ends
    unaligned_s: Ends
    by_cause: list[ByCause]
    warnings: list[Notice]
    runs: list[dict[str, Any]]


class Place(TypedDict):
    """Where a slow rank loses time."""

    rank: Count
    place: str
    excess_s: Number


class SlowCause(TypedDict):
    """What a slow rank did meanwhile."""

    name: str
    seconds: Number
    ci95: Two


class Culprit(TypedDict):
    """A slow rank, or several that hide each other."""

    ranks: Annotated[list[Count], Len(1)]
    seconds: Number
    ci95: Two
    steps: Count
    where: list[Place]
    causes: list[SlowCause]
    alone_s: list[Number]
    against_itself: bool


class Clocks(TypedDict):
    """How far the ranks' clocks are apart."""

    apart_s: Number
    known_to_s: Number | None
    drift_ppm: Number


class Efficiencies(TypedDict):
    """POP's efficiencies, as shares."""

    parallel: Number
    load_balance: Number
    serialisation: Number
    transfer: Number


class RecordedBlameDocument(TypedDict):
    """Which rank of a recorded program is slow: what `crosswind blame TRACE --json` prints."""

    verdict: Literal["straggler", "none", "unidentifiable"]
    reason: str
    recorded_s: NotNegative
    replayed_s: NotNegative
    culprits: list[Culprit]
    waits: dict[str, Number]
    clocks: Clocks
    ranks: Count
    missing: list[Count]
    steps: Count
    meetings: Count
    uneven_s: Number
    transfers_s: Number
    transfer_excess_s: Number
    efficiencies: Efficiencies
    notes: list[str]
    replays: Count


class InjectedCause(TypedDict):
    """What one cause took from a rank."""

    cause: str
    intervals: Count
    away_s: NotNegative
    how: list[str]


class InjectedRank(TypedDict):
    """What was injected into a rank."""

    rank: Count
    pids: list[int]
    cpus: list[int]
    busy_cpus: list[int]
    intervals: Count
    away_s: NotNegative
    share: NotNegative
    late_mean_s: Number
    late_max_s: Number
    longer_mean_s: Number
    too_short: Count
    too_short_s: NotNegative
    missed: Count
    missed_s: NotNegative
    causes: list[InjectedCause]
    complaints: list[str]
    exposed: bool


class InjectionDocument(TypedDict):
    """What was injected into a command: what `crosswind inject --json` prints."""

    command: Annotated[list[str], Len(1)]
    disturbance: str
    limit_s: Positive
    keep_running: bool
    ranks_asked: int | None
    removed: list[Notice]
    elapsed_s: NotNegative
    start_s: Number | None
    cpu_user_s: NotNegative
    cpu_system_s: NotNegative
    exit_status: int | None
    exit_signal: int | None
    ended: Literal["exited", "limit", "asked", "unwatched"]
    asked_by_signal: int | None
    ranks_told_by: str | None
    priority: str
    ranks_struck: NotRequired[list[int]]
    ranks: list[InjectedRank]
    warnings: list[Notice]
