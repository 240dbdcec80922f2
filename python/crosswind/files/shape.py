"""Whether a JSON document has the fields that its kind needs: typed dictionaries, checked by pydantic.

A module of shapes is imported where a file is read, and not before: pydantic takes 50 ms.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NotRequired

from annotated_types import Ge, Gt, Len, Lt
from pydantic import AfterValidator, AllowInfNan, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from crosswind.errors import DescriptionError
from crosswind.files.atomic import read_json
from crosswind.files.reading import Links

Number = Annotated[float, AllowInfNan(False)]
Share = Annotated[Number, Gt(0), Lt(1)]
Positive = Annotated[Number, Gt(0)]
NotNegative = Annotated[Number, Ge(0)]
Two = Annotated[list[Number], Len(2, 2)]
_SHOWN = 60


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


LooksShape = Annotated[_Looks, AfterValidator(_rising)]
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


def read_shaped(
    path: str | Path, kind: str, schema_version: int, hint: str, shape: Any, links: Links = "any"
) -> dict[str, Any]:
    """Read a result as `read_json` does, and refuse one with a wrong field.

    Raises
    ------
    DescriptionError
        As `read_json` and `refuse_misshapen`.
    """
    document = read_json(path, kind, schema_version, hint, links)
    refuse_misshapen(document, shape, path, hint)
    return document


def refuse_misshapen(document: Any, shape: Any, path: str | Path, hint: str) -> None:
    """Refuse a document that lacks a field, or has one of another kind.

    Raises
    ------
    DescriptionError
        With file, field, value and what is permitted, of the first that is wrong; code `shape`.

    Examples
    --------
    >>> refuse_misshapen({"alpha": 2.0, "code": "a"}, TypedDict("T", {"alpha": Share}), "a.json", "make another")
    Traceback (most recent call last):
    ...
    crosswind.errors.DescriptionError: a.json: alpha is 2.0: input should be less than 1
    """
    try:
        TypeAdapter(shape).validate_python(document, strict=True)
    except ValidationError as error:
        raise DescriptionError(f"{path}: {_said(error.errors(include_url=False)[0])}", "shape", hint) from None


def _said(first: Any) -> str:
    where = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in first["loc"])[1:] or "the document"
    if first["type"] == "missing":
        return f"{where} is missing"
    if first["type"] == "value_error":
        return str(first["ctx"]["error"])
    shown = repr(first["input"])
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
    return f"{where} is {shown}: {first['msg'][0].lower()}{first['msg'][1:]}"
