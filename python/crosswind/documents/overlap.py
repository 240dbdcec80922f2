"""What a document of kind overlap holds. Written by crates/schema/typed_documents.py."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from crosswind.errors import Notice


class Host(TypedDict):
    """The measured host, and every setting of it that is known to affect interference."""

    cpu: str
    cpus: int
    kernel: str
    name: str
    settings: dict[str, str]


Verdict: TypeAlias = Literal["overlapped", "serialised", "ping-delayed", "burn-delayed", "both-damaged"]


Wait: TypeAlias = Literal["event", "poll", "spin-block", "buffered"]


class OverlapCell(TypedDict):
    """One cell: a way of waiting, a nice level and a kind of message, with the times of both, alone and together."""

    burn_alone_s: float
    burn_nice: int
    burn_s: float
    burn_there_s: NotRequired[float | None]
    change: NotRequired[str | None]
    message_bytes: int
    messages: int
    ping_alone_s: float
    ping_cpu_s: NotRequired[float | None]
    ping_s: float
    says: NotRequired[str | None]
    verdict: NotRequired[Verdict | None]
    wait: Wait


Waiting: TypeAlias = Literal["event", "poll", "spin-block"]


OverlapWhat: TypeAlias = Literal["ping-alone", "burn-alone", "together"]


OverlapKind: TypeAlias = Literal["overlap"]


OverlapOn: TypeAlias = Literal["live", "sim"]


class OverlapPeer(TypedDict):
    """The other end of the messages."""

    host: str
    loopback: bool
    rtt_s: float


class OverlapRun(TypedDict):
    """One measured run of real processes."""

    burn_cpu_s: NotRequired[float | None]
    burn_first_s: NotRequired[float | None]
    burn_nice: NotRequired[int | None]
    burn_s: NotRequired[float | None]
    burn_there_s: NotRequired[float | None]
    late_s: float
    message_bytes: NotRequired[int | None]
    messages: NotRequired[int | None]
    others_cpus: float
    ping_cpu_s: NotRequired[float | None]
    ping_s: NotRequired[float | None]
    repetition: int
    wait: NotRequired[Waiting | None]
    what: OverlapWhat


Scheduler: TypeAlias = Literal["decay", "fair"]


class OverlapDocument(TypedDict):
    """Overlap document."""

    asked: NotRequired[Any]
    asked_burn_s: float
    burners: int
    cells: list[OverlapCell]
    costs: NotRequired[Any]
    cpus: int
    findings: NotRequired[list[str]]
    host: NotRequired[Host | None]
    iterations: NotRequired[int | None]
    kind: OverlapKind
    network: NotRequired[Any]
    on: OverlapOn
    peer: NotRequired[OverlapPeer | None]
    repetitions: NotRequired[int]
    runs: NotRequired[list[OverlapRun]]
    scheduler: NotRequired[Scheduler | None]
    schema_version: int
    seed: NotRequired[int]
    spin_s: NotRequired[float | None]
    warnings: NotRequired[list[Notice]]
