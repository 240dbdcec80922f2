"""`crosswind schema`: the JSON Schema of a file kind, for editors and checkers."""

from __future__ import annotations

import json
import textwrap
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from crosswind import _core
from crosswind.cli.console import print_json
from crosswind.cli.outputs import Force, writable
from crosswind.cli.verbs import help_of
from crosswind.documents import Document
from crosswind.errors import DescriptionError
from crosswind.files.atomic import write_json

Kind = Literal[
    "platform",
    "links",
    "experiment",
    "disturbance",
    "hosts",
    "measurement",
    "gpu-measurement",
    "sweep",
    "measured-cluster",
    "contention",
    "overlap",
    "plan",
    "queues-plan",
    "runs",
    "program-runs",
    "streams-runs",
    "trace",
    "study",
    "recorded-program",
    "recorded-blame",
    "injection",
    "blame",
    "command-blame",
    "cost",
    "comparison",
    "comparison-of-several",
    "check",
    "cluster-check",
]

_GROUPS = (
    ("You write", "platform"),
    ("Measurements", "measurement"),
    ("Plans and runs", "plan"),
    ("Noise and ranks", "recorded-program"),
    ("Daily use", "cost"),
)
"""A heading, and the first kind that stands under it."""
WIDTH = 80

_IN_PYTHON = {
    "blame": ("crosswind.documents.blame", "BlameDocument"),
    "check": ("crosswind.documents.check", "CheckDocument"),
    "cluster-check": ("crosswind.documents.check", "ClusterCheckDocument"),
    "command-blame": ("crosswind.documents.blame", "CommandBlameDocument"),
    "comparison": ("crosswind.documents.comparison", "ComparisonDocument"),
    "comparison-of-several": ("crosswind.documents.comparison", "SeveralDocument"),
    "contention": ("crosswind.documents.contention", "ContentionDocument"),
    "cost": ("crosswind.documents.cost", "CostDocument"),
    "gpu-measurement": ("crosswind.documents.gpu_measurement", "GpuMeasurementHeader"),
    "injection": ("crosswind.documents.blame", "InjectionDocument"),
    "measured-cluster": ("crosswind.documents.sweep", "MeasuredClusterDocument"),
    "queues-plan": ("crosswind.documents.queues_plan", "QueuesPlanDocument"),
    "recorded-blame": ("crosswind.documents.blame", "RecordedBlameDocument"),
    "recorded-program": ("crosswind.documents.recorded_program", "RecordedProgramHead"),
    "study": ("crosswind.lab.papers.document", "AnyStudyDocument"),
    "sweep": ("crosswind.documents.sweep", "SweepDocument"),
}
"""Kinds whose fields are described in Python, with the module and the name of the description."""
_VERSION: dict[str, dict[str, object]] = {"schema_version": {"type": "integer"}}
_HEADS: dict[str, dict[str, dict[str, object]]] = {
    "gpu-measurement": _VERSION,
    "recorded-program": {},
}
"""Fields that say what a file is, where those are not `schema_version` and `kind`: heads of files, printed results."""

EXAMPLES = """
Examples:

    crosswind schema platform -o platform.schema.json

    crosswind schema check | jq .properties

Without a kind, it lists all kinds. Of tables and recorded programs it is the schema of their header.
"""


def schema(
    kind: Annotated[Kind | None, typer.Argument(help="Kind of file. [default: list all kinds]")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Output file. [default: standard output]")] = None,
    force: Force = False,
) -> None:
    """Print the JSON Schema of a file kind, or the list of kinds.

    Raises
    ------
    DescriptionError
        For a file to write, and no kind.
    """
    if kind is None:
        if out is not None:
            message = "--out writes a schema, and no kind is named"
            raise DescriptionError(message, "argument", f"name one, as in `crosswind schema platform -o {out}`")
        typer.echo("\n".join(kinds_in_lines()))
        return
    writable(out, "schema", force=force)
    document = _schema_of(kind) if kind in _IN_PYTHON else json.loads(_core.schema_of(kind))
    if out is None:
        print_json(document)
    else:
        write_json(document, out)


def kinds_in_lines() -> list[str]:
    """Return the list of all kinds, for a terminal of 80 columns."""
    kinds: tuple[str, ...] = get_args(Kind)
    ends = [kinds.index(first) for _, first in _GROUPS] + [len(kinds)]
    lines = [f"{len(kinds)} kinds of file have a schema. Print one: crosswind schema platform", ""]
    for at, (heading, _) in enumerate(_GROUPS):
        names = ", ".join(kinds[ends[at] : ends[at + 1]])
        first = f"{heading:17}"
        lines += textwrap.wrap(
            names, WIDTH, initial_indent=first, subsequent_indent=" " * len(first), break_on_hyphens=False
        )
    return lines


def described_in_python(kind: str) -> Any:
    """Return the description in Python of a kind's fields."""
    module, name = _IN_PYTHON[kind]
    return getattr(import_module(module), name)


def _schema_of(kind: str) -> Document:
    """Return the JSON Schema of a kind that is described in Python."""
    from pydantic import TypeAdapter

    document: Document = TypeAdapter(described_in_python(kind)).json_schema()
    head = _HEADS.get(kind, {**_VERSION, "kind": {"const": kind}})
    document["properties"] = head | document.get("properties", {}) | head
    document["required"] = list(dict.fromkeys([*head, *document.get("required", [])]))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document, "title": kind}


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("schema", help=help_of("schema", EXAMPLES))(schema)
