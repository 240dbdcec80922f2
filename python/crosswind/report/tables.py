"""Tables of the report: plain rows of text, made here so that templates hold no arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crosswind.model.channel import ChannelFit
from crosswind.report.words import number, number_range, percent, percent_range, plain
from crosswind.run.results import MOST_NODES
from crosswind.tables import Column, Table


def as_in_table_2(channels: Sequence[ChannelFit]) -> Table:
    """Return the fits in the form of the papers' table 2, one row per channel and time base."""
    columns = [
        Column("peer", numeric=False),
        Column("direction", numeric=False),
        Column("time base", term="time-base", numeric=False),
        Column("avg IR", "s/MB", "ir"),
        Column("avg IR", "s/GB", "ir"),
        Column("const", "", "intercept"),
        Column("StDev", "", "std-dev"),
        Column("MaxErr", "", "max-error"),
        Column("R²", "", "r-squared"),
        Column("points"),
    ]
    rows = []
    for channel in channels:
        for estimator, line in channel.lines.items():
            headline = " (headline)" if estimator == channel.estimator and len(channel.lines) > 1 else ""
            rows.append(
                [
                    channel.peer,
                    channel.direction,
                    f"{estimator}{headline}",
                    number(line.ir_s_per_mb),
                    number(1000 * line.ir_s_per_mb),
                    f"{line.intercept:.3f}",
                    f"{line.std_dev:.4f}",
                    f"{line.max_error:.4f}",
                    f"{line.r_squared:.3f}",
                    f"{line.points:,}",
                ]
            )
    return Table("Least squares, in the form of table 2 of the papers", columns, rows)


def vector(channels: Sequence[ChannelFit]) -> Table:
    """Return everything that is known about each channel, one column per channel."""
    peers = {channel.peer for channel in channels}
    heads = [f"{c.direction} {c.peer}" if len(peers) > 1 else c.direction for c in channels]
    columns = [Column("quantity", numeric=False), *(Column(head) for head in heads)]
    lines: list[tuple[str, list[str]]] = []

    def add(term: str, label: str, unit: str, cells: Sequence[str]) -> None:
        if any(cell != "–" for cell in cells):
            lines.append((term, [f"{label}, {unit}" if unit else label, *cells]))

    def interval(ends: tuple[float, float], factor: float = 1.0) -> str:
        return number_range(factor * ends[0], factor * ends[1])

    def quadratic(name: str) -> list[str]:
        return [number(getattr(c.quadratic, name)) if c.quadratic else "–" for c in channels]

    def costs(name: str) -> list[str]:
        return [number(getattr(c.cost, name)) if c.cost else "–" for c in channels]

    def cost_intervals(name: str) -> list[str]:
        return [interval(getattr(c.cost, name)) if c.cost else "–" for c in channels]

    add("ir", "interference rate, least squares", "s/GB", [number(1000 * c.ir_s_per_mb) for c in channels])
    add("interval", "its 95 % interval", "s/GB", [interval(c.ir_ci95, 1000.0) for c in channels])
    add(
        "upper-bound",
        "upper bound, where 0 is within the interval",
        "s/GB",
        ["–" if c.upper_bound is None else number(1000 * c.upper_bound) for c in channels],
    )
    add("ir", "interference rate, least squares", "s/MB", [number(c.ir_s_per_mb) for c in channels])
    add("theil-sen", "interference rate, Theil-Sen", "s/GB", [number(1000 * c.theil_sen) for c in channels])
    add("chord", "interference rate, chord from idle to top", "s/GB", [number(1000 * c.chord) for c in channels])
    add("loss", "loss at the top level", "of idle", [percent(c.loss_at_top) for c in channels])
    add(
        "interval",
        "its 95 % interval",
        "of idle",
        [percent_range(*c.loss_ci95) for c in channels],
    )
    add("displacement", "of it displacement", "of idle", [percent(c.displacement) for c in channels])
    add("displacement", "of it slow-down", "of idle", [percent(c.slow_down) for c in channels])
    add("cost", "CPU time per call", "µs", costs("per_call_us"))
    add("interval", "its 95 % interval", "µs", cost_intervals("per_call_ci95"))
    add("cost", "CPU time per GB, beyond calls and wake-ups", "s/GB", costs("per_gb_s"))
    add("interval", "its 95 % interval", "s/GB", cost_intervals("per_gb_ci95"))
    add("cost", "CPU time per wake-up", "µs", costs("per_wakeup_us"))
    add("interval", "its 95 % interval", "µs", cost_intervals("per_wakeup_ci95"))
    add("cost", "CPU time per GB, everything together", "s/GB", costs("all_in_per_gb_s"))
    add("range", "rates the line stands on", "MB/s", [interval(c.range_mb_per_s) for c in channels])
    add("range", "top level, as reached", "MB/s", [number(c.top_mb_per_s, 4) for c in channels])
    add(
        "range",
        "highest rate of the link, in one block or unpaced",
        "MB/s",
        [number(c.transfer_max_mb_per_s, 4) for c in channels],
    )
    add("range", "reached share of the requested top rate", "", [percent(c.reached) for c in channels])
    add("quadratic", "quadratic: t of the square", "", quadratic("t_square"))
    add("r-squared", "R² of the line", "", [f"{c.r_squared:.3f}" for c in channels])
    add("r-squared", "R² of the quadratic", "", quadratic("r_squared"))
    add("max-error", "largest error, of the measured rate", "", [percent(c.max_error_relative) for c in channels])
    for level in sorted({check.level for c in channels for check in c.lack_of_fit}):
        label = f"check points at {plain(level)} of the top, against the line"
        add("lack-of-fit", label, "of idle", [_lack_of_fit(c, level) for c in channels])
    add("foreign", "intervals dropped for foreign load", "", [percent(c.foreign_share) for c in channels])
    rows = [row for _, row in lines]
    return Table("What is known about each direction", columns, rows, terms=[term for term, _ in lines])


