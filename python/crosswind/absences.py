"""What recording a machine and injecting into a command both give: when processors really were away.

And what either leaves in the kernel if it is killed together with everything that guards it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosswind import _core
from crosswind.errors import Notice, warning
from crosswind.files.atomic import write_text


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

    summary: Mapping[str, Any]
    recorded: str

    @property
    @abstractmethod
    def warnings(self) -> list[Notice]:
        """What one should know before using it: code, message, hint."""

    def to_dict(self) -> dict[str, object]:
        """Return the summary with its warnings."""
        return {**self.summary, "warnings": self.warnings}

    def save(self, path: str | Path) -> None:
        """Write the intervals as they really were, as a `disturbance.toml` of kind recorded."""
        write_text(self.recorded, path)


def leftovers() -> list[dict[str, str]]:
    """Return what killed commands have left in the kernel: `kind` and `name` of each.

    Kinds are "trace" (a trace instance, into which the kernel still writes), "frozen-group", "occupied-group" (which
    still holds processes of a task) and "group" (control groups), and "stopped" (a process of an injection that has
    ended). What belongs to a process that runs is not among them.
    """
    found: list[dict[str, str]] = json.loads(_core.leftovers())
    return found


def remove_leftovers() -> list[Notice]:
    """Remove what killed commands have left in the kernel; return warnings that name it.

    Stopped processes and groups that still hold processes of a task are left alone.
    """
    removed: list[dict[str, str]] = json.loads(_core.remove_leftovers())
    if not removed:
        return []
    names = ", ".join(one["name"] for one in removed)
    message = f"removed what an earlier command left when it was killed: {names}"
    return [warning("leftovers-removed", message, "`crosswind doctor` names what is left")]
