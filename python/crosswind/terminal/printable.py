"""Text from files, peers and programs as a terminal or a page may show it: nothing in it is obeyed."""

from __future__ import annotations

import os
import re
from typing import Any, TextIO

_COMMANDS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What a terminal obeys (escapes, other controls), what shows the text around it in another order (Unicode's
bidirectional controls), line separators, and what cannot be encoded."""


def printable(text: str, lines: bool = False) -> str:
    r"""Return a text with such characters escaped as Python writes them; `lines` keeps line ends and tabs.

    Examples
    --------
    >>> print(printable("node\x1b[2J\n"), printable("evil\u202elmth.exe"))
    node\x1b[2J\n evil\u202elmth.exe
    """
    return _COMMANDS.sub(lambda found: _escaped(found.group(), "\n\t" if lines else ""), text)


def printable_values(value: Any) -> Any:
    """Return nested lists and dictionaries, such as a chart's specification, with every text in them `printable`."""
    if isinstance(value, dict):
        return {key: printable_values(item) for key, item in value.items()}
    if isinstance(value, list):
        return [printable_values(item) for item in value]
    return printable(value, lines=True) if isinstance(value, str) else value


def is_plain(stream: TextIO) -> bool:
    """Whether a stream is no terminal, and no variable says that colours are wanted nevertheless.

    Rich decides for all others: to import it takes longer than many a command.
    """
    return not (stream.isatty() or os.environ.get("FORCE_COLOR") or os.environ.get("TTY_COMPATIBLE"))


def _escaped(sign: str, kept: str) -> str:
    return sign if sign in kept else ascii(sign)[1:-1]
