"""Disturbance: when the processors of a parallel program's ranks are away, and why (`disturbance.toml`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from crosswind import _core
from crosswind.errors import DescriptionError
from crosswind.platform import read_bytes


class Disturbance:
    """A sum of sources, each with a cause; the same file is simulated, injected, and recorded.

    Fields, units and ranges of a source are those of `disturbance.toml` (docs/reference/files.md).

    Examples
    --------
    >>> cron = {"kind": "daemon", "cause": "cron", "interval_s": 60, "duration_s": 0.005}
    >>> disturbance = Disturbance.from_dict({"schema_version": 1, "name": "quiet", "source": [cron]})
    >>> disturbance.causes
    ['cron']
    """

    def __init__(self, checked: _core.Disturbance) -> None:
        self._checked = checked

    @classmethod
    def load(cls, path: str | Path) -> Disturbance:
        """Read a `disturbance.toml`, or the same fields as JSON where the file's name ends in `.json`.

        Raises
        ------
        DescriptionError
            With file, line, column, field, value, unit and permitted range of the first thing that is wrong.
        """
        read = _core.Disturbance.from_json if Path(path).suffix == ".json" else _core.Disturbance.from_toml
        return cls(read(read_bytes(path), str(path)))

    @classmethod
    def from_toml(cls, text: str, file: str = "disturbance.toml") -> Disturbance:
        """Check a disturbance given as TOML text."""
        return cls(_core.Disturbance.from_toml(text.encode(), file))

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Disturbance:
        """Check a disturbance given as a dictionary with the fields of `disturbance.toml`."""
        try:
            text = json.dumps(description, allow_nan=False)
        except (TypeError, ValueError) as error:
            hint = "numbers must be finite, and every value a number, a string, a list or a dict"
            raise DescriptionError(f"disturbance: {error}", "description", hint) from None
        return cls(_core.Disturbance.from_json(text.encode(), "disturbance"))

    @property
    def name(self) -> str:
        """What people call it."""
        return str(self.to_dict()["name"])

    @property
    def causes(self) -> list[str]:
        """The causes, each once, in the order of the file: the units of blame."""
        return list(self._checked.causes())

    def keeping(self, causes: Iterable[str]) -> Disturbance:
        """Return the disturbance with no causes but these; each keeps the times that it has beside the others."""
        kept, checked = set(causes), self._checked
        for cause in self.causes:
            if cause not in kept:
                checked = checked.without(cause)
        return Disturbance(checked)

    def without(self, *causes: str) -> Disturbance:
        """Return the disturbance without some causes.

        Raises
        ------
        DescriptionError
            When a cause is not there.
        """
        checked = self._checked
        for cause in causes:
            checked = checked.without(cause)
        return Disturbance(checked)

    def aligned(self) -> Disturbance:
        """Return the disturbance with every cause at the same times on all the ranks that it strikes."""
        return Disturbance(self._checked.aligned())

    def to_dict(self) -> dict[str, Any]:
        """Return the content of `disturbance.toml` as a dictionary, defaults filled in."""
        description: dict[str, Any] = json.loads(self._checked.to_json())
        return description

    def to_toml(self) -> str:
        """Return the content of `disturbance.toml`."""
        return self._checked.to_toml()

    def __repr__(self) -> str:
        return f"Disturbance({self.name!r}, {', '.join(self.causes)})"
