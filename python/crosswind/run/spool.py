"""A directory of our own for tasks' bytes on their way, which does not outlive us for long.

Whoever is killed with -9 cannot clean up. So a directory is locked as long as its owner lives, and whoever starts next
takes away those whose owner is gone.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

from crosswind.errors import MeasurementError

_LITTLE = 64 << 10  # free bytes of a file system that is full: one block is sometimes left
_PREFIX = "crosswind-spool-"
_YOUNG_S = 60.0  # between its making and its locking a directory looks as if nobody had it


class Spool:
    """A locked directory.

    Attributes
    ----------
    path : Path
        Where it is.
    """

    def __init__(self) -> None:
        take_away_abandoned()
        self.path = temporary_directory(_PREFIX)
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._lock, fcntl.LOCK_SH)

    def close(self) -> None:
        """Take it away, with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.close(self._lock)


def take_away_abandoned(young_s: float = _YOUNG_S) -> None:
    """Take away the directories of those who were killed: nobody has them locked, and they are older than `young_s`."""
    for path in Path(tempfile.gettempdir()).glob(_PREFIX + "*"):
        with contextlib.suppress(OSError):  # another's, or taken away meanwhile
            if time.time() - path.stat().st_mtime < young_s:
                continue
            held = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(held)


def temporary_directory(prefix: str) -> Path:
    """Make a directory for temporary files.

    Raises
    ------
    MeasurementError
        When it cannot be made; `disk-full` where that is why.
    """
    try:
        return Path(tempfile.mkdtemp(prefix=prefix))
    except OSError as error:
        place = Path(tempfile.gettempdir())
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
