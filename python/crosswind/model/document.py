"""A fit as other programs and people read it: JSON, rows, the papers' table, HTML."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from crosswind.documents import Row
from crosswind.model.hull import Hull
from crosswind.platform import as_html_table

if TYPE_CHECKING:
    from crosswind.model.channel import ChannelFit
    from crosswind.model.fit import Fit


def plain(value: Any) -> Any:
    """Return a value as JSON has it: dataclasses as dicts, numbers that are not finite as None.

    Examples
    --------
    >>> plain({"a": (1.0, float("nan"))})
    {'a': [1.0, None]}
    """
    if isinstance(value, Hull):
        value = {"vertices_mb_per_s": value.vertices}
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    elif isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_dict(fit: Fit) -> dict[str, object]:
    """Return the contract of `crosswind measure --json`, with more fields."""
    header = fit.measurement.header
    document = {
        "name": header["name"],
        "host": header["host"]["name"],
        "kernel": header["kernel"]["name"],
        "placement": header["placement"]["mode"],
        "ended": header["ended"],
        "elapsed_s": header["elapsed_s"],
        "normalise": fit.normalise,
        "trustworthy": fit.trustworthy,
        "peers": [_channel(channel) for channel in fit.channels],
        "baseline": fit.baseline,
        "plane": fit.plane,
        "three_point": fit.three_point,
        "additive": fit.additive,
        "hull": fit.hull,
        "warnings": fit.warnings,
    }
    found: dict[str, Any] = plain(document)
    return found


def _channel(channel: ChannelFit) -> dict[str, object]:
    skipped = ("points", "interval", "lines")
    fields = {f.name: getattr(channel, f.name) for f in dataclasses.fields(channel) if f.name not in skipped}
    return fields | {
        "points": channel.line.points,
        "ir_s_per_gb": channel.ir_s_per_gb,
        "cost_per_call_us": channel.cost_per_call_us,
        "cost_per_gb_s": channel.cost_per_gb_s,
        "cost_per_wakeup_us": channel.cost_per_wakeup_us,
        "estimators": channel.lines,
    }


def rows(fit: Fit) -> list[Row]:
    """Return one flat row per channel."""
    found = []
    for c in fit.channels:
        row: Row = {
            "host": fit.measurement.header["host"]["name"],
            "kernel": fit.measurement.header["kernel"]["name"],
            "placement": fit.measurement.header["placement"]["mode"],
            "peer": c.peer,
            "direction": c.direction,
            "estimator": c.estimator,
            "ir_s_per_mb": c.ir_s_per_mb,
            "ir_s_per_gb": c.ir_s_per_gb,
            "ir_low_s_per_mb": c.ir_ci95[0],
            "ir_high_s_per_mb": c.ir_ci95[1],
            "upper_bound_s_per_mb": c.upper_bound,
            "intercept": c.intercept,
            "intercept_against_bare": fit.baseline.intercept_against_bare,
            "std_dev": c.std_dev,
            "max_error": c.max_error,
            "max_error_relative": c.max_error_relative,
            "r_squared": c.r_squared,
            "theil_sen_s_per_mb": c.theil_sen,
            "chord_s_per_mb": c.chord,
            "ir_wall_s_per_mb": c.lines["wall"].ir_s_per_mb if "wall" in c.lines else None,
            "transfer_max_mb_per_s": c.transfer_max_mb_per_s,
            "range_low_mb_per_s": c.range_mb_per_s[0],
            "range_high_mb_per_s": c.range_mb_per_s[1],
            "loss_at_top": c.loss_at_top,
            "headline_mb_per_s": c.headline.mb_per_s if c.headline else None,
            "headline_loss": c.headline.loss if c.headline else None,
            "headline_low": c.headline.ci95[0] if c.headline else None,
            "headline_high": c.headline.ci95[1] if c.headline else None,
            "headline_next_low": c.headline.next95[0] if c.headline else None,
            "headline_next_high": c.headline.next95[1] if c.headline else None,
            "headline_earlier": c.headline.earlier if c.headline else None,
            "displacement": c.displacement,
            "slow_down": c.slow_down,
            "cost_per_call_us": c.cost_per_call_us,
            "cost_per_gb_s": c.cost_per_gb_s,
            "cost_per_wakeup_us": c.cost_per_wakeup_us,
            "t_square": c.quadratic.t_square if c.quadratic else None,
            "points": c.line.points,
            "settled": c.settled,
        }
        found.append(plain(row))
    return found


def as_table_2(fit: Fit) -> str:
    """Return the fit in the form of table 2: IR, const, StDev, MaxE of receiving and sending, a line per peer.

    As in the paper, IR is in parts of the full rate per MB/s, and errors are parts of the full rate.
    """
    host = fit.measurement.header["host"]["name"]
    peers = list(dict.fromkeys(c.peer for c in fit.channels))
    width = max([4, *(len(peer) for peer in peers)])
    columns = f"{'IR':>11} {'const':>7} {'StDev':>7} {'MaxE':>7}"
    lines = [
        f"{'':{width}}  {f'{host} receives from node':^35}  {f'{host} sends to node':^35}".rstrip(),
        f"{'Node':{width}}  {columns}  {columns}",
    ]
    for peer in peers:
        cells = []
        for direction in ("receive", "send"):
            found = [c for c in fit.channels if c.peer == peer and c.direction == direction]
            cells += [
                f"{c.ir_s_per_mb:11.4g} {c.intercept:7.4f} {c.std_dev:7.4f} {c.max_error:7.4f}" for c in found[:1]
            ] or [f"{'-':>35}"]
        lines.append(f"{peer:{width}}  {'  '.join(cells)}")
    return "\n".join(lines)


def as_html(fit: Fit) -> str:
    """Return the fit as an HTML table for notebooks."""
    shown = [
        {
            "peer": c.peer,
            "direction": c.direction,
            "IR s/GB": c.ir_s_per_gb,
            "95 %": f"{1000 * c.ir_ci95[0]:.4g} .. {1000 * c.ir_ci95[1]:.4g}",
            "const": c.intercept,
            "loss at top": c.loss_at_top,
            "top MB/s": c.top_mb_per_s,
            "us/call": c.cost_per_call_us,
            "s/GB": c.cost_per_gb_s,
            "us/wake-up": c.cost_per_wakeup_us,
            "estimator": c.estimator,
        }
        for c in fit.channels
    ]
    return as_html_table(fit.measurement.header["name"], shown)
