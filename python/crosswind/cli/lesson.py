"""`crosswind lesson`: why the fastest link is served first -> one HTML file to play with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crosswind.cli.answer import Answer, show
from crosswind.cli.console import print_json
from crosswind.cli.inputs import refuse_missing
from crosswind.cli.outputs import Force, writable, written
from crosswind.cli.verbs import help_of
from crosswind.files.atomic import is_standard_output
from crosswind.files.output import writable_directory
from crosswind.terminal.progress import progress_bar

EXAMPLES = """
Examples:

    crosswind lesson

    crosswind lesson examples/fork_of_table_4.toml --task-size-mb 5 -o lesson.html

    crosswind lesson tree.toml --figures slides/

`--figures` writes the tree, each order and both orders as SVG and PNG.
"""


def lesson(
    platform: Annotated[
        Path | None,
        typer.Argument(
            help="A root and 2 to 12 nodes below it, in at most 3 levels. [default: the fork of table 4]",
            metavar="PLATFORM.toml",
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file.")] = Path("lesson.html"),
    task_size_mb: Annotated[float, typer.Option(help="Input of a task, MB.")] = 2.0,
    task_work: Annotated[float, typer.Option(help="Work of a task, work units.")] = 5.0,
    figures: Annotated[
        Path | None, typer.Option("--figures", metavar="DIRECTORY", help="Figures for slides, as SVG and PNG.")
    ] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Show it in the default browser.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
    force: Force = False,
) -> None:
    """Write a page that teaches bandwidth-centric scheduling."""
    refuse_missing(platform)
    from crosswind.lab.lesson import lesson as write

    writable(out, "report", inputs=[platform], force=force)
    writable_directory(figures, "--figures")
    with progress_bar() as progress:
        path = write(
            platform,
            out,
            task_size_mb=task_size_mb,
            task_work=task_work,
            figures=figures,
            force=force,
            progress=progress,
        )
    if json:
        print_json({"lesson": str(path), "figures": None if figures is None else str(figures)})
    elif not is_standard_output(path):
        (there,) = written(path)
        more = [f"Figures for slides: {figures}"] if figures is not None else []
        show(Answer([f"Wrote {there}. Open it in a browser.", *more]))
    if open_it:
        import webbrowser

        webbrowser.open(path.resolve().as_uri())


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("lesson", help=help_of("lesson", EXAMPLES))(lesson)
