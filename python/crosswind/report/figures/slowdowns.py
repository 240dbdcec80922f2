"""Slowdowns of parallel programs: against what was varied, and simulated beside closed forms beside real."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from crosswind.documents import Row
from crosswind.report.figures.categories import coloured, line
from crosswind.report.figures.look import BLUE, GREEN, GREY, OCHRE, ORANGE, PINK, VIOLET, Spec, layered, records

HEIGHT = 260
ROW_PX = 30.0
SERIES_COLOURS = (BLUE, ORANGE, GREEN, PINK, OCHRE, VIOLET, GREY)
WHICH = {"simulated": (BLUE, "circle"), "run": (ORANGE, "diamond"), "injected": (PINK, "square")}
FORM = ",.4~g"


def _span(what: str = "slowdown") -> tuple[alt.Tooltip, ...]:
    return (
        alt.Tooltip("middle:Q", title=what, format=FORM),
        alt.Tooltip("low:Q", title="from", format=FORM),
        alt.Tooltip("high:Q", title="to", format=FORM),
    )


def slowdown_curves(
    rows: Sequence[Mapping[str, Any]], x: str, log: bool = False, y: str = "slowdown"
) -> alt.LayerChart:
    """Draw the slowdown of each series against a value at equal steps.

    Parameters
    ----------
    rows : sequence of mappings
        `value`, `series` (words), `middle`, `low`, `high` (95 % interval over the seeds).
    x : str
        What is varied, with its unit.
    log : bool
        Whether slowdowns stand on a logarithmic scale.
    y : str
        What is drawn.

    Returns
    -------
    altair.LayerChart
    """
    columns = ("value", "series", "middle", "low", "high")
    rows = above_zero(rows) if log else rows
    data = records({name: [row[name] for row in rows] for name in columns})
    tooltip = [
        alt.Tooltip("value:N", title=x),
        alt.Tooltip("series:N", title=" "),
        *_span(y),
    ]
    names = list(dict.fromkeys(str(row["series"]) for row in rows))
    base = alt.Chart(data).encode(
        color=coloured("series", names, SERIES_COLOURS),
        x=alt.X("value:N", title=x, sort=None, axis=alt.Axis(labelAngle=0, labelOverlap="greedy")),
    )
    low, high = min(row["low"] for row in rows), max(row["high"] for row in rows)
    axis = alt.Y("middle:Q", title=y, **(logarithmic(low, high) if log else {"scale": alt.Scale(zero=False)}))
    spans = base.mark_rule(strokeWidth=2).encode(y="low:Q", y2="high:Q", tooltip=tooltip)
    dots = base.mark_point(filled=True, size=46, opacity=1).encode(y=axis, tooltip=tooltip)
    return layered(line(base).encode(y="middle:Q"), spans, dots, height=HEIGHT)


def slowdown_dots(rows: Sequence[Mapping[str, Any]], log: bool = False, x: str = "slowdown") -> alt.LayerChart:
    """Draw slowdowns of things that have no order, each series beside the others.

    Parameters
    ----------
    rows : sequence of mappings
        `name`, `series` (words), `middle`, `low`, `high` (95 % interval over the seeds).
    log : bool
        Whether slowdowns stand on a logarithmic scale.
    x : str
        What is drawn.

    Returns
    -------
    altair.LayerChart
        Names as rows.
    """
    columns = ("name", "series", "middle", "low", "high")
    rows = above_zero(rows) if log else rows
    data = records({name: [row[name] for row in rows] for name in columns})
    names = list(dict.fromkeys(str(row["name"]) for row in rows))
    series = list(dict.fromkeys(str(row["series"]) for row in rows))
    tooltip = [
        alt.Tooltip("name:N", title=" "),
        alt.Tooltip("series:N", title=" "),
        *_span(x),
    ]
    base = alt.Chart(data).encode(
        y=alt.Y("name:N", title=None, sort=names, axis=alt.Axis(labelLimit=190, domain=False, ticks=False, grid=True)),
        yOffset=alt.YOffset("series:N", sort=series),
        color=coloured("series", series, SERIES_COLOURS),
        tooltip=tooltip,
    )
    low, high = min(row["low"] for row in rows), max(row["high"] for row in rows)
    linear = {"scale": alt.Scale(zero=False, padding=18), "axis": alt.Axis(grid=True)}
    scale = logarithmic(low, high) if log else linear
    spans = base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q")
    dots = base.mark_point(filled=True, size=46, opacity=1).encode(x=alt.X("middle:Q", title=x, **scale))
    return layered(spans, dots, height=(9.0 * len(series) + 10.0) * len(names))


def above_zero(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return rows for a logarithmic scale: an interval that reaches 0 ends at half of the least value there."""
    least = 0.5 * min(row["middle"] for row in rows)
    return [{**row, "low": max(row["low"], least)} for row in rows]


