"""`crosswind compare`: two commands -> whether one is slower; several -> which is fastest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from crosswind.cli.answer import Answer, section, show
from crosswind.cli.console import print_text
from crosswind.cli.outputs import Force, writable, written
from crosswind.cli.verbs import help_of
from crosswind.compare import MARGIN
from crosswind.compare.clock import By
from crosswind.cost.shares import parsed_share
from crosswind.documents import Arguments
from crosswind.errors import DescriptionError
from crosswind.files.atomic import write_text
from crosswind.files.output import distinct
from crosswind.terminal.progress import progress_bar

if TYPE_CHECKING:
    from crosswind.compare.result import Comparison
    from crosswind.tables import Table

INTERRUPTED = 130

SEVERAL = "Of several commands"
GROUPS = {
    "Blocks": ("warm_up", "to_the_end", "seed"),
    "Output": ("junit",),
}

EXAMPLES = """
Both run in turn in randomised quads (ABBA or BAAB), and the ratio of sums is compared with a margin. Intervals are 95 %
and hold at all looks together, so that it may end early. Commands run without a shell, unless `--shell` is given.
Processes that a run leaves behind are ended.

More than two commands, or a parameter (`-L workers 1,2,4`, `{workers}` in a command): all run in turn for all of
`--seconds`, and each is compared with the fastest. `--prepare` runs before each run and is not timed.

With one argument, a stored comparison: its commands run again, and the new ratio B/A is compared with the stored one,
whose uncertainty counts: measure that one with --to-the-end. Times of two sessions are not compared.

Examples:

    crosswind compare './app-before input' './app-after input'

    crosswind compare --margin 5% --by cpu --seconds 120 './a' './b' -o comparison.json --junit comparison.xml

    crosswind compare --shell './a | gzip -1' './a | gzip -6'

    crosswind compare comparison.json

    crosswind compare './load --workers {n}' -L n 1,2,4,8 --seconds 120 --markdown

Exit codes: 0 equivalent, faster, or not slower by the margin; 4 slower; 3 unknown; of several commands 0 settled, 3
not; 1 a command failed, 2 bad input, 130 interrupted (finished quads are kept).
"""


def compare(
    commands: Annotated[
        list[str], typer.Argument(help="Commands, or one stored comparison.", metavar="A|BASE_FILE B...")
    ],
    margin: Annotated[
        str | None, typer.Option(help="Difference that counts as equal, such as 2% or 0.02. [default: 2%]")
    ] = None,
    by: Annotated[By | None, typer.Option(help="Compare wall time or CPU time. [default: wall]")] = None,
    shell: Annotated[bool, typer.Option("--shell", help="Run each command in a shell, for pipes etc.")] = False,
    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "--parameter-list", "-L", metavar="NAME A,B,...", help="Values for {NAME} in the commands. Repeat for more."
        ),
    ] = None,
    prepare: Annotated[
        str | None, typer.Option(help="A command before each run, not timed.", rich_help_panel=SEVERAL)
    ] = None,
    ignore_failure: Annotated[
        bool,
        typer.Option(
            "--ignore-failure", help="Count runs that end with a status other than 0.", rich_help_panel=SEVERAL
        ),
    ] = False,
    seconds: Annotated[float, typer.Option(help="Time limit, s, held to 10 %.", min=0.001)] = 60.0,
    warm_up: Annotated[int, typer.Option("--warm-up", help="Warm-up runs of each, which do not count.", min=0)] = 1,
    to_the_end: Annotated[
        bool, typer.Option("--to-the-end", help="Use all the time, instead of ending as soon as the answer is known.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the order of runs.", min=0)] = 1,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="comparison.json; for `crosswind report`.")] = None,
    junit: Annotated[Path | None, typer.Option("--junit", help="Write JUnit's XML as well.")] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the answer for a pull request.", rich_help_panel="Output")
    ] = False,
    force: Force = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Say whether one command is slower than another."""
    named = _parameters(parameters or [])
    if named:
        from crosswind.compare.several import expanded

        commands = expanded(commands, named)
    if len(commands) > 2 or prepare is not None or ignore_failure:
        if junit or to_the_end:
            why = "several commands, --prepare and --ignore-failure run for all of --seconds, without a verdict on B"
            option = "--junit" if junit else "--to-the-end"
            raise DescriptionError(f"{option}: {why}", "argument", "leave it out; -o writes the result")
        raise typer.Exit(
            _several(
                commands,
                {
                    "by": by or "wall",
                    "margin": MARGIN if margin is None else parsed_share(margin, "--margin"),
                    "shell": shell,
                    "seconds": seconds,
                    "warm_up": warm_up,
                    "prepare": prepare,
                    "ignore_failure": ignore_failure,
                    "seed": seed,
                },
                out,
                force=force,
                json=json,
                markdown=markdown,
            )
        )
    a, b = commands[0], commands[1] if len(commands) > 1 else None
    base = Path(a) if b is None else None
    if base is not None and not _is_stored(base):
        hint = f"crosswind compare {quote(a)} 'command B', or name a comparison.json"
        raise DescriptionError(f"a second command is missing: {a!r} is no stored comparison", "command", hint)
    from crosswind.compare import asked_for
    from crosswind.compare import compare as measure
    from crosswind.compare.junit import junit as as_junit
    from crosswind.compare.result import Comparison
    from crosswind.compare.several import KIND
    from crosswind.files.kinds import found_at

    share = parsed_share(margin, "--margin") if margin is not None else None
    if base is not None and found_at(base).kind == KIND:
        hint = f"crosswind report {quote(a)} shows it; to measure again, give the commands"
        raise DescriptionError(
            f"{a!r} is a comparison of several commands; only one of two runs again", "command", hint
        )
    stored = Comparison.load(base) if base is not None else None
    if stored is None:
        asked_of = asked_for(a, b or "", MARGIN if share is None else share, by or "wall", shell=shell)
    else:
        asked_of = asked_for(*stored.commands, share or stored.margin, by or stored.by, shell=stored.in_shell)
    writable(out, "comparison", inputs=[base], force=force, of={"asked": asked_of})
    writable(junit, "junit", "--junit", inputs=[base], force=force)
    distinct({"--out": out, "--junit": junit})
    with progress_bar() as advance:
        found = measure(
            None if base else a,
            b,
            base=stored,
            margin=share,
            by=by,
            shell=shell,
            seconds=seconds,
            warm_up=warm_up,
            to_the_end=to_the_end,
            seed=seed,
            progress=advance,
        )
    wrote: list[str] = []
    if out:
        found.save(out)
        wrote += written(out, f"{2 * len(found.pairs)} runs of each")
    if junit:
        write_text(as_junit(found), junit)
        wrote += written(junit)
    document = found.to_dict() if json else None
    if markdown and not json:
        print_text(_in_markdown([found.sentence], found.tables()[0]))
        show(None, warnings=found.warnings, wrote=wrote)
    else:
        show(None if json else _answer(found), warnings=found.warnings, wrote=wrote, document=document)
    raise typer.Exit(INTERRUPTED if found.interrupted else found.exit_code)


