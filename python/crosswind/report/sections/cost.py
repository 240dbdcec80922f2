"""The sections about what a background process costs a job, and about commands that were compared."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from crosswind.compare.clock import BYS
from crosswind.compare.result import Comparison
from crosswind.compare.runs import Pairs, slowdown
from crosswind.compare.several import Several
from crosswind.cost.estimate import NAMES, estimate
from crosswind.cost.result import Cost, CostOf
from crosswind.documents import Row
from crosswind.errors import Notice
from crosswind.report.figures.estimates import by_estimator, over_time
from crosswind.report.figures.figure import Figure
from crosswind.report.sections.measurement import Card
from crosswind.report.sections.section import Answer, Kind, Term, each, of_type
from crosswind.report.words import number, percent, shortened, with_half
from crosswind.statistics.jackknife import Estimate
from crosswind.tables import Table

POINTS = 40
"""Of the course over time."""
LEAST_QUADS = 5

TERMS = (
    Term(
        "cost-estimators",
        "estimator",
        "Wall: progress per wall time. Own: per CPU time of the job, so only what slows it while it has the processor. "
        "Available: per CPU time of the job and of the target. Exchange: the same, for the duty that it has "
        "when nothing stops it. Which one holds depends on where both run.",
    ),
    Term(
        "cost-quads",
        "quad",
        "Four blocks (or runs) in the order ABBA or BAAB, drawn for each: a drift of the host meets both alike.",
    ),
    Term(
        "cost-margin",
        "margin",
        "What is still tolerated. A verdict is given when the whole interval lies on one side of it.",
    ),
    Term(
        "cost-interval",
        "95 % interval at all interim analyses",
        "A jackknife over groups of neighbouring ABBA blocks. Each interim analysis spends a part of the 5 %, so that "
        "ending early raises no more false alarms.",
    ),
)


@dataclass(frozen=True)
class CostedSection:
    """A cost or a comparison: the verdict first."""

    id: str
    title: str
    where: str
    large: list[Answer]
    answer_note: str
    headline: str
    cards: list[Card]
    estimates: Figure | None
    course: Figure | None
    table: Table
    warnings: list[Notice]
    each: str = ""
    """What has a dot of its own in the figure; "": an estimator."""

    @property
    def figures(self) -> list[Figure]:
        """Every figure of the section."""
        return [figure for figure in (self.estimates, self.course) if figure]

    @property
    def terms(self) -> Sequence[Term]:
        """The terms that it links to."""
        return TERMS


def cost_section(found: Cost, place: int) -> CostedSection:
    """Prepare the section of a cost at `place` (from 1)."""
    job, whole, prefix = found.job, found.costs[-1], f"cost-{place}"
    blocks = f"blocks of {number(1e3 * job['block_s'])} ms, {number(found.measured_s)} s in all"
    names = " and ".join(target["name"] for target in found.targets)
    slower, host = whole.slower, found.document["host"].get("name")
    return CostedSection(
        id=prefix,
        title=f"What does {_without_pid(names)} cost {_without_pid(job['name'])}?",
        where=f"beside {job['name']}, progress by {job['progress']}; {blocks}; host {host}",
        large=_answers(found),
        answer_note=f"{found.sentence}.",
        headline=f"{found.sentence}.",
        cards=[
            Card("CPU taken", percent(whole.taken), "of the job's CPUs", "cost-estimators"),
            Card("slower", percent(slower.value if slower else None), "while it has the CPU", "cost-estimators"),
            Card("margin", percent(found.margin), "tolerated", "cost-margin"),
        ],
        estimates=_by_estimator(found, prefix),
        course=_course(found, prefix),
        table=found.tables()[0],
        warnings=found.warnings,
    )


def comparison_section(found: Comparison, place: int) -> CostedSection:
    """Prepare the section of a comparison at `place` (from 1)."""
    prefix, (a, b) = f"comparison-{place}", found.commands
    rows = [_row(b, by, found.estimate(by), found.level) for by in BYS if len(found.pairs) >= 3]
    estimates = Figure(
        f"{prefix}-estimates",
        "How much longer B takes",
        "Dots with 95 % intervals, by wall and by CPU time.",
        by_estimator(rows, 100 * found.margin, "B takes longer, %"),
    )
    return CostedSection(
        id=prefix,
        title=f"Is {shortened(b, 60)} slower than {shortened(a, 60)}?",
        where=f"A is {a}; {2 * len(found.pairs)} runs of each, ABBA; host {found.document['host'].get('name')}",
        large=_compared(found),
        answer_note=f"{found.sentence}.",
        headline=f"{found.sentence}.",
        cards=[
            Card("margin", percent(found.margin), "counts as equivalent", "cost-margin"),
        ],
        estimates=estimates if rows else None,
        course=_course_of_pairs(found, prefix),
        table=found.tables()[1],
        warnings=found.warnings,
        each="time",
    )


def several_section(found: Several, place: int) -> CostedSection:
    """Prepare the section of a comparison of several commands at `place` (from 1)."""
    prefix, best = f"several-{place}", found.name(found.best)
    ratios = [(name, found.against_best(k)) for k, name in enumerate(found.commands) if k != found.best]
    rows = [
        {"of": name, "way": found.by, "middle": 100 * one.value, "low": 100 * one.low, "high": 100 * one.high}
        for name, one in ratios
        if math.isfinite(one.low + one.high)
    ]
    alt = f"Dots with 95 % intervals: how much longer each of {len(rows)} commands takes than the fastest."
    chart = by_estimator(rows, 100 * found.margin, f"takes longer than {best}, %")
    return CostedSection(
        id=prefix,
        title=f"Which of {len(found.commands)} commands is fastest?",
        where=f"{found.runs} runs of each, in turn; host {found.how['host'].get('name')}",
        large=_fastest(found),
        answer_note=" ".join(found.sentences),
        headline=" ".join(found.sentences),
        cards=[
            Card("margin", percent(found.margin), "counts as equivalent", "cost-margin"),
        ],
        estimates=Figure(f"{prefix}-estimates", f"How much longer each takes than {best}", alt, chart)
        if rows
        else None,
        course=None,
        table=found.tables()[0],
        warnings=[],
        each="command",
    )


def _without_pid(names: str) -> str:
    """Return names of processes without their numbers, which say nothing tomorrow."""
    return re.sub(r" \(\d+\)", "", names)


def _answers(found: Cost) -> list[Answer]:
    """Return the cost in large type; none where the verdict is that it cannot be measured."""
    whole, half = found.costs[-1], found.costs[-1].best.half_width(found.costs[-1].level)
    if any(one.waits for one in found.costs) or whole.is_beyond or not math.isfinite(whole.best.value + half):
        return []
    names = _without_pid(" and ".join(target["name"] for target in found.targets))
    tone = {"above": "poor", "below": "good"}.get(whole.verdict.outcome, "")
    text = f"of the job's rate is lost to {names}. The margin is {percent(found.margin)}."
    value, shown = with_half(100 * whole.best.value, 100 * half, " %")
    return [Answer(value, text, shown, tone)]


def _compared(found: Comparison) -> list[Answer]:
    """Return the difference in large type; none before it is known."""
    one = found.estimate(found.by)
    if not (math.isfinite(one.value) and math.isfinite(one.half_width(found.level))):
        return []
    tone = {"slower": "poor", "faster": "good"}.get(found.verdict.outcome, "")
    way = "more" if one.value >= 0.0 else "less"
    text = f"{way} {found.by} time for B than for A. Up to {percent(found.margin)} counts as equal."
    value, half = with_half(100 * abs(one.value), 100 * one.half_width(found.level), " %")
    return [Answer(value, text, half, tone)]


def _fastest(found: Several) -> list[Answer]:
    """Return the fastest command in large type, with the next one's distance; none before there are intervals."""
    judged = found.against_best(found.others[0])
    half = 50 * (judged.high - judged.low)
    if not math.isfinite(100 * judged.value + half):
        return []
    name, after = found.name(found.best), found.name(found.others[0])
    value, shown = with_half(100 * judged.value, half, " %")
    if judged.outcome == "slower":
        return [
            Answer(name, f"is the fastest: {shortened(found.commands[found.best], 60)}", tone="good"),
            Answer(value, f"more {found.by} time for the next one, {after}.", shown),
        ]
    return [
        Answer(
            value,
            f"more {found.by} time for {after} than for {name}. Up to {percent(found.margin)} counts as equal.",
            shown,
        )
    ]


