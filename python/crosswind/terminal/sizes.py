"""Sizes as people write and read them."""

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


def size(count: int) -> str:
    """Return a number of bytes with an SI prefix.

    Examples
    --------
    >>> size(64_000), size(1_000_000), size(65_536), size(512)
    ('64 kB', '1 MB', '65.54 kB', '512 B')
    """
    for factor, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= factor:
            return f"{float(f'{count / factor:.4g}'):,g} {unit}"
    return f"{count} B"