def _lack_of_fit(channel: ChannelFit, level: float) -> str:
    check = next((one for one in channel.lack_of_fit if one.level == level), None)
    return f"{100 * check.gap:+.1f} %".replace("-", "−") if check else "–"


def together(fit: Any) -> list[Table]:
    """Return what was found with several channels at once: additive law, plane, three points; those that are there."""
    tables = []
    if fit.additive:
        columns = [
            Column("direction", numeric=False),
            Column("mean error", "of idle"),
            Column("largest error", "of idle"),
            Column("bias", "of idle", "additive"),
            Column("95 %"),
            Column("against one peer at the same rate", "of idle", "additive"),
            Column("95 %"),
            Column("points"),
        ]
        rows = [
            [
                found.direction,
                percent(found.errors.mean_error),
                percent(found.errors.max_error),
                percent(found.bias),
                percent_range(*found.bias_ci95),
                percent(found.matched_bias),
                percent_range(*found.matched_ci95) if found.matched_points else "–",
                f"{found.points:,}",
            ]
            for found in fit.additive
        ]
        tables.append(Table("Several peers at once, against the sum of each alone", columns, rows))
    if fit.plane or fit.three_point:
        tables.append(_both_directions(fit))
    return tables


def _both_directions(fit: Any) -> Table:
    columns = [
        Column("model", numeric=False),
        Column("const"),
        Column("IR receive", "s/GB", "ir"),
        Column("IR send", "s/GB", "ir"),
        Column("mean error", "of idle"),
        Column("largest error", "of idle", "max-error"),
        Column("StDev", "", "std-dev"),
        Column("points"),
    ]

    def row(name: str, const: float, receive: float, send: float, errors: Any, points: int) -> list[str]:
        rates = [f"{const:.3f}", number(1000 * receive), number(1000 * send)]
        return [
            name,
            *rates,
            percent(errors.mean_error),
            percent(errors.max_error),
            f"{errors.std_dev:.4f}",
            f"{points:,}",
        ]

    rows, note = [], ""
    plane, three = fit.plane, fit.three_point
    if plane:
        alone = (plane.alone_receive_s_per_mb, plane.alone_send_s_per_mb)
        rows.append(row("each direction alone, added", 1.0, *alone, plane.errors_separate, plane.points))
        fitted = (plane.constant, plane.ir_receive_s_per_mb, plane.ir_send_s_per_mb)
        rows.append(row("plane", *fitted, plane.errors, plane.points))
        word = "gives back" if plane.synergy >= 0 else "costs a further"
        note = (
            f"Doing both at once {word} {percent(abs(plane.synergy))} of the idle rate against the sum of both alone "
            f"(95 %: {percent_range(*plane.synergy_ci95)})."
        )
    if three:
        law = (1.0, three.ir_receive_s_per_mb, three.ir_send_s_per_mb)
        rows.append(row("three points", *law, three.errors, three.points))
        rows.append(row("three points, inside the hull", *law, three.errors_inside, three.inside))
        if plane:
            rows.append(row("plane, inside the hull", *fitted, three.plane_errors_inside, three.inside))
    return Table("Receiving and sending at once", columns, rows, note)


def platform_nodes(nodes: Sequence[Mapping[str, Any]], most: int = MOST_NODES) -> Table:
    """Return a platform's nodes as described, the first of many."""
    columns = [
        Column("node", numeric=False),
        Column("parent", numeric=False),
        Column("computes", "work units/s"),
        Column("receives at most", "MB/s"),
        Column("sends at most", "MB/s"),
        Column("IR receive", "s/MB", "ir"),
        Column("IR send, at the parent", "s/MB", "ir"),
    ]
    keys = ("compute_per_s", "receive_limit_mb_per_s", "send_limit_mb_per_s", "ir_receive_s_per_mb", "ir_send_s_per_mb")
    rows = [
        [str(node["name"]), str(node.get("parent") or ""), *(number(node.get(key)) for key in keys)]
        for node in nodes[:most]
    ]
    note = f"The first {most:,} of {len(nodes):,} nodes are shown; the file has all." if len(nodes) > most else ""
    return Table("The nodes as described", columns, rows, note)
