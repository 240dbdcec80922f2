"""Interference at a glance: compute rate against transfer rate, with the line whose slope is the interference rate."""

from __future__ import annotations

import altair as alt
import numpy as np
from numpy.typing import NDArray

from crosswind.model.channel import ChannelFit
from crosswind.model.points import Points
from crosswind.report.figures.band import line_band
from crosswind.report.figures.look import BLUE, GREY, OCHRE, ORANGE, layered, records

HEIGHT = 330
MOST_POINTS = 1500
GRID = 41
LINE, QUADRATIC = "line, 95 % band", "quadratic"
KINDS = {"no traffic": GREY, "level of the ladder": BLUE, "check for lack of fit": OCHRE}

Floats = NDArray[np.float64]


def scatter(channel: ChannelFit) -> alt.LayerChart:
    """Draw a channel's points, its least squares line with the 95 % band, and the quadratic beside it.

    Parameters
    ----------
    channel : ChannelFit
        Its headline estimator is drawn.

    Returns
    -------
    altair.LayerChart
        At most 1,500 points, evenly chosen along the run; line, band and quadratic use all.
    """
    points, line = channel.points[channel.estimator], channel.line
    x, y = points.x_mb_per_s, points.y_work_per_s / channel.compute_per_s
    dots = _dots(points, x, y)
    grid = np.linspace(0.0, float(x.max(initial=0.0)), GRID)
    on_line = line.intercept - line.ir_s_per_mb * grid
    layers: list[alt.Chart] = []
    x_axis = alt.X("x:Q", title="transfer rate, MB/s", scale=alt.Scale(nice=False, padding=6))
    y_axis = alt.Y("y:Q", title="compute rate, part of idle", axis=alt.Axis(format="%"), scale=alt.Scale(zero=False))
    present = [kind for kind in KINDS if kind in set(kinds_of(points))]

    ladder = ~points.check  # the line does not see the points that check it
    band = line_band(x[ladder], y[ladder], points.idle[ladder], points.cycle[ladder], grid)
    if band is not None:
        rows = records({"x": grid, "y": on_line + band[0], "high": on_line + band[1]})
        layers.append(alt.Chart(rows).mark_area(color=ORANGE, opacity=0.22).encode(x=x_axis, y=y_axis, y2="high:Q"))
    layers.append(
        alt.Chart(dots)
        .mark_circle(size=34, opacity=0.7)
        .encode(
            x=x_axis,
            y=y_axis,
            color=alt.Color(
                "kind:N",
                scale=alt.Scale(domain=present, range=[KINDS[kind] for kind in present]),
                legend=alt.Legend(title=None, symbolType="circle"),
            ),
            tooltip=[
                alt.Tooltip("x:Q", title="MB/s", format=",.5~g"),
                alt.Tooltip("y:Q", title="compute rate", format=".1%"),
                alt.Tooltip("cycle:Q", title="cycle"),
                alt.Tooltip("kind:N", title="block"),
            ],
        )
    )
    curves = [(LINE, on_line)]
    if channel.quadratic:
        q = channel.quadratic
        curves.append((QUADRATIC, q.constant + q.linear * grid + q.square * grid**2))
    drawn = records(
        {
            "x": np.tile(grid, len(curves)),
            "y": np.concatenate([values for _, values in curves]),
            "fit": [name for name, _ in curves for _ in grid],
        }
    )
    names = [name for name, _ in curves]
    layers.append(
        alt.Chart(drawn)
        .mark_line(color=ORANGE, strokeWidth=2.2)
        .encode(
            x=x_axis,
            y=y_axis,
            strokeDash=alt.StrokeDash(
                "fit:N",
                scale=alt.Scale(domain=names, range=[[1, 0], [5, 4]][: len(names)]),
                legend=alt.Legend(title=None, symbolStrokeColor=ORANGE, symbolType="stroke"),
            ),
        )
    )
    return layered(*layers, height=HEIGHT)


def kinds_of(points: Points) -> list[str]:
    """Return what kind of block each point is: without traffic, a level of the ladder, or one to check the line."""
    names = list(KINDS)
    pairs = zip(points.idle, points.check, strict=True)
    return [names[0] if idle else names[2] if check else names[1] for idle, check in pairs]


def _dots(points: Points, x: Floats, y: Floats) -> alt.InlineData:
    keep = np.unique(np.linspace(0, len(points) - 1, min(len(points), MOST_POINTS)).astype(int))
    kinds = kinds_of(points)
    return records({"x": x[keep], "y": y[keep], "cycle": points.cycle[keep], "kind": [kinds[k] for k in keep]})
