"""`crosswind schema`: the JSON Schema of a file kind, for editors and checkers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from crosswind import _core
from crosswind.cli.console import print_json
from crosswind.cli.outputs import Force, writable
from crosswind.cli.verbs import help_of
from crosswind.files.atomic import write_json

Kind = Literal[
    "platform",
    "links",
    "experiment",
    "disturbance",
    "measurement",
    "plan",
    "runs",
    "program-runs",
    "streams-runs",
    "trace",
    "overlap",
    "hosts",
]

EXAMPLES = """
Example:

    crosswind schema platform -o platform.schema.json
"""


def schema(
    kind: Annotated[Kind, typer.Argument(help="Which file.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write it there; else it is printed.")] = None,
    force: Force = False,
) -> None:
    """Print the JSON Schema of a file kind."""
    writable(out, "schema", force=force)
    document = json.loads(_core.schema_of(kind))
    if out is None:
        print_json(document)
    else:
        write_json(document, out)


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("schema", help=help_of("schema", EXAMPLES))(schema)
