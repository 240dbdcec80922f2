"""A sweep: the interference rate with its interval against the value that was varied, and the rate reached beside it."""

from __future__ import annotations

from typing import Any

import altair as alt

from crosswind.report.figures.look import CHANNEL_COLOURS, records
from crosswind.sweep import Sweep

HEIGHT = 260


def sweep_interference(sweep: Sweep) -> alt.LayerChart:
    """Draw the interference rate (s/GB) with its 95 % interval for each value and channel.

    Parameters
    ----------
    sweep : Sweep

    Returns
    -------
    altair.LayerChart
        Numbers on a logarithmic axis, names side by side.
    """
    rows = _rows(sweep)
    base = alt.Chart(
        records(
            {
                "value": [row["value"] for row in rows],
                "channel": [row["channel"] for row in rows],
                "ir": [1000.0 * row["ir_s_per_mb"] for row in rows],
                "low": [1000.0 * row["ir_low"] for row in rows],
                "high": [1000.0 * row["ir_high"] for row in rows],
            }
        )
    ).encode(x=_values(sweep, rows), color=_channels(rows), **_aside(sweep, rows))
    tooltip = [
        alt.Tooltip("value", title=sweep.kind),
        alt.Tooltip("channel:N"),
        alt.Tooltip("ir:Q", title="IR, s/GB", format=",.4~g"),
        alt.Tooltip("low:Q", title="from", format=",.4~g"),
        alt.Tooltip("high:Q", title="to", format=",.4~g"),
    ]
    bars = base.mark_rule(strokeWidth=2).encode(y="low:Q", y2="high:Q", tooltip=tooltip)
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(
        y=alt.Y("ir:Q", title="interference rate, s/GB"), tooltip=tooltip
    )
    lines = [base.mark_line(strokeWidth=1.2, opacity=0.6).encode(y="ir:Q")] if _numeric(rows) else []
    return alt.layer(*lines, bars, dots).properties(width="container", height=HEIGHT)


def sweep_reached(sweep: Sweep) -> alt.LayerChart:
    """Draw the highest transfer rate that each value and channel reached, MB/s.

    Parameters
    ----------
    sweep : Sweep

    Returns
    -------
    altair.LayerChart
    """
    rows = _rows(sweep)
    base = alt.Chart(
        records(
            {
                "value": [row["value"] for row in rows],
                "channel": [row["channel"] for row in rows],
                "rate": [row["transfer_max_mb_per_s"] for row in rows],
            }
        )
    ).encode(
        x=_values(sweep, rows),
        y=alt.Y("rate:Q", title="highest rate reached, MB/s"),
        color=_channels(rows),
        tooltip=[
            alt.Tooltip("value", title=sweep.kind),
            alt.Tooltip("channel:N"),
            alt.Tooltip("rate:Q", title="MB/s", format=",.4~g"),
        ],
        **_aside(sweep, rows),
    )
    lines = [base.mark_line(strokeWidth=1.2, opacity=0.6)] if _numeric(rows) else []
    return alt.layer(*lines, base.mark_point(filled=True, size=70, opacity=1)).properties(width="container", height=HEIGHT)


def _rows(sweep: Sweep) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = sweep.to_arrow().to_pylist()
    peers = {row["peer"] for row in rows}
    for row in rows:
        row["channel"] = f"{row['direction']} {row['peer']}" if len(peers) > 1 else row["direction"]
    return rows


def _numeric(rows: list[dict[str, Any]]) -> bool:
    return all(isinstance(row["value"], int) for row in rows)


def _values(sweep: Sweep, rows: list[dict[str, Any]]) -> alt.X:
    title = f"{sweep.kind}, {sweep.unit}" if sweep.unit else sweep.kind
    if not _numeric(rows):
        return alt.X("value:N", title=title, sort=None, axis=alt.Axis(labelAngle=0), scale=alt.Scale(padding=0.3))
    values = sorted({row["value"] for row in rows})
    axis = alt.Axis(values=values, format="~s" if values[-1] >= 10_000 else "d", grid=False)
    return alt.X("value:Q", title=title, scale=alt.Scale(type="log", base=2, nice=False, padding=14), axis=axis)


def _aside(sweep: Sweep, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Put channels beside each other where values are names: intervals must not hide each other."""
    return {} if _numeric(rows) else {"xOffset": alt.XOffset("channel:N")}


def _channels(rows: list[dict[str, Any]]) -> alt.Color:
    names = list(dict.fromkeys(row["channel"] for row in rows))
    colours = [CHANNEL_COLOURS[k % len(CHANNEL_COLOURS)] for k in range(len(names))]
    return alt.Color("channel:N", scale=alt.Scale(domain=names, range=colours))