def logarithmic(low: float, high: float) -> Spec:
    """Return a logarithmic scale from below the least to above the most, with lines at 1, 2, 5, 10, 20 and so on."""
    lines = [digit * 10.0**power for power in range(-6, 9) for digit in (1, 2, 5)]
    inside = [value for value in lines if 0.99 * low <= value <= 1.01 * high]
    domain = [min(low, *inside) / 1.1, 1.1 * max(high, *inside)] if inside else [low / 1.1, 1.1 * high]
    scale = alt.Scale(type="log", domain=domain, nice=False)
    return {"scale": scale, "axis": alt.Axis(values=inside, format="~g")}


def simulated_and_bounds(rows: Sequence[Mapping[str, Any]]) -> alt.LayerChart:
    """Draw each point's slowdown, simulated and real, beside the closed forms.

    Parameters
    ----------
    rows : sequence of mappings
        `name` (the point), `which` (simulated, run, injected, or a closed form's name), `is_bound`, `middle`, `low`,
        `high`.

    Returns
    -------
    altair.LayerChart
        Dots with bars over the seeds; ticks are closed forms.
    """
    columns = ("name", "which", "middle", "low", "high")
    tooltip = [
        alt.Tooltip("name:N", title="point"),
        alt.Tooltip("which:N", title=" "),
        *_span(),
    ]
    found = [row for row in rows if not row["is_bound"]]
    forms = [row for row in rows if row["is_bound"]]
    order = list(dict.fromkeys(str(row["name"]) for row in rows))
    words = list(dict.fromkeys(str(row["which"]) for row in found))

    def base(own: Sequence[Mapping[str, Any]]) -> alt.Chart:
        chart: alt.Chart = alt.Chart(records({name: [row[name] for row in own] for name in columns})).encode(
            y=alt.Y("name:N", title=None, sort=order, axis=alt.Axis(labelLimit=190, domain=False, ticks=False)),
            tooltip=tooltip,
        )
        return chart

    axis = alt.Axis(grid=True)
    x = alt.X("middle:Q", title="slowdown (tick: closed form)", scale=alt.Scale(zero=False, padding=18), axis=axis)
    colour = coloured("which", words, [WHICH.get(word, (GREEN, ""))[0] for word in words])
    shape = alt.Shape(
        "which:N",
        legend=alt.Legend(title=None, symbolOpacity=1),
        scale=alt.Scale(domain=words, range=[WHICH.get(word, ("", "circle"))[1] for word in words]),
    )
    spans = base(found).mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q", color=colour)
    dots = base(found).mark_point(filled=True, size=70, opacity=1).encode(x=x, color=colour, shape=shape)
    ticks = base(forms).mark_tick(color=GREY, thickness=3, orient="vertical", bandSize=20).encode(x=x)
    return layered(*([ticks] if forms else []), spans, dots, height=ROW_PX * len(order))


def cost_bars(rows: Sequence[Mapping[str, Any]]) -> alt.LayerChart:
    """Draw what each cause costs, in parts of the undisturbed makespan, with 95 % intervals.

    Parameters
    ----------
    rows : sequence of mappings
        `cause`, `way` (shared, removed, alone), `middle`, `low`, `high`.

    Returns
    -------
    altair.LayerChart
        Causes as rows, the ways of asking side by side.
    """
    columns = ("cause", "way", "middle", "low", "high")
    data = records({name: [row[name] for row in rows] for name in columns})
    order = list(dict.fromkeys(str(row["cause"]) for row in rows))
    ways = list(dict.fromkeys(str(row["way"]) for row in rows))
    tooltip = [
        alt.Tooltip("cause:N"),
        alt.Tooltip("way:N", title=" "),
        alt.Tooltip("middle:Q", title="of undisturbed", format=".3%"),
        alt.Tooltip("low:Q", title="from", format=".3%"),
        alt.Tooltip("high:Q", title="to", format=".3%"),
    ]
    base = alt.Chart(data).encode(
        y=alt.Y("cause:N", title=None, sort=order, axis=alt.Axis(labelLimit=150, domain=False, ticks=False)),
        yOffset=alt.YOffset("way:N", sort=ways),
        color=coloured("way", ways, (BLUE, ORANGE, GREY)),
    )
    axis = alt.Axis(format="~%", grid=True)
    bars = base.mark_bar(height=9).encode(
        x=alt.X("middle:Q", title="cost, of the undisturbed makespan", axis=axis), tooltip=tooltip
    )
    spans = base.mark_rule(strokeWidth=1.5, color=GREY).encode(x="low:Q", x2="high:Q", tooltip=tooltip)
    spans = spans.encode(color=alt.value("#59626b"))
    return layered(bars, spans, height=max(16.0 * len(ways) + 8.0, 34.0) * len(order))
