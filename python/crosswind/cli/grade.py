"""`crosswind grade`: a sheet of homework drawn from a seed, and marks for the answers to it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crosswind.cli.answer import Answer, Section, show
from crosswind.cli.inputs import refuse_missing
from crosswind.cli.outputs import Force, Json, writable, written
from crosswind.cli.verbs import help_of
from crosswind.errors import DescriptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crosswind.lab.grade import Mark

EXAMPLES = """
Examples:

    crosswind grade --seed 4711 -o answers.toml

    crosswind grade answers.toml

The first writes the questions, with another platform for each seed; students fill in their answers. The second marks
them and says what is wrong. Exit codes: 0 all right, 4 an answer is wrong or missing, 2 the file cannot be read.
"""


def grade(
    answers: Annotated[Path | None, typer.Argument(metavar="ANSWERS.toml", help="Answers to mark.")] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Write the sheet of this seed.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The sheet. [default: standard output]")] = Path("-"),
    force: Force = False,
    json: Json = False,
) -> None:
    """Write a sheet of homework, or mark the answers to one.

    Raises
    ------
    DescriptionError
        When there is neither a file nor a seed, or both.
    """
    if (answers is None) == (seed is None):
        message = "grade takes a file of answers, or --seed N for a new sheet"
        raise DescriptionError(message, "argument", "crosswind grade --seed 4711 -o answers.toml")
    refuse_missing(answers)
    from crosswind.files.atomic import write_text
    from crosswind.lab.grade import grade as mark
    from crosswind.lab.grade import questions, sheet_of

    if seed is not None:
        writable(out, "homework", force=force)
        write_text(questions(sheet_of(seed)), out)
        show(None, wrote=written(out))
        return
    assert answers is not None  # one of the two is given
    marks = mark(answers)
    right = sum(one.verdict == "right" for one in marks)
    document = {"right": right, "of": len(marks), "marks": [asdict(one) for one in marks]}
    show(_answer(marks, right), document=document if json else None)
    if right < len(marks):
        raise typer.Exit(4)


def _answer(marks: Sequence[Mark], right: int) -> Answer:
    rows = [[one.question, one.field, one.verdict] for one in marks]
    notes = [f"{one.field}: {one.why}" for one in marks if one.verdict == "wrong"]
    columns = [("question", "left"), ("answer", "left"), ("mark", "left")]
    return Answer([f"{right} of {len(marks)} answers are right."], [Section(columns, rows)], notes)


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("grade", help=help_of("grade", EXAMPLES))(grade)
