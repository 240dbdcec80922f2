"""The fields of a blame of a command."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from annotated_types import Len
from pydantic import AfterValidator
from typing_extensions import TypedDict

from crosswind.blame.command import WITHOUT
from crosswind.blame.interleaving import BARE, DISTURBED
from crosswind.files.shape import Positive, Told, of_one_length


class _Fields(TypedDict):
    schema_version: int
    kind: Literal["command-blame"]
    disturbance: str
    causes: list[dict[str, Any]]
    kept: list[str]
    command: Annotated[list[str], Len(1)]
    elapsed_s: dict[str, Annotated[list[Positive], Len(2)]]
    interrupted: bool
    warnings: list[Told]


def _consistent(document: Any) -> Any:
    causes = [row.get("cause") for row in document["causes"]]
    needed = [BARE, DISTURBED, *(f"{WITHOUT}{cause}" for cause in causes)]
    if sorted(needed) != sorted(document["elapsed_s"]):
        raise ValueError(f"elapsed_s has {', '.join(document['elapsed_s'])}; its causes need {', '.join(needed)}")
    of_one_length(document["elapsed_s"], tuple(needed))
    return document


CommandBlameShape = Annotated[_Fields, AfterValidator(_consistent)]
