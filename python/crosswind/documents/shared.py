"""What several kinds of documents hold. Written by crates/schema/typed_documents.py."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from crosswind.errors import Notice

ComputedBy: TypeAlias = Literal["simulated", "emulated", "diagonals", "burn", "triad", "command", "callable"]


class EmbeddedFile(TypedDict):
    """A file that an experiment refers to."""

    content: NotRequired[str | None]
    sha256: str


FairnessOf: TypeAlias = Literal["users", "classes"]


class Fairness(TypedDict):
    """Jain's index over time: of the work that each user, or class of tasks, got done in a window."""

    index: list[float | None]
    least: float
    mean: float
    of: FairnessOf
    window_s: float


class UserFlow(TypedDict):
    """Flow times of one user's tasks."""

    done_s: float
    mean_s: float
    mean_slowdown: float
    name: str
    tasks: int


class Flow(TypedDict):
    """Flow times: from the arrival of a task at the root to its end (with results: to its result's arrival there)."""

    jain: NotRequired[float | None]
    late: NotRequired[int | None]
    mean_s: float
    mean_slowdown: float
    mean_tardiness_s: NotRequired[float | None]
    median_s: float
    most_s: float
    most_slowdown: float
    most_tardiness_s: NotRequired[float | None]
    p95_s: float
    p99_s: float
    users: NotRequired[list[UserFlow]]


Loss: TypeAlias = list[float]


class Node(TypedDict):
    """A computing resource of the platform."""

    compute_per_s: float
    ir_receive_s_per_mb: NotRequired[float]
    ir_send_s_per_mb: NotRequired[float]
    latency_s: NotRequired[float]
    name: str
    one_sender_share: NotRequired[float]
    parent: NotRequired[str | None]
    receive_limit_drop: NotRequired[float]
    receive_limit_mb_per_s: NotRequired[float | None]
    receive_losses: NotRequired[list[Loss]]
    send_limit_mb_per_s: NotRequired[float | None]
    send_losses: NotRequired[list[Loss]]


class NodeFailures(TypedDict):
    """Drawn failures of a node."""

    count: int
    failed_s: float
    tasks_again: int


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


Order: TypeAlias = (
    Literal["interference", "interference-rate", "bandwidth", "compute", "arrival", "root-only", "planned"] | str
)


Ports: TypeAlias = Literal["single", "multi"]


class Provenance(TypedDict):
    """What runs were made from."""

    disturbances: NotRequired[dict[str, Any]]
    experiment: Any
    files: NotRequired[dict[str, EmbeddedFile]]
    platforms: NotRequired[dict[str, Any]]
    versions: list[str]


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
    failures: NotRequired[NodeFailures | None]
    name: str
    received_mb: float
    seen: NotRequired[ObservedNode | None]
    tasks: int


class Run(TypedDict):
    """Run."""

    bound_tasks_per_s: NotRequired[float | None]
    compute: ComputedBy
    events: NotRequired[list[RunEvent]]
    fairness: NotRequired[list[Fairness]]
    flow: NotRequired[Flow | None]
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
    warnings: NotRequired[list[Notice]]
