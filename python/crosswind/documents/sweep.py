"""The fields of the indexes of a sweep and of a measured cluster (docs/reference/files.md)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from annotated_types import Len
from typing_extensions import TypedDict


class SweptHost(TypedDict):
    """The measured host."""

    name: str
    cpu: str
    kernel: str


class SweepDocument(TypedDict):
    """What a sweep's directory holds."""

    swept: str
    values: Annotated[list[int | str], Len(1)]
    arguments: dict[str, Any]
    seed: int
    host: SweptHost


class Failed(TypedDict):
    """A measurement that is missing, and why."""

    at: str
    peer: str
    direction: str
    why: str


class MeasuredClusterDocument(TypedDict):
    """What the directory of a measured cluster holds."""

    arguments: dict[str, Any]
    cluster: str
    pairs: Literal["all", "star", "tree"]
    hosts: dict[str, str]
    links: list[Annotated[list[str], Len(2, 2)]]
    ended: Literal["under way", "interrupted", "done"]
    lost: NotRequired[dict[str, str]]
    failed: NotRequired[list[Failed]]
