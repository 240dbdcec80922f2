"""Files from outside, read in bounded memory: what is read is counted, whatever a file says about its size."""

from __future__ import annotations

import errno
import json
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from crosswind import _core
from crosswind.errors import DescriptionError

if TYPE_CHECKING:
    import pyarrow as pa

LARGEST_BYTES: int = _core.LARGEST_DESCRIPTION_BYTES
LARGEST_STREAM_BYTES = 64_000_000
"""Of what does not say how long it is: a pipe, a device, a file of /proc."""
FIFO_S = 5.0
"""How long a FIFO with a name may take in all, s: any user may put one where a file is read, and write byte by byte."""
LARGEST_VALUES = 30_000_000
"""Values of a JSON document: Python takes about 100 bytes for each, however short its text is."""
LARGEST_CELLS = 500_000_000
"""Rows times columns of a Parquet file: a billion equal values take no more than a few bytes there."""


Links = Literal["any", "own", "none"]
"""Which symbolic links are followed where a path ends in one: all, those of this user or root, or none."""


def read_bytes(path: str | Path, limit: int = LARGEST_BYTES, links: Links = "any") -> bytes:
    """Return a file's content, of at most `limit` bytes.

    A FIFO is read too, but for no longer than `FIFO_S`. A pipe that this process was given, as by a
    shell's `<(command)`, is read to its end, however long that takes.

    Raises
    ------
    DescriptionError
        When there is no such file, it cannot be read, it is larger, or it is a link that `links` excludes.
    """
    try:
        with _opened(path, links) as file:
            status = os.fstat(file.fileno())
            told = status.st_size if stat.S_ISREG(status.st_mode) else 0
            most = min(limit, LARGEST_BYTES if told else LARGEST_STREAM_BYTES)
            if told > most:
                raise _too_large(path, f"the file is {_megabytes(told)}", most)
            if links == "none" and not stat.S_ISREG(status.st_mode):
                raise DescriptionError(f"{path}: not a regular file", "no-file")
            if stat.S_ISFIFO(status.st_mode) and not _is_inherited(file.fileno()):
                content = _of_fifo(path, file.fileno(), most + 1)
            else:
                os.set_blocking(file.fileno(), True)
                content = file.read((told or most) + 1)
            if 0 < told < len(content):
                content += file.read(most - len(content) + 1)  # it has grown meanwhile
    except OSError as error:
        hint = "name a file in it" if isinstance(error, IsADirectoryError) else None
        raise DescriptionError(f"{path}: {(error.strerror or str(error)).lower()}", "no-file", hint) from None
    if len(content) > most:
        raise _too_large(path, f"it has more than {_megabytes(most)}", most)
    return content


def _opened(path: str | Path, links: Links) -> IO[bytes]:
    """Open a file without waiting for the other end of a FIFO, nor for a device."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    try:
        descriptor = os.open(path, flags if links == "any" else flags | os.O_NOFOLLOW)
    except ValueError as error:  # a name that no file has: with a NUL, or a lone surrogate
        raise DescriptionError(f"{path}: no name of a file: {error}", "no-file") from None
    except OSError as error:
        if error.errno != errno.ELOOP or not Path(path).is_symlink():
            raise
        if links == "none":
            raise DescriptionError(f"{path}: a symbolic link, which is not followed here", "no-file") from None
        if Path(path).lstat().st_uid not in (0, os.geteuid()):
            hint = "name the file itself"
            raise DescriptionError(f"{path}: a symbolic link of another user", "no-file", hint) from None
        descriptor = os.open(path, flags)
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return os.fdopen(descriptor, "rb")


def _is_inherited(descriptor: int) -> bool:
    """Whether a pipe has no name, so that it came from the process that started this one."""
    return str(Path(f"/proc/self/fd/{descriptor}").readlink()).startswith("pipe:")


def _of_fifo(path: str | Path, descriptor: int, most: int) -> bytes:
    """Return what is written to a FIFO until its writers have closed it, at most `most` bytes.

    Raises
    ------
    DescriptionError
        When that takes longer than `FIFO_S`.
    """
    content, until = bytearray(), time.monotonic() + FIFO_S
    while len(content) < most:
        try:
            part = os.read(descriptor, min(most - len(content), 1 << 20))
        except BlockingIOError:  # there is a writer, and it has written nothing yet
            part = None
        if part:
            content += part
        elif part is not None and content:
            return bytes(content)
        else:
            time.sleep(0.01)
        if time.monotonic() > until:
            what = "was not closed by its writer" if content else "got no content"
            hint = "write a file first, or name <(COMMAND), which is read to its end"
            raise DescriptionError(f"{path}: a FIFO that {what} within {FIFO_S:g} s", "no-file", hint)
    return bytes(content)


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


def json_of(path: str | Path, code: str, hint: str | None = None, links: Links = "any") -> Any:
    """Return the value of a JSON file; `links` as in `read_bytes`.

    Raises
    ------
    DescriptionError
        When the file cannot be read or is too large; with `code` and `hint`, when it is not JSON.
    """
    content = read_bytes(path, links=links)
    try:
        return parse_json(content)
    except ValueError as error:
        raise DescriptionError(f"{path}: is not JSON: {error}", code, hint) from None


@contextmanager
def damaged_tables() -> Iterator[None]:
    """Turn whatever pyarrow raises of a damaged Parquet file into an OSError with one line."""
    import pyarrow as pa

    arrow = (pa.ArrowException, ValueError, LookupError, NotImplementedError, TypeError, ArithmeticError, MemoryError)
    try:
        yield
    except (DescriptionError, OSError):
        raise
    except arrow as error:  # all of these were seen
        raise OSError((str(error).splitlines() or [type(error).__name__])[0][:200]) from None


def parquet_metadata(path: str | Path) -> dict[bytes, bytes]:
    """Return what stands in the header of a Parquet file; of what is none, nothing."""
    import pyarrow.parquet as pq

    try:
        with damaged_tables():
            return dict(pq.read_schema(path).metadata or {})
    except OSError:
        return {}


def read_parquet(path: str | Path) -> pa.Table:
    """Return the table of a Parquet file.

    Raises
    ------
    DescriptionError
        When the table would be too large.
    OSError
        When there is no such file, or it is damaged.
    """
    import pyarrow.parquet as pq

    with damaged_tables(), pq.ParquetFile(path) as file:
        rows, columns = file.metadata.num_rows, file.metadata.num_columns
        if rows * columns > LARGEST_CELLS:
            message = f"{path}: the table has {rows} rows of {columns} columns; at most {LARGEST_CELLS} values are read"
            raise DescriptionError(message, "too-large", "is this the right file?")
        return file.read()
