"""Tables about runs: plain rows of text, made here so that templates hold no arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from crosswind.report.comparisons import Group, Pair
from crosswind.report.words import number, percent, plain
from crosswind.run.drift import observed_rates, rate_tables
from crosswind.run.results import MOST_NODES, Run
from crosswind.tables import Column, Table

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


def seen_table(nodes: Sequence[Mapping[str, Any]], most: int = MOST_NODES) -> Table | None:
    """Return what was seen of nodes and links beside what was planned, furthest off first; None where nothing was."""
    rates = sorted(observed_rates(nodes), key=lambda rate: (not rate.stale, -abs(rate.off or 0.0)))
    if not rates:
        return None
    [table] = rate_tables(rates[:most])
    note = f"{most:,} of {len(rates):,} rates are shown, those that are furthest off." if len(rates) > most else ""
    return replace(table, note=note)


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
