"""Orders of service against each other: the makespan of each, beside the least that any schedule could need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from crosswind import _core
from crosswind.report.figures.categories import beside, coloured
from crosswind.report.figures.look import BLUE, GREEN, GREY, OCHRE, ORANGE, PINK, VIOLET, layered, records

HEIGHT = 300
OTHER = GREY
COLOURS = (BLUE, VIOLET, ORANGE, OCHRE, PINK, GREY, GREEN)
ORDERS = dict(zip([name for name, _ in _core.KINDS["order"]], COLOURS, strict=False))
BOUND = "upper bound"


def makespans(rows: Sequence[Mapping[str, Any]], title: str, relative: bool) -> alt.LayerChart:
    """Draw the makespan of each order for each application.

    Parameters
    ----------
    rows : sequence of mappings
        `application` and `series` (words), `middle`, `low`, `high` (95 % interval), `bound` (or None): parts of what
        the root alone needs, or seconds.
    title : str
        Of the x axis: what an application is.
    relative : bool
        Whether the figures are parts of what the root alone needs.

    Returns
    -------
    altair.LayerChart
        Dots with their intervals; a tick is the bound.
    """
    names = sorted({row["series"] for row in rows}, key=_place)
    columns = ("application", "series", "middle", "low", "high", "bound")
    data = records({name: [row[name] for row in rows] for name in columns})
    form = ",.3~f" if relative else ",.4~g"
    what = "relative to the root alone" if relative else "makespan, s"
    tooltip = [
        alt.Tooltip("application:N", title=title),
        alt.Tooltip("series:N", title="order"),
        alt.Tooltip("middle:Q", title=what, format=form),
        alt.Tooltip("low:Q", title="95 %, from", format=form),
        alt.Tooltip("high:Q", title="to", format=form),
        alt.Tooltip("bound:Q", title=BOUND, format=form),
    ]
    places = beside("application", "series", title, padding=0.2)
    base = alt.Chart(data).encode(
        color=coloured("series", names, [ORDERS.get(name, OTHER) for name in names]),
        **places,
    )
    y = alt.Y("middle:Q", title=f"makespan, {what}" if relative else what, scale=alt.Scale(domainMin=0))
    spans = base.mark_rule(strokeWidth=2).encode(y="low:Q", y2="high:Q", tooltip=tooltip)
    dots = base.mark_point(filled=True, size=46, opacity=1).encode(y=y, tooltip=tooltip)
    bounds = (
        alt.Chart(data)
        .mark_tick(color=GREY, thickness=2, orient="horizontal", bandSize=30)
        .encode(x=places["x"], y="min(bound):Q", tooltip=[alt.Tooltip("min(bound):Q", title=BOUND)])
    )
    return layered(bounds, spans, dots, height=HEIGHT)


def predicted_and_run(rows: Sequence[Mapping[str, Any]]) -> alt.LayerChart:
    """Draw what the plan permits at best, the simulated and the real makespan of each run, s.

    Parameters
    ----------
    rows : sequence of mappings
        `name`, `planned` (or None), `predicted`, `run`.

    Returns
    -------
    altair.LayerChart
        Up to three marks per run, joined; the closer, the better.
    """
    kinds = {"plan (at least)": "planned", "predicted (sim)": "predicted", "run (agents)": "run"}
    long = [
        {"name": row["name"], "which": which, "makespan": row[key]}
        for row in rows
        for which, key in kinds.items()
        if row[key] is not None
    ]
    data = records({key: [row[key] for row in long] for key in ("name", "which", "makespan")})
    base = alt.Chart(data).encode(
        y=alt.Y("name:N", title=None, sort=None, axis=alt.Axis(labelLimit=190, domain=False, ticks=False)),
    )
    x = alt.X("makespan:Q", title="makespan, s of the platform", scale=alt.Scale(domainMin=0), axis=alt.Axis(grid=True))
    tooltip = [
        alt.Tooltip("name:N", title="run"),
        alt.Tooltip("which:N", title=" "),
        alt.Tooltip("makespan:Q", title="makespan, s", format=",.4~g"),
    ]
    names = [which for which in kinds if any(row["which"] == which for row in long)]
    colours = dict(zip(kinds, (GREEN, BLUE, ORANGE), strict=True))
    shapes = dict(zip(kinds, ("triangle-right", "circle", "diamond"), strict=True))
    joined = base.mark_line(color=GREY, strokeWidth=2).encode(x=x, detail="name:N")
    shape = alt.Scale(domain=names, range=[shapes[name] for name in names])
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(
        x=x,
        color=coloured("which", names, [colours[name] for name in names]),
        shape=alt.Shape("which:N", scale=shape),
        tooltip=tooltip,
    )
    return layered(joined, dots, height=26.0 * len(rows))


def _place(name: str) -> tuple[int, str]:
    order = name.split(",", maxsplit=1)[0]
    return (list(ORDERS).index(order) if order in ORDERS else len(ORDERS), name)
