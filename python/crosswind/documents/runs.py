"""What a document of kind runs holds. Written by crates/schema/typed_documents.py."""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias, TypedDict

from crosswind.documents.shared import (
    Provenance,
    Run,
)

FarmKind: TypeAlias = Literal["farm"]


class RunsDocument(TypedDict):
    """The runs of an experiment of kind farm."""

    digest: NotRequired[str | None]
    experiment: str
    kind: NotRequired[FarmKind]
    on: str
    provenance: NotRequired[Provenance | None]
    runs: list[Run]
    schema_version: int
