"""How verbs are made of their modules, and verbs that have further ones below them: `plan`, and `plan tree`."""

from __future__ import annotations

from glob import escape, glob
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from crosswind.cli import forgotten, given
from crosswind.cli.console import show_all_columns, show_all_warnings
from crosswind.cli.outputs import OUTPUT
from crosswind.cli.usage import Usage
from crosswind.cli.values import PlainValues
from crosswind.cli.verbs import PARTS, VERBS
from crosswind.documents import Arguments


class Verb(Usage, PlainValues, TyperCommand):
    """A verb with all its options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words after the verb; a command of the user's stands after --."""
        return forgotten.read(self, ctx, _pairs_joined(self, args), super().parse_args)

    def invoke(self, ctx: Any) -> Any:
        """Run the verb."""
        with given.typed(ctx):
            return super().invoke(ctx)


def _pairs_joined(command: Any, args: list[str]) -> list[str]:
    """Return the words with `-L NAME VALUES` as `-L NAME=VALUES`: an option takes one word."""
    if not any("-L" in one.opts for one in command.params):
        return args
    found, rest = [], list(args)
    while rest:
        word = rest.pop(0)
        found.append(word)
        if word in ("-L", "--parameter-list") and len(rest) > 1 and "=" not in rest[0]:
            found.append(f"{rest.pop(0)}={rest.pop(0)}")
    return found


class Parts(Usage, PlainValues, TyperGroup):
    """A verb that does something itself, unless its first word names one of the verbs below it."""

    allow_extra_args = False
    allow_interspersed_args = True

    def __init__(self, verb: str, own: TyperCommand) -> None:
        settings: Arguments = {"callback": own.callback, "params": own.params, "help": own.help}
        super().__init__(name=verb, commands=_listed(PARTS[verb]), invoke_without_command=True, **settings)
        for one in own.params[:1]:
            if not isinstance(one, TyperOption) and one._custom_shell_complete is None:
                one._custom_shell_complete = self._verbs_and_files

    def _verbs_and_files(self, _ctx: Any, _parameter: Any, incomplete: str) -> list[str]:
        verbs = [name for name in self.commands if name.startswith(incomplete)]
        return verbs + sorted(glob(f"{escape(incomplete)}*"))  # noqa: PTH207 (as it was typed)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options of the verb itself, or leave all words to the verb that the first one names."""
        if args and args[0] in self.commands:
            ctx._protected_args, ctx.args = args[:1], args[1:]
            return args[1:]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the verb that is called."""
        if args[0] in self.commands:
            self.commands[args[0]] = command_of(f"{self.name}_{args[0]}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Do what the verb itself does, or what the one below it does, never both."""
        if not ctx._protected_args:
            return TyperCommand.invoke(self, ctx)
        name, command, args = self.resolve_command(ctx, [*ctx._protected_args, *ctx.args])
        with command.make_context(name, args, parent=ctx) as below:
            return command.invoke(below)


class Verbs(Usage, PlainValues, TyperGroup):
    """Imports a verb when it is called; those that are only listed or completed stay names with a line of help."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = _listed(VERBS)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the verb that is called."""
        if args and args[0] in VERBS:
            command = command_of(args[0])
            self.commands[args[0]] = Parts(args[0], command) if args[0] in PARTS else command
        return super().resolve_command(ctx, args)


def _listed(lines: dict[str, str]) -> Arguments:
    return {name: TyperCommand(name, help=line) for name, line in lines.items()}


def command_of(module: str) -> TyperCommand:
    """Import the module of a verb and return the command in it."""
    alone = typer.Typer(add_completion=False)
    verb = import_module(f"crosswind.cli.{module}")
    verb.add_to(alone)
    (command,) = alone.registered_commands
    command.cls = Verb
    made = typer.main.get_command(alone)
    assert isinstance(made, TyperCommand)  # of one function
    groups = {name: group for group, names in getattr(verb, "GROUPS", {}).items() for name in names}
    for one in made.params:
        if one.name in groups:
            one.rich_help_panel = groups.pop(one.name)  # type: ignore[attr-defined] # of both kinds of parameters
    assert not groups, f"no such options: {', '.join(groups)}"
    places = [number for number, one in enumerate(made.params) if one.name == "json"]
    if places:  # what prints tables can print one document instead
        made.params += _layout_options()
    return made


def _layout_options() -> list[Any]:
    def verb(
        wide: Annotated[
            bool,
            typer.Option(
                "--wide",
                help="All details and columns, however narrow the terminal is.",
                rich_help_panel=OUTPUT,
                callback=show_all_columns,
                expose_value=False,
            ),
        ] = False,
        warnings: Annotated[
            bool,
            typer.Option(
                "--warnings",
                help="All warnings, also those of earlier steps. [default: the three that matter most]",
                rich_help_panel=OUTPUT,
                callback=show_all_warnings,
                expose_value=False,
            ),
        ] = False,
    ) -> None:
        pass

    alone = typer.Typer(add_completion=False)
    alone.command(cls=Verb)(verb)
    return [one for one in typer.main.get_command(alone).params if one.name in ("wide", "warnings")]
