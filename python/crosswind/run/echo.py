"""What agents of this machine leave in their logs, shown: each line after the name of its node.

What tasks print takes another way (`crosswind.run.printed`). In the logs is what an agent says that cannot continue,
and what a task had printed when it ended its process: a message of the C library, or of Python itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_MOST: Final = 64 << 10
"""Bytes of a node that are shown at a time; of more in a moment, a part is shown."""


class Echo:
    """Shows what is new in log files, line by line, on standard error.

    Parameters
    ----------
    logs : mapping
        The log of each node.
    """

    def __init__(self, logs: Mapping[str, Path]) -> None:
        self._logs = dict(logs)
        self._seen = dict.fromkeys(logs, 0)
        self._partial = dict.fromkeys(logs, b"")

    def look(self) -> None:
        """Show the lines that are complete by now."""
        shown = [line for name in self._logs for line in self._new(name)]
        if shown:
            print(*shown, sep="\n", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Show what is left."""
        self.look()
        rest = [self._line(name, partial) for name, partial in self._partial.items() if partial]
        if rest:
            print(*rest, sep="\n", file=sys.stderr, flush=True)

    def _new(self, name: str) -> list[str]:
        seen = self._seen[name]
        try:
            with self._logs[name].open("rb") as log:
                size = os.fstat(log.fileno()).st_size
                if size <= seen:
                    return []
                skipped = max(size - seen - _MOST, 0)
                log.seek(seen + skipped)
                data = log.read(_MOST)
        except OSError:  # it has not been made yet, or is gone
            return []
        self._seen[name] = seen + skipped + len(data)
        before = b"" if skipped else self._partial[name]
        *lines, self._partial[name] = (before + data).split(b"\n")
        told = [f"[{name}] ... {skipped} bytes are only in {self._logs[name]}"] if skipped else []
        return told + [self._line(name, line) for line in lines]

    @staticmethod
    def _line(name: str, line: bytes) -> str:
        return f"[{name}] {line.decode(errors='replace')}"
