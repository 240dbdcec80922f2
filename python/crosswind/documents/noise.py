"""What a recording of a machine, and an injection into a command, say in numbers."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from crosswind.errors import Notice


class NoiseProcess(TypedDict):
    """A process that kept processors from computing."""

    pid: int
    command: str
    cgroup: str | None
    container: str | None
    share: float


class NoisePart(TypedDict):
    """Time in which processors were away: of all causes, or of one."""

    share: float
    intervals: int
    longest_s: float


class NoiseCause(NoisePart):
    """What one cause took."""

    cause: str
    processes: NotRequired[list[NoiseProcess]]


class NoiseOf(NoisePart):
    """What all causes took, the worst first."""

    longest_cause: NotRequired[str | None]
    causes: list[NoiseCause]


class NoiseOfCpu(NoiseOf):
    """What one CPU lost."""

    cpu: int


class NoiseSummary(TypedDict):
    """What kept the CPUs of a machine from computing: what `crosswind record --json` prints."""

    name: str
    length_s: float
    how: Literal["trace", "loop"]
    no_trace: str | None
    lost_events: int
    throttled: int
    interrupted: bool
    full: bool
    own_share: float
    interrupts: dict[str, dict[str, int]]
    steal_s: dict[str, float]
    total: NoiseOf
    cpus: list[NoiseOfCpu]
    removed: NotRequired[list[Notice]]


class InjectedCause(TypedDict):
    """What a preview knows of a cause."""

    cause: str
    how: list[str]


class InjectedRank(TypedDict):
    """What would be injected into a rank within the horizon."""

    rank: int
    intervals: int
    away_s: float
    share: float
    first: list[tuple[float, float, str]]


class InjectionPreview(TypedDict):
    """What `crosswind inject --dry-run --json` prints."""

    name: str
    causes: list[InjectedCause]
    priority: str
    cpus: list[int]
    groups_below: str | None
    horizon_s: float
    ranks: list[InjectedRank]
    changes: NotRequired[list[str]]


class InjectionMeans(TypedDict):
    """What injection can do on this machine."""

    priority: str
    no_freezer: str | None
