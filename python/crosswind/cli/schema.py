"""`crosswind schema`: the JSON Schema of a file kind, for editors and checkers."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

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
    "check",
    "cluster-check",
    "comparison",
    "cost",
    "command-blame",
]

_SHAPES = {
    "check": ("crosswind.check.shape", "CheckShape"),
    "cluster-check": ("crosswind.check.shape", "ClusterCheckShape"),
    "comparison": ("crosswind.compare.shape", "ComparisonShape"),
    "cost": ("crosswind.cost.shape", "CostShape"),
    "command-blame": ("crosswind.blame.shape", "CommandBlameShape"),
}
"""Kinds whose fields are described in Python, with the module and the name of the description."""

EXAMPLES = """
Examples:

    crosswind schema platform -o platform.schema.json

    crosswind schema check | jq .properties
"""


def schema(
    kind: Annotated[Kind, typer.Argument(help="Which file.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write it there; else it is printed.")] = None,
    force: Force = False,
) -> None:
    """Print the JSON Schema of a file kind."""
    writable(out, "schema", force=force)
    document = _of_shape(kind) if kind in _SHAPES else json.loads(_core.schema_of(kind))
    if out is None:
        print_json(document)
    else:
        write_json(document, out)


def _of_shape(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of a kind that is described in Python."""
    from pydantic import TypeAdapter

    module, name = _SHAPES[kind]
    document: dict[str, Any] = TypeAdapter(getattr(import_module(module), name)).json_schema()
    head = {"schema_version": {"type": "integer"}, "kind": {"const": kind}}
    document["properties"] = head | document["properties"] | head
    document["required"] = list(dict.fromkeys([*head, *document.get("required", [])]))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document, "title": kind}


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("schema", help=help_of("schema", EXAMPLES))(schema)
