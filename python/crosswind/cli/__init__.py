"""The command line: one file per verb. stdout is data, everything else goes to stderr.

Exit codes: 0 done, 1 the run failed, 2 bad input, 3 done but not trustworthy, 130 interrupted (ctrl-C, SIGTERM,
SIGHUP).
"""

from __future__ import annotations

import signal
import sys
from typing import Annotated

import typer
from typer.exceptions import Abort, TyperException

from crosswind import _core
from crosswind.cli import (
    blame,
    cert,
    doctor,
    filter,
    fit,
    inject,
    measure,
    overlap,
    plan,
    record,
    report,
    reproduce,
    run,
    schema,
    serve,
)
from crosswind.cli.console import tell_error
from crosswind.errors import CrosswindError
from crosswind.signals import interrupt_on

app = typer.Typer(
    name="crosswind",
    help="What your communication costs your computation, and the schedule that loses least.\n\n"
    "measure -> fit -> plan -> run -> report; `crosswind VERB --help` shows examples.",
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"crosswind {_core.__version__}")
        raise typer.Exit


@app.callback()
def _crosswind(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


for verb in (
    doctor,
    cert,
    serve,
    measure,
    fit,
    plan,
    run,
    filter,
    overlap,
    record,
    inject,
    blame,
    report,
    reproduce,
    schema,
):
    verb.add_to(app)


def main() -> None:
    """Run the command line and exit with its code."""
    interrupt_on([signal.SIGTERM, signal.SIGHUP])
    try:
        code = app(sys.argv[1:] or ["--help"], prog_name="crosswind", standalone_mode=False)
    except CrosswindError as error:
        tell_error(str(error), error.hint)
        code = error.exit_code
    except TyperException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "crosswind"
        # typer wraps what a list of words refuses in the words of its validator.
        tell_error(error.format_message().replace("Value error, ", ""), f"`{path} --help` shows what it takes")
        code = 2
    except (KeyboardInterrupt, Abort):
        tell_error("interrupted", None)
        code = 130
    except BrokenPipeError:
        sys.stderr.close()  # nobody reads our output any more: end quietly
        code = 1
    sys.exit(code if isinstance(code, int) else 0)
