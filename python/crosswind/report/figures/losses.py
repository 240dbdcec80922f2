"""What is lost at each rate that was measured, both directions beside each other: the answer of a measurement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from crosswind.report.figures.categories import coloured
from crosswind.report.figures.look import BLUE, ORANGE, layered, records

HEIGHT = 330
CAP_PX = 9
COLOURS = {"Receiving": BLUE, "Sending": ORANGE}
SHAPES = {"Receiving": "circle", "Sending": "square"}


def losses(points: Sequence[Mapping[str, Any]], lines: Sequence[Mapping[str, Any]]) -> alt.LayerChart:
    """Draw losses with their intervals against the rate, and the fitted lines.

    Parameters
    ----------
    points : sequence of mappings
        `of` (a word of `COLOURS`), `rate` (MB/s), `loss`, `low`, `high` (parts of the full compute rate).
    lines : sequence of mappings
        Two ends of each line: `of`, `rate`, `loss`.
    """
    names = [name for name in COLOURS if any(row["of"] == name for row in points)]
    top = max(row["rate"] for row in points)
    aside = {name: (at - (len(names) - 1) / 2) * 0.012 * top for at, name in enumerate(names)}
    colour = coloured("of", names, [COLOURS[name] for name in names])
    x = alt.X("at:Q", title="traffic, MB/s", scale=alt.Scale(nice=False, zero=True, domainMax=1.04 * top))
    y = alt.Y("loss:Q", title="computation lost", axis=alt.Axis(format="~%", grid=True))
    moved = [{**row, "at": row["rate"] + aside[row["of"]]} for row in points]
    columns = ("of", "rate", "at", "loss", "low", "high")
    data = records({name: [row[name] for row in moved] for name in columns})
    tooltip = [
        alt.Tooltip("of:N", title=" "),
        alt.Tooltip("rate:Q", title="MB/s", format=",.4~g"),
        alt.Tooltip("loss:Q", title="lost", format=".1%"),
        alt.Tooltip("low:Q", title="from", format=".1%"),
        alt.Tooltip("high:Q", title="to", format=".1%"),
    ]
    base = alt.Chart(data).encode(x=x, color=colour, tooltip=tooltip)
    spans = base.mark_rule(strokeWidth=2).encode(y="low:Q", y2="high:Q")
    ends = [
        base.mark_tick(orient="horizontal", thickness=2, size=CAP_PX).encode(y=alt.Y(f"{end}:Q", title=None))
        for end in ("low", "high")
    ]
    shape = alt.Shape(
        "of:N",
        legend=alt.Legend(title=None, symbolOpacity=1),
        scale=alt.Scale(domain=names, range=[SHAPES[name] for name in names]),
    )
    dots = base.mark_point(filled=True, size=80, opacity=1).encode(y=y, shape=shape)
    layers = [spans, *ends, dots]
    if lines:
        rows = records({name: [row[name] for row in lines] for name in ("of", "rate", "loss")})
        dashed = alt.Chart(rows).mark_line(strokeDash=[5, 4], strokeWidth=1.5, opacity=0.75)
        layers.insert(0, dashed.encode(x=alt.X("rate:Q", title="traffic, MB/s"), y=y, color=colour))
    return layered(*layers, height=HEIGHT)
