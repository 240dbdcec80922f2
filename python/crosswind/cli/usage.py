"""What `--help` prints: usage, what the verb does, examples, then options in named groups, within 80 columns."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

from typer.core import TyperGroup, TyperOption
from typer.exceptions import TyperException

from crosswind.cli.forgotten import DASHES
from crosswind.cli.values import name_of

_WIDEST = 100
_SHORT = 16
"""Words that an option takes are named beside it up to this length, and else in its help."""
_NAMES = 30
"""Columns for the names of options; longer names have their help below them."""


class Usage:
    """A typer command that formats its help itself; stands before typer's."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help; nothing in it is wider than the terminal, except an example."""
        width = min(shutil.get_terminal_size((80, 24)).columns, _WIDEST)
        formatter.write("\n".join(_lines(self, ctx, width, bold=sys.stdout.isatty())))


def _lines(command: Any, ctx: Any, width: int, *, bold: bool) -> Iterator[str]:
    def heading(text: str) -> str:
        return f"\n\033[1m{text}:\033[0m" if bold else f"\n{text}:"

    yield from _usage(command, ctx, width)
    first, *rest = (command.help or "").strip().split("\n\n")
    yield from ["", *textwrap.wrap(first, width)]
    examples = [part for part in rest if part.startswith("    ")]
    if examples:
        yield heading("Examples")
        yield from (f"  {line[4:]}" for example in examples for line in example.splitlines())
    for words in (part for part in rest if not part.startswith("    ") and part != "Examples:"):
        yield from ["", *textwrap.wrap(words, width)]
    if isinstance(command, TyperGroup):
        yield heading("Verbs" if command.name == "crosswind" else f"Verbs of {command.name}")
        for name, below in command.commands.items():
            yield from _entry(name, below.help or "", width, names=14)
    for group, parameters in _groups(command, ctx).items():
        yield heading(group)
        for parameter in parameters:
            yield from _entry(_name(parameter, ctx), _told(parameter, ctx), width)


def path_of(ctx: Any) -> str:
    """Return the words that call a command, such as `crosswind plan tree`."""
    return f"{path_of(ctx.parent)} {ctx.info_name}" if ctx.parent else str(ctx.info_name)


def refusal(error: TyperException) -> tuple[str, str]:
    """Return what typer refused about the words of a command line, and a hint: a line to type, or the help."""
    context = getattr(error, "ctx", None)
    path = path_of(context) if context else "crosswind"
    if context and hasattr(error, "param_type"):  # of a missing parameter only
        parameter = getattr(error, "param", None)
        name = name_of(parameter) if parameter is not None else "an argument"
        what = f"an argument is missing: {name}" if "|" in name else f"{name} is missing"
        what = f"the command is missing after {DASHES}" if name.startswith(f"{DASHES} ") else what
        example = next(iter(_examples(context.command)), None)
        return what, f"such as {example}" if example else f"`{path} --help` shows what it takes"
    # typer wraps what a list of words refuses in the words of its validator.
    return error.format_message().replace("Value error, ", ""), f"`{path} --help` shows what it takes"


def _examples(command: Any) -> Iterator[str]:
    for part in (command.help or "").split("\n\n"):
        if part.startswith("    "):
            yield part.strip().splitlines()[0]


def _usage(command: Any, ctx: Any, width: int) -> Iterator[str]:
    parameters = [one for one in command.get_params(ctx) if not isinstance(one, TyperOption)]
    words = []
    for one in parameters:
        name = _metavar(one, ctx)
        words.append(name if one.required else f"[{name}]")
    below = isinstance(command, TyperGroup)
    own = not below or bool(parameters) or command.invoke_without_command
    if own:
        yield from textwrap.wrap(f"Usage: {path_of(ctx)} [OPTIONS] {' '.join(words)}".rstrip(), width)
    if below:
        yield f"{'      ' if own else 'Usage:'} {path_of(ctx)} {'|'.join(command.commands) if own else 'VERB'} ..."


def _groups(command: Any, ctx: Any) -> dict[str, list[Any]]:
    """Return the parameters by the group that they were given, arguments first; `--help` is the last option."""
    found: dict[str, list[Any]] = {"Arguments": [], "Options": []}
    for one in command.get_params(ctx):
        if not getattr(one, "hidden", False):
            group = "Options" if isinstance(one, TyperOption) else "Arguments"
            found.setdefault(getattr(one, "rich_help_panel", None) or group, []).append(one)
    return {group: parameters for group, parameters in found.items() if parameters}


def _name(parameter: Any, ctx: Any) -> str:
    if not isinstance(parameter, TyperOption):
        return _metavar(parameter, ctx)
    short = [name for name in parameter.opts if not name.startswith("--")]
    long = [name for name in parameter.opts if name.startswith("--")]
    names = ", ".join(short + long) if short else "    " + ", ".join(long)
    if parameter.secondary_opts:
        names += f"/{parameter.secondary_opts[0]}"
    return names if parameter.is_flag else f"{names} {_metavar(parameter, ctx)}"


def _metavar(parameter: Any, ctx: Any) -> str:
    if parameter.metavar:
        return str(parameter.metavar)
    if not isinstance(parameter, TyperOption):
        return str(parameter.name).upper()
    kind = parameter.display_type(ctx).strip("<>").removeprefix("list[").removesuffix("]").removesuffix(" range")
    if "|" in kind:
        return kind if len(kind) <= _SHORT else "WORD"
    if parameter.type_descriptor.is_choice:
        return kind
    words = {"int": "N", "float": "X", "str": "TEXT", "path": "FILE", "file": "FILE", "directory": "DIR"}
    return words.get(kind.lower(), kind.upper())


def _told(parameter: Any, ctx: Any) -> str:
    """Return the help of a parameter with the words that it takes and its default."""
    told = parameter.help or ""
    words = [str(word) for word in parameter.type_descriptor.choices or ()]
    if words and not parameter.metavar and len("|".join(words)) > _SHORT:
        told += f" One of {', '.join(words)}."
    default = parameter.get_default(ctx, call=False)
    shown = default not in (None, [], ()) and not isinstance(default, bool)
    if shown and "[default:" not in told:
        told += f" [default: {default}]"
    return re.sub(r"\s+", " ", told).strip()


def _entry(name: str, told: str, width: int, *, names: int = _NAMES) -> Iterator[str]:
    lines = textwrap.wrap(told, width - names - 2) or [""]
    if len(name) > names - 2:
        yield f"  {name}"
        name = ""
    for line in lines:
        yield f"  {name:{names}}{line}".rstrip()
        name = ""
