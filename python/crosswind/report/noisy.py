"""The section about one disturbance (`noise.toml`): timeline, causes, duty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from crosswind.disturbance import Disturbance
from crosswind.report.figure import Figure
from crosswind.report.figures.causes import causes_in_time, duties
from crosswind.report.measured import Card
from crosswind.report.section import Kind, Term, each, of_type
from crosswind.report.tables import Column, Table
from crosswind.report.words import number, percent, plain

MOST_CAUSES = 12
STRETCHES = 120
DRAWN_S, MOST_S, ENOUGH = 60.0, 6000.0, 50
TERMS = (
    Term(
        "duty",
        "duty",
        "The part of a processor's time that a cause takes; of recorded disturbances the mean over the CPUs.",
    ),
)


class Interval(NamedTuple):
    """A time at which a processor was away: its number, start and duration in s, and the cause."""

    cpu: int
    start_s: float
    duration_s: float
    cause: str


@dataclass(frozen=True)
class NoiseSection:
    """One disturbance."""

    id: str
    title: str
    where: str
    headline: str
    cards: list[Card]
    figures: list[Figure]
    table: Table
    warnings: list[dict[str, str]]

    @property
    def terms(self) -> Sequence[Term]:
        """The terms that it links to."""
        return TERMS


def noise_section(disturbance: Disturbance, place: int) -> NoiseSection:
    """Prepare the section of the disturbance at `place` (from 1)."""
    intervals, cpus, length_s, recorded = intervals_of(disturbance)
    whole = length_s * cpus
    by_cause: dict[str, list[Interval]] = {}
    for one in intervals:
        by_cause.setdefault(one.cause, []).append(one)
    causes = sorted(by_cause, key=lambda cause: -sum(one.duration_s for one in by_cause[cause]))
    duty = {cause: sum(one.duration_s for one in by_cause[cause]) / whole for cause in causes}
    total, longest = sum(duty.values()), max((one.duration_s for one in intervals), default=0.0)
    first = f"; {causes[0]} takes most, {percent(duty[causes[0]])}" if causes else ""
    drawn = causes[:MOST_CAUSES]
    id_ = f"noise-{place}"
    return NoiseSection(
        id=id_,
        title=f"Disturbance: {disturbance.name}",
        where=(
            f"recorded on {cpus} CPU{'s' if cpus > 1 else ''} for {number(length_s)} s"
            if recorded
            else f"as described; drawn for one rank, seed 1, the first {plain(length_s)} s"
        ),
        headline=f"Away from computation {percent(total)} of the time{first}.",
        cards=[
            Card("duty", percent(total), "of a processor's time", "duty"),
            Card("causes", f"{len(disturbance.causes):,}"),
            Card("intervals", number(len(intervals) / whole), "per second and processor"),
            Card("longest interval", number(1e3 * longest), "ms"),
        ],
        figures=_figures(id_, drawn, by_cause, duty, length_s, cpus) if drawn else [],
        table=_table(causes, by_cause, duty, whole),
        warnings=[],
    )


def intervals_of(disturbance: Disturbance) -> tuple[list[Interval], int, float, bool]:
    """Return the intervals, the processors and the time that they cover, s, and whether all of it was recorded.

    Of what was not recorded, times are drawn: for one rank, until there are enough.
    """
    sources: list[dict[str, Any]] = disturbance.to_dict()["source"]
    if all(source["kind"] == "recorded" for source in sources):
        cpus = sorted({cpu["cpu"] for source in sources for cpu in source["cpu"]})
        found = [
            Interval(cpu["cpu"], start, duration, source["causes"][cause])
            for source in sources
            for cpu in source["cpu"]
            for start, duration, cause in cpu["intervals"]
        ]
        return found, max(len(cpus), 1), max(source["length_s"] for source in sources), True
    until_s, names = DRAWN_S, disturbance.causes
    while True:
        times = disturbance._checked.intervals(1, 0, 1, until_s)
        if len(times) >= ENOUGH or until_s >= MOST_S:
            break
        until_s *= 10.0
    return [Interval(0, start, end - start, names[cause]) for start, end, cause in times], 1, until_s, False


def _figures(
    prefix: str,
    causes: Sequence[str],
    by_cause: dict[str, list[Interval]],
    duty: dict[str, float],
    length_s: float,
    cpus: int,
) -> list[Figure]:
    edges = np.linspace(0.0, length_s, STRETCHES + 1)
    rows = []
    for cause in causes:
        taken = taken_in(edges, by_cause[cause]) / cpus / (length_s / STRETCHES)
        rows += [
            {"cause": cause, "from": edges[k], "to": edges[k + 1], "away": min(float(taken[k]), 1.0)}
            for k in range(STRETCHES)
            if taken[k] > 0
        ]
    bars = [{"cause": cause, "duty": duty[cause], "words": percent(duty[cause])} for cause in causes]
    return [
        Figure(
            f"{prefix}-timeline",
            "When each cause took a processor",
            f"Lanes of {len(causes)} causes over {number(length_s)} seconds, darker where a cause took more.",
            causes_in_time(rows),
        ),
        Figure(
            f"{prefix}-duty",
            "What each cause takes",
            f"Bars of the duty of {len(causes)} causes, {causes[0]} first with {percent(duty[causes[0]])}.",
            duties(bars),
        ),
    ]


def taken_in(edges: np.ndarray[Any, np.dtype[np.float64]], intervals: Sequence[Interval]) -> Any:
    """Return the seconds taken in each stretch between edges; an interval counts where it lies.

    Examples
    --------
    >>> taken_in(np.array([0.0, 1.0, 2.0]), [Interval(0, 0.5, 1.0, "cron")])
    array([0.5, 0.5])
    """
    starts = np.array([one.start_s for one in intervals])
    ends = starts + np.array([one.duration_s for one in intervals])
    until = np.array([np.clip(edge - starts, 0.0, ends - starts).sum() for edge in edges])
    return np.diff(until)


def _table(causes: Sequence[str], by_cause: dict[str, list[Interval]], duty: dict[str, float], whole: float) -> Table:
    columns = [
        Column("cause", numeric=False),
        Column("duty", "of a processor", "duty"),
        Column("intervals", "per s"),
        Column("median", "µs"),
        Column("longest", "µs"),
    ]
    rows = []
    for cause in causes:
        lengths = [one.duration_s for one in by_cause[cause]]
        cells = (len(lengths) / whole, 1e6 * float(np.median(lengths)), 1e6 * max(lengths))
        rows.append([cause, percent(duty[cause]), *(number(cell) for cell in cells)])
    return Table("Each cause", columns, rows)


NOISES = Kind(
    "disturbance",
    "disturbances",
    "noise.html.j2",
    of_type(Disturbance),
    each(noise_section),
    {"disturbance": Disturbance.load, "recording": Disturbance.load},
)
