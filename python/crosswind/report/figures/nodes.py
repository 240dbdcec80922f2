"""How much each node computes under a plan: one bar per node, coloured by what limits the node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from crosswind.report.figures.look import layered, records
from crosswind.report.figures.tree import LIMITS
from crosswind.report.words import number

MOST_BARS = 20
ROW_PX = 26.0


def node_bars(nodes: Sequence[Mapping[str, Any]], most: int = MOST_BARS) -> alt.LayerChart:
    """Draw the tasks per second that each node computes, largest first.

    Parameters
    ----------
    nodes : sequence of mappings
        `nodes` of a `plan.json`.
    most : int
        Most nodes to draw.

    Returns
    -------
    altair.LayerChart
    """
    by_rate = sorted(nodes, key=lambda n: -float(n["computed_tasks_per_s"]))
    shown = by_rate[:most]
    names = [str(n["name"]) for n in shown]
    rates = [float(n["computed_tasks_per_s"]) for n in shown]
    limits = [LIMITS[n["limited_by"]][0] for n in shown]
    present = [(word, colour) for word, colour in LIMITS.values() if word in limits]
    room = 1.18 * max(rates, default=0.0) or 1.0  # for the number at the end of the longest bar
    data = records(
        {
            "name": names,
            "rate": rates,
            "words": [number(rate) for rate in rates],
            "limit": limits,
        }
    )
    base = alt.Chart(data).encode(
        y=alt.Y(
            "name:N",
            title=None,
            sort=None,
            axis=alt.Axis(labelLimit=130, labelFontSize=11.5, domain=False, ticks=False),
        ),
        x=alt.X(
            "rate:Q", title="computed, tasks/s", scale=alt.Scale(domain=[0, room], nice=False), axis=alt.Axis(grid=True)
        ),
        tooltip=[
            alt.Tooltip("name:N", title="node"),
            alt.Tooltip("rate:Q", title="computed, tasks/s", format=",.4~g"),
            alt.Tooltip("limit:N", title="limited by"),
        ],
    )
    bars = base.mark_bar(height=14).encode(
        color=alt.Color(
            "limit:N",
            scale=alt.Scale(domain=[word for word, _ in present], range=[colour for _, colour in present]),
            legend=None,
        )
    )
    values = base.mark_text(align="left", dx=5).encode(text="words:N")
    return layered(bars, values, height=ROW_PX * len(names))
