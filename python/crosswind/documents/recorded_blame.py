"""The fields of a verdict on recorded ranks, as its file holds them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from annotated_types import Ge, Len
from pydantic import AfterValidator
from typing_extensions import TypedDict

from crosswind.documents.blame import Count, RecordedBlameDocument
from crosswind.documents.values import NotNegative, Number, of_one_length

_From1 = Annotated[int, Ge(1)]


class _Spans(TypedDict):
    rank: list[Count]
    step: list[_From1]
    start_s: list[Number]
    end_s: list[Number]
    doing: list[Literal["compute", "call", "wait"]]
    operation: list[str | None]
    waits_for: list[Count | None]
    caused_by: list[Count | None]


class _Strip(TypedDict):
    first: list[_From1]
    count: list[_From1]
    length_s: list[Number]
    waited_s: dict[str, list[NotNegative]]


class Timeline(TypedDict):
    """What each rank did in some steps, and the waits in each step."""

    first_step: _From1
    last_step: _From1
    ranks: Annotated[list[Count], Len(1)]
    spans: _Spans
    left_out: Count
    steps: _Strip
    caused_s: dict[str, NotNegative]


class _Fields(RecordedBlameDocument):
    schema_version: int
    kind: Literal["recorded-blame"]
    traces: list[str]
    timeline: Timeline | None


def _consistent(document: Any) -> Any:
    timeline = document["timeline"]
    if timeline:
        of_one_length(timeline["spans"], tuple(_Spans.__annotations__))
        strip = timeline["steps"]
        of_one_length({**strip, **strip["waited_s"]}, ("first", "count", "length_s", *strip["waited_s"]))
    if (document["verdict"] == "straggler") != bool(document["culprits"]):
        raise ValueError(f"verdict is {document['verdict']} with {len(document['culprits'])} culprits")
    return document


RecordedBlameFile = Annotated[_Fields, AfterValidator(_consistent)]
