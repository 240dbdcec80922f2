"""Recorded noise: when each CPU was away and why, and what each cause takes of the time.

The timeline is cut into stretches of equal length: a page about a million intervals is as small as one about a
thousand. In each stretch a CPU's bar is as high as the part of it that was taken, cause upon cause.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
from numpy.typing import NDArray

from crosswind.report.figures.categories import coloured
from crosswind.report.figures.look import CHANNEL_COLOURS, GREY, layered, records
from crosswind.report.words import number, percent, shortened

MOST_CPUS, MOST_CAUSES, MOST_BARS, STRETCHES = 12, 5, 12, 120
LANE_PX, BAR_PX = 44.0, 26.0
OTHER = "other causes"

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Lane:
    """One CPU's intervals, arrays of equal length.

    Attributes
    ----------
    cpu : int
    start, duration : array of float, s
    cause : array of int
        Index into the causes of the recording.
    """

    cpu: int
    start: Floats
    duration: Floats
    cause: NDArray[np.int64]


def taken(lane: Lane, length_s: float, stretches: int) -> Floats:
    """Return the part of each stretch that was taken, 0 to 1; an interval across an edge counts on both sides."""
    edges = np.linspace(0.0, length_s, stretches + 1)
    order = np.argsort(lane.start, kind="stable")
    start, duration = lane.start[order], lane.duration[order]
    sums = np.concatenate([[0.0], np.cumsum(duration)])
    begun = np.searchsorted(start, edges, side="right")
    last = np.maximum(begun - 1, 0)
    open_ = np.zeros_like(edges)
    if start.size:
        open_ = np.where(begun > 0, np.maximum(start[last] + duration[last] - edges, 0.0), 0.0)
    result: Floats = np.clip(np.diff(sums[begun] - open_) / (length_s / stretches), 0.0, 1.0)
    return result


def timeline(lanes: Sequence[Lane], causes: Sequence[str], length_s: float, largest: Sequence[str]) -> alt.LayerChart:
    """Draw the part of each CPU's time that was taken, along the recording, by cause.

    Parameters
    ----------
    lanes : sequence of Lane
    causes : sequence of str
        All causes of the recording.
    length_s : float, s
    largest : sequence of str
        Causes with a colour of their own; the rest are one.

    Returns
    -------
    altair.LayerChart
        The first `MOST_CPUS` CPUs, in the order given.
    """
    width = length_s / STRETCHES
    shown = list(lanes[:MOST_CPUS])
    columns: dict[str, list[Any]] = {key: [] for key in ("cpu", "cause", "from", "to", "low", "high", "share")}
    groups = [(name, [causes.index(name)]) for name in largest]
    groups.append((OTHER, [k for k, name in enumerate(causes) if name not in largest]))
    for place, lane in enumerate(shown):
        base = np.full(STRETCHES, float(len(shown) - 1 - place))
        for name, members in groups:
            chosen = np.isin(lane.cause, members)
            part = taken(
                Lane(lane.cpu, lane.start[chosen], lane.duration[chosen], lane.cause[chosen]), length_s, STRETCHES
            )
            for k in np.flatnonzero(part > 1e-5):
                low = float(base[k])
                values = (f"CPU {lane.cpu}", name, k * width, (k + 1) * width, low, low + 0.86 * part[k], part[k])
                for key, value in zip(columns, values, strict=True):
                    columns[key].append(value)
            base += 0.86 * part
    names = [shortened(name, 24) for name, _ in groups]
    columns["cause"] = [shortened(name, 24) for name in columns["cause"]]
    labels = [f"CPU {lane.cpu}" for lane in shown]
    words = " : ".join(f"datum.value == {len(shown) - 1 - k} ? '{word}'" for k, word in enumerate(labels)) + " : ''"
    axis = alt.Axis(
        values=list(range(len(shown))), labelExpr=words, labelBaseline="bottom", grid=True, domain=False, ticks=False
    )
    bars = (
        alt.Chart(records(columns))
        .mark_rect()
        .encode(
            x=alt.X("from:Q", title="time, s", scale=alt.Scale(domain=[0, length_s], nice=False)),
            x2="to:Q",
            y=alt.Y("low:Q", title=None, axis=axis, scale=alt.Scale(domain=[0, len(shown)], nice=False)),
            y2="high:Q",
            color=coloured("cause", names, (*CHANNEL_COLOURS[:MOST_CAUSES][: len(names) - 1], GREY)),
            tooltip=[
                alt.Tooltip("cpu:N", title="CPU"),
                alt.Tooltip("cause:N"),
                alt.Tooltip("from:Q", title="from, s", format=",.4~g"),
                alt.Tooltip("to:Q", title="to, s", format=",.4~g"),
                alt.Tooltip("share:Q", title="taken", format=".2%"),
            ],
        )
    )
    return layered(bars, height=LANE_PX * len(shown) + 10)


def cause_bars(duty: Sequence[Mapping[str, Any]]) -> alt.LayerChart:
    """Draw the part of the time that each cause takes, mean of all CPUs; `duty` has `cause` and `share`, 0 to 1."""
    shown = duty[:MOST_BARS]
    room = 1.25 * max((100 * row["share"] for row in shown), default=0.0) or 1.0
    data = records(
        {
            "cause": [shortened(row["cause"], 24) for row in shown],
            "share": [100 * row["share"] for row in shown],
            "words": [percent(row["share"]) if row["share"] >= 5e-5 else "< 0.01 %" for row in shown],
            "count": [number(float(row["count"]), 4) for row in shown],
        }
    )
    base = alt.Chart(data).encode(
        y=alt.Y("cause:N", title=None, sort=None, axis=alt.Axis(labelLimit=150, domain=False, ticks=False)),
        x=alt.X(
            "share:Q", title="of the time, %", scale=alt.Scale(domain=[0, room], nice=False), axis=alt.Axis(grid=True)
        ),
        tooltip=[alt.Tooltip("cause:N"), alt.Tooltip("words:N", title="taken"), alt.Tooltip("count:N", title="times")],
    )
    bars = base.mark_bar(height=14, color=CHANNEL_COLOURS[0])
    return layered(bars, base.mark_text(align="left", dx=5).encode(text="words:N"), height=BAR_PX * len(shown))
