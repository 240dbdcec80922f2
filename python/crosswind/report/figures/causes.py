"""A disturbance: which cause takes a processor when, and what part of the time each takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from crosswind.report.figures.look import ORANGE, layered, records
from crosswind.report.words import shortened

LANE_PX, ROW_PX = 22.0, 24.0
NAMES_PX = 150


def _causes(names: Sequence[str]) -> alt.Y:
    axis = alt.Axis(labelLimit=NAMES_PX, domain=False, ticks=False)
    return alt.Y("cause:N", title=None, sort=list(dict.fromkeys(names)), axis=axis)


def causes_in_time(rows: Sequence[Mapping[str, Any]]) -> alt.LayerChart:
    """Draw one lane per cause.

    Parameters
    ----------
    rows : sequence of mappings
        `cause`, `from`, `to` (s), `away`: part of the stretch in which the cause had a processor, 0..1.

    Returns
    -------
    altair.LayerChart
        Stretches, the darker the more of it was taken; shades follow the square root, because most of it is little.
    """
    names = [shortened(str(row["cause"]), 24) for row in rows]
    data = records({"cause": names} | {key: [row[key] for row in rows] for key in ("from", "to", "away")})
    most = max((float(row["away"]) for row in rows), default=1.0)
    bars = (
        alt.Chart(data)
        .mark_bar(height=13, color=ORANGE)
        .encode(
            x=alt.X("from:Q", title="time, s", scale=alt.Scale(nice=False, domainMin=0)),
            x2="to:Q",
            y=_causes(names),
            opacity=alt.Opacity("away:Q", scale=alt.Scale(type="sqrt", domain=[0, most], range=[0.15, 1]), legend=None),
            tooltip=[
                alt.Tooltip("cause:N", title="cause"),
                alt.Tooltip("from:Q", title="from, s", format=",.4~g"),
                alt.Tooltip("to:Q", title="to, s", format=",.4~g"),
                alt.Tooltip("away:Q", title="taken", format=".3~%"),
            ],
        )
    )
    return layered(bars, height=LANE_PX * len(set(names)))


def duties(rows: Sequence[Mapping[str, Any]]) -> alt.LayerChart:
    """Draw what part of the time each cause takes.

    Parameters
    ----------
    rows : sequence of mappings
        `cause`, `duty` (0..1, of one processor), `words` (the same as text).

    Returns
    -------
    altair.LayerChart
    """
    names = [shortened(str(row["cause"]), 24) for row in rows]
    data = records({"cause": names, "duty": [row["duty"] for row in rows], "words": [row["words"] for row in rows]})
    room = 1.25 * max((float(row["duty"]) for row in rows), default=0.0) or 1.0
    base = alt.Chart(data).encode(
        y=_causes(names),
        x=alt.X(
            "duty:Q",
            title="part of a processor's time",
            scale=alt.Scale(domain=[0, room], nice=False),
            axis=alt.Axis(grid=True, format=".2~%"),
        ),
        tooltip=[alt.Tooltip("cause:N", title="cause"), alt.Tooltip("words:N", title="duty")],
    )
    bars = base.mark_bar(height=13, color=ORANGE, cornerRadiusEnd=2)
    return layered(bars, base.mark_text(align="left", dx=5).encode(text="words:N"), height=ROW_PX * len(set(names)))
