"""The fields of a tolerance (docs/reference/files.md)."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class Limit(TypedDict):
    """What one field of a disturbance may be, while its source alone keeps a stated slowdown."""

    source: int
    cause: str
    field: str
    given: float
    relation: Literal["at most", "at least"]
    limit: float
    unit: str
    kept: bool
    expected: NotRequired[dict[str, float | None]]
    simulated: NotRequired[float | None]
    simulated_low: NotRequired[float | None]
    simulated_high: NotRequired[float | None]
    at_limit: NotRequired[float | None]
