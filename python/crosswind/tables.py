"""Tables of results: defined once in the room of the result, rendered by the command line and by the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    label : str
    unit : str
        Shown beside the label on a terminal, and below it in the report.
    term : str
        The term of the report's section that explains the label.
    numeric : bool
        Whether cells are aligned to the right.
    """

    label: str
    unit: str = ""
    term: str = ""
    numeric: bool = True

    @property
    def head(self) -> str:
        """Label and unit on one line."""
        return f"{self.label} {self.unit}".strip()


@dataclass(frozen=True)
class Table:
    """Rows of text under columns; the first cell of a row is its head.

    Attributes
    ----------
    caption : str
    columns : sequence of Column
    rows : sequence of sequence of str
        Cells in ASCII where they are numbers; the report sets minus signs, and a dash for "-".
    note : str
        A sentence below the table.
    terms : sequence of str
        The term of each row, where rows have terms.
    first : sequence of str
        Heads of the columns that a narrow terminal keeps, the most important first.
    """

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    note: str = ""
    terms: Sequence[str] = ()
    first: Sequence[str] = ()

    def part(self, columns: Sequence[int]) -> Table:
        """Return some of the columns, by place."""
        rows = [[row[k] for k in columns] for row in self.rows]
        return replace(self, columns=[self.columns[k] for k in columns], rows=rows)
