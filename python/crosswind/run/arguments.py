"""Checks of arguments that several functions take."""

from __future__ import annotations

from numbers import Integral

from crosswind.errors import DescriptionError


def check_count(name: str, count: object, least: int) -> None:
    """Refuse an argument that is no number of at least `least`; None is permitted.

    Raises
    ------
    DescriptionError
        With what it is.
    """
    if count is None:
        return
    if not isinstance(count, Integral) or count < least:
        raise DescriptionError(f"{name} is {count!r}; it must be a whole number of at least {least}", "argument")
