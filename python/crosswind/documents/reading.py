"""Reads a document, and refuses one that lacks a field or has a wrong one; pydantic checks it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from crosswind.errors import DescriptionError
from crosswind.files.atomic import read_json
from crosswind.files.reading import Links

_SHOWN = 60


def read_document(
    path: str | Path, kind: str, schema_version: int, hint: str, kind_of: Any, links: Links = "any"
) -> Any:
    """Read a result as `read_json` does, and refuse one with a wrong field.

    Raises
    ------
    DescriptionError
        As `read_json` and `refuse_wrong_fields`.
    """
    document = read_json(path, kind, schema_version, hint, links)
    refuse_wrong_fields(document, kind_of, path, hint)
    return document


def refuse_wrong_fields(document: Any, kind_of: Any, path: str | Path, hint: str) -> None:
    """Refuse a document that lacks a field, or has one of another kind.

    Raises
    ------
    DescriptionError
        With file, field, value and what is permitted, of the first that is wrong; code `shape`.

    Examples
    --------
    >>> from typing_extensions import TypedDict
    >>> from crosswind.documents.values import Share
    >>> refuse_wrong_fields({"alpha": 2.0, "code": "a"}, TypedDict("T", {"alpha": Share}), "a.json", "make another")
    Traceback (most recent call last):
    ...
    crosswind.errors.DescriptionError: a.json: alpha is 2.0: input should be less than 1
    hint: make another
    """
    try:
        TypeAdapter(kind_of).validate_python(document, strict=True)
    except ValidationError as error:
        raise DescriptionError(f"{path}: {_in_words(error.errors(include_url=False)[0])}", "shape", hint) from None


def _in_words(first: Any) -> str:
    where = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in first["loc"])[1:] or "the document"
    if first["type"] == "missing":
        return f"{where} is missing"
    if first["type"] == "value_error":
        return str(first["ctx"]["error"])
    shown = repr(first["input"])
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
    return f"{where} is {shown}: {first['msg'][0].lower()}{first['msg'][1:]}"
