"""What every processor and link did when: one lane each, along the run.

Short traces are drawn activity by activity, with the reason why a processor did not compute as a thin bar. Of long ones
each lane is cut into stretches of equal length, each as dark as the part of it that was busy, so that a page about a
million activities is as small as one about a thousand.
"""

from __future__ import annotations

import altair as alt
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crosswind.documents import Row
from crosswind.report.figures.categories import coloured
from crosswind.report.figures.idle import REASONS, idle_spans
from crosswind.report.figures.look import BLUE, GREEN, ORANGE, Spec, layered, records
from crosswind.report.words import shortened
from crosswind.run.trace import Trace

MOST_MARKS = 2400
MOST_LANES = 24
LANE_PX = 22.0
IDLE_PX = 4.0
SEEN = 1e-3
"""Of the length of a run: about a pixel."""
KINDS = {"compute": ("computes", BLUE), "send": ("receives", ORANGE), "result": ("sends its result up", GREEN)}

Floats = NDArray[np.float64]


def lanes(trace: Trace, most: int = MOST_MARKS, until_s: float | None = None) -> alt.LayerChart:
    """Draw the activities of a trace, one lane per processor and per link.

    Parameters
    ----------
    trace : Trace
    most : int
        Most marks to draw.
    until_s : float, optional
        End of the axis of time, so that several traces share one; default: the end of the run.

    Returns
    -------
    altair.LayerChart
        The nodes that were busiest, in the platform's order; a node's link stands below its processor.
    """
    rows, exact = lane_rows(trace, most)
    idle = idle_rows(trace) if exact else []
    data = records({key: [row[key] for row in rows] for key in ("lane", "what", "from", "to", "busy", "task")})
    names = list(dict.fromkeys(row["lane"] for row in rows))
    present = [word_colour for word_colour in KINDS.values() if any(row["what"] == word_colour[0] for row in rows)]
    present += [(word, colour) for word, colour in REASONS.items() if any(row["what"] == word for row in idle)]
    tooltip = [
        alt.Tooltip("lane:N", title="lane"),
        alt.Tooltip("what:N", title=" "),
        alt.Tooltip("from:Q", title="from, s", format=",.4~g"),
        alt.Tooltip("to:Q", title="to, s", format=",.4~g"),
        alt.Tooltip("task:N") if exact else alt.Tooltip("busy:Q", title="busy", format=".0%"),
    ]
    shade = alt.Scale(domain=[0, 1], range=[0.06, 1])
    opacity = alt.value(0.85) if exact else alt.Opacity("busy:Q", scale=shade, legend=None)
    colours = coloured("what", [word for word, _ in present], [colour for _, colour in present])
    place: Spec = {
        "x": alt.X("from:Q", title="time, s", scale=_time_scale(until_s)),
        "x2": "to:Q",
        "y": alt.Y("lane:N", title=None, sort=names, axis=alt.Axis(labelLimit=130, domain=False, ticks=False)),
    }
    bars = (
        alt.Chart(data)
        .mark_bar(height=13)
        .encode(
            **place,
            color=colours,
            opacity=opacity,
            tooltip=tooltip,
        )
    )
    layers = [bars]
    if idle:
        why = records({key: [row[key] for row in idle] for key in ("lane", "what", "from", "to")})
        thin = alt.Chart(why).mark_bar(height=IDLE_PX)
        layers.append(thin.encode(**place, color=colours, tooltip=tooltip[:4]))
    return layered(*layers, height=LANE_PX * len(names))


def idle_rows(trace: Trace) -> list[Row]:
    """Return why each processor that is shown did not compute, and when; gaps too short to be seen are left out."""
    least = float(trace.run["makespan_s"]) * SEEN
    spans = idle_spans(trace, busiest(trace))
    return [
        {"lane": shortened(name, 18), "what": reason, "from": start, "to": to}
        for name, reason, (start, to) in spans
        if to - start > least
    ]


def _time_scale(until_s: float | None) -> alt.Scale:
    return alt.Scale(nice=False, domainMin=0) if not until_s else alt.Scale(nice=False, domain=[0, until_s])


def lane_rows(trace: Trace, most: int = MOST_MARKS) -> tuple[list[Row], bool]:
    """Return what is drawn, and whether it is every single activity of the nodes shown."""
    shown = busiest(trace)
    parts = _parts(trace, shown)
    exact = sum(part["from"].size for part in parts) <= most
    end = float(trace.run["makespan_s"]) or 1.0
    stretches = max(most // max(len(parts), 1), 1)
    rows = [row for part in parts for row in (_each(part) if exact else _stretches(part, end, stretches))]
    return rows, exact


def busiest(trace: Trace) -> list[str]:
    """Return the nodes that are shown: those that computed most, in the platform's order."""
    nodes = trace.run["nodes"]
    chosen = sorted(range(len(nodes)), key=lambda k: (-nodes[k]["busy_s"], k))[: MOST_LANES // 2]
    return [str(nodes[k]["name"]) for k in sorted(chosen)]


def _parts(trace: Trace, shown: list[str]) -> list[Row]:
    owners = {"compute": "node", "send": "child", "result": "child"}
    tables = {kind: trace.of_kind(kind) for kind in KINDS}
    parts = []
    for name in shown:
        for kind, (word, _) in KINDS.items():
            table = tables[kind]
            found = table.filter(pc.equal(table[owners[kind]], pa.scalar(name)))
            if found.num_rows:
                label = shortened(name, 18)
                parts.append(
                    {
                        "lane": label if kind == "compute" else f"{label} link",
                        "what": word,
                        "from": found["start_s"].to_numpy(),
                        "to": found["end_s"].to_numpy(),
                        "task": found["task"].to_numpy(),
                    }
                )
    return parts


def _each(part: Row) -> list[Row]:
    head = {"lane": part["lane"], "what": part["what"], "busy": 1.0}
    spans = zip(part["from"], part["to"], part["task"], strict=True)
    return [{**head, "from": start, "to": end, "task": str(task)} for start, end, task in spans]


def _stretches(part: Row, end: float, stretches: int) -> list[Row]:
    """Return the busy part of each stretch of a lane, stretches without any left out."""
    edges = np.linspace(0.0, end, stretches + 1)
    busy = np.diff(_busy_until(edges, part["from"], part["to"])) / (end / stretches)
    head = {"lane": part["lane"], "what": part["what"], "task": ""}
    return [
        {**head, "from": edges[k], "to": edges[k + 1], "busy": min(float(busy[k]), 1.0)}
        for k in range(stretches)
        if busy[k] > 1e-6
    ]


def _busy_until(at: Floats, starts: Floats, ends: Floats) -> Floats:
    """Return the summed length of all spans before each time."""
    starts, ends = np.sort(starts), np.sort(ends)
    begun, over = np.searchsorted(starts, at), np.searchsorted(ends, at)
    until = np.concatenate([[0.0], np.cumsum(starts)]), np.concatenate([[0.0], np.cumsum(ends)])
    result: Floats = (begun * at - until[0][begun]) - (over * at - until[1][over])
    return result
