"""Values at equal steps with several series beside each other: what sweeps and comparisons of runs are drawn with."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from crosswind.report.figures.look import CHANNEL_COLOURS, Spec

LETTER_PX, SYMBOL_PX = 7.0, 36.0
"""Of a label, and of what stands before a name in a legend: at most."""


def beside(value: str, series: str, title: str, padding: float = 0.35) -> Spec:
    """Return the encodings of the x axis: values at equal steps in the order given, series beside each other."""
    axis = alt.Axis(labelAngle=0, labelOverlap="greedy", labelSeparation=6)
    return {
        "x": alt.X(f"{value}:N", title=title, sort=None, axis=axis, scale=alt.Scale(padding=padding)),
        "xOffset": alt.XOffset(f"{series}:N", sort=None),
    }


def words_axis(values: Sequence[object], width: float) -> alt.Axis:
    """Return the axis of words: side by side where all fit into `width` px, else slanted; none is left out."""
    room = width / max(len(values), 1)
    fits = LETTER_PX * max((len(str(value)) for value in values), default=0) <= room
    if fits:
        return alt.Axis(labelAngle=0, labelOverlap="greedy")  # of a page that is narrower
    return alt.Axis(labelAngle=-40, labelOverlap=False, labelFlush=False, labelLimit=0)


def legend_of(names: Sequence[str], width: float) -> alt.Legend | None:
    """Return the legend of series, in as many columns as `width` px hold; None where there is one without a name."""
    if list(names) == [""]:
        return None
    columns = max(int(width // (LETTER_PX * max(map(len, names)) + SYMBOL_PX)), 1)
    return alt.Legend(title=None, symbolOpacity=1, columns=columns)


def coloured(series: str, names: Sequence[str], colours: Sequence[str] = CHANNEL_COLOURS) -> alt.Color:
    """Return the colour of each series, by its place among `names`."""
    domain = list(dict.fromkeys(names))
    return alt.Color(
        f"{series}:N",
        scale=alt.Scale(domain=domain, range=[colours[k % len(colours)] for k in range(len(domain))]),
        legend=alt.Legend(title=None, symbolOpacity=1),
    )


def with_interval(
    base: alt.Chart, low: str, middle: str, high: str, title: str, tooltip: Sequence[alt.Tooltip], joined: bool
) -> list[alt.Chart]:
    """Return the layers of dots with their intervals, joined by a line where the values are numbers."""
    bars = base.mark_rule(strokeWidth=2).encode(y=f"{low}:Q", y2=f"{high}:Q", tooltip=list(tooltip))
    dots = dotted(base).encode(y=alt.Y(f"{middle}:Q", title=title), tooltip=list(tooltip))
    return [*([line(base).encode(y=f"{middle}:Q")] if joined else []), bars, dots]


def dotted(base: alt.Chart, size: int = 70) -> alt.Chart:
    """Return the base as filled dots."""
    chart: alt.Chart = base.mark_point(filled=True, size=size, opacity=1)
    return chart


def line(base: alt.Chart) -> alt.Chart:
    """Return the base as a thin line behind dots."""
    chart: alt.Chart = base.mark_line(strokeWidth=1.2, opacity=0.6)
    return chart
