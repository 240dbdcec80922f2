"""Values that documents of several kinds hold, with the range of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NotRequired

from annotated_types import Ge, Gt, Len, Lt
from pydantic import AfterValidator, AllowInfNan
from typing_extensions import TypedDict

Number = Annotated[float, AllowInfNan(False)]
Share = Annotated[Number, Gt(0), Lt(1)]
Positive = Annotated[Number, Gt(0)]
NotNegative = Annotated[Number, Ge(0)]
Two = Annotated[list[Number], Len(2, 2)]


class Head(TypedDict):
    """What a document says of itself; whether it is of the right kind and version is checked before its fields are."""

    schema_version: NotRequired[int]
    kind: NotRequired[str]
    crosswind: NotRequired[str]


class Notice(TypedDict):
    """A warning."""

    code: str
    message: str
    hint: str


class Host(TypedDict):
    """What is known of a host."""

    name: NotRequired[str | None]
    cpu: NotRequired[str | None]
    kernel: NotRequired[str | None]
    settings: dict[str, str | int | float | bool | None]


class _Looks(TypedDict):
    planned_s: NotNegative
    alpha: Share
    one: bool
    began_s: NotNegative
    before: NotNegative
    taken: list[Two]


def _rising(looks: Any) -> Any:
    before = (0.0, 0.0)
    for at_s, error in looks["taken"]:
        if not (at_s > before[0] and before[1] <= error < 1.0):
            raise ValueError(
                f"looks.taken has {[at_s, error]} after {list(before)}; both must rise, the second below 1"
            )
        before = (at_s, error)
    return looks


Looks = Annotated[_Looks, AfterValidator(_rising)]
"""The looks of a session."""


def of_one_length(document: Mapping[str, Any], names: tuple[str, ...]) -> None:
    """Refuse columns of different lengths.

    Raises
    ------
    ValueError
        Naming two.
    """
    first = names[0]
    for name in names[1:]:
        if len(document[name]) != len(document[first]):
            raise ValueError(f"{name} has {len(document[name])} values and {first} {len(document[first])}")
