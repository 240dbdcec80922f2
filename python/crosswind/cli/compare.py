"""`crosswind compare`: two commands -> whether one is slower."""

from __future__ import annotations

import math
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from crosswind.cli.answer import Answer, Section, show
from crosswind.cli.outputs import Force, writable
from crosswind.cli.verbs import help_of
from crosswind.compare import MARGIN
from crosswind.compare.clock import By
from crosswind.cost.shares import parsed_share
from crosswind.errors import DescriptionError
from crosswind.files.atomic import write_text
from crosswind.files.output import distinct
from crosswind.terminal.progress import progress_bar

if TYPE_CHECKING:
    from crosswind.compare.result import Comparison

INTERRUPTED = 130

GROUPS = {
    "Blocks": ("warm_up", "to_the_end", "seed"),
    "Output": ("junit",),
}

EXAMPLES = """
Both run in turn in randomised quads (ABBA or BAAB), and the ratio of sums is compared with a margin. Intervals are 95 %
and hold at all looks together, so that it may end early. Commands run without a shell, unless `--shell` is given.
Processes that a run leaves behind are ended.

With one argument, a stored comparison: its commands run again, and the new ratio B/A is compared with the stored one,
whose uncertainty counts: measure that one with --to-the-end. Times of two sessions are not compared.

Examples:

    crosswind compare './app-before input' './app-after input'

    crosswind compare --margin 5% --by cpu --seconds 120 './a' './b' -o comparison.json --junit comparison.xml

    crosswind compare --shell './a | gzip -1' './a | gzip -6'

    crosswind compare comparison.json

Exit codes: 0 equivalent, faster, or not slower by the margin; 4 slower; 3 unknown; 1 a command failed, 2 bad input,
130 interrupted (finished quads are kept).
"""


def compare(
    a: Annotated[str, typer.Argument(help="Command A, or a stored comparison.", metavar="A|BASE_FILE")],
    b: Annotated[str | None, typer.Argument(help="Command B.", metavar="B")] = None,
    margin: Annotated[str | None, typer.Option(help="What counts as equivalent, such as 2% or 0.02; else 2%.")] = None,
    by: Annotated[By | None, typer.Option(help="By which time; else wall.")] = None,
    shell: Annotated[bool, typer.Option("--shell", help="Run each command in a shell, for pipes etc.")] = False,
    seconds: Annotated[float, typer.Option(help="Time limit, s, held to 10 %.", min=0.001)] = 60.0,
    warm_up: Annotated[int, typer.Option("--warm-up", help="Runs of each that do not count.", min=0)] = 1,
    to_the_end: Annotated[
        bool, typer.Option("--to-the-end", help="Use all the time and look once, instead of ending when it is known.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the order of runs.", min=0)] = 1,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="comparison.json; for `crosswind report`.")] = None,
    junit: Annotated[Path | None, typer.Option("--junit", help="Write JUnit's XML as well.")] = None,
    force: Force = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Say whether one command is slower than another."""
    from crosswind.compare import asked_for
    from crosswind.compare import compare as measure
    from crosswind.compare.junit import junit as as_junit
    from crosswind.compare.result import Comparison

    share = parsed_share(margin, "--margin") if margin is not None else None
    base = Path(a) if b is None else None
    if base is not None and not _is_stored(base):
        hint = f"crosswind compare {quote(a)} 'command B', or name a comparison.json"
        raise DescriptionError(f"a second command is missing: {a!r} is no stored comparison", "command", hint)
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
    wrote = []
    if out:
        found.save(out)
        wrote.append(f"{out} ({2 * len(found.pairs)} runs of each)")
    if junit:
        write_text(as_junit(found), junit)
        wrote.append(str(junit))
    document = found.to_dict() if json else None
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
    rows, each = [], {}
    for by in ("wall", "cpu"):
        times, estimate = found.pairs.by(by), found.estimate(by)
        half = 100 * estimate.half_width(found.level)
        means = [f"{1e3 * mean:.4g}" for mean in 0.5 * times.mean(axis=0)] if len(times) else ["-", "-"]
        shown = f"{100 * estimate.value:+.2f}" + (f" ± {half:.2f}" if math.isfinite(half) else "")
        rows.append([by, *means, shown if len(times) else "-"])
        each[by] = means
    columns = [("time", "left"), ("A ms", "right"), ("B ms", "right"), ("B takes longer %", "right")]
    runs = str(2 * len(found.pairs))
    commands = [
        [name, command, each["wall"][k], each["cpu"][k], runs]
        for k, (name, command) in enumerate(zip("AB", found.commands, strict=True))
    ]
    heads = [("", "left"), ("command", "left"), ("wall, ms", "right"), ("CPU, ms", "right"), ("runs", "right")]
    by_command = Section(heads, commands, first=("", "wall, ms", "CPU, ms", "runs", "command"))
    whole = Section(columns, rows, title="A: {}   B: {}".format(*found.commands))
    return Answer([f"{found.sentence}."], [by_command], wide=[whole], rest="Both ratios")


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("compare", help=help_of("compare", EXAMPLES))(compare)
