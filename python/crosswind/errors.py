"""What can go wrong, for people and for scripts: every error has a `code` and, where one is known, a `hint`.

So has every warning, which stands beside a result: what one should know before one trusts it.
"""

from __future__ import annotations

import os
from typing import TypedDict


class Notice(TypedDict):
    """A warning, as it stands in files."""

    code: str
    hint: str
    message: str


def warning(code: str, message: str, hint: str) -> Notice:
    """Return a warning as it stands in files."""
    return {"code": code, "message": message, "hint": hint}


class CrosswindError(Exception):
    """Base of every error that Crosswind raises on purpose.

    Parameters
    ----------
    message : str
        What is wrong, with the field, the value and its unit.
    code : str
        Stable word for scripts.
    hint : str, optional
        What would mend it. Python prints it below the traceback of a script.
    """

    exit_code = 1

    def __init__(self, message: str, code: str = "failed", hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint

    @property
    def hint(self) -> str | None:
        """What would mend it."""
        return self._hint

    @hint.setter
    def hint(self, hint: str | None) -> None:
        self._hint = hint
        self.__notes__ = [f"hint: {hint}"] if hint else []


class DescriptionError(CrosswindError, ValueError):
    """A file or an argument that describes something is wrong."""

    exit_code = 2


class InfeasibleError(CrosswindError, ValueError):
    """What was asked for cannot be had on this platform."""

    exit_code = 2


class MeasurementError(CrosswindError, RuntimeError):
    """A measurement could not be made."""


class AgentLost(CrosswindError, RuntimeError):  # noqa: N818 (the name says what happened)
    """The other end went away."""


WATCHDOG_ONLY = "watchdog-only"
"""Code of the warning that something may not be traced, so that the kernel does not continue it by itself."""


def watchdog_only(what: str, undo: str = "`kill -CONT PID`") -> Notice:
    """Return the warning that only a watchdog continues what is stopped.

    Parameters
    ----------
    what : str
        What may not be traced, and what follows, as the beginning of a sentence.
    undo : str
        The command that continues it.
    """
    better = "permit tracing (kernel.yama.ptrace_scope)" if os.geteuid() == 0 else "run as root"
    message = f"{what}: it stays stopped if Crosswind and the watchdog are killed at the same moment"
    return warning(WATCHDOG_ONLY, message, f"{undo} continues it then; to be sure before, {better}")
