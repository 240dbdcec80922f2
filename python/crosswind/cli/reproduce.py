"""`crosswind reproduce`: a paper's figures and claims, run again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from crosswind.cli.answer import Answer, Section, show
from crosswind.cli.console import number_of
from crosswind.cli.interruption import tells_what_is_kept
from crosswind.cli.outputs import Force, writable, written
from crosswind.cli.reproduce_all import reproduce_all
from crosswind.cli.verbs import help_of
from crosswind.errors import DescriptionError
from crosswind.files.output import writable_directory
from crosswind.terminal.printable import printable
from crosswind.terminal.progress import progress_bar

if TYPE_CHECKING:
    from crosswind.lab.papers.grading import Claim
    from crosswind.lab.papers.studies import AnyStudy

Paper = Literal[
    "scheduling-and-communication",
    "communication-interactions",
    "quadrics-overlap",
    "interference-aware-scheduling",
    "interference-in-java",
    "all",
]
MOST_REASONS = 3

Form = Literal["quick", "full"]

EXAMPLES = """
scheduling-and-communication: window sweep (figure 1), local scheduling (2), skew (3), daemons (4), one non-idle node
(5), table 1. If it was stopped, the same command continues.

communication-interactions: flows that meet (figure 2, table 2), NAS programs beside local flows (3, 4), a second queue
in the interface (8 to 10). If it was stopped, the same command continues.

quadrics-overlap: tables 1 to 4 (a ping beside burners: waiting for events or polling, three priorities) on simulated
processors, and what buffered coscheduling and a fair-share scheduler would have given. Takes seconds.

interference-aware-scheduling: six algorithms on the fork graph of table 4 (figure 5), over what one sender fills of a
link; tables 3 and 4. Its section 2 is graded with interference-in-java, which it repeats. Takes seconds.

interference-in-java: what table 2 and the text say, asked of each other. Takes a second.

all: these five, each with a directory and a report of its own, then a table of the verdicts. If it was stopped, the
same command continues.

What a text leaves open is calibrated, and the calibration is shown. A part that nothing here can turn, or whose only
limit would be this program's, is not decided: --wide says why.

Examples:

    crosswind reproduce scheduling-and-communication

    crosswind reproduce communication-interactions

    crosswind reproduce quadrics-overlap

    crosswind reproduce interference-aware-scheduling

    crosswind reproduce interference-in-java

    crosswind reproduce all --quick

    crosswind reproduce scheduling-and-communication --form full --out study --figures study/figures
"""


def reproduce(
    paper: Annotated[Paper, typer.Argument(help="Name of the paper, or all.")],
    form: Annotated[
        Form | None,
        typer.Option(help="Fewer points of shorter programs, or the paper's whole grid. [default: quick]"),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="The same as --form quick.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Directory of the study. [default: the paper's name; of all: papers]"),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="The HTML file. [default: report.html in --out]")] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Also write each figure into this directory, as PNG and SVG.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Runs at a time. [default: one per CPU]", min=1)] = None,
    force: Force = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Run the figures of a paper again, and grade its claims."""
    from crosswind.lab.papers.studies import reproduce as run
    from crosswind.lab.papers.studies import title
    from crosswind.report import report as write

    chosen = _form(form, quick)
    if paper == "all":
        if report:
            raise DescriptionError("--report names one page, and each paper has its own", "usage", "name --out instead")
        papers = [name for name in get_args(Paper) if name != "all"]
        reproduce_all(papers, chosen, out, figures, workers=workers, force=force, json=json)
        return
    directory = out or Path(paper)
    page_out = report or directory / "report.html"
    if report or directory.is_dir():
        writable(page_out, "report", "--report", force=force)
    writable_directory(out, "--out")
    writable_directory(figures, "--figures")
    with tells_what_is_kept(directory, "the same command continues with them"), progress_bar() as advance:
        found = run(paper, directory, chosen, workers=workers, force=force, progress=advance)
    page = write(found, page_out, figures, force=force)
    show(
        None if json else _answer(found, title(paper)),
        wrote=[*written(directory / "study.json", goes_on=True), *written(Path(page))],
        document=found.summary() if json else None,
    )


def _form(form: Form | None, quick: bool) -> Form:
    if quick and form == "full":
        raise DescriptionError("--quick is --form quick, and --form is full", "usage", "give one of the two")
    return form or "quick"


def _answer(found: AnyStudy, title: str) -> Answer:
    """Return how many claims hold, the verdict on each, and what those hang on that do not hold."""
    held = sum(claim.verdict == "holds" for claim in found.claims)
    apart = [claim for claim in found.claims if claim.verdict != "holds"]
    line = f"{held} of {number_of(len(found.claims), 'claim')} of the paper hold{'s' * (held == 1)} here."
    rows = [[claim.id, claim.verdict, claim.parts.removesuffix(" parts hold"), claim.text] for claim in found.claims]
    columns = [("claim", "left"), ("verdict", "left"), ("parts", "left"), ("", "left")]
    why = [[claim.id, printable(claim.hangs_on or _nothing_else(claim), lines=True)] for claim in found.claims]
    return Answer(
        [line, f"{title}, {found.form} form."],
        [Section(columns, rows, first=("verdict", "claim", ""))],
        [f"{claim.id} {claim.verdict}: {claim.hangs_on or _nothing_else(claim)}" for claim in apart[:MOST_REASONS]],
        wide=[
            Section(columns, rows),
            *_failed(found),
            Section([("claim", "left"), ("what it hangs on", "left")], [row for row in why if row[1]]),
        ],
        rest="What was found against each, what they hang on",
    )


def _failed(found: AnyStudy) -> list[Section]:
    """Return the parts of claims that do not hold, with what was found."""
    rows = [
        [claim.id, check.verdict, check.defect, check.text, check.found]
        for claim in found.claims
        for check in claim.checks
        if check.verdict != "holds"
    ]
    heads = [("claim", "left"), ("verdict", "left"), ("not graded", "left"), ("part", "left"), ("found", "left")]
    return [Section(heads, rows)] if rows else []


def _nothing_else(claim: Claim) -> str:
    return "" if claim.verdict == "holds" else "no mechanism found yet"


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("reproduce", help=help_of("reproduce", EXAMPLES))(reproduce)
