"""Receiving and sending at once: where was measured, what was left, and where predictions interpolate."""

from __future__ import annotations

import altair as alt
import numpy as np

from crosswind.model.concurrent_blocks import blocks
from crosswind.model.fit import Fit
from crosswind.report.figures.look import CRIMSON, GREY, layered, records

HEIGHT = 330
MOST_POINTS = 1000


def both_directions(fit: Fit) -> alt.LayerChart:
    """Draw each block at its received and sent rate, coloured by its compute rate, with the hull of the three points.

    Parameters
    ----------
    fit : Fit
        With a plane or a three-point law.

    Returns
    -------
    altair.LayerChart
        Hollow marks lie outside the hull.
    """
    estimator = fit.channels[0].estimator if fit.channels else "wall"
    every = blocks(fit.measurement, estimator)
    received, sent = every.received_mb_per_s, every.sent_mb_per_s
    idle = ~every.used.any(axis=1)
    left = every.work_per_s / float(every.work_per_s[idle].mean() if idle.any() else every.work_per_s.max())
    hull = fit.three_point.hull if fit.three_point else fit.hull
    inside = hull.contains(received, sent)
    keep = np.unique(np.linspace(0, received.size - 1, min(received.size, MOST_POINTS)).astype(int))
    words = ["inside the hull" if one else "outside" for one in inside[keep]]
    dots = alt.Chart(records({"x": received[keep], "y": sent[keep], "left": left[keep], "where": words}))
    x = alt.X("x:Q", title="received, MB/s", scale=alt.Scale(nice=False, padding=12))
    y = alt.Y("y:Q", title="sent, MB/s", scale=alt.Scale(nice=False, padding=12))
    points = dots.mark_point(size=60, strokeWidth=1.6, opacity=0.9).encode(
        x=x,
        y=y,
        color=alt.Color(
            "left:Q",
            scale=alt.Scale(
                scheme=alt.SchemeParams(name="viridis", extent=[0.3, 0.85]),
                domain=[float(min(left.min(), 0.99)), 1.0],
                clamp=True,
            ),
            legend=alt.Legend(title="compute rate, part of idle", format="%", gradientLength=160, gradientThickness=10),
        ),
        shape=alt.Shape(
            "where:N",
            scale=alt.Scale(domain=["inside the hull", "outside"], range=["circle", "triangle-up"]),
            legend=alt.Legend(title=None, symbolStrokeColor=GREY, symbolFillColor=GREY),
        ),
        tooltip=[
            alt.Tooltip("x:Q", title="received, MB/s", format=",.4~g"),
            alt.Tooltip("y:Q", title="sent, MB/s", format=",.4~g"),
            alt.Tooltip("left:Q", title="compute rate", format=".1%"),
            alt.Tooltip("where:N", title="hull"),
        ],
    )
    corners = np.vstack([hull.vertices, hull.vertices[:1]])
    outline = alt.Chart(records({"x": corners[:, 0], "y": corners[:, 1], "order": np.arange(len(corners))}))
    line = outline.mark_line(color=CRIMSON, strokeWidth=1.6, strokeDash=[5, 4]).encode(x=x, y=y, order="order:Q")
    return layered(line, points, height=HEIGHT)
