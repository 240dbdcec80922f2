"""What each reading of a paper's text says to the parts of a claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from crosswind.report.figures.look import BLUE, ORANGE, layered, records

ROW_PX = 40.0
SHAPES = {"holds": "circle", "does not": "cross"}
COLOURS = {"holds": BLUE, "does not": ORANGE}


def answers(rows: Sequence[Mapping[str, Any]]) -> alt.LayerChart:
    """Draw whether each part of a claim holds under each reading.

    Parameters
    ----------
    rows : sequence of mappings
        `part` (its number), `text`, `reading`, `answer` (a key of SHAPES), `found` (the numbers).

    Returns
    -------
    altair.LayerChart
        Parts from left to right, readings from top to bottom, each above its row: beside it, their words would leave no
        room for the parts on a narrow page.
    """
    columns = ("part", "text", "reading", "answer", "found")
    data = records({name: [row[name] for row in rows] for name in columns})
    readings = list(dict.fromkeys(str(row["reading"]) for row in rows))
    told = [answer for answer in SHAPES if any(row["answer"] == answer for row in rows)]
    legend = alt.Legend(title=None, symbolOpacity=1)
    dots = (
        alt.Chart(data)
        .mark_point(filled=True, size=90, opacity=1)
        .encode(
            x=alt.X("part:O", title="part of the claim", sort=None, axis=alt.Axis(labelAngle=0)),
            y=alt.Y("reading:N", title=None, sort=readings, axis=alt.Axis(labels=False, ticks=False, grid=True)),
            color=alt.Color(
                "answer:N", scale=alt.Scale(domain=told, range=[COLOURS[one] for one in told]), legend=legend
            ),
            shape=alt.Shape(
                "answer:N", scale=alt.Scale(domain=told, range=[SHAPES[one] for one in told]), legend=legend
            ),
            tooltip=[
                alt.Tooltip("text:N", title="must be true"),
                alt.Tooltip("reading:N"),
                alt.Tooltip("answer:N", title=" "),
                alt.Tooltip("found:N"),
            ],
        )
    )
    words = (
        alt.Chart(records({"reading": readings}))
        .mark_text(align="left", baseline="bottom", dy=-9, limit=alt.ExprRef("width"))
        .encode(x=alt.value(0), y=alt.Y("reading:N", sort=readings), text="reading:N")
    )
    return layered(dots, words, height=max(60.0, ROW_PX * len(readings)))
