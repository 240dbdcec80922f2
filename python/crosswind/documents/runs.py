"""What a document of kind runs holds. Written by crates/schema/typed_documents.py."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from crosswind.documents.shared import ComputedBy, Ports, Warning

FarmKind: TypeAlias = Literal["farm"]


class ObservedRate(TypedDict):
    """A planned rate, and the rate observed at the end of a run."""

    observations: int
    planned: NotRequired[float | None]
    sd: float
    seen: float


class ObservedNode(TypedDict):
    """Observed rates of a node and its link, each compared with the platform."""

    compute_per_s: NotRequired[ObservedRate | None]
    ir_receive_s_per_mb: NotRequired[ObservedRate | None]
    ir_send_s_per_mb: NotRequired[ObservedRate | None]
    receive_limit_mb_per_s: NotRequired[ObservedRate | None]


Order: TypeAlias = Literal[
    "interference", "interference-rate", "bandwidth", "compute", "arrival", "root-only", "planned"
]


class Resumed(TypedDict):
    """Tasks of a resumed run, by what earlier runs left."""

    again: dict[str, int]
    done: int
    gone: int
    new: int


class RunEvent(TypedDict):
    """An event of a run."""

    code: str
    message: str
    node: NotRequired[str | None]
    t_s: float
    tasks: NotRequired[int | None]


class RunNode(TypedDict):
    """Run node."""

    busy_s: float
    name: str
    received_mb: float
    seen: NotRequired[ObservedNode | None]
    tasks: int


class Run(TypedDict):
    """Run."""

    bound_tasks_per_s: NotRequired[float | None]
    compute: ComputedBy
    events: NotRequired[list[RunEvent]]
    makespan_s: float
    nodes: list[RunNode]
    order: Order
    params: NotRequired[dict[str, Any]]
    platform: str
    ports: Ports
    resumed: NotRequired[Resumed | None]
    root_only_tasks_per_s: NotRequired[float | None]
    seed: int
    tasks: int
    throughput_tasks_per_s: float
    warnings: NotRequired[list[Warning]]


class RunsDocument(TypedDict):
    """The runs of an experiment of kind farm."""

    digest: NotRequired[str | None]
    experiment: str
    kind: NotRequired[FarmKind]
    on: str
    runs: list[Run]
    schema_version: int
