"""`crosswind run --again runs.json`: the verdict, and the values that are not the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosswind import _core
from crosswind.cli.answer import Answer, Section, show
from crosswind.cli.console import number_of
from crosswind.cli.outputs import file_of, writable, written
from crosswind.cli.run_tables import short_names
from crosswind.documents import Arguments
from crosswind.errors import DescriptionError
from crosswind.run.ranking import ORDER
from crosswind.terminal.progress import progress_bar

if TYPE_CHECKING:
    from crosswind.run.rerun import Difference, Rerun

DIFFERENT = 4
"""Exit code where a number is not the same."""

Again = Annotated[
    Path | None,
    typer.Option(
        "--again",
        metavar="RUNS.json",
        help="Make the simulated runs of a file again, from what it holds, and say whether every number is the same.",
    ),
]


AllowCode = Annotated[
    bool,
    typer.Option("--allow-code", help="With --again: run policies in Python that the file holds, with your rights."),
]


def rerun(
    path: Path,
    workers: int | str | None,
    out: Path | None,
    *,
    allow_code: bool,
    rows: int,
    force: bool,
    as_json: bool,
) -> None:
    """Run a file of runs again, print the verdict, and exit with it.

    Raises
    ------
    DescriptionError
        When the file cannot be run again.
    typer.Exit
        With code 4 where a number differs.
    """
    from crosswind.run.rerun import run_again

    writable(out, "runs", inputs=[path], force=force)
    with progress_bar() as advance:
        found = run_again(path, workers=workers, out=file_of(out), force=force, allow_code=allow_code, progress=advance)
    if out and not file_of(out):
        found.now.save(out)
    show(
        None if as_json else answer_of(found, rows),
        wrote=written(out, number_of(len(found.now), "run")),
        document=found.to_dict() if as_json else None,
    )
    if found.verdict == "different":
        raise typer.Exit(DIFFERENT)


def refuse_beside(given: Arguments) -> None:
    """Refuse options that would make the runs other ones.

    Raises
    ------
    DescriptionError
        That names the first of them.
    """
    option = next((option for option, value in given.items() if value), None)
    if option is not None:
        message = f"{option} does not go with --again, which makes the recorded runs and no others"
        raise DescriptionError(message, "argument", "leave it out, or name an experiment in place of --again")


def answer_of(found: Rerun, most: int) -> Answer:
    """Return the verdict, and at most `most` values that differ."""
    versions = f"recorded by {' and '.join(found.versions)}, run again by {_core.__version__}"
    total = len(found.recorded)
    if found.verdict == "same":
        of = (
            ""
            if total == found.points
            else f" Of {number_of(found.points, 'run')} of the experiment, the file has {total}."
        )
        lines = [f"Same: all {found.values:,} values of {number_of(total, 'run')}, {versions}.{of}"]
        tables = []
    else:
        runs = len({(json.dumps(one.params), one.seed) for one in found.differences})
        lines = [f"Different: {runs} of {number_of(total, 'run')}, {versions}."]
        if found.same_version:
            lines.append("The version is the same: the file was changed, or Crosswind was built from other code.")
        else:
            lines.append("The version differs: CHANGELOG.md says what changed. The new runs can be kept: -o FILE.")
        tables = [_table(found.differences, most)]
    notes = [f"Not compared, since the file does not have it: {', '.join(_kinds(found.added))}"] if found.added else []
    left = len(found.differences) - most
    return Answer(lines, tables, notes + ([f"{left} more values differ: --rows, --json"] if left > 0 else []))


def _kinds(fields: Sequence[str]) -> list[str]:
    """Return fields without their places in lists, each once."""
    import re

    return list(dict.fromkeys(re.sub(r"\[\d+\]", "", field) for field in fields))


def _table(differences: Sequence[Difference], most: int) -> Section:
    rows = [
        [_where(one), str(one.seed), one.field, _value(one.recorded), _value(one.now)] for one in differences[:most]
    ]
    columns = [("run", "left"), ("seed", "right"), ("value", "left"), ("recorded", "right"), ("now", "right")]
    return Section(columns, rows, first=("value", "recorded", "now", "run"))


def _where(one: Difference) -> str:
    own = {path: value for path, value in one.params.items() if path != "seed"}
    order = own.pop(ORDER, None)
    words = [f"{name}={_value(value)}" for name, value in zip(short_names(list(own)), own.values(), strict=True)]
    return " ".join([*([str(order)] if order is not None else []), *words]) or "-"


def _value(value: Any) -> str:
    return "missing" if value is None else value if isinstance(value, str) else json.dumps(value)
