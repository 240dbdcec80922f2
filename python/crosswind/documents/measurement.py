"""What a document of kind measurement holds. Written by crates/schema/typed_documents.py."""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias, TypedDict

from crosswind.errors import Notice

Direction: TypeAlias = Literal["receive", "send"]


class Channel(TypedDict):
    """One direction of one peer."""

    direction: Direction
    peer: int
    top_mb_per_s: float
    unpaced_mb_per_s: float


Ended: TypeAlias = Literal["settled", "time-limit", "interrupted", "peer-lost"]


class Host(TypedDict):
    """The measured host, and every setting of it that is known to affect interference."""

    cpu: str
    cpus: int
    kernel: str
    name: str
    settings: dict[str, str]


class Kernel(TypedDict):
    """Kernel."""

    diagonals: NotRequired[int | None]
    matrix: NotRequired[int | None]
    name: str
    task: NotRequired[str | None]
    unit: str


Pin: TypeAlias = Literal["process", "threads"]


PacedBy: TypeAlias = Literal["sender", "receiver", "peer"]


Wait: TypeAlias = Literal["event", "poll"]


class Peer(TypedDict):
    """Peer."""

    address: str
    host: str
    loopback: bool
    rtt_s: float


class Placement(TypedDict):
    """Placement of the threads, which decides the result."""

    compute_cpus: list[int]
    compute_nice: int
    mode: str
    sampler_cpus: list[int]
    traffic_cpus: list[int]
    traffic_nice: int


class Runtime(TypedDict):
    """An external process that computed and moved the bytes."""

    command: list[str]
    facts: dict[str, str]
    forks: int
    name: str
    own_work: bool
    pin: Pin
    sockets_set: bool
    split: bool
    version: str


class Traffic(TypedDict):
    """Traffic."""

    congestion_control: str
    message_bytes: int
    paced_by: PacedBy
    pacing_chunk_bytes: int
    socket_buffer_bytes: NotRequired[int | None]
    streams: int
    wait: Wait


Variation: TypeAlias = Literal["paced", "contention"]


class MeasurementHeader(TypedDict):
    """How the samples were taken."""

    block_s: float
    channels: list[Channel]
    command: list[str]
    elapsed_s: float
    ended: Ended
    host: Host
    interval_s: float
    kernel: Kernel
    name: str
    peers: list[Peer]
    placement: Placement
    runtime: NotRequired[Runtime | None]
    schema_version: int
    seed: int
    settle_s: float
    started: str
    traffic: Traffic
    variation: Variation
    warnings: list[Notice]
