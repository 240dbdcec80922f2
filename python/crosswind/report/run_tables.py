"""Tables about runs: plain rows of text, made here so that templates hold no arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crosswind.report.comparisons import Group, Pair
from crosswind.report.tables import MOST_NODES, Column, Table
from crosswind.report.words import number, number_range, percent, plain
from crosswind.run.drift import RATES, observed_rates
from crosswind.run.ranking import ORDER, Ranking
from crosswind.run.results import Run

MOST_APPLICATIONS = 60
MOST_EVENTS = 60


def order_table(group: Group, caption: str) -> Table:
    """Return the makespan of each order, one row per application."""
    unit = "of root alone" if group.relative else "s"
    columns = [
        Column(group.title, numeric=False),
        *(Column(series, unit, "order") for series in group.series),
        Column("upper bound", unit, "bound"),
    ]
    by_place = {(row["application"], row["series"]): row for row in group.rows}
    rows = []
    for application in group.applications[:MOST_APPLICATIONS]:
        own = [by_place.get((application, series)) for series in group.series]
        bound = next((row["bound"] for row in own if row), None)
        rows.append([application, *(number(row["middle"]) if row else "–" for row in own), number(bound)])
    left = len(group.applications) - len(rows)
    note = f"and {left} more applications; runs.json has all" if left > 0 else ""
    return Table(caption, columns, rows, note)


def rank_table(ranking: Ranking, where: str) -> Table:
    """Return the values of a swept field, the best first, with their differences to it."""
    columns = [
        Column(ranking.path.rsplit(".", 1)[-1], numeric=False, term="order" if ranking.path == ORDER else ""),
        Column("mean rank"),
        Column("best at", f"of {ranking.points:,} points"),
        Column("behind the best", "%"),
        Column("95 % interval", "%"),
    ]
    rows = []
    for place, row in enumerate(ranking.rows):
        behind, half = 100 * row.behind, None if row.half is None else 100 * row.half
        ends = "–" if half is None or place == 0 else number_range(behind - half, behind + half)
        name = row.value if isinstance(row.value, str) else plain(row.value)
        rows.append([name, f"{row.rank:.2f}", f"{row.best_at:,}", "–" if place == 0 else number(behind), ends])
    if ranking.seeds > 1:
        note = f"Differences are paired: each value ran with the same {ranking.seeds} seeds (common random numbers). "
        note += "Intervals hold for all pairs of values at once; those that include 0 are ties."
    else:
        note = "One run per value and point: no intervals."
    return Table(f"Ranks by {ranking.measure}, {where}", columns, rows, note)


def pair_table(pairs: Sequence[Pair], of: int) -> Table:
    """Return the bound of the plan, the predicted makespan and the real one beside each other."""
    columns = [
        Column("run", numeric=False),
        Column("plan: at least", "s", "bound"),
        Column("predicted", "s", "makespan"),
        Column("run", "s", "makespan"),
        Column("longer", "of predicted", "agreement"),
        Column("reached", "of the bound", "bound"),
        Column("computed by", numeric=False, term="compute"),
    ]
    rows = [
        [
            pair.name,
            number(pair.planned_s, 4),
            number(pair.predicted_s, 4),
            number(pair.run_s, 4),
            f"{100 * pair.difference:+.1f} %".replace("-", "−"),
            percent(pair.of_bound),
            pair.compute,
        ]
        for pair in pairs
    ]
    note = f"The first {len(pairs)} of {of} pairs are shown; runs.json has all." if of > len(pairs) else ""
    return Table("Planned, predicted and run", columns, rows, note)


def node_table(nodes: Sequence[Mapping[str, Any]], makespan_s: float, most: int = MOST_NODES) -> Table:
    """Return what each node did; of many, those that computed most."""
    columns = [
        Column("node", numeric=False),
        Column("computed", "tasks"),
        Column("busy", "s", "busy"),
        Column("busy", "of the run", "busy"),
        Column("received", "MB"),
    ]
    order = sorted(range(len(nodes)), key=lambda k: (-nodes[k]["tasks"], k))[:most]
    rows = [
        [
            str(nodes[k]["name"]),
            f"{nodes[k]['tasks']:,}",
            number(nodes[k]["busy_s"]),
            percent(nodes[k]["busy_s"] / makespan_s if makespan_s else None),
            number(nodes[k]["received_mb"]),
        ]
        for k in sorted(order)
    ]
    cut = len(nodes) > most
    note = f"{most:,} of {len(nodes):,} nodes are shown, those that computed most." if cut else ""
    return Table("What each node did", columns, rows, note)


def seen_table(nodes: Sequence[Mapping[str, Any]], most: int = MOST_NODES) -> Table | None:
    """Return what was seen of nodes and links beside what was planned, furthest off first; None where nothing was."""
    rates = sorted(observed_rates(nodes), key=lambda rate: (not rate.stale, -abs(rate.off or 0.0)))
    if not rates:
        return None
    columns = [
        Column("node", numeric=False),
        Column("rate", numeric=False),
        Column("planned"),
        Column("seen"),
        Column("± sd"),
        Column("off", "of planned"),
        Column("observations", "tasks"),
        Column("", numeric=False),
    ]
    rows = [
        [
            rate.node,
            f"{RATES[rate.field][0]}, {RATES[rate.field][1]}",
            number(rate.planned),
            number(rate.seen),
            number(rate.sd, 2),
            "–" if rate.off is None else f"{100 * rate.off:+.1f} %".replace("-", "−"),
            f"{rate.observations:,}",
            "stale" if rate.stale else "",
        ]
        for rate in rates[:most]
    ]
    note = f"{most:,} of {len(rates):,} rates are shown, those that are furthest off." if len(rates) > most else ""
    return Table("Planned and seen", columns, rows, note)


def events_table(runs: Sequence[Run], most: int = MOST_EVENTS) -> Table | None:
    """Return what happened in the runs, or None where nothing did."""
    happened = [(run, event) for run in runs for event in run.events]
    if not happened:
        return None
    columns = [
        Column("what", numeric=False),
        Column("at", "s"),
        Column("node", numeric=False),
        Column("tasks"),
        Column("event", numeric=False),
    ]
    rows = [
        [
            str(event["code"]),
            plain(event["t_s"]),
            str(event.get("node") or ""),
            "–" if event.get("tasks") is None else str(event["tasks"]),
            str(event["message"]),
        ]
        for _, event in happened[:most]
    ]
    note = f"and {len(happened) - most} more; runs.json has all" if len(happened) > most else ""
    return Table("What happened", columns, rows, note)
