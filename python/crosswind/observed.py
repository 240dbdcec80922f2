"""When processors really were away: what recording a machine and injecting into a command both give."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosswind.files.stored import write_text


@dataclass(frozen=True)
class Observed(ABC):
    """A summary, and the intervals themselves.

    Attributes
    ----------
    summary : dict
        Figures, as JSON could hold them.
    recorded : str
        The intervals as they really were, as a `disturbance.toml` of kind recorded.
    """

    summary: dict[str, Any]
    recorded: str

    @property
    @abstractmethod
    def warnings(self) -> list[dict[str, str]]:
        """What one should know before using it: code, message, hint."""

    def to_dict(self) -> dict[str, Any]:
        """Return the summary with its warnings."""
        return self.summary | {"warnings": self.warnings}

    def save(self, path: str | Path) -> None:
        """Write the intervals as they really were, as a `disturbance.toml` of kind recorded."""
        write_text(self.recorded, path)
