"""`crosswind report`: anything measured, planned or run -> one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crosswind.cli.console import print_text, tell
from crosswind.cli.outputs import Force, writable
from crosswind.cli.verbs import help_of
from crosswind.files.output import writable_directory

EXAMPLES = """
Examples:

    crosswind report measurement.parquet plan.json -o report.html

    crosswind report predicted.json run.json trace.parquet

    crosswind report sweep-footprint/ --figures figures/
"""


def report(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="measurement.parquet, trace.parquet, plan.json, runs.json, platform.toml, sweep directories.",
            metavar="FILE...",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file.")] = Path("report.html"),
    figures: Annotated[Path | None, typer.Option(help="Also write each figure there, as PNG and SVG.")] = None,
    force: Force = False,
) -> None:
    """Write one HTML file about what was measured and planned."""
    from crosswind.report import report as write

    writable(out, "report", inputs=files, force=force)
    writable_directory(figures, "--figures")
    path = write(files, out, figures, force=force)
    tell("wrote the report:")
    print_text(str(path))


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("report", help=help_of("report", EXAMPLES))(report)
