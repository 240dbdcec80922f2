"""What a document of kind trace holds. Written by crates/schema/typed_documents.py."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from crosswind.documents.shared import (
    Node,
    Run,
)
from crosswind.errors import Notice


class Platform(TypedDict):
    """A tree of nodes; the root holds the input data."""

    name: str
    node: list[Node]
    schema_version: int
    warning: NotRequired[list[Notice]]


class TraceHeader(TypedDict):
    """The run of the activities."""

    experiment: str
    on: str
    platform: Platform
    run: Run
    schema_version: int
