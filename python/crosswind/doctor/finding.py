"""One thing that was looked at, and what is to be thought of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

Level = Literal["ok", "note", "warning", "problem"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes
    ----------
    code : str
        Stable word for scripts, one per thing that is looked at.
    level : str
        "ok"; "note": it moves the answer or is missing, but disturbs nothing; "warning": it will disturb a
        measurement; "problem": there will be no measurement, or a wrong one.
    message : str
        What was seen, with its value and unit.
    hint : str or None
        What mends it: a command where there is one.
    """

    code: str
    level: Level
    message: str
    hint: str | None = None

    def to_dict(self) -> dict[str, str | None]:
        """Return code, level, message and hint."""
        return asdict(self)
