"""What a document of kind platform holds. Written by crates/schema/typed_documents.py."""

from __future__ import annotations

from typing import NotRequired, TypeAlias, TypedDict

from crosswind.documents.shared import Warning

Loss: TypeAlias = list[float]


class Node(TypedDict):
    """A computing resource of the platform."""

    compute_per_s: float
    ir_receive_s_per_mb: NotRequired[float]
    ir_send_s_per_mb: NotRequired[float]
    latency_s: NotRequired[float]
    name: str
    parent: NotRequired[str | None]
    receive_limit_drop: NotRequired[float]
    receive_limit_mb_per_s: NotRequired[float | None]
    receive_losses: NotRequired[list[Loss]]
    send_limit_mb_per_s: NotRequired[float | None]
    send_losses: NotRequired[list[Loss]]


class PlatformDocument(TypedDict):
    """A tree of nodes; the root holds the input data."""

    name: str
    node: list[Node]
    schema_version: int
    warning: NotRequired[list[Warning]]
