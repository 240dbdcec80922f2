"""Shares as people type them: 2 % is `2%` or `0.02`."""

from __future__ import annotations

from crosswind.errors import DescriptionError


def parsed_share(text: str, option: str) -> float:
    """Return a share between 0 and 1, ends excluded.

    Raises
    ------
    DescriptionError
        When it is none.

    Examples
    --------
    >>> parsed_share("0.5%", "--margin"), parsed_share("0.02", "--margin")
    (0.005, 0.02)
    """
    number, percent = text.strip().removesuffix("%"), text.strip().endswith("%")
    try:
        share = float(number) / (100.0 if percent else 1.0)
    except ValueError:
        share = float("nan")
    if not 0.0 < share < 1.0:
        message = f"{option} is {text!r}; it must be greater than 0 % and below 100 %"
        raise DescriptionError(message, "margin", f"such as {option} 1%, or {option} 0.01")
    return share