def _row(of: str, way: str, found: Estimate, level: float) -> Row:
    half = found.half_width(level)
    low, high = (found.value - half, found.value + half) if math.isfinite(half) else (found.value, found.value)
    return {"of": of, "way": way, "middle": 100 * found.value, "low": 100 * low, "high": 100 * high}


def _shown(one: CostOf) -> Iterator[tuple[str, Estimate]]:
    """Yield the estimators that hold for this one; available and exchange only where exchange does."""
    for name in NAMES:
        if name in ("wall", "own") or one.headline == "exchange":
            yield name, one.estimates[name]


def _by_estimator(found: Cost, prefix: str) -> Figure | None:
    rows = [
        _row(one.name, way, value, one.level)
        for one in found.costs
        for way, value in _shown(one)
        if math.isfinite(value.value)
    ]
    if not rows:
        return None
    alt = f"Dots with 95 % intervals of the loss of {len(found.costs)} contrasts by each estimator."
    chart = by_estimator(rows, 100 * found.margin, "loss of the job, %")
    return Figure(f"{prefix}-estimates", "The loss by each estimator", alt, chart)


def _counts(quads: int) -> list[int]:
    return sorted({int(count) for count in np.linspace(LEAST_QUADS, quads, POINTS)}) if quads >= LEAST_QUADS else []


