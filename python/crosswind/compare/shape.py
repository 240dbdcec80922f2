"""The fields of a `comparison.json` (docs/reference/files.md)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from annotated_types import Len
from pydantic import AfterValidator
from typing_extensions import TypedDict

from crosswind.files.shape import Host, LooksShape, Positive, Share, Told, Two, of_one_length


class _Fields(TypedDict):
    """A comparison of two commands."""

    asked: NotRequired[str]
    commands: Annotated[list[str], Len(2, 2)]
    shell: NotRequired[bool]
    margin: Share
    by: Literal["wall", "cpu"]
    host: Host
    looks: LooksShape
    wall_s: list[Annotated[list[Positive], Len(2, 2)]]
    cpu_s: list[Two]
    warnings: list[Told]
    interrupted: NotRequired[bool]


def _consistent(document: Any) -> Any:
    of_one_length(document, ("wall_s", "cpu_s"))
    return document


ComparisonShape = Annotated[_Fields, AfterValidator(_consistent)]
