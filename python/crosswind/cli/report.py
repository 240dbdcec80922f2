"""`crosswind report`: anything measured, planned or run -> one HTML file, a PDF, or one figure for a paper."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from crosswind.cli.answer import Answer, Section, show
from crosswind.cli.console import print_json, take_stdout, tell_error
from crosswind.cli.inputs import refuse_missing
from crosswind.cli.outputs import OUTPUT, Force, Json, writable
from crosswind.cli.verbs import help_of
from crosswind.errors import DescriptionError
from crosswind.files.atomic import is_standard_output
from crosswind.files.output import writable_directory
from crosswind.files.wrong_kind import REPORT_TAKES

EXAMPLES = """
Examples:

    crosswind report measurement.parquet plan.json -o report.html --open

    crosswind report predicted.json run.json trace.parquet --title "Fork graph, August" --pdf

    crosswind report runs.json --x workload.task_size_mb --series policy.order -o figure.pdf

    crosswind report runs.json --x policy.order --form bars --size 85x60 -o figure.pdf

    crosswind report sweep-footprint/ --figures figures/

Exit codes: 0 done, 2 bad input, 3 written, but without some of the files: the page and standard error name them.
"""
PARTIAL = 3
ONE = "One figure for a paper"


def report(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Files that other verbs wrote with -o: measurements, traces, plans, runs, blames, costs, comparisons, "
            "checks, overlaps, studies, injections, recordings; platforms; sweep directories.",
            metavar="FILE...",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="The file; .html or .pdf by its suffix; with --x .pdf, .svg, .png. [default: report.html, figure.pdf]",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page or the figure.", rich_help_panel=OUTPUT)] = None,
    pdf: Annotated[
        bool, typer.Option("--pdf", help="Write a PDF beside the HTML file, too.", rich_help_panel=OUTPUT)
    ] = False,
    open_: Annotated[bool, typer.Option("--open", help="Open it in the browser.", rich_help_panel=OUTPUT)] = False,
    figures: Annotated[
        Path | None,
        typer.Option(
            metavar="DIRECTORY",
            help="Also write each figure into this directory, as PNG and SVG.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    x: Annotated[
        str | None, typer.Option(help="Draw one figure of runs: the swept path along x.", rich_help_panel=ONE)
    ] = None,
    series: Annotated[
        list[str] | None,
        typer.Option(help="Draw a line for each value of this column. Repeat for more.", rich_help_panel=ONE),
    ] = None,
    y: Annotated[str, typer.Option(help="The column of the runs along y.", rich_help_panel=ONE)] = "makespan_s",
    where: Annotated[
        list[str] | None, typer.Option(help="Use only runs with PATH=VALUE. Repeat for more.", rich_help_panel=ONE)
    ] = None,
    log: Annotated[
        str, typer.Option(metavar="x|y|xy", help="Axes with a logarithmic scale.", rich_help_panel=ONE)
    ] = "",
    form: Annotated[
        str,
        typer.Option(
            metavar="points|bars|boxes",
            help="Means as points, joined along numbers, or as bars from 0; or boxes of quartiles.",
            rich_help_panel=ONE,
        ),
    ] = "points",
    size: Annotated[
        str | None,
        typer.Option(metavar="WxH", help="Width and height of the figure, mm; 85x60.", rich_help_panel=ONE),
    ] = None,
    force: Force = False,
    json_: Json = False,
) -> None:
    """Write one HTML file about what was measured and planned."""
    # Some may be missing: the page names them.
    refuse_missing(None if any(file.exists() for file in files) else files[0], hint=REPORT_TAKES)
    if is_standard_output(out):
        take_stdout()
        if open_:
            raise DescriptionError("--open cannot be combined with standard output", "out", "name a file")
    if x is None:
        if series or where or log or size or form != "points" or y != "makespan_s":
            message = "--series, --y, --where, --log, --form and --size belong to --x"
            raise DescriptionError(message, "x", "--x workload.task_size_mb")
        from crosswind.report import kind_of, written

        if out is not None:
            writable(out, kind_of(out), inputs=files, force=force)
        writable_directory(figures, "--figures")
        done = written(files, out or "report.html", figures, title=title, pdf=pdf, force=force, partial=True)
        path, document, unread = done.out, done.to_dict(), done.unread
    else:
        from crosswind.report import draw

        if pdf or figures:
            raise DescriptionError("--pdf and --figures belong to a report", "x", "-o figure.pdf writes a PDF")
        path = draw(
            files,
            out or "figure.pdf",
            x=x,
            series=series or (),
            y=y,
            where=where or (),
            title=title,
            log=log,
            size_mm=_size_of(size),
            form=form,
            force=force,
        )
        document, unread = {"schema_version": 1, "out": str(path), "x": x, "series": series or [], "y": y}, []
    if json_:
        print_json(document)
    else:
        answers = [[name, said] for _, name, said in done.short] if x is None else []
        table = Section([("", "left"), ("", "left")], answers)
        show(Answer([f"Wrote {path}{'. Its answers:' if answers else '.'}"], [table] if answers else []))
    if open_:
        webbrowser.open(path.absolute().as_uri())
    for one in unread:
        tell_error(f"not in the report: {one.message}", one.hint)
    if unread:
        raise typer.Exit(PARTIAL)


def _size_of(text: str | None) -> tuple[float, float] | None:
    """Return width and height, mm.

    Raises
    ------
    DescriptionError
        When they are no two numbers.
    """
    if text is None:
        return None
    width, _, height = text.lower().partition("x")
    try:
        return float(width), float(height)
    except ValueError:
        raise DescriptionError(f"--size is {text!r}: it is WIDTHxHEIGHT in mm", "size", "--size 85x60") from None


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("report", help=help_of("report", EXAMPLES))(report)
