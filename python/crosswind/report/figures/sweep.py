"""A sweep: the interference rate with its interval against what was varied, and the rate reached beside it."""

from __future__ import annotations

import altair as alt

from crosswind.documents import Row
from crosswind.measure.sweep import Sweep
from crosswind.report.figures.categories import beside, coloured, dotted, line, with_interval
from crosswind.report.figures.look import Spec, layered, records
from crosswind.terminal.sizes import size

HEIGHT = 260


def sweep_interference(sweep: Sweep) -> alt.LayerChart:
    """Draw the interference rate (s/GB) with its 95 % interval for each value and channel.

    Parameters
    ----------
    sweep : Sweep

    Returns
    -------
    altair.LayerChart
        Values at equal steps, channels side by side.
    """
    rows = _rows(sweep)
    base = alt.Chart(
        records(
            {
                "value": _shown(sweep, rows),
                "channel": [row["channel"] for row in rows],
                "ir": [1000.0 * row["ir_s_per_mb"] for row in rows],
                "low": [1000.0 * row["ir_low"] for row in rows],
                "high": [1000.0 * row["ir_high"] for row in rows],
            }
        )
    ).encode(color=_channels(rows), **_places(sweep))
    tooltip = [
        alt.Tooltip("value:N", title=sweep.kind),
        alt.Tooltip("channel:N"),
        alt.Tooltip("ir:Q", title="IR, s/GB", format=",.4~g"),
        alt.Tooltip("low:Q", title="from", format=",.4~g"),
        alt.Tooltip("high:Q", title="to", format=",.4~g"),
    ]
    layers = with_interval(base, "low", "ir", "high", "interference rate, s/GB", tooltip, _numeric(rows))
    return layered(*layers, height=HEIGHT)


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
                "value": _shown(sweep, rows),
                "channel": [row["channel"] for row in rows],
                "rate": [row["transfer_max_mb_per_s"] for row in rows],
            }
        )
    ).encode(
        y=alt.Y("rate:Q", title="highest rate reached, MB/s"),
        color=_channels(rows),
        tooltip=[
            alt.Tooltip("value:N", title=sweep.kind),
            alt.Tooltip("channel:N"),
            alt.Tooltip("rate:Q", title="MB/s", format=",.4~g"),
        ],
        **_places(sweep),
    )
    return layered(*([line(base)] if _numeric(rows) else []), dotted(base), height=HEIGHT)


def _rows(sweep: Sweep) -> list[Row]:
    rows: list[Row] = sweep.to_arrow().to_pylist()
    peers = {row["peer"] for row in rows}
    for row in rows:
        row["channel"] = f"{row['direction']} {row['peer']}" if len(peers) > 1 else row["direction"]
    return rows


def _numeric(rows: list[Row]) -> bool:
    return all(isinstance(row["value"], int) for row in rows)


def _shown(sweep: Sweep, rows: list[Row]) -> list[str]:
    """Return each row's value as it stands on the axis: sizes with SI prefixes, other numbers and names as they are."""
    return [size(row["value"]) if sweep.unit == "bytes" else str(row["value"]) for row in rows]


def _places(sweep: Sweep) -> Spec:
    """Put values at equal steps (they are chosen so, numbers mostly by factors), and channels beside each other."""
    words = sweep.kind.replace("-", " ")
    title = f"{words}, {sweep.unit}" if sweep.unit and sweep.unit != "bytes" else words
    return beside("value", "channel", title)


def _channels(rows: list[Row]) -> alt.Color:
    return coloured("channel", [row["channel"] for row in rows])
