"""One quantity of runs at values beside each other: bars from zero with intervals, or boxes of quartiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from crosswind.report.figures.categories import coloured, legend_of, words_axis
from crosswind.report.figures.curves import COLOURS, HEIGHT, cap_within, whiskers
from crosswind.report.figures.look import EXPORT_WIDTH, INK, layered, records

GAP = 0.3  # between values, as a part of the room of each


def bars(rows: Sequence[Mapping[str, Any]], x: str, y: str, width: float = EXPORT_WIDTH) -> alt.LayerChart:
    """Draw means as bars from zero, with 95 % intervals; each value of `x` has one bar for each series.

    Parameters
    ----------
    rows : sequence of mappings
        As of `crosswind.report.figures.curves.curves`.
    x, y : str
        Titles of the axes.
    width : float
        Of the drawing, px.
    """
    fields = ("x", "series", "mean", "low", "high")
    base, colour, place = _placed(rows, fields, x, width)
    up = alt.Scale(zero=True)
    tooltip = [alt.Tooltip(f"{name}:Q", format=",.4~g") for name in fields[2:]]
    drawn = base.mark_bar().encode(y=alt.Y("mean:Q", title=y, scale=up), color=colour, tooltip=tooltip)
    return layered(drawn, whiskers(base, y, up, cap_within(place), color=INK), height=HEIGHT)


def boxes(
    rows: Sequence[Mapping[str, Any]], x: str, y: str, log: str = "", width: float = EXPORT_WIDTH
) -> alt.LayerChart:
    """Draw boxes from the first to the third quartile, with the median; whiskers end at the least and greatest run.

    Parameters
    ----------
    rows : sequence of mappings
        `x` (number or word), `series` (word, "" for one box at each), `values` (of all runs of the point).
    x, y : str
        Titles of the axes.
    log : str
        `y` for a logarithmic scale; its values are above 0.
    width : float
        Of the drawing, px.
    """
    single = [{**row, "value": value} for row in rows for value in row["values"]]
    base, colour, place = _placed(single, ("x", "series", "value"), x, width)
    up = alt.Scale(type="log") if "y" in log else alt.Scale(zero=False, padding=8)
    size = {"size": alt.ExprRef(f"0.7 * bandwidth('{place}')")}
    drawn = base.mark_boxplot(
        extent="min-max", box=size, median={**size, "color": INK}, ticks={"size": cap_within(place), "color": INK}
    )
    return layered(drawn.encode(y=alt.Y("value:Q", title=y, scale=up), color=colour), height=HEIGHT)


def _placed(
    rows: Sequence[Mapping[str, Any]], fields: Sequence[str], x: str, width: float
) -> tuple[alt.Chart, alt.Color, str]:
    """Return the chart that all layers share, the colour of each series, and the scale that has a place for each."""
    names = list(dict.fromkeys(str(row["series"]) for row in rows))
    values = list(dict.fromkeys(row["x"] for row in rows))
    if all(isinstance(value, (int, float)) for value in values):
        values.sort()
    data = records({name: [row[name] for row in rows] for name in fields})
    colour = coloured("series", names, COLOURS)
    colour.legend = legend_of(names, width)  # type: ignore[assignment]
    along = alt.X("x:N", title=x, sort=values, axis=words_axis(values, width), scale=alt.Scale(padding=GAP))
    base = alt.Chart(data).encode(x=along)
    if len(names) > 1:
        base = base.encode(xOffset=alt.XOffset("series:N", sort=names))
    return base, colour, "x" if len(names) == 1 else "xOffset"
