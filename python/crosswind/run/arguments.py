"""Checks of arguments of `map` and `Farm`: a wrong one is refused by its name before the work begins."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

from crosswind.errors import DescriptionError

MOST_NODES: Final = 10_000
"""Most nodes on this machine."""
_MOST: Final = 2**32 - 1
_MOST_S: Final = 1e9


def whole(name: str, value: Any, least: int, most: int = _MOST) -> int:
    """Return an argument that must be a whole number; those of NumPy are taken too.

    Raises
    ------
    DescriptionError
        When it is something else, or out of range.

    Examples
    --------
    >>> whole("retries", 3, 0)
    3
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least:
        allowed = f"at least {least}"
        what = "it must be" if number is not None else "it must be a whole number,"
        raise DescriptionError(f"{name} is {_shown(value)}; {what} {allowed}", "argument")
    if number > most:
        raise DescriptionError(f"{name} is {_shown(value)}; it must be at most {most}", "argument")
    return number


def seconds(name: str, value: Any, *, may_be_past: bool = False) -> float:
    """Return an argument that must be a time in seconds, above 0 unless `may_be_past`: a deadline may be.

    Raises
    ------
    DescriptionError
        When it is something else, or no finite time.

    Examples
    --------
    >>> seconds("task_timeout_s", 1)
    1.0
    """
    try:
        number = math.nan if isinstance(value, (bool, str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if may_be_past and not math.isnan(number):
        return min(number, _MOST_S)
    if not 0.0 < number <= _MOST_S:
        allowed = "a number of seconds" if may_be_past else f"a number of seconds above 0, at most {_MOST_S:g}"
        raise DescriptionError(f"{name} is {_shown(value)}; it must be {allowed}", "argument", "None: no limit")
    return number


def one_of(name: str, value: Any, allowed: Collection[str]) -> None:
    """Refuse an argument that is none of the words that it may be."""
    if not isinstance(value, str) or value not in allowed:
        raise DescriptionError(f"{name} is {_shown(value)}; it must be one of: {', '.join(allowed)}", "argument")


def directory(name: str, value: Any) -> Path:
    """Return an argument that must name a directory, which need not exist yet."""
    try:
        path = os.fsdecode(os.fspath(value))
    except TypeError:
        path = ""
    if not path or "\0" in path:
        message = f"{name} is {_shown(value)}; it must be the path of a directory"
        raise DescriptionError(message, name, "name a directory that can be made")
    return Path(path)


def _shown(value: Any) -> str:
    """Return a value as an error shows it: what a user passed may be huge, or refuse to be shown."""
    try:
        shown = repr(value)
    except Exception:
        return f"a {type(value).__name__}"
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
