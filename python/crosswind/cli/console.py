"""What every verb says and how: errors, warnings, tables."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

from crosswind.terminal.printable import printable

if TYPE_CHECKING:
    from rich.console import Console

_stdout_is_taken = False


def _stderr() -> Console:
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


def _shown(text: str) -> str:
    """Return text for a terminal: neither markup nor control characters in it are obeyed."""
    from rich.markup import escape

    return escape(printable(text, lines=True))


def tell(message: str) -> None:
    """Say something to the person, on stderr."""
    _stderr().print(_shown(message))


def tell_error(message: str, hint: str | None) -> None:
    """Say what went wrong and what would mend it: `error: ...`, an empty line, `hint: ...`."""
    console = _stderr()
    console.print(f"[bold red]error:[/] {_shown(message)}")
    if hint:
        console.print(f"\n[bold cyan]hint:[/] {_shown(hint)}")


def tell_warnings(warnings: Sequence[dict[str, str]]) -> None:
    """Say each warning once."""
    if not warnings:
        return
    console = _stderr()
    for warning in warnings:
        console.print(f"[bold yellow]warning:[/] {_shown(warning['message'])}")
        if warning.get("hint"):
            console.print(f"  [cyan]hint:[/] {_shown(warning['hint'])}")


def _stdout() -> TextIO:
    return sys.stderr if _stdout_is_taken else sys.stdout


def take_stdout() -> None:
    """Give standard output to a file (`--out -`): tables and JSON documents go to stderr from now on."""
    global _stdout_is_taken  # noqa: PLW0603 (a process has one standard output)
    _stdout_is_taken = True


def print_text(text: str) -> None:
    """Print a line as data on stdout."""
    _stdout().write(text + "\n")


def print_json(document: Any) -> None:
    """Print exactly one JSON document; a number that is not finite becomes null."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(item) for item in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    print_text(json.dumps(plain(document), indent=2))


def print_table(columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]], title: str | None = None) -> None:
    """Print a table as data on stdout; columns are (name, "left" or "right")."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    out = _stdout()
    console = Console(file=out, highlight=False, width=None if out.isatty() else 160)
    if title:
        console.print(f"[bold]{_shown(title)}[/]", soft_wrap=True)
    table = Table(box=None, header_style="bold", pad_edge=False, show_header=any(name for name, _ in columns))
    for name, side in columns:
        table.add_column(name, justify="right" if side == "right" else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(escape(printable(cell)) for cell in row))
    console.print(table)
