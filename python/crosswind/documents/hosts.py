"""What a document of kind hosts holds. Written by crates/schema/typed_documents.py."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class Host(TypedDict):
    """A host that runs a node of the platform."""

    listen: NotRequired[str | None]
    name: str
    parent: NotRequired[str | None]


class HostsDocument(TypedDict):
    """The hosts of a farm; the root holds the input data."""

    host: list[Host]
    schema_version: int