def _is_stored(path: Path) -> bool:
    """Whether it is a file that holds a document; a program, or a script, does not begin like one."""
    try:
        with path.open("rb") as file:
            return file.read(64).lstrip()[:1] == b"{"
    except OSError:
        return False


def _answer(found: Comparison) -> Answer:
    by_command, ratios = found.tables()
    whole = section(ratios, "A: {}   B: {}".format(*found.commands))
    return Answer([f"{found.sentence}."], [section(by_command)], wide=[whole], rest="Both ratios")


def _parameters(given: Sequence[str]) -> dict[str, list[str]]:
    """Read `-L NAME=A,B`, as `-L NAME A,B` is passed on."""
    found: dict[str, list[str]] = {}
    for one in given:
        name, equals, values = one.partition("=")
        listed = [value.strip() for value in values.split(",") if value.strip()]
        if not (name and equals and listed) or name in found:
            message = f"-L is {one!r}; it must be a name and its values, once per name"
            raise DescriptionError(message, "parameter", "-L workers 1,2,4")
        found[name] = listed
    return found


def _several(
    commands: list[str], options: Arguments, out: Path | None, *, force: bool, json: bool, markdown: bool
) -> int:
    """Run several commands in turn, print which is fastest, and return the exit code."""
    from crosswind.compare.runs import CODES
    from crosswind.compare.several import KIND, asked_for, compare_several
    from crosswind.files.atomic import finite

    of = {"asked": asked_for(commands, options["margin"], options["by"], options)}
    writable(out, KIND, force=force, of=of)
    with progress_bar() as advance:
        found = compare_several(commands, **options, progress=advance)
    wrote: list[str] = []
    if out:
        found.save(out)
        wrote = written(out, f"{found.runs} runs of each")
    [table] = found.tables()
    if markdown and not json:
        print_text(_in_markdown(found.sentences, table))
        show(None, wrote=wrote)
    else:
        note = f"{found.runs} runs of each, by {found.by} time. ±: 95 % confidence interval, of all pairs at once"
        answer = Answer(found.sentences, [section(table)], [note])
        show(None if json else answer, wrote=wrote, document=finite(found.to_dict()) if json else None)
    return INTERRUPTED if found.interrupted else 0 if found.is_settled else CODES["unknown"]


def _in_markdown(sentences: Sequence[str], table: Table) -> str:
    """Return the answer and the table for a pull request."""
    marks = ["--:" if column.numeric else ":--" for column in table.columns]
    rows = ([*row[:1], f"`{row[1]}`", *row[2:]] for row in table.rows)
    lines = [[column.head for column in table.columns], marks, *rows]
    escaped = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    return "\n".join([*(f"**{one}**" for one in sentences[:1]), *sentences[1:], "", *escaped])


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("compare", help=help_of("compare", EXAMPLES))(compare)
