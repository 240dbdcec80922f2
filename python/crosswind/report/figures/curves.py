"""One quantity of runs over a swept value: a line with intervals for each series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from crosswind.report.figures.categories import coloured, legend_of, words_axis
from crosswind.report.figures.look import CHANNEL_COLOURS, CRIMSON, EXPORT_WIDTH, VIOLET, layered, records

HEIGHT = 300
CAP_PX = 7.0  # of an interval's ends, at most
COLOURS = (*CHANNEL_COLOURS, VIOLET, CRIMSON)
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")


def curves(
    rows: Sequence[Mapping[str, Any]], x: str, y: str, log: str = "", width: float = EXPORT_WIDTH
) -> alt.LayerChart:
    """Draw means with 95 % intervals, joined by lines where x is a number: words have no order.

    Parameters
    ----------
    rows : sequence of mappings
        `x` (number or word), `series` (word, "" for one line), `mean`, `low`, `high`; the ends are the mean where no
        interval is known.
    x, y : str
        Titles of the axes.
    log : str
        Axes with a logarithmic scale, such as `xy`; their values are above 0. A lower end of an interval that is not
        is drawn down to half of the least mean.
    width : float
        Of the drawing, px: ends of intervals stay within their category.

    Returns
    -------
    altair.LayerChart
        Lines differ in colour and in shape: for paper without colour.
    """
    numeric = all(isinstance(row["x"], (int, float)) for row in rows)
    if "y" in log:
        least = 0.5 * min(row["mean"] for row in rows)
        rows = [{**row, "low": max(row["low"], least)} for row in rows]
    names = list(dict.fromkeys(str(row["series"]) for row in rows))
    data = records({name: [row[name] for row in rows] for name in ("x", "series", "mean", "low", "high")})
    if numeric:
        scale = {"type": "log"} if "x" in log else {"zero": False}
        along = alt.X("x:Q", title=x, sort=None, scale=alt.Scale(nice=False, padding=12, **scale))
    else:
        words = list(dict.fromkeys(row["x"] for row in rows))
        along = alt.X("x:N", title=x, sort=None, axis=words_axis(words, width))
    up = alt.Scale(type="log") if "y" in log else alt.Scale(zero=False, padding=8)
    colour = coloured("series", names, COLOURS)
    legend = colour.legend = legend_of(names, width)  # type: ignore[assignment]
    tooltip = [
        alt.Tooltip("series:N", title="series"),
        alt.Tooltip(f"x:{'Q' if numeric else 'N'}", title=x),
        *(alt.Tooltip(f"{name}:Q", title=name, format=",.4~g") for name in ("mean", "low", "high")),
    ]
    base = alt.Chart(data).encode(x=along, color=colour)
    if not numeric and len(names) > 1:  # beside each other, not upon each other
        base = base.encode(xOffset=alt.XOffset("series:N", sort=names))
    lines = base.mark_line(strokeWidth=1.5).encode(y=alt.Y("mean:Q", title=y, scale=up))
    spans = whiskers(base, y, up, CAP_PX if numeric else cap_within("x" if len(names) == 1 else "xOffset"))
    dots = base.mark_point(filled=True, size=50, opacity=1).encode(
        y="mean:Q",
        shape=alt.Shape("series:N", legend=legend, scale=alt.Scale(domain=names, range=[*SHAPES])),
        tooltip=tooltip,
    )
    return layered(*([lines] if numeric else []), spans, dots, height=HEIGHT)


def cap_within(scale: str, part: float = 0.5) -> alt.ExprRef:
    """Return how wide the end of an interval is, px: a part of its place on a scale (`x` or `xOffset`)."""
    return alt.ExprRef(f"min({CAP_PX:g}, {part:g} * max(bandwidth('{scale}'), 1))")


def whiskers(base: alt.Chart, y: str, scale: alt.Scale, cap: float | alt.ExprRef, **mark: Any) -> alt.Chart:
    """Return intervals from `low` to `high` with ends `cap` px wide."""
    ends: alt.Chart = base.mark_errorbar(ticks={"size": cap}, thickness=1.2, **mark)
    return ends.encode(y=alt.Y("low:Q", title=y, scale=scale), y2="high:Q")
