"""What several kinds of documents hold. Written by crates/schema/typed_documents.py."""

from __future__ import annotations

from typing import Literal, TypeAlias, TypedDict

ComputedBy: TypeAlias = Literal["simulated", "emulated", "diagonals", "burn", "triad", "command", "callable"]


Ports: TypeAlias = Literal["single", "multi"]


class Warning(TypedDict):
    """Something to know before trusting a number."""

    code: str
    hint: str
    message: str
