"""What the system refuses because something is used up, as an error in words: it is not a fault of Crosswind."""

from __future__ import annotations

import errno
import os
from typing import Final

from crosswind.errors import MeasurementError

_HINTS: Final = {
    errno.EMFILE: "raise the limit of open files: ulimit -n 1024",
    errno.ENFILE: "close programs that hold many files, or raise fs.file-max",
    errno.ENOSPC: "make room there, or set TMPDIR to another directory",
    errno.EDQUOT: "make room there, or set TMPDIR to another directory",
    errno.EFBIG: "raise the limit of a file's size: ulimit -f unlimited",
    errno.EAGAIN: "raise the limit of processes: ulimit -u, or pids.max of the control group",
    errno.ENOMEM: "free memory, or raise the limit: ulimit -v, or memory.max of the control group",
    errno.EROFS: "name another directory",
}


def of_system(error: Exception) -> MeasurementError | None:
    """Return an error in words for one that the system's limits explain; None for any other."""
    if isinstance(error, MemoryError):
        return MeasurementError("no memory is left", "system", _HINTS[errno.ENOMEM])
    if isinstance(error, FileNotFoundError) and not _has_directory():
        message = "the current directory does not exist any more"
        return MeasurementError(message, "system", "cd to one that exists")
    if not isinstance(error, OSError) or error.errno not in _HINTS:
        return None
    where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, (str, bytes)) else ""
    said = (error.strerror or os.strerror(error.errno)).lower()
    return MeasurementError(f"{where}{said}", "system", _HINTS[error.errno])


def _has_directory() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 (only whether there is one)
    except OSError:
        return False
    return True
