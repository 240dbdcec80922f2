"""Recorded ranks: what each did when, the waits in each step by their cause, and what the run would save."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from crosswind.report.figures.categories import coloured
from crosswind.report.figures.look import BLUE, GREEN, GREY, OCHRE, ORANGE, PINK, VIOLET, layered, records

LANE_PX = 22.0
STRIP_PX = 190.0
ROW_PX = 34.0
COMPUTES, CALLS = "computes", "in a call"
COLOURS = (ORANGE, GREEN, PINK)
"""Of the ranks that are named as causes."""
OTHER = ("waits for another late rank", VIOLET)
NO_RANK = ("waits, no one rank is late", OCHRE)
DOING = {COMPUTES: GREY, CALLS: BLUE}
FORM = ",.4~g"


def causes(named: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return the word and the colour of each cause of waiting: ranks that are named, `other` ranks, or `none`.

    Examples
    --------
    >>> causes(["3", "none"])["3"]
    ('waits for rank 3', '#c7741f')
    """
    ranks = [name for name in named if name not in ("other", "none")]
    found = {name: (f"waits for rank {name}", COLOURS[at % len(COLOURS)]) for at, name in enumerate(ranks)}
    return {**found, "other": OTHER, "none": NO_RANK}


def ranks_over_time(rows: Sequence[Mapping[str, Any]], colours: Mapping[str, str]) -> alt.LayerChart:
    """Draw what each rank did when.

    Parameters
    ----------
    rows : sequence of mappings
        `rank` (words), `what` (a word of `colours`), `from`, `to` (s), `step`, `operation`, `waits_for`.
    colours : mapping
        Word -> colour, in the order of the legend.
    """
    names = list(dict.fromkeys(str(row["rank"]) for row in rows))
    present = {word: colour for word, colour in colours.items() if any(row["what"] == word for row in rows)}
    columns = ("rank", "what", "from", "to", "step", "operation", "waits_for")
    tooltip = [
        alt.Tooltip("rank:N", title=" "),
        alt.Tooltip("what:N", title=" "),
        alt.Tooltip("operation:N", title="in"),
        alt.Tooltip("waits_for:N", title="last to arrive"),
        alt.Tooltip("from:Q", title="from, s", format=FORM),
        alt.Tooltip("to:Q", title="to, s", format=FORM),
        alt.Tooltip("step:Q"),
    ]

    def bars(own: Sequence[Mapping[str, Any]], opacity: float) -> alt.Chart:
        data = records({name: [row[name] for row in own] for name in columns})
        axis = alt.Axis(labelLimit=110, domain=False, ticks=False)
        chart: alt.Chart = (
            alt.Chart(data)
            .mark_bar(height=14, opacity=opacity)
            .encode(
                x=alt.X("from:Q", title="time, s", scale=alt.Scale(nice=False, zero=False)),
                x2="to:Q",
                y=alt.Y("rank:N", title=None, sort=names, axis=axis),
                color=coloured("what", list(present), list(present.values())),
                tooltip=tooltip,
            )
        )
        return chart

    computing = [row for row in rows if row["what"] == COMPUTES]
    rest = [row for row in rows if row["what"] != COMPUTES]
    layers = [bars(own, opacity) for own, opacity in ((computing, 0.4), (rest, 0.95)) if own]
    return layered(*layers, height=LANE_PX * len(names))


def waits_by_step(
    rows: Sequence[Mapping[str, Any]], lengths: Sequence[Mapping[str, Any]], colours: Mapping[str, str]
) -> alt.LayerChart:
    """Draw how long the ranks wait in each step, by cause, below the length of the step.

    Parameters
    ----------
    rows : sequence of mappings
        `from`, `to` (the step, or the first and last of several, half a step wider), `what` (a word of `colours`),
        `low`, `high` (of the stacked bar, ms).
    lengths : sequence of mappings
        `from`, `to`, `length` (of a step, ms).
    colours : mapping
        Word -> colour, in the order of the legend.
    """
    x = alt.X(
        "from:Q", title="step", scale=alt.Scale(nice=False, zero=False), axis=alt.Axis(format=",d", tickMinStep=1)
    )
    y = alt.Y("low:Q", title="ms a step", axis=alt.Axis(grid=True))
    columns = ("from", "to", "what", "low", "high", "ms")
    stacked = [{**row, "ms": row["high"] - row["low"]} for row in rows]
    data = records({name: [row[name] for row in stacked] for name in columns})
    tooltip = [alt.Tooltip("what:N", title=" "), alt.Tooltip("ms:Q", title="ms, mean of the ranks", format=FORM)]
    bars = (
        alt.Chart(data)
        .mark_rect()
        .encode(
            x=x,
            x2="to:Q",
            y=y,
            y2="high:Q",
            color=coloured("what", list(colours), list(colours.values())),
            tooltip=tooltip,
        )
    )
    long = records({name: [row[name] for row in lengths] for name in ("from", "to", "length")})
    tooltip = [alt.Tooltip("length:Q", title="length of the step, ms", format=FORM)]
    tops = alt.Chart(long).mark_rule(strokeWidth=1.5, color=GREY).encode(x=x, x2="to:Q", y="length:Q", tooltip=tooltip)
    return layered(*([bars] if rows else []), tops, height=STRIP_PX)


def savings(rows: Sequence[Mapping[str, Any]]) -> alt.LayerChart:
    """Draw how much sooner the run would end.

    Parameters
    ----------
    rows : sequence of mappings
        `name`, `saved`, `low`, `high` (shares of the run).
    """
    names = [str(row["name"]) for row in rows]
    data = records({name: [row[name] for row in rows] for name in ("name", "saved", "low", "high")})
    tooltip = [
        alt.Tooltip("saved:Q", title="of the run", format=".2%"),
        alt.Tooltip("low:Q", title="from", format=".2%"),
        alt.Tooltip("high:Q", title="to", format=".2%"),
    ]
    axis = alt.Axis(labelLimit=230, domain=False, ticks=False)
    base = alt.Chart(data).encode(y=alt.Y("name:N", title=None, sort=names, axis=axis), tooltip=tooltip)
    x = alt.X("saved:Q", title="saved, of the run", axis=alt.Axis(format="~%", grid=True))
    bars = base.mark_bar(height=14, color=ORANGE, opacity=0.85).encode(x=x)
    spans = base.mark_rule(strokeWidth=2, color="#59626b").encode(x="low:Q", x2="high:Q")
    return layered(bars, spans, height=ROW_PX * len(names))
