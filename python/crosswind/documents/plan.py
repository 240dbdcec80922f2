"""What a document of kind plan holds. Written by crates/schema/typed_documents.py."""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias, TypedDict

from crosswind.documents.shared import Ports
from crosswind.errors import Notice

LimitedBy: TypeAlias = Literal[
    "compute", "receive-limit", "send-limit", "port", "local-compute", "parent", "never-send", "return-link"
]


Method: TypeAlias = Literal["exact", "greedy"]


PlanKind: TypeAlias = Literal["plan"]


class PlannedNode(TypedDict):
    """The plan for one node."""

    computed_tasks_per_s: float
    gain_per_receive_mb_per_s: float
    gain_per_send_mb_per_s: float
    gain_per_work_per_s: NotRequired[float | None]
    ir_receive_s_per_mb: NotRequired[float | None]
    ir_send_s_per_mb: NotRequired[float | None]
    limited_by: LimitedBy
    name: str
    never_send: bool
    parent: NotRequired[str | None]
    rank: int
    received_tasks_per_s: float


class PlanDocument(TypedDict):
    """The steady state of a platform for one kind of task."""

    bound_tasks_per_s: float
    constant_rates_bound_tasks_per_s: NotRequired[float | None]
    gap_to_exact: float
    kind: NotRequired[PlanKind]
    method: Method
    nodes: list[PlannedNode]
    platform: str
    ports: Ports
    result_size_mb: NotRequired[float]
    root_only_tasks_per_s: float
    schema_version: int
    task_size_mb: float
    task_work: float
    throughput_tasks_per_s: float
    warnings: list[Notice]
