"""The command line: one file per verb. stdout is data, everything else goes to stderr.

Exit codes: 0 done, 1 the run failed, 2 bad input, 3 done but not trustworthy, or not known, 4 more than the margin
(`cost`, `compare`), 130 interrupted (ctrl-C, SIGTERM, SIGHUP), 141 nothing reads standard output any more.
"""

from __future__ import annotations

import signal
import sys
from importlib import import_module
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import Abort, TyperException

from crosswind import _core
from crosswind.cli.console import tell_error
from crosswind.cli.streams import StdoutLostError, guard_streams
from crosswind.cli.values import PlainValues
from crosswind.cli.verbs import VERBS
from crosswind.errors import CrosswindError
from crosswind.terminal.signals import interrupt_on

_MARKUP: Literal["markdown"] = "markdown"


class _InterruptedError(Exception):
    """Ctrl-C, which typer would turn into a status and no word."""


class _Verb(PlainValues, TyperCommand):
    """A verb with all its options."""


class _Group(PlainValues, TyperGroup):
    """A verb with verbs of its own."""


class _Verbs(PlainValues, TyperGroup):
    """Imports a verb when it is called; those that are only listed or completed stay names with a line of help."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = {name: TyperCommand(name, help=line, rich_markup_mode=_MARKUP) for name, line in VERBS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in VERBS:
            self.commands[args[0]] = _command(args[0])
        return super().resolve_command(ctx, args)

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        try:
            return super().make_context(*arguments, **options)
        except KeyboardInterrupt:
            raise _InterruptedError from None

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise _InterruptedError from None


app = typer.Typer(
    name="crosswind",
    help="What your communication costs your computation, and the schedule that loses least.\n\n"
    "measure -> fit -> plan -> run -> report; `crosswind VERB --help` shows examples. With `-o -` a result goes to "
    "standard output; a file of another kind or experiment is replaced only with `--force`.",
    rich_markup_mode=_MARKUP,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"crosswind {_core.__version__}")
        raise typer.Exit


@app.callback(cls=_Verbs)
def _crosswind(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


def _command(verb: str) -> Any:
    """Import a verb."""
    alone = typer.Typer(add_completion=False, rich_markup_mode=_MARKUP)
    import_module(f"crosswind.cli.{verb}").add_to(alone)
    for group in alone.registered_groups:
        group.cls = _Group
    for part in [alone, *(group.typer_instance for group in alone.registered_groups)]:
        for command in part.registered_commands if part else []:
            command.cls = _Verb
    made = typer.main.get_command(alone)
    return made.commands[verb] if isinstance(made, TyperGroup) else made


def main() -> None:
    """Run the command line and exit with its code."""
    guard_streams()
    code = _performed()
    try:
        sys.stdout.flush()
    except StdoutLostError as error:
        code = _told(error)
    sys.exit(code)


def _performed() -> int:
    interrupt_on([signal.SIGTERM, signal.SIGHUP])
    try:
        code = app(sys.argv[1:] or ["--help"], prog_name="crosswind", standalone_mode=False)
    except CrosswindError as error:
        code = _told(error)
    except TyperException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "crosswind"
        # typer wraps what a list of words refuses in the words of its validator.
        tell_error(error.format_message().replace("Value error, ", ""), f"`{path} --help` shows what it takes")
        code = 2
    except (_InterruptedError, KeyboardInterrupt, Abort):
        tell_error("interrupted", None)
        code = 130
    return code if isinstance(code, int) else 0


def _told(error: CrosswindError) -> int:
    if not (isinstance(error, StdoutLostError) and error.quiet):
        tell_error(str(error), error.hint)
    return error.exit_code
