"""Files of recorded programs: which files are some, and how they are read."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, cast

from crosswind import _core
from crosswind.errors import DescriptionError
from crosswind.terminal.waiting import mapped, threads

PART_BYTES = 1 << 20
"""How much of a file is handed to its reader at a time."""
HEAD_BYTES = 4096
READERS = 2
"""Files read at a time: unpacking and scanning release the interpreter."""
GZIP = b"\x1f\x8b"


def is_recorded(path: str | Path) -> bool:
    r"""Return whether a file is a trace of a program, and not a description in TOML.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "steps.csv"
    >>> _ = file.write_text("rank,step,seconds\n0,0,0.1\n")
    >>> is_recorded(file)
    True
    """
    path = Path(path)
    if path.is_dir():
        return any(is_recorded(one) for one in files_of(path)[:1])
    if not path.is_file():
        return path.name.endswith((".gz", ".json", ".jsonl", ".trace", ".csv"))
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return False
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    first = text.split(b"\n", 1)[0]
    names = {name.strip() for name in first.split(b",")}
    return (
        head.startswith(GZIP)
        or text.startswith((b"{", b"[{", b"[\n", b"MPI_", b"num_ranks ", b"//", b"/*"))
        or b"\nMPI_" in text
        or {b"rank", b"step"} <= names
    )


def files_of(path: Path) -> list[Path]:
    """Return the file, or the files of a directory."""
    if not path.is_dir():
        return [path]
    return sorted(one for one in path.iterdir() if one.is_file() and not one.name.startswith("."))


def read_recorded(paths: Sequence[str | Path]) -> tuple[list[_core.RecordedFile], str]:
    """Read the files of one recorded program, two at a time.

    Parameters
    ----------
    paths : sequence of path
        A directory stands for its files; gzip is unpacked.

    Returns
    -------
    list of RecordedFile
        What the files hold.
    str
        The digest of their bytes, unpacked: hexadecimal SHA-256.

    Raises
    ------
    DescriptionError
        When a file cannot be read, is damaged, or is no trace.
    """
    with threads(READERS) as pool:
        read = list(mapped(pool, _read, [one for path in paths for one in files_of(Path(path))]))
    return [file for file, _ in read], hashlib.sha256(b"".join(digest for _, digest in read)).hexdigest()


def _read(path: Path) -> tuple[_core.RecordedFile, bytes]:
    reader, digest = _core.RecordedFile(str(path)), hashlib.sha256()
    try:
        with _opened(path) as file:
            while part := file.read(PART_BYTES):
                reader.feed(part)
                digest.update(part)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DescriptionError(
            f"{path}: the gzip file is damaged or cut short ({error})", "trace", "record again, or copy the file again"
        ) from None
    except (OSError, ValueError) as error:
        if isinstance(error, DescriptionError):
            raise
        raise DescriptionError(
            f"{path}: {(getattr(error, 'strerror', None) or str(error)).lower()}", "no-file"
        ) from None
    reader.finish()
    return reader, digest.digest()


def _opened(path: Path) -> IO[bytes]:
    file = path.open("rb")
    if file.peek(2)[:2] == GZIP:
        return cast("IO[bytes]", gzip.open(file))
    return file
