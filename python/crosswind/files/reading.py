"""Files from outside, read in bounded memory: what is read is counted, whatever a file says about its size."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosswind import _core
from crosswind.errors import DescriptionError

if TYPE_CHECKING:
    import pyarrow as pa

LARGEST_BYTES: int = _core.LARGEST_DESCRIPTION_BYTES
LARGEST_STREAM_BYTES = 64_000_000
"""Of what does not say how long it is: a pipe, a device, a file of /proc."""
LARGEST_VALUES = 30_000_000
"""Values of a JSON document: Python takes about 100 bytes for each, however short its text is."""
LARGEST_CELLS = 500_000_000
"""Rows times columns of a Parquet file: a billion equal values take no more than a few bytes there."""


def read_bytes(path: str | Path, limit: int = LARGEST_BYTES) -> bytes:
    """Return a file's content, of at most so many bytes.

    Raises
    ------
    DescriptionError
        When there is no such file, it cannot be read, or it is larger.
    """
    try:
        with open(path, "rb") as file:  # noqa: PTH123 (a path may be a string)
            status = os.fstat(file.fileno())
            told = status.st_size if stat.S_ISREG(status.st_mode) else 0
            most = min(limit, LARGEST_BYTES if told else LARGEST_STREAM_BYTES)
            if told > most:
                raise _too_large(path, f"the file is {_megabytes(told)}", most)
            content = file.read((told or most) + 1)
            if 0 < told < len(content):
                content += file.read(most - len(content) + 1)  # it has grown meanwhile
    except OSError as error:
        raise DescriptionError(f"{path}: {(error.strerror or str(error)).lower()}", "no-file") from None
    if len(content) > most:
        raise _too_large(path, f"it has more than {_megabytes(most)}", most)
    return content


def _too_large(path: str | Path, what: str, most: int) -> DescriptionError:
    return DescriptionError(
        f"{path}: {what}; at most {_megabytes(most)} are read", "too-large", "is this the right file?"
    )


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.0f} MB" if count >= 1_000_000 else f"{count} bytes"


def parse_json(content: bytes) -> Any:
    """Return the value of a JSON document.

    Raises
    ------
    ValueError
        When it is not JSON, is nested too deeply, or has more values than fit in memory.
    """
    if content.count(b",") + content.count(b"[") + content.count(b"{") > LARGEST_VALUES:
        raise ValueError(f"it has more than {LARGEST_VALUES / 1e6:.0f} million values, the most that are read")
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("its lists and objects are nested too deeply") from None


def json_of(path: str | Path, code: str, hint: str | None = None) -> Any:
    """Return the value of a JSON file.

    Raises
    ------
    DescriptionError
        When the file cannot be read or is too large; with `code` and `hint`, when it is not JSON.
    """
    content = read_bytes(path)
    try:
        return parse_json(content)
    except ValueError as error:
        raise DescriptionError(f"{path}: is not JSON: {error}", code, hint) from None


def read_parquet(path: str | Path) -> pa.Table:
    """Return the table of a Parquet file; what is wrong with the file itself is Arrow's to tell.

    Raises
    ------
    DescriptionError
        When the table would be too large.
    """
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        rows, columns = file.metadata.num_rows, file.metadata.num_columns
        if rows * columns > LARGEST_CELLS:
            message = f"{path}: the table has {rows} rows of {columns} columns; at most {LARGEST_CELLS} values are read"
            raise DescriptionError(message, "too-large", "is this the right file?")
        return file.read()
