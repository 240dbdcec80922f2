"""The sections about checks: a node, how it went from check to check, and the hosts and links of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from crosswind.check.cluster_result import ClusterCheck
from crosswind.check.decision import Judged, Reading
from crosswind.check.outliers import group_of
from crosswind.check.result import Check
from crosswind.documents import Row
from crosswind.errors import Notice
from crosswind.report.figures.figure import Figure
from crosswind.report.figures.link_map import link_map
from crosswind.report.figures.trend import trend
from crosswind.report.sections.section import Answer, Kind, Term, grouped, of_type
from crosswind.report.words import number, percent, plain
from crosswind.tables import Column, Table

MOST_ROWS = 60

TERMS = (
    Term(
        "check-loss",
        "lost",
        "How much worse a measure is: of a rate the part that is missing, of a share of time the points that it grew.",
    ),
    Term(
        "check-interval",
        "interval",
        "At most 1 % of checks of a healthy node call it sick: the chance is shared over all measures and both looks.",
    ),
    Term(
        "check-others",
        "others",
        "The same measure on other hosts, or all other links; their median counts.",
    ),
)


@dataclass(frozen=True)
class CheckedSection:
    """A node, or a cluster: the verdict first."""

    id: str
    title: str
    where: str
    large: list[Answer]
    headline: str
    figures: list[Figure]
    tables: list[Table]
    warnings: list[Notice]
    limits: str = ""

    @property
    def terms(self) -> Sequence[Term]:
        """The terms that it links to."""
        return TERMS


def node_section(checks: Sequence[Check], place: int) -> CheckedSection:
    """Prepare the section of one node's checks, the last of which is shown in full, at `place` (from 1)."""
    ordered = sorted(checks, key=lambda one: str(one.document["at"]))
    last, prefix = ordered[-1], f"check-{place}"
    figure = _trend(ordered, prefix) if len(ordered) > 1 else None
    count = f", {len(ordered)} checks since {ordered[0].document['at']}" if len(ordered) > 1 else ""
    judged = [_verdict("", each) for each in last.judged]
    measured = [_measured(name, reading) for name, reading in last.readings.items()]
    tables = [Table("What was measured", [Column("measure", numeric=False), Column("mean"), Column("unit")], measured)]
    if judged:
        tables.insert(0, Table("Against the baseline, or earlier checks", _COLUMNS[1:], [row[1:] for row in judged]))
    return CheckedSection(
        id=prefix,
        title=f"Is {last.node} as fast as it should be?",
        where=f"{last.document['at']}, {number(last.document['took_s'])} s{count}",
        large=_answers(last.sentence),
        headline=f"{last.sentence}.",
        figures=[figure] if figure else [],
        tables=tables,
        warnings=list(last.warnings),
        limits=_limits(last),
    )


def cluster_section(found: ClusterCheck, place: int) -> CheckedSection:
    """Prepare the section of a cluster's check at `place` (from 1)."""
    prefix, hosts = f"cluster-check-{place}", list(found.document["hosts"])
    rows = [
        {"from": one["from"], "to": one["to"], "rate": one["receive_limit_mb_per_s"], "outcome": judged.outcome}
        for one in found.document["links"]
        if (judged := found.links.get((one["from"], one["to"])))
    ]
    alt = f"A cell for each of {len(rows)} links between {len(hosts)} hosts, darker where it carries more."
    figures = [Figure(f"{prefix}-links", "Links, MB/s", alt, link_map(rows, hosts))] if rows else []
    worst = sorted(((host, each) for host, each in found.judged), key=lambda row: _ORDER.index(row[1].outcome))
    note = f"The first {MOST_ROWS} of {len(worst)} are shown." if len(worst) > MOST_ROWS else ""
    table = Table("Against the others", _COLUMNS, [_verdict(host, each) for host, each in worst[:MOST_ROWS]], note)
    return CheckedSection(
        id=prefix,
        title=f"Which hosts and links of {found.document['cluster']} are slow?",
        where=f"{found.document['at']}, {len(found.checks)} of {len(hosts)} hosts, {len(found.links)} links",
        large=_answers(found.sentence),
        headline=f"{found.sentence}.",
        figures=figures,
        tables=[table],
        warnings=list(found.warnings),
    )