def _course(found: Cost, prefix: str) -> Figure | None:
    whole, columns = found.costs[-1], found.document["quads"]
    number_of = len(found.costs) - 1
    at = [time for time, contrast in zip(columns["at_s"], columns["contrast"], strict=True) if contrast == number_of]
    rows = [
        {**_row("", "", estimate(whole.quads.first(count), whole.headline, whole.taken_duty), whole.level)}
        | {"at": at[count - 1]}
        for count in _counts(len(whole.quads))
    ]
    if not rows:
        return None
    alt = "A line with a band that narrows: the estimate and its interval over the session; the margin is dashed."
    chart = over_time(rows, 100 * found.margin, "loss, %", "time of the session, s")
    return Figure(f"{prefix}-course", f"How it became known, by {whole.headline}", alt, chart)


def _course_of_pairs(found: Comparison, prefix: str) -> Figure | None:
    pairs = found.pairs
    rows = [
        _row("", "", slowdown(Pairs(pairs.wall_s[:count], pairs.cpu_s[:count]), found.by), found.level) | {"at": count}
        for count in _counts(len(pairs))
    ]
    if not rows:
        return None
    alt = "A line with a band that narrows: the estimate and its interval over the blocks; the margin is dashed."
    chart = over_time(rows, 100 * found.margin, "B takes longer, %", "quads")
    return Figure(f"{prefix}-course", f"How it became known, by {found.by} time", alt, chart)


def _section(found: Cost | Comparison | Several, place: int) -> CostedSection:
    if isinstance(found, Several):
        return several_section(found, place)
    return cost_section(found, place) if isinstance(found, Cost) else comparison_section(found, place)


COSTS = Kind(
    "measurement of costs",
    "measurements of costs",
    "cost.html.j2",
    of_type(Cost, Comparison, Several),
    each(_section),
    {"cost": Cost.load, "comparison": Comparison.load, "comparison-of-several": Several.load},
)
