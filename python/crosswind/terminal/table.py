"""Tables of text: columns side by side, and what a narrow terminal shows of them. Nothing is cut."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

GAP = 2
"""Spaces between two columns."""
LEAST_WRAPPED = 24
"""Columns that text in the last column needs at least to be broken into lines there."""


@dataclass(frozen=True)
class Table:
    """Cells of text, with the name and side ("left" or "right") of each column.

    Examples
    --------
    >>> for line in Table([("node", "left"), ("tasks", "right")], [["Lab0", "7"], ["Tenn", "12"]]).lines():
    ...     print(line)
    node  tasks
    Lab0      7
    Tenn     12
    """

    columns: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[str]]

    def widths(self) -> list[int]:
        """Return the columns of the terminal that each column takes."""
        return [max(map(width, [name, *cells])) for (name, _), cells in zip(self.columns, self._cells(), strict=True)]

    def narrowed(self, room: int, first: Sequence[str] = ()) -> tuple[Table, list[str]]:
        """Return what fits, and the names of the columns that are left out.

        Parameters
        ----------
        room : int
            Columns of the terminal.
        first : sequence of str
            Names of the columns to keep, the most important first, as many as fit; by default those from the left. At
            least one stays.

        Examples
        --------
        >>> table = Table([("node", "left"), ("work/s", "right"), ("MB/s", "right")], [["Lab0", "1.5", "100"]])
        >>> [line for line in table.narrowed(12)[0].lines()], table.narrowed(12)[1]
        (['node  work/s', 'Lab0     1.5'], ['MB/s'])
        >>> table.narrowed(12, ["node", "MB/s"])[1]
        ['work/s']
        """
        widths = self.widths()
        if sum(widths) + GAP * (len(widths) - 1) <= room or self._breaks(room):
            return self, []
        names = [name for name, _ in self.columns]
        kept: list[int] = []
        taken = -GAP
        for at in [names.index(name) for name in first if name in names] or range(len(names)):
            fits = taken + GAP + widths[at] <= room
            if fits or not kept:
                kept.append(at)
                taken += GAP + widths[at]
            elif not first:
                break
        kept.sort()
        rest = [name for at, (name, _) in enumerate(self.columns) if at not in kept and name]
        return Table([self.columns[at] for at in kept], [[row[at] for at in kept] for row in self.rows]), rest

    def lines(self, room: int | None = None) -> Iterator[str]:
        """Yield the names of the columns, where there are any, and the rows; text in the last column within `room`."""
        widths, sides = self.widths(), [side for _, side in self.columns]
        before = sum(widths[:-1]) + GAP * (len(widths) - 1)
        breaks = room is not None and self._breaks(room)
        heads = [[name for name, _ in self.columns]] if any(name for name, _ in self.columns) else []
        for row in [*heads, *self.rows]:
            last = textwrap.wrap(row[-1], room - before) if breaks and room is not None else [row[-1]]
            yield _joined([*row[:-1], last[0] if last else ""], widths, sides)
            yield from (" " * before + line for line in last[1:])

    def _cells(self) -> list[list[str]]:
        return [[row[at] for row in self.rows] for at in range(len(self.columns))]

    def _breaks(self, room: int) -> bool:
        """Return whether it fits once the text of the last column is broken into lines."""
        widths = self.widths()
        before = sum(widths[:-1]) + GAP * (len(widths) - 1)
        texts = self.columns[-1][1] == "left" and any(" " in row[-1] for row in self.rows)
        return texts and before + widths[-1] > room >= before + LEAST_WRAPPED


def _joined(row: Sequence[str], widths: Sequence[int], sides: Sequence[str]) -> str:
    cells = []
    for cell, wide, side in zip(row, widths, sides, strict=True):
        space = " " * (wide - width(cell))
        cells.append(space + cell if side == "right" else cell + space)
    return (" " * GAP).join(cells).rstrip()


def width(text: str) -> int:
    """Return the columns of a terminal that text takes.

    Examples
    --------
    >>> width("IR"), width("干渉")
    (2, 4)
    """
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(bool(unicodedata.combining(char)) for char in text)
