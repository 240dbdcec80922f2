"""A directory of our own for tasks' bytes on their way, which does not outlive us for long.

Whoever is killed with -9 cannot clean up. So a directory is locked as long as its owner lives, and whoever starts next
takes away those whose owner is gone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

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
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
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
    fcntl.flock(held, fcntl.LOCK_SH)  # whoever is taking it away has it until then
    if path.exists():
        return held
    os.close(held)
    return None


def take_away_abandoned() -> None:
    """Take away the directories whose owner was killed: no process has them locked."""
    for path in Path(tempfile.gettempdir()).glob(_PREFIX + "*"):
        with contextlib.suppress(OSError):  # locked, of another user, or taken away meanwhile
            held = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(held)
