"""Standard output and standard error that may be closed or full: a command ends quietly, and never in a traceback."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

from crosswind.errors import CrosswindError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

CLOSED = 141
"""Exit code when nothing reads standard output any more, as a shell shows a process that SIGPIPE ended."""


class StdoutLostError(CrosswindError):
    """Standard output cannot be written to: its reader is gone, or it is full."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"standard output: {(error.strerror or str(error)).lower()}", "stdout")
        self.quiet = error.errno in (errno.EPIPE, errno.EBADF)
        self.exit_code = CLOSED if self.quiet else 1


class _Stdout(io.FileIO):
    """After the first failure everything goes to /dev/null, so that nothing fails again on the way out."""

    def write(self, data: ReadableBuffer, /) -> int | None:  # type: ignore[override]
        try:
            return super().write(data)
        except BlockingIOError:
            raise
        except OSError as error:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            raise StdoutLostError(error) from None


class _Stderr(io.FileIO):
    """What cannot be said is not worth failing for."""

    def write(self, data: ReadableBuffer, /) -> int | None:  # type: ignore[override]
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def guard_streams() -> None:
    """Have `sys.stdout` raise `StdoutLostError`, and `sys.stderr` nothing at all, when they cannot be written to.

    A stream that was closed when the process began is opened on /dev/null: its descriptor would otherwise go to the
    next file that is opened, and what is printed into that file. Standard output so that it cannot be written to.
    """
    for name, flags in (("stdin", os.O_RDONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            os.open(os.devnull, flags)  # the lowest that is free: its own
    sys.stdout = _guarded(_Stdout(1, "wb", closefd=False), sys.stdout, "strict")
    sys.stderr = _guarded(_Stderr(2, "wb", closefd=False), sys.stderr, "backslashreplace")


def _guarded(raw: io.FileIO, before: TextIO | None, errors: str) -> TextIO:
    encoding = before.encoding if before else "utf-8"
    errors = (before.errors if before else None) or errors
    by_line = raw.fileno() == 2 or raw.isatty()
    at_once = getattr(before, "write_through", False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=encoding, errors=errors, line_buffering=by_line, write_through=at_once
    )