def _answers(sentence: str) -> list[Answer]:
    """Return a verdict in large type: what stands before the colon, and the reason."""
    outcome, colon, reason = sentence.partition(": ")
    if not colon:
        return []
    tone = {"healthy": "good", "sick": "poor"}.get(outcome, "")
    return [Answer(outcome[:1].upper() + outcome[1:], f"{reason}.", tone=tone)]


_ORDER = ("sick", "unknown", "healthy")
_COLUMNS = [
    Column("host", numeric=False),
    Column("measure", numeric=False),
    Column("verdict", numeric=False),
    Column("lost", "%, points", "check-loss"),
    Column("from", "%", "check-interval"),
    Column("to", "%", "check-interval"),
    Column("permitted", "%"),
    Column("why", numeric=False),
]


def _verdict(host: str, each: Judged) -> list[str]:
    numbers = [percent(value) for value in (each.loss, each.low, each.high, each.tolerance)]
    return [host, each.name, each.outcome, *numbers, each.why]


def _mean(reading: Reading) -> float:
    return reading.mean if reading.mean is not None else fmean(reading.values or (0.0,))


def _measured(name: str, reading: Reading) -> list[str]:
    share = reading.unit == "share"
    return [name, percent(_mean(reading)) if share else number(_mean(reading), 4), "%" if share else reading.unit]


def _trend(checks: Sequence[Check], prefix: str) -> Figure | None:
    """Return the course of each measure, CPUs together, against its median."""
    values: dict[str, list[tuple[str, float]]] = {}
    shares = set()
    for check in checks:
        groups: dict[str, list[float]] = {}
        for name, reading in check.readings.items():
            if reading.known:
                groups.setdefault(group_of(name), []).append(_mean(reading))
                shares |= {group_of(name)} if reading.unit == "share" else set()
        for group, means in groups.items():
            values.setdefault(group, []).append((str(check.document["at"]), fmean(means)))
    rows: list[Row] = []
    permitted = _permitted(checks[-1])
    for group, course in values.items():
        if group not in permitted:
            continue
        typical = median(value for _, value in course)
        unit = "points" if group in shares else "%"
        for at, value in course:
            loss = value - typical if group in shares else 1.0 - value / typical if typical else 0.0
            words = f"{number(100.0 * loss)} of {plain(100.0 * permitted[group])} {unit}"
            own = {"value": 100.0 * loss, "permitted": 100.0 * permitted[group], "multiple": loss / permitted[group]}
            rows.append({"of": group, "at": at, **own, "words": words})
    if not rows:
        return None
    alt = f"Lines of {len(permitted)} measures over {len(checks)} checks; dashed, at 1, is what each may lose."
    return Figure(
        f"{prefix}-trend",
        "From check to check",
        alt,
        trend(rows, "loss against the median, relative to the tolerance", 1.0, "multiple"),
    )


def _permitted(check: Check) -> dict[str, float]:
    """Return what each measure, CPUs together, may lose: a part of its rate, or of the time."""
    parts = {group_of(name): reading.part for name, reading in check.readings.items()}
    return {group: check.tolerance * part for group, part in parts.items()}


def _limits(check: Check) -> str:
    """Return what each measure may lose, in words."""
    shares = {group_of(name) for name, reading in check.readings.items() if reading.unit == "share"}
    by_limit: dict[str, list[str]] = {}
    for group, limit in _permitted(check).items():
        words = f"{plain(100.0 * limit)} {'points' if group in shares else '%'}"
        by_limit.setdefault(words, []).append(group)
    return "; ".join(f"{', '.join(groups)}: {words}" for words, groups in by_limit.items())


def _groups(items: Sequence[Any]) -> list[list[Any]]:
    """Return the checks of each node together; each cluster's check alone."""
    nodes: dict[str, list[Any]] = {}
    for item in items:
        if isinstance(item, Check):
            nodes.setdefault(item.node, []).append(item)
    return [*nodes.values(), *([item] for item in items if isinstance(item, ClusterCheck))]


def _section(several: list[Any], place: int) -> CheckedSection:
    if isinstance(several[0], ClusterCheck):
        return cluster_section(several[0], place)
    return node_section(several, place)


CHECKS = Kind(
    "check",
    "checks",
    "check.html.j2",
    of_type(Check, ClusterCheck),
    grouped(_groups, _section),
    {"check": Check.load, "cluster-check": ClusterCheck.load},
)
