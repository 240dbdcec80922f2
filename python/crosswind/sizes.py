"""Sizes as people write them."""

from __future__ import annotations

import re

from crosswind.errors import DescriptionError

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def parse_bytes(text: str, what: str) -> int:
    """Read a size such as 64KiB, 1MB or 65536; `what` is named in the error.

    Raises
    ------
    DescriptionError
        When it is no size.

    Examples
    --------
    >>> parse_bytes("64KiB", "--message-size"), parse_bytes("1MB", "--message-size")
    (65536, 1000000)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", text)
    if not match or match[2].lower() not in _UNITS:
        hint = "such as 65536, 64KiB, 1MB"
        raise DescriptionError(f"{what} is {text!r}; it must be a number of bytes", "size", hint)
    return int(float(match[1]) * _UNITS[match[2].lower()])
