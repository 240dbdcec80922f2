"""A directory of our own for tasks' bytes on their way, which does not outlive us for long.

A process killed with -9 cannot clean up. So a directory is locked as long as its owner lives, and the next process
that starts removes those whose owner is gone.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

from crosswind.errors import MeasurementError

_LITTLE = 64 << 10  # free bytes of a file system that is full: one block is sometimes left
_PREFIX = "crosswind-spool-"


class Spool:
    """A locked directory.

    Attributes
    ----------
    path : Path
        Where it is.
    """

    def __init__(self) -> None:
        take_away_abandoned()
        while True:
            self.path = temporary_directory(_PREFIX)
            if (lock := _locked(self.path)) is not None:
                self._lock = lock
                break

    def close(self) -> None:
        """Take it away, with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.close(self._lock)


def _locked(path: Path) -> int | None:
    """Return a descriptor that locks a new directory; None where it was taken for an abandoned one before.

    No clock decides that, since clocks jump: another process may take the directory away until it is locked.
    """
    try:
        held = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return None
    fcntl.flock(held, fcntl.LOCK_SH)  # a process that removes it holds the lock until then
    if path.exists():
        return held
    os.close(held)
    return None


def take_away_abandoned() -> None:
    """Take away the directories whose owner was killed: no process has them locked."""
    for path in temporary_place().glob(_PREFIX + "*"):
        with contextlib.suppress(OSError):  # locked, of another user, or taken away meanwhile
            held = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(held)


def temporary_place() -> Path:
    """Return the directory where temporary files go.

    Raises
    ------
    MeasurementError
        When there is none that can be written to.
    """
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:
        message = "no directory for temporary files can be written to"
        raise MeasurementError(message, "system", "set TMPDIR to one that can be written to") from None


def temporary_directory(prefix: str) -> Path:
    """Make a directory for temporary files.

    Raises
    ------
    MeasurementError
        When it cannot be made; `disk-full` where that is why.
    """
    place = temporary_place()
    try:
        return Path(tempfile.mkdtemp(prefix=prefix))
    except OSError as error:
        hint = "make room there, or set TMPDIR to another directory"
        if error.errno == errno.ENOSPC:
            raise MeasurementError(f"no space left on {place}", "disk-full", hint) from None
        raise MeasurementError(f"{place}: {(error.strerror or str(error)).lower()}", "system", hint) from None


def no_space(directory: Path) -> str | None:
    """Return "no space left on DIR" where that is so, else None."""
    try:
        state = os.statvfs(directory)
    except OSError:
        return None
    full = state.f_bavail * state.f_frsize < _LITTLE or (state.f_files > 0 and state.f_favail == 0)
    return f"no space left on {directory}" if full else None
