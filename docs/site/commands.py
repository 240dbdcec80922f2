"""The reference of the command line, written from the commands themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from typer.main import get_command


def commands(group: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command with the words that call it: `("plan", "tree")` and what it does."""
    if group is None:
        from crosswind.cli import app

        group = get_command(app)
    context = group.context_class(group, info_name="crosswind", resilient_parsing=True)
    for name in group.list_commands(context):
        _, found, _ = group.resolve_command(context, [name])
        yield (*path, name), found
        if hasattr(found, "list_commands"):
            yield from commands(found, (*path, name))


def _plain(text: str) -> str:
    """Return help as Markdown: paragraphs stay, what typer marks as not to be wrapped is code."""
    parts, text = [], re.sub(r"\[/?[a-z ]+\]", "", text)
    for paragraph in re.split(r"\n\s*\n", text):
        lines = paragraph.strip("\n").split("\n")
        is_code = lines[0].startswith("\b") or any(re.match(r"\s*(\$ )?crosswind ", line) for line in lines)
        lines = [line.replace("\b", "").replace("\f", "") for line in lines]
        if is_code:
            parts.append("\n".join("    " + line.strip() for line in lines if line.strip()))
        else:
            parts.append("\n".join(line.strip() if not line.startswith("    ") else line for line in lines))
    return "\n\n".join(part for part in parts if part.strip())


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _row(parameter: Any, context: Any) -> str:
    names = [*parameter.opts, *parameter.secondary_opts]
    written = ", ".join(f"`{name}`" for name in names) if parameter.param_type_name == "option" else f"`{parameter.name}`"
    default = parameter.get_default(context, call=False)
    shown = "" if default in (None, False, (), []) or callable(default) else f"`{default}`"
    kind = "" if getattr(parameter, "is_flag", False) else str(parameter.metavar or parameter.display_type(context) or "")
    return f"| {written} | {_cell(kind)} | {_cell(str(shown))} | {_cell(getattr(parameter, 'help', None) or '')} |"


def _section(path: tuple[str, ...], command: Any) -> str:
    context = command.context_class(command, info_name=" ".join(("crosswind", *path)), resilient_parsing=True)
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [f"{'#' * (1 + len(path))} crosswind {' '.join(path)}", f"    crosswind {' '.join(path)} {usage}"]
    parts.append(_plain(command.help or ""))
    groups: dict[str, list[Any]] = {}
    for parameter in command.get_params(context):
        if not getattr(parameter, "hidden", False):
            is_option = parameter.param_type_name == "option"
            panel = getattr(parameter, "rich_help_panel", None) or ("Options" if is_option else "Arguments")
            groups.setdefault(panel, []).append(parameter)
    for panel, parameters in groups.items():
        head = f"**{panel}**\n\n| name | takes | default | |\n|---|---|---|---|"
        parts.append("\n".join([head, *(_row(parameter, context) for parameter in parameters)]))
    if getattr(command, "epilog", None):
        parts.append(_plain(command.epilog))
    return "\n\n".join(part for part in parts if part)


def commands_page() -> str:
    """Return the page."""
    head = "# Command line\n\nWritten from the commands: what `crosswind VERB --help` shows, on one page."
    return "\n\n".join([head, *(_section(path, command) for path, command in commands())]) + "\n"
