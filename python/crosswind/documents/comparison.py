"""The fields of a `comparison.json`, of two commands and of several (docs/reference/files.md)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from annotated_types import Ge, Len
from pydantic import AfterValidator
from typing_extensions import TypedDict

from crosswind.documents.values import Head, Host, Looks, Notice, NotNegative, Positive, Share, Two, of_one_length


class _Fields(Head):
    """A comparison of two commands."""

    asked: NotRequired[str]
    commands: Annotated[list[str], Len(2, 2)]
    shell: NotRequired[bool]
    margin: Share
    by: Literal["wall", "cpu"]
    host: Host
    looks: Looks
    wall_s: list[Annotated[list[Positive], Len(2, 2)]]
    cpu_s: list[Two]
    warnings: list[Notice]
    interrupted: NotRequired[bool]


class How(TypedDict):
    """How several commands ran."""

    shell: bool
    prepare: str | None
    ignore_failure: bool
    seed: int
    warm_up: Annotated[int, Ge(0)]
    host: Host


class _SeveralFields(TypedDict):
    """A comparison of several commands."""

    asked: str
    commands: Annotated[dict[str, str], Len(2, 26)]
    by: Literal["wall", "cpu"]
    margin: Share
    how: How
    interrupted: bool
    wall_s: list[list[Positive]]
    cpu_s: list[list[NotNegative]]


def _of_all(document: Any) -> Any:
    of_one_length(document, ("wall_s", "cpu_s"))
    count = len(document["commands"])
    for name in ("wall_s", "cpu_s"):
        if any(len(row) != count for row in document[name]):
            raise ValueError(f"{name} has a row without a value for each of {count} commands")
    return document


SeveralDocument = Annotated[_SeveralFields, AfterValidator(_of_all)]


def _consistent(document: Any) -> Any:
    of_one_length(document, ("wall_s", "cpu_s"))
    return document


ComparisonDocument = Annotated[_Fields, AfterValidator(_consistent)]
