"""A map of a cluster's links: a cell each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from crosswind.report.figures.look import BLUE, CRIMSON, GREY, INK, Spec, layered, records

CELL_PX = 30.0
MOST_LABELLED = 12
"""Hosts up to which a cell says its rate: more leave no room."""


def link_map(rows: Sequence[Mapping[str, Any]], hosts: Sequence[str]) -> alt.LayerChart:
    """Draw a cell per link; a dark one is fast, one with a border differs from the others.

    Parameters
    ----------
    rows : sequence of mappings
        `from`, `to`, `rate` (MB/s, > 0), `outcome`.
    hosts : sequence of str
        In the order of the axes.
    """
    columns = ("from", "to", "rate", "outcome")
    data = records({name: [row[name] for row in rows] for name in columns} | {"sick": [_sick(row) for row in rows]})
    fastest = max(float(row["rate"]) for row in rows)
    place: Spec = {"sort": list(hosts), "axis": alt.Axis(labelAngle=0, labelLimit=120)}
    base = alt.Chart(data).encode(
        x=alt.X("to:N", title="to", **place),
        y=alt.Y("from:N", title="from", **place),
        tooltip=[
            alt.Tooltip("from:N"),
            alt.Tooltip("to:N"),
            alt.Tooltip("rate:Q", title="MB/s", format=",.4~g"),
            alt.Tooltip("outcome:N", title="verdict"),
        ],
    )
    scale = alt.Scale(domain=[0, fastest], range=["#f4f6f7", BLUE])
    cells = base.mark_rect(stroke=GREY, strokeWidth=0.5).encode(
        color=alt.Color("rate:Q", scale=scale, legend=alt.Legend(title="MB/s"))
    )
    sick = base.transform_filter("datum.sick").mark_rect(filled=False, stroke=CRIMSON, strokeWidth=2.5)
    layers = [cells, sick]
    if len(hosts) <= MOST_LABELLED:
        words = base.mark_text(fontSize=10.5, color=INK).encode(text=alt.Text("rate:Q", format=",.3~g"))
        layers.append(words)
    return layered(*layers, height=CELL_PX * len(hosts))


def _sick(row: Mapping[str, Any]) -> bool:
    return bool(row["outcome"] == "sick")
