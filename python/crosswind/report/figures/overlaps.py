"""Messages beside computation: the time of each together, against its time alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from crosswind.report.figures.categories import coloured
from crosswind.report.figures.look import BLUE, GREY, ORANGE, layered, records

ROW_PX = 22.0
WHICH = {"messages": BLUE, "computation": ORANGE}


def alone_and_together(rows: Sequence[Mapping[str, Any]]) -> alt.LayerChart:
    """Draw the times of messages and computation, s, on a logarithmic axis.

    Parameters
    ----------
    rows : sequence of mappings
        `cell` (what it is of, in words), `which` ("messages" or "computation"), `alone` and `together` (s, > 0).

    Returns
    -------
    altair.LayerChart
        A row per cell; a tick is the time alone, a dot the time together, joined.
    """
    names = ("cell", "which", "alone", "together")
    data = records({name: [row[name] for row in rows] for name in names})
    cells = list(dict.fromkeys(str(row["cell"]) for row in rows))
    tooltip = [
        alt.Tooltip("cell:N", title=" "),
        alt.Tooltip("which:N", title="of"),
        alt.Tooltip("alone:Q", title="alone, s", format=",.3~g"),
        alt.Tooltip("together:Q", title="together, s", format=",.3~g"),
    ]
    axis = alt.Axis(grid=True, format="~g")
    base = alt.Chart(data).encode(
        y=alt.Y("cell:N", title=None, sort=cells, axis=alt.Axis(labelLimit=260, domain=False, ticks=False)),
        color=coloured("which", list(WHICH), list(WHICH.values())),
        yOffset=alt.YOffset("which:N", sort=list(WHICH)),
    )
    x = alt.X("together:Q", title="time, s", scale=alt.Scale(type="log"), axis=axis)
    joined = base.mark_rule(strokeWidth=2).encode(x=alt.X("alone:Q", title="time, s"), x2="together:Q", tooltip=tooltip)
    alone = base.mark_tick(thickness=2, color=GREY, bandSize=9).encode(x="alone:Q", tooltip=tooltip)
    alone = alone.encode(color=alt.value(GREY))
    together = base.mark_point(filled=True, size=46, opacity=1).encode(x=x, tooltip=tooltip)
    return layered(joined, alone, together, height=ROW_PX * len(cells))
