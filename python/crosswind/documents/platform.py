"""What a document of kind platform holds. Written by crates/schema/typed_documents.py."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from crosswind.documents.shared import Node
from crosswind.errors import Notice


class PlatformDocument(TypedDict):
    """A tree of nodes; the root holds the input data."""

    name: str
    node: list[Node]
    schema_version: int
    warning: NotRequired[list[Notice]]
