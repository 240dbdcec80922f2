"""What a document of kind links holds. Written by crates/schema/typed_documents.py."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class Host(TypedDict):
    """A computer that could be a node of a tree."""

    compute_per_s: float
    name: str
    send_limit_mb_per_s: NotRequired[float | None]


Link = TypedDict(
    "Link",
    {
        "from": str,
        "ir_receive_s_per_mb": NotRequired[float],
        "ir_send_s_per_mb": NotRequired[float],
        "latency_s": NotRequired[float],
        "receive_limit_mb_per_s": float,
        "to": str,
    },
)


class LinksDocument(TypedDict):
    """Hosts, and the links between ordered pairs of them."""

    host: list[Host]
    link: NotRequired[list[Link]]
    name: str
    schema_version: int
