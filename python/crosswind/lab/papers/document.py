"""The fields of a `study.json`, of either kind of study."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from annotated_types import Len
from pydantic import AfterValidator
from typing_extensions import TypedDict

from crosswind.documents.values import Number, Positive, Two

_Word = str | Number | bool | None
_Three = Annotated[list[str], Len(3, 3)]


class _Answer(TypedDict):
    reading: str
    holds: bool
    found: str


class _Band(TypedDict):
    source: Literal["printed digits", "printed range", "the text's word", "own"]
    words: str
    low: NotRequired[Number]
    high: NotRequired[Number]


class _Check(TypedDict):
    text: str
    found: str
    verdict: Literal["holds", "does not hold", "not decidable from the text", "paper wrong"]
    hangs_on: NotRequired[str]
    answers: NotRequired[list[_Answer]]
    band: NotRequired[_Band]
    defect: NotRequired[str]


class _Claim(TypedDict):
    id: str
    section: str
    text: str
    checks: Annotated[list[_Check], Len(1)]


class _Study(TypedDict):
    """What both kinds have."""

    form: str
    calibration: list[_Three]
    claims: list[_Claim]


class _Row(TypedDict):
    """Fields of every row of a figure. A row also has the parameters that its figure varies."""

    program: str
    makespan_s: Positive
    slowdown: Positive
    slowdown_low: Number
    slowdown_high: Number
    slowdown_ci95: NotRequired[Two | None]
    stalled: Number
    bounds: dict[str, Number | None]


class _Figure(TypedDict):
    title: NotRequired[str]
    rows: Annotated[list[_Row], Len(1)]


class _Daemon(TypedDict):
    daemon: str
    run_least_ms: Positive
    run_most_ms: Positive
    interval_s: Positive


class StudyDocument(_Study):
    """Of a study whose results are figures."""

    best_windows: dict[str, int]
    table_1: list[_Daemon]
    figures: dict[str, _Figure]


class _Drawing(TypedDict):
    title: str
    words: str
    points: Annotated[list[dict[str, _Word]], Len(1)]
    x: str
    log: bool
    y: NotRequired[str]


class _Part(TypedDict):
    id: str
    title: str
    columns: list[Annotated[list[str], Len(2, 2)]]
    rows: list[list[str | Number | None]]
    drawings: list[_Drawing]
    note: str


def _rectangular(part: Any) -> Any:
    for place, row in enumerate(part["rows"]):
        if len(row) != len(part["columns"]):
            message = f"rows[{place}] has {len(row)} values; the part has {len(part['columns'])} columns"
            raise ValueError(f"part {part['id']!r}: {message}")
    return part


class TabledStudyDocument(_Study):
    """Of a study whose results are tables."""

    paper: str
    title: str
    parts: list[Annotated[_Part, AfterValidator(_rectangular)]]


AnyStudyDocument = StudyDocument | TabledStudyDocument
"""Of either kind of study."""
