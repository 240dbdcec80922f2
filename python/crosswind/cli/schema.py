"""`crosswind schema`: the JSON Schema of a file kind, for editors and checkers."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from crosswind import _core
from crosswind.cli.console import print_json

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
Print the JSON Schema of a file kind: editors complete and check with it.

Example:

    crosswind schema platform > platform.schema.json
"""


def schema(kind: Annotated[Kind, typer.Argument(help="Which file.")]) -> None:
    """Print the JSON Schema of a file kind."""
    print_json(json.loads(_core.schema_of(kind)))


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("schema", help=EXAMPLES)(schema)
