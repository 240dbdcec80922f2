"""The command line: one file per verb. stdout is data, everything else goes to stderr.

Exit codes: 0 done, 1 the run failed, 2 bad input, 3 done but not trustworthy, or not known, 4 more than the margin
(`cost`, `compare`), 70 a fault of Crosswind, 130 interrupted (ctrl-C, SIGTERM, SIGHUP), 141 nothing reads standard
output any more. `check` has 1 for a sick node, and 3 for all that is 1 elsewhere.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from typing import Annotated, Any

import typer
from typer.exceptions import Abort, TyperException

from crosswind.cli.console import print_text, tell_error
from crosswind.cli.groups import Verbs
from crosswind.cli.shortages import of_system
from crosswind.cli.streams import StdoutLostError, guard_streams
from crosswind.cli.usage import refusal
from crosswind.errors import CrosswindError
from crosswind.terminal.signals import answer_ctrl_c, interrupt_on

FAULT = 70
"""EX_SOFTWARE of sysexits.h: scripts must not take a fault for a verdict, and Python's own is 1."""


class _InterruptedError(Exception):
    """Ctrl-C, which typer would turn into a status and no word."""


class _Verbs(Verbs):
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
    help="How much communication slows your computation, and the schedule that loses the least.\n\nExamples:\n\n"
    "    crosswind measure -o measurement.parquet\n"
    "    crosswind fit measurement.parquet -o platform.toml\n"
    "    crosswind plan platform.toml --task-size-mb 2 --task-work 50000 -o plan.json\n"
    "    crosswind report measurement.parquet plan.json -o report.html\n\n"
    "`crosswind VERB --help` shows the examples and options of a verb. With `-o -` a result goes to standard output. "
    "An older result of the same job is replaced, and the last line says so; a file of another kind or job only with "
    "`--force`. In a log, a line says how far the work is, every 10 s at first (CROSSWIND_PROGRESS=0: none).",
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from crosswind.build import build_facts

        facts = build_facts()
        extension = facts["extension"]
        print_text(f"crosswind {facts['version']}")
        print_text(f"extension {extension['file']}, {extension['compiler'] or 'compiler unknown'}", indent=10)
        print_text(f"sha256    {extension['sha256']}")
        if extension["for_tests"]:
            print_text("build     for tests: its kernels compute, and lose, at other rates than a release's", indent=10)
        print_text(f"python    {facts['python']}")
        print_text(f"system    {facts['system']}")
        raise typer.Exit


@app.callback(cls=_Verbs)
def _crosswind(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and what was built.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line and exit with its code."""
    if "_CROSSWIND_COMPLETE" in os.environ:
        from crosswind.cli.completion import rejoin_words

        rejoin_words()
    guard_streams()
    code = _performed()
    try:
        sys.stdout.flush()
    except StdoutLostError as error:
        code = _told(error)
    sys.exit(code)


def _performed() -> int:
    interrupt_on([signal.SIGTERM, signal.SIGHUP])
    over = answer_ctrl_c(_say_that_it_ends) if sys.stderr.isatty() else None
    try:
        code = app(sys.argv[1:] or ["--help"], prog_name="crosswind", standalone_mode=False)
    except CrosswindError as error:
        code = _told(error)
    except TyperException as error:
        tell_error(*refusal(error))
        code = 2
    except (_InterruptedError, KeyboardInterrupt, Abort):
        tell_error("interrupted", None)
        code = 130
    except Exception as error:
        if short := of_system(error):
            return _told(short)
        traceback.print_exc()
        hint = "`crosswind doctor --report FILE` writes what a bug report needs"
        tell_error("this is a fault of Crosswind; the lines above say where", hint)
        code = FAULT
    finally:
        if over:
            over()
    return code if isinstance(code, int) else 0


def _say_that_it_ends() -> None:
    sys.stderr.write("\ninterrupted; ending once the step that is under way is over ...\n")
    sys.stderr.flush()


def _told(error: CrosswindError) -> int:
    if not (isinstance(error, StdoutLostError) and error.quiet):
        if error.code == "policy" and error.__cause__ is not None:  # the user's own code: its lines say where
            traceback.print_exception(error.__cause__)
        tell_error(str(error), error.hint)
    return error.exit_code
