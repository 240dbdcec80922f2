r"""What calls print on nodes that are not on this machine: it comes with the outcome of a call, and is shown here.

Standard output and standard error of Python are copied, so logging and warnings are too. What programs that a call
starts print, and what a call printed that has no outcome, stays in the log of its agent.

An outcome with text before it begins with `MARK`, which no pickle, no text in UTF-8 and no error begins with.
"""

from __future__ import annotations

import secrets
import sys
import threading
from typing import IO, Any, Final

from crosswind.run.pieces import Data
from crosswind.terminal.printable import printable

MARK: Final = b"\xfe"
THIS_PROCESS: Final = secrets.token_hex(8)
_LENGTH: Final = 4
_MOST: Final = 64 << 10
"""Most characters that come with an outcome."""
_NOTE: Final = 100
"""Characters of the note about what was left out."""

_ALIGNED: Final = 64
"""Where the outcome begins: what is in it stays aligned."""


class Copies:
    """Copies of what this process prints, until they are taken."""

    def __init__(self) -> None:
        self._held = threading.Lock()
        self._texts: list[str] = []
        self._size = self._left_out = 0

    def add(self, text: str) -> None:
        """Keep a copy of a text, as far as there is room."""
        with self._held:
            kept = text[: _MOST - self._size]
            self._size += len(kept)
            self._left_out += len(text) - len(kept)
            self._texts.append(kept)

    def before(self, outcome: bytes) -> bytes:
        """Return an outcome with what was printed since the last one."""
        if not self._texts:
            return outcome
        with self._held:
            text, left_out = "".join(self._texts), self._left_out
            self._texts.clear()
            self._size = self._left_out = 0
        if left_out:
            text += f"\n... {left_out} characters are only in the log of the agent\n"
        data = text.encode(errors="replace")
        gap = bytes(-(len(MARK) + _LENGTH + len(data)) % _ALIGNED)
        return MARK + len(data).to_bytes(_LENGTH) + data + gap + outcome


class _Copied:
    """A stream of which copies are kept."""

    def __init__(self, stream: IO[str], copies: Copies) -> None:
        self._stream, self._copies = stream, copies

    def write(self, text: str) -> int:
        """Write to the stream, and keep a copy."""
        written = self._stream.write(text)
        self._copies.add(text)
        return written

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_copies: Copies | None = None


def copies() -> Copies:
    """Return the copies of what this process prints; they are kept from the first call on."""
    global _copies  # noqa: PLW0603 (there is one standard output)
    if _copies is None:
        _copies = Copies()
        for name in ("stdout", "stderr"):
            if (stream := getattr(sys, name)) is not None:
                setattr(sys, name, _Copied(stream, _copies))
    return _copies


def show(data: Data, node: str) -> Data:
    """Show what came with an outcome, each line after the name of its node, and return the outcome alone.

    Examples
    --------
    >>> show(b"an outcome", "n")
    b'an outcome'
    """
    if data[:1] != MARK:
        return data
    begin = len(MARK) + _LENGTH
    end = begin + int.from_bytes(data[len(MARK) : begin])
    # A node that must not be trusted may send more than `Copies` keeps.
    text = printable(
        bytes(data[begin:end][: 4 * (_MOST + _NOTE)]).decode(errors="replace")[: _MOST + _NOTE], lines=True
    )
    print(*(f"[{node}] {line}" for line in text.splitlines()), sep="\n", file=sys.stderr, flush=True)
    return data[end + -end % _ALIGNED :]
