"""What one queue and two cost each stream: slowdowns against what was varied, and stream by stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from crosswind.report.figures.categories import coloured
from crosswind.report.figures.look import BLUE, CRIMSON, GREEN, GREY, OCHRE, ORANGE, PINK, VIOLET, layered, records
from crosswind.report.figures.slowdowns import logarithmic

HEIGHT = 280
STREAM_COLOURS = (BLUE, ORANGE, GREEN, PINK, OCHRE, VIOLET, GREY)
DASHES = {"one queue": [5, 3], "two queues": [1, 0], "closed form, one queue": [1, 3]}
"""As in the paper's figures 8 to 10: dashed without the distinction of classes, solid with it."""
SHAPES = {"simulated": "circle", "run": "diamond"}
FORM = ",.4~g"


def slowdowns_by_queue(rows: Sequence[Mapping[str, Any]], x: str) -> alt.LayerChart:
    """Draw each stream's slowdown with one queue and with two against a value at equal steps.

    Parameters
    ----------
    rows : sequence of mappings
        `value` (as it stands on the axis), `stream`, `queue` (a key of DASHES), `which` (a key of SHAPES), `middle`,
        `low`, `high` (slowdowns over the seeds).
    x : str
        What is varied, with its unit.

    Returns
    -------
    altair.LayerChart
        Logarithmic; dashed lines are one queue, solid ones two, dotted ones the closed form of one.
    """
    columns = ("value", "stream", "queue", "which", "middle", "low", "high")
    data = records({name: [row[name] for row in rows] for name in columns})
    queues = [queue for queue in DASHES if any(row["queue"] == queue for row in rows)]
    whiches = [which for which in SHAPES if any(row["which"] == which for row in rows)]
    tooltip = [
        alt.Tooltip("stream:N"),
        alt.Tooltip("queue:N", title=" "),
        alt.Tooltip("which:N", title=" "),
        alt.Tooltip("value:N", title=x),
        alt.Tooltip("middle:Q", title="slowdown", format=FORM),
        alt.Tooltip("low:Q", title="from", format=FORM),
        alt.Tooltip("high:Q", title="to", format=FORM),
    ]
    base = alt.Chart(data).encode(
        x=alt.X("value:N", title=x, sort=None, axis=alt.Axis(labelAngle=0, labelOverlap="greedy")),
        color=coloured("stream", [str(row["stream"]) for row in rows], STREAM_COLOURS),
        tooltip=tooltip,
    )
    dash = alt.StrokeDash(
        "queue:N",
        scale=alt.Scale(domain=queues, range=[DASHES[queue] for queue in queues]),
        legend=alt.Legend(title=None),
    )
    low, high = min(row["low"] for row in rows), max(row["high"] for row in rows)
    y = alt.Y("middle:Q", title="slowdown, times alone", **logarithmic(low, high))
    lines = base.mark_line(strokeWidth=1.8).encode(y=y, strokeDash=dash, detail="which:N")
    dots = base.mark_point(filled=True, size=48, opacity=1).encode(
        y=y,
        shape=alt.Shape(
            "which:N",
            scale=alt.Scale(domain=whiches, range=[SHAPES[which] for which in whiches]),
            legend=alt.Legend(title=None, symbolOpacity=1) if len(whiches) > 1 else None,
        ),
    )
    spans = base.mark_rule(strokeWidth=2).encode(y="low:Q", y2="high:Q")
    return layered(lines, spans, dots, height=HEIGHT)


def latencies_by_queue(rows: Sequence[Mapping[str, Any]]) -> alt.LayerChart:
    """Draw how late messages are, alone, in one queue and in two: the middle half of them is at the dot or before.

    Parameters
    ----------
    rows : sequence of mappings
        `name` (stream), `how` (alone, one queue, two queues), `p50`, `p99` (s).

    Returns
    -------
    altair.LayerChart
        Streams as rows; a dot at the median, a bar up to the 99th percentile, logarithmic.
    """
    columns = ("name", "how", "p50", "p99")
    data = records({name: [row[name] for row in rows] for name in columns})
    names = list(dict.fromkeys(str(row["name"]) for row in rows))
    hows = list(dict.fromkeys(str(row["how"]) for row in rows))
    tooltip = [
        alt.Tooltip("name:N", title=" "),
        alt.Tooltip("how:N", title=" "),
        alt.Tooltip("p50:Q", title="median, s", format=FORM),
        alt.Tooltip("p99:Q", title="99 of 100, s", format=FORM),
    ]
    base = alt.Chart(data).encode(
        y=alt.Y("name:N", title=None, sort=names, axis=alt.Axis(labelLimit=190, domain=False, ticks=False, grid=True)),
        yOffset=alt.YOffset("how:N", sort=hows),
        color=coloured("how", hows, (GREY, CRIMSON, BLUE)),
        tooltip=tooltip,
    )
    x = alt.X("p50:Q", title="from a message's making to its receipt, s", scale=alt.Scale(type="log"))
    spans = base.mark_rule(strokeWidth=2).encode(x=x, x2="p99:Q")
    dots = base.mark_point(filled=True, size=56, opacity=1).encode(x=x)
    return layered(spans, dots, height=(12.0 * len(hows) + 12.0) * len(names))
