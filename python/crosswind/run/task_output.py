"""Standard output and standard error of an agent: what Python prints within a batch of calls is known as its call's."""

from __future__ import annotations

import io
import sys
from contextlib import suppress

TYPE_CHECKING = False  # `typing` is slow to import (crosswind/__init__.py)
if TYPE_CHECKING:
    from crosswind.run.batches import Batch


class TaskOutput(io.TextIOWrapper):
    """A stream that says which call of a batch it is used by."""

    def write(self, text: str, /) -> int:
        """Write a text, of the call that is in progress."""
        batch = _batch()
        if batch is None:
            return super().write(text)
        batch.begin_print()
        try:
            return super().write(text)
        finally:
            if type(text) is str and text.endswith("\n"):
                batch.end_print()


def _batch() -> Batch | None:
    """Return the batch that runs in this process."""
    batches = sys.modules.get("crosswind.run.batches")  # an agent starts sooner without
    return None if batches is None else batches.OVERDUE.batch


def begin() -> None:
    """Put such streams in the place of this process's own, before any task has seen those."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if type(stream) is not io.TextIOWrapper:
            continue
        encoding, errors, by_line, at_once = stream.encoding, stream.errors, stream.line_buffering, stream.write_through
        with suppress(ValueError, OSError):  # it is closed
            own = TaskOutput(stream.detach(), encoding, errors, "\n", line_buffering=by_line, write_through=at_once)
            setattr(sys, name, own)
            setattr(sys, f"__{name}__", own)
