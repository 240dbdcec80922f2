"""What people describe in files and the core checks: platforms, disturbances, experiments."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from crosswind.documents import Document
from crosswind.errors import DescriptionError
from crosswind.files.reading import read_bytes
from crosswind.files.wrong_kind import read_as


def as_json(value: Any, what: str) -> str:
    """Return what the core reads.

    Raises
    ------
    DescriptionError
        When a number is not finite, with its path, or a value is of a type that no file has.
    """
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        if isinstance(error, ValueError) and (found := _not_finite(value, "")) is not None:
            path, number = found
            message = f"{what}{'.' if path[:1] not in ('', '[') else ''}{path} is {number}; it must be finite"
            raise DescriptionError(message, "description", "at most 1.79e308: an exponent too large?") from None
        hint = "every value must be a number, a string, a list or a dict"
        raise DescriptionError(f"{what}: {error}", "description", hint) from None


def _not_finite(value: Any, path: str) -> tuple[str, float] | None:
    """Return the path and the value of the first number that is not finite."""
    if isinstance(value, float):
        return None if math.isfinite(value) else (path, value)
    if isinstance(value, Mapping):
        parts = [(f"{path}.{name}".removeprefix("."), part) for name, part in value.items()]
    else:
        parts = [(f"{path}[{at}]", part) for at, part in enumerate(value)] if isinstance(value, (list, tuple)) else []
    return next((found for place, part in parts if (found := _not_finite(part, place))), None)


class Checked(Protocol):
    """A description that the core (`crates/schema`) has checked."""

    def to_json(self) -> str: ...  # noqa: D102


C = TypeVar("C", bound=Checked)


class Description(Generic[C]):
    """A checked description. Made by `load`, `from_toml` or `from_dict`."""

    _KIND: ClassVar[str]
    """What it is called in errors; its file is `KIND.toml`."""
    _CORE: ClassVar[Any]
    """The class of the core that checks it."""

    def __init__(self, checked: C) -> None:
        self._checked = checked

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read its file (docs/reference/files.md), or the same fields as JSON where the file's name ends in `.json`.

        Raises
        ------
        DescriptionError
            With file, line, column, field, value, unit and permitted range of the first thing that is wrong.
        """
        read = cls._CORE.from_json if Path(path).suffix == ".json" else cls._CORE.from_toml
        with read_as(path, *([cls._KIND, "recording", "noise"] if cls._KIND == "disturbance" else [cls._KIND])):
            return cls(read(cls._content(path), str(path)))

    @classmethod
    def _content(cls, path: str | Path) -> bytes:
        return read_bytes(path)

    @classmethod
    def from_toml(cls, text: str, file: str | None = None) -> Self:
        """Check what is given as TOML text; errors call it `file`."""
        return cls(cls._CORE.from_toml(text.encode(), file or f"{cls._KIND}.toml"))

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Self:
        """Check what is given as a dictionary with the fields of the file."""
        return cls(cls._CORE.from_json(as_json(description, cls._KIND).encode(), cls._KIND))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._from_json, (self._checked.to_json(),)  # it travels to other processes as its text

    @classmethod
    def _from_json(cls, text: str) -> Self:
        return cls(cls._CORE.from_json(text.encode(), cls._KIND))

    @property
    def name(self) -> str:
        """What people call it."""
        return str(self.to_dict()["name"])

    def to_dict(self) -> Document:
        """Return the content of the file as a dictionary, as it was checked."""
        description: Document = json.loads(self._checked.to_json())
        return description
