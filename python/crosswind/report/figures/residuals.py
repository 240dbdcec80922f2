"""What the line leaves over, against the transfer rate: a bend or a fan says that one slope is not the whole story."""

from __future__ import annotations

import altair as alt
import numpy as np

from crosswind.model.channel import ChannelFit
from crosswind.report.figures.look import CRIMSON, GREY, layered, records
from crosswind.report.figures.scatter import KINDS, MOST_POINTS, kinds_of

HEIGHT = 330
FEWEST = 3  # points of a level for a mean that is worth a mark


def residuals(channel: ChannelFit) -> alt.LayerChart:
    """Draw measured minus fitted compute rate per point, with each level's mean and its 95 % interval.

    Parameters
    ----------
    channel : ChannelFit
        Its headline estimator is drawn.

    Returns
    -------
    altair.LayerChart
    """
    points, line = channel.points[channel.estimator], channel.line
    x, y = points.x_mb_per_s, points.y_work_per_s / channel.compute_per_s
    left = y - (line.intercept - line.ir_s_per_mb * x)
    kinds = kinds_of(points)
    keep = np.unique(np.linspace(0, len(points) - 1, min(len(points), MOST_POINTS)).astype(int))
    present = [kind for kind in KINDS if kind in set(kinds)]
    x_axis = alt.X("x:Q", title="transfer rate, MB/s", scale=alt.Scale(nice=False, padding=6))
    y_axis = alt.Y("y:Q", title="measured minus fitted, part of idle", axis=alt.Axis(format="+.1%"))
    dots = (
        alt.Chart(records({"x": x[keep], "y": left[keep], "kind": [kinds[k] for k in keep]}))
        .mark_circle(size=24, opacity=0.6)
        .encode(
            x=x_axis,
            y=y_axis,
            color=alt.Color(
                "kind:N", scale=alt.Scale(domain=present, range=[KINDS[kind] for kind in present]), legend=None
            ),
            tooltip=[
                alt.Tooltip("x:Q", title="MB/s", format=",.5~g"),
                alt.Tooltip("y:Q", title="measured minus fitted", format="+.2%"),
            ],
        )
    )
    zero = alt.Chart(records({"y": [0.0]})).mark_rule(color=GREY, strokeWidth=1.2).encode(y="y:Q")
    means = alt.Chart(_level_means(channel, left))
    tooltip = [
        alt.Tooltip("x:Q", title="level, MB/s", format=",.4~g"),
        alt.Tooltip("y:Q", title="mean", format="+.2%"),
        alt.Tooltip("n:Q", title="points"),
    ]
    bars = means.mark_rule(color=CRIMSON, strokeWidth=2).encode(x=x_axis, y="low:Q", y2="high:Q", tooltip=tooltip)
    middles = means.mark_point(shape="diamond", size=75, color=CRIMSON, filled=True, opacity=1).encode(
        x=x_axis, y=y_axis, tooltip=tooltip
    )
    return layered(zero, dots, bars, middles, height=HEIGHT)


def _level_means(channel: ChannelFit, left: np.ndarray) -> alt.InlineData:
    """Return the mean residual of each level, with an interval from the means of whole cycles."""
    points = channel.points[channel.estimator]
    # By the rate reached, in eighths: unpaced points have no level, and on the CPU's time base levels spread.
    top = float(points.x_mb_per_s.max(initial=0.0)) or 1.0
    level = np.round(8.0 * points.x_mb_per_s / top)
    out: dict[str, list[float]] = {name: [] for name in ("x", "y", "low", "high", "n")}
    for one in np.unique(level):
        rows = level == one
        if rows.sum() < FEWEST:
            continue
        _, member = np.unique(points.cycle[rows], return_inverse=True)
        per_cycle = np.bincount(member, left[rows]) / np.bincount(member)
        mean = float(left[rows].mean())
        far = 1.96 * float(per_cycle.std(ddof=1)) / np.sqrt(per_cycle.size) if per_cycle.size > 2 else np.nan
        values = (float(points.x_mb_per_s[rows].mean()), mean, mean - far, mean + far, float(rows.sum()))
        for name, value in zip(out, values, strict=True):
            out[name].append(value)
    return records(out)
