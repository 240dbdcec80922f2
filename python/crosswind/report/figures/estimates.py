"""Losses with their intervals: by estimator, and as they became known over time; the margin is a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from crosswind.report.figures.categories import coloured
from crosswind.report.figures.look import BLUE, CHANNEL_COLOURS, CRIMSON, layered, records

ROW_PX = 26.0
TIME_PX = 220.0


def by_estimator(rows: Sequence[Mapping[str, Any]], margin: float, title: str) -> alt.LayerChart:
    """Draw a dot and an interval per estimator and thing.

    Parameters
    ----------
    rows : sequence of mappings
        `of` (what), `way` (the estimator), `middle`, `low`, `high` (%).
    margin : float
        What is tolerated, %.
    title : str
        Of the axis.
    """
    data = records({name: [row[name] for row in rows] for name in ("of", "way", "middle", "low", "high")})
    things = list(dict.fromkeys(str(row["of"]) for row in rows))
    ways = list(dict.fromkeys(str(row["way"]) for row in rows))
    tooltip = [
        alt.Tooltip("of:N", title=" "),
        alt.Tooltip("way:N", title="by"),
        alt.Tooltip("middle:Q", title="%", format=".3~g"),
        alt.Tooltip("low:Q", title="from", format=".3~g"),
        alt.Tooltip("high:Q", title="to", format=".3~g"),
    ]
    base = alt.Chart(data).encode(
        y=alt.Y("of:N", title=None, sort=things, axis=alt.Axis(labelLimit=220, domain=False, ticks=False)),
        yOffset=alt.YOffset("way:N", sort=ways),
        color=coloured("way", ways, list(CHANNEL_COLOURS[: len(ways)])),
        tooltip=tooltip,
    )
    axis = alt.Axis(grid=True, format=".3~r")
    line = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=title, axis=axis), x2="high:Q")
    dot = base.mark_point(filled=True, size=50, opacity=1).encode(x=alt.X("middle:Q", title=title, axis=axis))
    limit = alt.Chart(records({"margin": [margin]})).mark_rule(strokeDash=[4, 3], color=CRIMSON).encode(x="margin:Q")
    return layered(limit, line, dot, height=ROW_PX * len(ways) * len(things))


def over_time(rows: Sequence[Mapping[str, Any]], margin: float, title: str, time: str) -> alt.LayerChart:
    """Draw an estimate and its interval as they were after each part of the session.

    Parameters
    ----------
    rows : sequence of mappings
        `at` (s or quads), `middle`, `low`, `high` (%).
    margin : float
        What is tolerated, %.
    title, time : str
        Of the axes.
    """
    data = records({name: [row[name] for row in rows] for name in ("at", "middle", "low", "high")})
    base = alt.Chart(data).encode(x=alt.X("at:Q", title=time))
    y = alt.Y("middle:Q", title=title, axis=alt.Axis(grid=True, format=".3~r"))
    band = base.mark_area(opacity=0.25, color=BLUE).encode(y=alt.Y("low:Q", title=title), y2="high:Q")
    line = base.mark_line(color=BLUE, strokeWidth=2).encode(y=y)
    limit = alt.Chart(records({"margin": [margin]})).mark_rule(strokeDash=[4, 3], color=CRIMSON).encode(y="margin:Q")
    return layered(band, line, limit, height=TIME_PX)
