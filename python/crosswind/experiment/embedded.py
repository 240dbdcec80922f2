"""Files inside a `runs.json`: each with its SHA-256, and its content where that is not too large."""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Mapping
from typing import Any

from crosswind.errors import DescriptionError

MOST_BYTES = 16_000_000
"""Larger files are identified only; running again then needs the file itself."""


def embedded(content: bytes, most: int = MOST_BYTES) -> dict[str, str]:
    """Return a file as `runs.json` keeps it.

    Parameters
    ----------
    content : bytes
    most : int
        Bytes from which on only the digest is kept.

    Examples
    --------
    >>> content_of("tasks.csv", embedded(b"size_mb,work"))
    b'size_mb,work'
    >>> content_of("tasks.csv", embedded(b"size_mb,work", most=3)) is None
    True
    """
    entry = {"sha256": hashlib.sha256(content).hexdigest()}
    if len(content) <= most:
        entry["content"] = base64.b64encode(zlib.compress(content, 9)).decode()
    return entry


def content_of(name: str, entry: Mapping[str, Any]) -> bytes | None:
    """Return the content of a file that `runs.json` keeps; None where it has the digest only.

    Raises
    ------
    DescriptionError
        When the content is damaged.
    """
    text = entry.get("content")
    if text is None:
        return None
    damaged = DescriptionError(
        f"provenance.files: the content of {name!r} is damaged: it does not have the SHA-256 beside it",
        "damaged-file",
        "take an undamaged copy of the file of runs",
    )
    inflate = zlib.decompressobj()
    try:
        content = inflate.decompress(base64.b64decode(text, validate=True), MOST_BYTES + 1)
    except (binascii.Error, zlib.error, ValueError):
        raise damaged from None
    if not inflate.eof or hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise damaged
    return content
