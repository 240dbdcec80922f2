"""How figures went from file to file: one line each over the time at which they were made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from crosswind.report.figures.categories import coloured
from crosswind.report.figures.look import CHANNEL_COLOURS, CRIMSON, layered, records

TREND_PX = 240.0


def trend(
    rows: Sequence[Mapping[str, Any]], title: str, limit: float | None = None, along: str = "value"
) -> alt.LayerChart:
    """Draw values over time, with their intervals where they have any.

    Parameters
    ----------
    rows : sequence of mappings
        `of` (what it is), `at` (UTC, ISO 8601), `value`; `low` and `high` or neither; `words` for the pointer, or none.
    title : str
        Of the axis, with its unit.
    limit : float, optional
        What is permitted: a dashed line.
    along : str
        The field of the rows along y.
    """
    names = [name for name in dict.fromkeys(("of", "at", "value", "low", "high", "words", along)) if name in rows[0]]
    data = records({name: [row[name] for row in rows] for name in names})
    things = list(dict.fromkeys(str(row["of"]) for row in rows))
    tooltip = [
        alt.Tooltip("of:N", title=" "),
        alt.Tooltip("at:T", title="at", format="%Y-%m-%d %H:%M"),
        alt.Tooltip(f"{along}:Q", title=title, format=".3~g"),
        *([alt.Tooltip("words:N", title="lost")] if "words" in names else []),
    ]
    base = alt.Chart(data).encode(x=alt.X("at:T", title=None), color=coloured("of", things, CHANNEL_COLOURS))
    y = alt.Y(f"{along}:Q", title=title, axis=alt.Axis(grid=True, format=".3~r"))
    layers = [base.mark_line(strokeWidth=1.2, opacity=0.6).encode(y=y)]
    if "low" in names:
        layers.append(base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", title=title), y2="high:Q"))
    layers.append(base.mark_point(filled=True, size=46, opacity=1).encode(y=y, tooltip=tooltip))
    if limit is not None:
        dashed = alt.Chart(records({"limit": [limit]})).mark_rule(strokeDash=[4, 3], color=CRIMSON)
        layers.append(dashed.encode(y="limit:Q"))
    return layered(*layers, height=TREND_PX)
