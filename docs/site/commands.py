"""The reference of the command line, written from the commands themselves: what `--help` prints, on one page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

# The page groups, names and explains options as `--help` does, with the same functions.
from crosswind.cli import app, usage

# Wide enough for any usage line to stay one line.
_WIDTH = 1000


def commands(group: Any = None, parent: Any = None) -> Iterator[tuple[Any, Any]]:
    """Yield every command with its context, a group before the commands in it."""
    if group is None:
        group = get_command(app)
        parent = group.context_class(group, info_name="crosswind", resilient_parsing=True)
    for name in group.list_commands(parent):
        _, command, _ = group.resolve_command(parent, [name])
        context = command.context_class(command, info_name=name, parent=parent, resilient_parsing=True)
        yield command, context
        if hasattr(command, "list_commands"):
            yield from commands(command, context)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _section(command: Any, context: Any) -> str:
    words = usage.path_of(context)
    lines = [line.removeprefix("Usage:").strip() for line in usage._usage(command, context, _WIDTH)]
    parts = [f"{'#' * len(words.split())} {words}", "\n".join(f"    {line}" for line in lines), command.help or ""]
    for group, parameters in usage._groups(command, context).items():
        rows = [f"| **{group}** | |", "|---|---|"]
        for parameter in parameters:
            name, told = usage._name(parameter, context).strip(), usage._told(parameter, context)
            rows.append(f"| `{_cell(name)}` | {_cell(told)} |")
        parts.append("\n".join(rows))
    return "\n\n".join(part for part in parts if part)


def commands_page() -> str:
    """Return the page."""
    head = "# Command line\n\nWhat `crosswind VERB --help` prints, on one page: this page is written from the commands."
    return "\n\n".join([head, *(_section(command, context) for command, context in commands())]) + "\n"
