"""What each value of a swept field makes of the runs, where a row for each point would fill more than the screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

from crosswind.cli.answer import Section
from crosswind.cli.run_tables import paths_of, short_names
from crosswind.run.results import Runs, shown_value
from crosswind.statistics.digits import plain

MOST_PATHS = 3
"""Swept fields that a row of a table of points names; the answer needs the other two columns."""
MOST_POINTS = 15
"""Rows of points, where several fields are swept, that leave room for the answer on a screen of 30 lines."""
NOTE = "Each row: the mean over all points with this value."

Summary = Callable[[Sequence[Any]], float | None]
"""A figure of a point, from its runs; None where it is not known."""


def is_crowded(done: Runs[Any]) -> bool:
    """Whether a table of points has too many fields to name them, or too many rows."""
    paths = paths_of(done)
    return len(paths) > MOST_PATHS or (len(paths) > 1 and len(done.by_point()) > MOST_POINTS)


def by_field(done: Runs[Any], figures: Sequence[tuple[str, Summary, str]]) -> Section:
    """Return the mean of each figure over the points that share a value of a swept field.

    Parameters
    ----------
    done : Runs
    figures : sequence of (str, callable, str)
        Name of a column, the figure of a point, and its format; "" for three significant digits.
    """
    points, paths = done.by_point(), paths_of(done)
    rows = []
    for name, path in zip(short_names(paths), paths, strict=True):
        values: dict[str, list[Sequence[Any]]] = {}
        for alike in points:
            values.setdefault(shown_value(alike[0].params.get(path, "")), []).append(alike)
        for number, (value, found) in enumerate(values.items()):
            cells = [_mean([figure(alike) for alike in found], form) for _, figure, form in figures]
            rows.append([name if number == 0 else "", value, *cells])
    heads = ["swept", "value", *(name for name, _, _ in figures)]
    columns = [(name, "left" if number < 2 else "right") for number, name in enumerate(heads)]
    return Section(columns, rows, first=heads)


def _mean(values: Sequence[float | None], form: str) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return ""
    return format(fmean(known), form) if form else plain(fmean(known))
