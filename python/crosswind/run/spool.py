"""Directories of our own, for tasks' bytes on their way and for logs, which do not outlive us for long.

A process killed with -9 cannot clean up. So a directory is locked as long as its owner lives, and the next process
that starts removes those whose owner is gone. Logs that were kept on purpose stay.
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
_LOGS_PREFIX = "crosswind-logs-"
_KEPT = ".kept"  # in a directory of logs that outlives its owner


class Spool:
    """A locked directory.

    Attributes
    ----------
    path : Path
        Where it is.
    """

    def __init__(self) -> None:
        take_away_abandoned()
        self.path, self._lock = _locked_directory(_PREFIX)

    def close(self) -> None:
        """Take it away, with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.close(self._lock)


class Logs:
    """A directory of logs.

    Parameters
    ----------
    directory : Path, optional
        One of the user's, which stays; default: one of our own.

    Attributes
    ----------
    path : Path
        Where it is.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._lock: int | None = None
        if directory is None:
            take_away_abandoned()
            self.path, self._lock = _locked_directory(_LOGS_PREFIX)
        else:
            self.path = directory
            directory.mkdir(parents=True, exist_ok=True)

    def close(self, *, keep: bool) -> None:
        """Take it away if it is our own, unless it is to be kept."""
        if self._lock is None:
            return
        if keep:
            with contextlib.suppress(OSError):  # a full disk: the next run takes it away
                (self.path / _KEPT).touch()
        else:
            shutil.rmtree(self.path, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.close(self._lock)
        self._lock = None


def _locked_directory(prefix: str) -> tuple[Path, int]:
    """Make a directory and return it with the descriptor that locks it."""
    while True:
        path = temporary_directory(prefix)
        if (lock := _locked(path)) is not None:
            return path, lock


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
    place = temporary_place()
    for path in [*place.glob(_PREFIX + "*"), *place.glob(_LOGS_PREFIX + "*")]:
        with contextlib.suppress(OSError):  # locked, of another user, or taken away meanwhile
            held = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not (path / _KEPT).exists():
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
