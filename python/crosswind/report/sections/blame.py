"""The section about blame: which cause of a disturbance costs a program how much."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from crosswind.blame.result import Blame
from crosswind.documents import Row
from crosswind.errors import Notice
from crosswind.report.figures.figure import Figure
from crosswind.report.figures.slowdowns import cost_bars
from crosswind.report.sections.measurement import Card
from crosswind.report.sections.section import Answer, Kind, Term, each, of_type
from crosswind.report.words import number, percent, with_half
from crosswind.statistics.interval import MeanInterval
from crosswind.tables import Table

MOST_BARS = 16


TERMS = (
    Term(
        "blame-share",
        "share of the cost",
        "A cause's Shapley value: its mean addition to the makespan over all orders in which the causes could "
        "arrive. The shares sum to what all causes cost together. With more than 6 causes it is estimated: from one "
        "drawn order and its reverse per seed. The interval contains the error of that.",
    ),
    Term(
        "removed-cost",
        "saved when removed",
        "The makespan with all causes less the one with all but this. Where two causes hide each other, "
        "removing one saves little.",
    ),
    Term(
        "alone-cost",
        "cost alone",
        "The makespan with this cause only, less the undisturbed one.",
    ),
    Term(
        "together-cost",
        "together",
        "What all causes cost beyond the sum of what each costs alone: below 0 they strike while ranks wait "
        "for each other anyway.",
    ),
    Term(
        "aligned-cost",
        "aligned",
        "What all causes would cost if each struck all its ranks at the same times. The rest is the price of "
        "striking them at different times.",
    ),
    Term(
        "interval-seeds",
        "95 % interval over seeds",
        "Student's interval of the mean over seeds; every seed runs with and without each cause, so that "
        "differences are paired.",
    ),
)


@dataclass(frozen=True)
class BlamedSection:
    """What each cause of a disturbance costs, a program or a command."""

    id: str
    title: str
    where: str
    large: list[Answer]
    headline: str
    cards: list[Card]
    bars: Figure
    table: Table
    warnings: list[Notice]
    terms: Sequence[Term] = TERMS

    @property
    def figures(self) -> list[Figure]:
        """Every figure of the section."""
        return [self.bars]


def blamed_section(blame: Blame, place: int) -> BlamedSection:
    """Prepare the section of a blame at `place` (from 1)."""
    bare = blame.undisturbed.mean
    causes = sorted(blame.by_cause, key=lambda one: -one.best.mean)
    programs = ", ".join(dict.fromkeys(f"{run.data['program']} of {run.data['ranks']:,} ranks" for run in blame.runs))
    return BlamedSection(
        id=f"blame-{place}",
        title=f"Which cause slows {blame.experiment} most?",
        where=f"{programs}; {len(blame.runs):,} runs, {len(blame.seeds)} seeds, {len(causes)} causes",
        large=cost_answers(_of(blame.cost, bare), _rest(blame)),
        headline=_headline(blame),
        cards=[
            Card("undisturbed", number(bare, 4), "s"),
            Card("disturbed", number(blame.makespan.mean, 4), "s"),
            Card("together", part_of(blame.together, bare), "beyond the sum of each alone", "together-cost"),
            Card("aligned", part_of(blame.aligned_cost, bare), "of undisturbed", "aligned-cost"),
        ],
        bars=_bars(blame, f"blame-{place}"),
        table=blame.tables()[0],
        warnings=blame.warnings,
    )


def slowed(cost: MeanInterval) -> str:
    """Return what a disturbance costs, a part of the undisturbed time, as a sentence.

    Examples
    --------
    >>> slowed(MeanInterval(0.17, 0.15, 0.19))
    'The disturbance costs 17 % ± 2 of the undisturbed time.'
    >>> slowed(MeanInterval(0.01, -0.02, 0.04))
    'The cost of the disturbance is not distinguishable from 0: 1 % ± 3 of the undisturbed time.'
    """
    if not math.isfinite(cost.high):
        return f"The disturbance costs {percent(cost.mean)} of the undisturbed time in one run; no interval is known."
    value, half = with_half(100.0 * cost.mean, 50.0 * (cost.high - cost.low), " %")
    said = f"{value}{' ± ' * bool(half)}{half} of the undisturbed time"
    if not cost.excludes_zero:
        return f"The cost of the disturbance is not distinguishable from 0: {said}."
    return f"The disturbance costs {said}."


def cost_answers(cost: MeanInterval, text: str) -> list[Answer]:
    """Return what a disturbance costs, a part of the undisturbed time, in large type, before what costs most."""
    if not math.isfinite(cost.high):
        return []
    zero = "" if cost.excludes_zero else ", not distinguishable from 0"
    value, half = with_half(100.0 * cost.mean, 50.0 * (cost.high - cost.low), " %")
    return [Answer(value, f"of the undisturbed time is the cost of the disturbance{zero}. {text}".strip(), half)]


def listed(causes: Sequence[str]) -> str:
    """Return names as a list in words, at most four of them.

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b", "c"]), listed("abcdef")
    ('a', 'a, b and c', 'a, b, c and 3 others')
    """
    words = list(causes) if len(causes) <= 4 else [*causes[:3], f"{len(causes) - 3} others"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _headline(blame: Blame) -> str:
    return f"{slowed(_of(blame.cost, blame.undisturbed.mean))} {_rest(blame)}"


def _of(cost: MeanInterval, bare: float) -> MeanInterval:
    return MeanInterval(cost.mean / bare, cost.low / bare, cost.high / bare)


def _rest(blame: Blame) -> str:
    """Say which cause costs most, and what all would cost if they struck all ranks at the same times."""
    saves = f" Aligned over the ranks, all causes would cost {part_of(blame.aligned_cost, blame.undisturbed.mean)}."
    return f"{_most(blame)}{saves if blame.unaligned.low > 0.0 else ''}"


def _most(blame: Blame) -> str:
    most = blame.leading
    if not most.first:
        return "No cause's cost is distinguishable from 0." if len(blame.seeds) > 1 else ""
    parts = {one.cause: one.part for one in blame.by_cause}
    first = most.first[0]
    part = f", {percent(parts[first])} of it" if parts[first] is not None else ""
    if most.open:
        return f"{first} costs something{part}; which cause costs most is not settled."
    if len(most.first) > 1:
        how = "cost most" if blame.is_shared_out else "save most when they are removed"
        return f"{listed(most.first)} {how} (a tie)."
    return f"{first} {'costs most' if blame.is_shared_out else 'saves most when it is removed'}{part}."


def _bars(blame: Blame, prefix: str) -> Figure:
    bare = blame.undisturbed.mean or 1.0
    causes = sorted(blame.by_cause, key=lambda one: -one.best.mean)[:MOST_BARS]
    rows: list[Row] = []
    for one in causes:
        for way, found in (("share", one.shared), ("saved when removed", one.removed), ("cost alone", one.alone)):
            if found is not None:
                rows.append(bar(one.cause, way, found, bare))
    alt = f"Bars of the cost of {len(causes)} causes with 95 % intervals."
    return Figure(f"{prefix}-causes", "What each cause costs", alt, cost_bars(rows))


def bar(cause: str, way: str, found: MeanInterval, bare: float) -> Row:
    """Return a bar of a cost as a part of the undisturbed time; without an interval it has no ends."""
    low, high = (end if math.isfinite(end) else found.mean for end in (found.low, found.high))
    return {"cause": cause, "way": way, "middle": found.mean / bare, "low": low / bare, "high": high / bare}


def part_of(found: MeanInterval, whole_s: float) -> str:
    """Return a mean as a part of a time, in percent."""
    return percent(found.mean / whole_s) if whole_s else "–"


BLAMES = Kind(
    "blame of a model",
    "blames of models",
    "blame.html.j2",
    of_type(Blame),
    each(blamed_section),
    {"blame": Blame.load},
)
