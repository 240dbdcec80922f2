"""What happened when: compute rate, transfer rates and the CPU's counters along the run.

Long runs are averaged over at most `MOST_BINS` stretches of time, so that a page about an hour stays as small as one
about a minute; dots are averaged per stretch *and* per kind of traffic, never across kinds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
from numpy.typing import NDArray

from crosswind.measurement import Measurement
from crosswind.report.figures.look import (
    BLUE,
    CHANNEL_COLOURS,
    CRIMSON,
    GREY,
    OCHRE,
    ORANGE,
    PINK,
    VIOLET,
    layered,
    records,
)

if TYPE_CHECKING:
    from crosswind.documents.measurement import MeasurementHeader

MOST_BINS = 320
SHORTEST_COUNTED_S = 0.25  # the kernel counts CPU time in ticks of up to 10 ms: shorter shares are noise
HEIGHT = 170
NO_TRAFFIC, SEVERAL = "no traffic", "several at once"
COUNTERS = {
    "user": ("user_s", BLUE),
    "system": ("system_s", ORANGE),
    "hard interrupts": ("irq_s", OCHRE),
    "soft interrupts": ("softirq_s", PINK),
    "stolen": ("steal_s", VIOLET),
}
FOREIGN = "foreign (part of the above)"

Floats = NDArray[np.float64]


def channel_names(header: MeasurementHeader) -> list[str]:
    """Return what to call each channel: its direction, with the peer where there are several."""
    peers = [peer["address"] for peer in header["peers"]]
    return [
        f"{channel['direction']} {peers[channel['peer']]}" if len(peers) > 1 else str(channel["direction"])
        for channel in header["channels"]
    ]


def compute_timeline(measurement: Measurement) -> alt.Chart:
    """Draw the compute rate along the run, as a part of its mean without traffic, one dot per kind of traffic.

    Parameters
    ----------
    measurement : Measurement

    Returns
    -------
    altair.Chart
    """
    columns = _columns(measurement)
    kind, names = _kinds(measurement.header, columns)
    used = ~columns["settling"] & (columns["phase"] != "warm-up") & (columns["phase"] != "calibrate")
    at, kinds, sums = _binned(columns, used, kind, [columns["work"], columns["dt_s"]])
    rates = sums[0] / sums[1]
    rest = used & (kind == 0)
    idle = (
        columns["work"][rest].sum() / columns["dt_s"][rest].sum() if rest.any() else float(np.max(rates, initial=1.0))
    )
    data = records({"t": at, "rate": rates / idle, "kind": [names[k] for k in kinds]})
    present = [name for k, name in enumerate(names) if (kinds == k).any()]
    chart: alt.Chart = (
        alt.Chart(data)
        .mark_circle(size=22, opacity=0.75)
        .encode(
            x=_time(),
            y=alt.Y(
                "rate:Q", title="compute rate, part of idle", axis=alt.Axis(format="%"), scale=alt.Scale(zero=False)
            ),
            color=_kind_colours("kind", present, names),
            tooltip=[
                _at(),
                alt.Tooltip("rate:Q", title="compute rate", format=".1%"),
                alt.Tooltip("kind:N", title="traffic"),
            ],
        )
        .properties(width="container", height=HEIGHT)
    )
    return chart


def transfer_timeline(measurement: Measurement) -> alt.Chart:
    """Draw the transfer rate reached on each channel along the run, MB/s.

    Parameters
    ----------
    measurement : Measurement

    Returns
    -------
    altair.Chart
    """
    columns = _columns(measurement)
    _, names = _kinds(measurement.header, columns)
    parts: list[tuple[Floats, Floats, int]] = []
    most = max(40, MOST_BINS // len(measurement.header["channels"]))  # every channel has several levels
    for channel in range(len(measurement.header["channels"])):
        asked = columns[f"channel{channel}_asked_mb_per_s"]
        used = ~columns["settling"] & (asked != 0)
        level = np.nan_to_num(asked, nan=-1.0)
        _, level = np.unique(level, return_inverse=True)
        at, _, sums = _binned(columns, used, level, [columns[f"channel{channel}_mb"], columns["dt_s"]], most)
        parts.append((at, sums[0] / sums[1], channel + 1))
    data = records(
        {
            "t": np.concatenate([at for at, _, _ in parts]),
            "rate": np.concatenate([rates for _, rates, _ in parts]),
            "channel": [names[k] for at, _, k in parts for _ in at],
        }
    )
    present = [names[k] for at, _, k in parts if at.size]
    chart: alt.Chart = (
        alt.Chart(data)
        .mark_circle(size=22, opacity=0.75)
        .encode(
            x=_time(),
            y=alt.Y("rate:Q", title="transfer rate, MB/s"),
            color=_kind_colours("channel", present, names),
            tooltip=[_at(), alt.Tooltip("rate:Q", title="MB/s", format=",.4~g"), alt.Tooltip("channel:N")],
        )
        .properties(width="container", height=HEIGHT)
    )
    return chart


def cpu_timeline(measurement: Measurement) -> alt.LayerChart:
    """Draw how the computing CPU's time was spent along the run, as the kernel accounts it, stacked shares of 1.

    Parameters
    ----------
    measurement : Measurement

    Returns
    -------
    altair.LayerChart
        The line of foreign time lies over the stack: the kernel counts it as user or system time as well.
    """
    columns = _columns(measurement)
    everything = np.ones(columns["t_s"].size, bool)
    columns["block"] = (columns["t_s"] // SHORTEST_COUNTED_S).astype(np.int64)
    amounts = [columns[name] for name, _ in COUNTERS.values()]
    at, _, sums = _binned(
        columns, everything, np.zeros(everything.size, int), [*amounts, columns["foreign_cpu_s"], columns["dt_s"]]
    )
    shares = sums[:-1] / sums[-1]
    at = at - sums[-1] / 2.0  # steps begin where their stretch begins
    data = records(
        {
            "t": np.tile(at, len(COUNTERS)),
            "share": shares[:-1].ravel(),
            "order": np.repeat(np.arange(len(COUNTERS)), at.size),
            "counter": [name for name in COUNTERS for _ in at],
        }
    )
    has_foreign = bool(np.isfinite(shares[-1]).any())
    colours = {name: colour for name, (_, colour) in COUNTERS.items()} | ({FOREIGN: CRIMSON} if has_foreign else {})
    colour = alt.Color(
        "counter:N",
        scale=alt.Scale(domain=list(colours), range=list(colours.values())),
        legend=alt.Legend(title=None, symbolType="square"),
    )
    y = alt.Y(
        "share:Q",
        title="share of the computing CPU",
        axis=alt.Axis(format="%"),
        stack="zero",
        scale=alt.Scale(domain=[0, 1]),
    )
    stack = (
        alt.Chart(data)
        .mark_area(opacity=0.7, interpolate="step-after", clip=True)
        .encode(
            x=_time(),
            y=y,
            color=colour,
            order="order:Q",
            tooltip=[_at(), alt.Tooltip("counter:N"), alt.Tooltip("share:Q", format=".1%")],
        )
    )
    layers = [stack]
    if has_foreign:
        foreign = alt.Chart(records({"t": at, "share": shares[-1], "counter": [FOREIGN] * at.size}))
        layers.append(
            foreign.mark_line(strokeWidth=2, interpolate="step-after", clip=True).encode(
                x=_time(),
                y=alt.Y("share:Q", stack=None),
                color=colour,
                tooltip=[_at(), alt.Tooltip("share:Q", format=".1%")],
            )
        )
    return layered(*layers, height=HEIGHT)


def _time() -> alt.X:
    return alt.X("t:Q", title="time since the start, s", scale=alt.Scale(nice=False))


def _at() -> alt.Tooltip:
    return alt.Tooltip("t:Q", title="at, s", format=".2f")


def _kind_colours(field: str, present: list[str], names: list[str]) -> alt.Color:
    palette = [GREY, *(CHANNEL_COLOURS[k % 4] for k in range(len(names) - 2)), VIOLET]
    colours = dict(zip(names, palette, strict=True))
    return alt.Color(f"{field}:N", scale=alt.Scale(domain=present, range=[colours[name] for name in present]))


def _columns(measurement: Measurement) -> dict[str, NDArray[Any]]:
    table = measurement.samples
    columns = {name: table.column(name).to_numpy() for name in table.column_names if name != "phase"}
    return {**columns, "phase": table.column("phase").to_numpy().astype(str)}


def _kinds(header: MeasurementHeader, columns: dict[str, NDArray[Any]]) -> tuple[NDArray[np.int64], list[str]]:
    """Return which traffic each row had: 0 none, channel + 1, or the last for several; and the kinds' names."""
    names = channel_names(header)
    asked = np.column_stack([columns[f"channel{i}_asked_mb_per_s"] != 0 for i in range(len(names))])
    several = asked.sum(axis=1) > 1
    kind = np.where(asked.any(axis=1), asked.argmax(axis=1) + 1, 0)
    return np.where(several, len(names) + 1, kind).astype(np.int64), [NO_TRAFFIC, *names, SEVERAL]


def _binned(
    columns: dict[str, NDArray[Any]],
    rows: NDArray[np.bool_],
    kind: NDArray[Any],
    amounts: list[Floats],
    most: int = MOST_BINS,
) -> tuple[Floats, NDArray[np.int64], Floats]:
    """Sum amounts over stretches of time and kinds: (middle of each, its kind, sums of shape (amounts, stretches))."""
    t, dt = columns["t_s"], columns["dt_s"]
    span = max(float(t[-1] + dt[-1] - t[0]), 1e-9) if t.size else 1.0
    block = columns["block"].astype(np.int64)
    fine = np.unique(block).size <= most
    stretch = block if fine else np.minimum((most * (t - t[0]) / span).astype(np.int64), most - 1)
    labels, member = np.unique(np.column_stack([stretch, kind])[rows], axis=0, return_inverse=True)
    member = member.ravel()
    weight = np.bincount(member, dt[rows], len(labels))
    middle = np.bincount(member, ((t + dt / 2) * dt)[rows], len(labels)) / weight
    sums = np.array([np.bincount(member, amount[rows], len(labels)) for amount in amounts])
    return middle, labels[:, 1], sums
