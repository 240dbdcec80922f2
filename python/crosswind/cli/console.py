"""What every verb says and how: errors, warnings, tables."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

from crosswind.terminal.printable import is_plain, printable
from crosswind.terminal.table import Table

if TYPE_CHECKING:
    from crosswind.errors import Notice

MOST_WARNINGS = 3
"""Warnings that one step says unasked; more are not read."""

_stdout_is_taken = False
_wide = False
_all_warnings = False


def _say(label: str, style: str, text: str, indent: str = "") -> None:
    """Write a line to stderr, with a label in colour on a terminal; no markup or control character in it is obeyed."""
    text = printable(text, lines=True)
    if is_plain(sys.stderr):
        sys.stderr.write(f"{indent}{label}{' ' if label else ''}{text}\n")
        return
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())
    console.print(f"{indent}[{style}]{label}[/] {escape(text)}" if label else escape(text))


def number_of(count: int, noun: str) -> str:
    """Return a count with its noun.

    Examples
    --------
    >>> number_of(1, "run"), number_of(0, "task")
    ('1 run', '0 tasks')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def tell(message: str) -> None:
    """Say something to the person, on stderr."""
    _say("", "", message)


def tell_error(message: str, hint: str | None) -> None:
    """Say what went wrong and what would mend it: `error: ...`, an empty line, `hint: ...`."""
    _say("error:", "bold red", message)
    if hint:
        _say("hint:", "bold cyan", hint, indent="\n")


def tell_warnings(warnings: Sequence[Notice], *, shown: int = 0) -> None:
    """Say the warnings that matter most, at most three of a step, and how many more there are.

    `shown` is how many this step has said before.
    """
    for line in say_warnings(warnings, shown=shown):
        tell(line)


def say_warnings(
    warnings: Sequence[Notice],
    *,
    shown: int = 0,
    earlier: Sequence[Notice] = (),
    source: str = "an earlier step",
) -> list[str]:
    """Say the warnings that matter most, at most three of a step; return what is to be said about the others.

    Parameters
    ----------
    warnings : sequence of dict
        Of this step.
    shown : int
        How many this step has said before.
    earlier, source : sequence of dict, str
        Warnings that were said by the step before, and what they are about: said again with `--warnings` only.
    """
    from crosswind.terminal.consequences import most_consequential, of_each_kind

    room = max(0, MOST_WARNINGS - shown)
    told = [*most_consequential(warnings), *earlier] if _all_warnings else of_each_kind(warnings)[:room]
    for warning in told:
        _warn(warning)
    left = [] if _all_warnings else warnings[len(told) :]
    rest = [f"{len(left)} more"] if left else []
    rest += [f"{number_of(len(earlier), 'warning')} of {source}"] if earlier and not _all_warnings else []
    return [f"{' and '.join(rest)}: --warnings"] if rest else []


def _warn(warning: Notice) -> None:
    """Say one warning, and below it what to do; on a terminal both are broken between words."""
    hint = warning.get("hint")
    if not sys.stderr.isatty():
        _say("warning:", "bold yellow", warning["message"])
        if hint:
            _say("", "", f"  {hint}")
        return
    width = shutil.get_terminal_size((80, 24)).columns
    first, *rest = _wrapped(f"warning: {warning['message']}", width, "  ")
    _say("warning:", "bold yellow", first.removeprefix("warning: "))
    for line in [*rest, *(_wrapped(f"  {hint}", width, "  ") if hint else [])]:
        _say("", "", line)


def say_blank() -> None:
    """Leave an empty line on a terminal, between what stands on stdout and what stands on stderr."""
    if sys.stderr.isatty():
        sys.stderr.write("\n")


def show_all_warnings(wanted: bool) -> None:
    """Have all warnings said (`--warnings`)."""
    global _all_warnings  # noqa: PLW0603 (a process has one terminal)
    _all_warnings = wanted


def is_wide() -> bool:
    """Return whether `--wide` was given."""
    return _wide


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return [
        part
        for line in printable(text, lines=True).splitlines()
        for part in textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        or [""]
    ]


def _stdout() -> TextIO:
    return sys.stderr if _stdout_is_taken else sys.stdout


def take_stdout() -> None:
    """Give standard output to a file (`--out -`): tables and JSON documents go to stderr from now on."""
    global _stdout_is_taken  # noqa: PLW0603 (a process has one standard output)
    _stdout_is_taken = True


def show_all_columns(wanted: bool) -> None:
    """Have tables keep all their columns, however narrow the terminal is (`--wide`)."""
    global _wide  # noqa: PLW0603 (a process has one terminal)
    _wide = wanted


def narrow_width() -> int | None:
    """Return the columns of the terminal, None where all of a table is shown: in a pipe, and with `--wide`."""
    return None if _wide or not _stdout().isatty() else shutil.get_terminal_size((80, 24)).columns


def print_text(text: str, *, indent: int = 0, bold: bool = False) -> None:
    """Print a line as data on stdout; on a terminal it is broken between words, and `indent` moves what follows."""
    text = printable(text, lines=True)
    if _stdout().isatty():
        text = "\n".join(_wrapped(text, shutil.get_terminal_size((80, 24)).columns, " " * indent))
    _stdout().write((_bold(text) if bold else text) + "\n")


def print_json(document: Any) -> None:
    """Print exactly one JSON document; a number that is not finite becomes null."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(item) for item in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    _stdout().write(json.dumps(plain(document), indent=2) + "\n")


def print_table(
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Sequence[str]],
    title: str | None = None,
    first: Sequence[str] = (),
) -> None:
    """Print a table as data on stdout.

    Nothing is ever cut. What is piped has all columns; on a terminal that is too narrow some are left out, and named.

    Parameters
    ----------
    columns : sequence of (str, {"left", "right"})
        Name and side of each column.
    rows : sequence of sequence of str
        A cell for each column.
    title : str, optional
        A line above the table.
    first : sequence of str
        Columns that a narrow terminal shows; by default as many from the left as fit.
    """
    room = narrow_width()
    if title:
        print_text(title, bold=True)
    table = Table(columns, [[printable(cell) for cell in row] for row in rows])
    shown, left_out = (table, []) if room is None else table.narrowed(room, first)
    for number, line in enumerate(shown.lines(room)):
        heads = number == 0 and any(name for name, _ in columns)
        _stdout().write((_bold(line) if heads else line) + "\n")
    if left_out:
        tell(f"{len(left_out)} more columns with --wide: {', '.join(left_out)}")


def _bold(text: str) -> str:
    return f"\033[1m{text}\033[0m" if _stdout().isatty() and "NO_COLOR" not in os.environ else text
