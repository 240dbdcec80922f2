"""A lock on the directory of a run's results, which ends with the process that holds it, however that ends.

Two runs into one directory would do all tasks twice and write over each other's results.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crosswind.errors import CrosswindError, DescriptionError

LOCK = ".crosswind-lock"
_PATIENCE_S = 1.0
_FULL = {errno.ENOSPC, errno.EDQUOT}


@contextmanager
def locked(directory: str | Path) -> Iterator[None]:
    """Hold the lock on a directory.

    Raises
    ------
    DescriptionError
        When another process holds it, with that process's host and pid; when the directory cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> directory = tempfile.mkdtemp()
    >>> with locked(directory):
    ...     print(sorted(os.listdir(directory)))
    ['.crosswind-lock']
    >>> os.listdir(directory)
    []
    """
    file = Path(directory) / LOCK
    while True:
        descriptor = _open(file)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = _holder(descriptor)
            os.close(descriptor)
            message = f"{directory}: another run writes its results here{holder}"
            raise DescriptionError(message, "locked", "wait for it, end it, or name another directory") from None
        if _is_that(file, descriptor):
            break
        os.close(descriptor)  # its holder has taken it away between our opening it and our locking it
    try:
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps({"host": socket.gethostname(), "pid": os.getpid()}).encode(), 0)
        except OSError as error:
            raise _cannot_be_written(file.parent, error) from None
        yield
    finally:
        with contextlib.suppress(OSError):  # the directory may be gone
            file.unlink()
        os.close(descriptor)


def _open(file: Path) -> int:
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise _cannot_be_written(file.parent, error) from None


def _cannot_be_written(directory: Path, error: OSError) -> Exception:
    if error.errno == errno.EFBIG:  # a limit of this process: the command line names it
        return error
    message = f"{directory}: cannot be written: {(error.strerror or str(error)).lower()}"
    if error.errno in _FULL:
        return CrosswindError(message, "no-space", "make room, or name another directory")
    return DescriptionError(message, "out", "name a directory that you may write to")


def _holder(descriptor: int) -> str:
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until:
        try:
            known = json.loads(os.pread(descriptor, 4096, 0))
            return f": process {int(known['pid'])} on {known['host']}"
        except (ValueError, KeyError, TypeError):  # it has the lock and has not written it yet
            time.sleep(0.01)
    return ""


def _is_that(file: Path, descriptor: int) -> bool:
    try:
        there = file.stat()
    except OSError:
        return False
    own = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino)
