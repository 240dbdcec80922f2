"""The layout of what a verb prints: the answer, a table, at most three warnings, then what was written.

Details are printed with `--wide`, the rest of the warnings with `--warnings`, everything with `--json`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from crosswind.cli.console import is_wide, print_json, print_table, print_text, say_blank, say_warnings, tell
from crosswind.errors import Notice
from crosswind.tables import Table


@dataclass(frozen=True)
class Section:
    """A table of the answer, or of the details.

    Attributes
    ----------
    columns : sequence of (str, {"left", "right"})
        Name and side of each column.
    rows : sequence of sequence of str
    title : str, optional
        A line above the table.
    first : sequence of str
        Columns that a narrow terminal keeps, the most important first.
    """

    columns: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[str]]
    title: str | None = None
    first: Sequence[str] = ()


def section(table: Table, title: str | None = None) -> Section:
    """Return a result's table for the terminal: each unit beside its label."""
    columns = [(column.head, "right" if column.numeric else "left") for column in table.columns]
    return Section(columns, table.rows, title, table.first)


@dataclass(frozen=True)
class Answer:
    """What a verb found.

    Attributes
    ----------
    lines : sequence of str
        One to five sentences; the first has the number, its interval, its unit, and what it is a share of.
    tables : sequence of Section
        At most five columns each.
    notes : sequence of str
        Lines below the tables, such as what ± means.
    wide : sequence of Section
        Printed instead of the tables with `--wide`.
    rest : str
        What `--wide` adds, for the last line; empty where it adds nothing.
    """

    lines: Sequence[str]
    tables: Sequence[Section] = ()
    notes: Sequence[str] = ()
    wide: Sequence[Section] = ()
    rest: str = ""


def show(
    answer: Answer | None,
    *,
    warnings: Sequence[Notice] = (),
    shown: int = 0,
    earlier: Sequence[Notice] = (),
    source: str = "an earlier step",
    wrote: Sequence[str] = (),
    document: Any = None,
) -> None:
    """Print what a verb found.

    Parameters
    ----------
    answer : Answer or None
        None where there is only a document, or nothing to say.
    warnings : sequence of dict
        Of this step.
    shown : int
        How many warnings this step has printed before, while it ran.
    earlier, source : sequence of dict, str
        Warnings that the step before printed, and what they are about; printed again with `--warnings` only.
    wrote : sequence of str
        Files that were written.
    document : optional
        Printed as JSON instead of the answer.
    """
    rest = ""
    if document is not None:
        print_json(document)
    elif answer is not None:
        rest = _print(answer)
    sys.stdout.flush()
    if warnings and answer is not None and document is None:
        say_blank()
    last = [rest, *say_warnings(warnings, shown=shown, earlier=earlier, source=source)]
    files = [one for one in wrote if one.split(" ", 1)[0] != "-"]  # "-" is standard output
    last += [f"Wrote {', '.join(files)}"] if files else []
    if any(last):
        tell(". ".join(part for part in last if part))


def _print(answer: Answer) -> str:
    """Print the sentences and the tables; return what the last line says about the details."""
    wide = is_wide() and bool(answer.wide)
    for number, line in enumerate(answer.lines):
        print_text(line, bold=number == 0)
    for number, one in enumerate(answer.wide if wide else answer.tables):
        if answer.lines or number:
            print_text("")
        print_table(one.columns, one.rows, title=one.title, first=one.first)
    for line in answer.notes:
        print_text(line)
    return "" if wide or not answer.rest else f"{answer.rest}: --wide"
