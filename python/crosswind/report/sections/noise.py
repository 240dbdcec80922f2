"""The section about recorded noise: when each CPU was away, by what cause, and for which part of the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosswind.disturbance import Disturbance
from crosswind.documents import Document, Row
from crosswind.errors import DescriptionError, Notice, warning
from crosswind.report.figures.absences import MOST_BARS, MOST_CAUSES, MOST_CPUS, Lane, cause_bars, timeline
from crosswind.report.figures.figure import Figure
from crosswind.report.sections.section import Answer, Kind, Term, each, of_type
from crosswind.report.words import number, percent
from crosswind.tables import Column, Table

MOST_ROWS = 50
UNKNOWN = "unknown"  # as `record` names time in which the kernel recorded nothing

TERMS = (
    Term("duty", "duty", "The part of a CPU's time that a cause takes, 0 to 100 %; of several CPUs, the mean."),
    Term(
        "cause",
        "cause",
        "What had the CPU: a thread by name, an interrupt, a softirq. `unknown`: the kernel recorded nothing. Either "
        "the hypervisor of a virtual machine had the CPU, or events were lost: then a warning says so.",
    ),
)


@dataclass(frozen=True)
class RecordedSection:
    """One recorded source."""

    id: str
    title: str
    large: list[Answer]
    headline: str
    where: str
    note: str
    timeline: Figure
    bars: Figure
    table: Table
    warnings: list[Notice]

    @property
    def figures(self) -> list[Figure]:
        """Every figure of the section."""
        return [self.timeline, self.bars]

    @property
    def terms(self) -> Sequence[Term]:
        """The terms that it links to."""
        return TERMS


def recorded_section(disturbance: Disturbance, place: int) -> RecordedSection:
    """Prepare the section of the recording at `place` (from 1).

    Raises
    ------
    DescriptionError
        When the disturbance has no recorded source.
    """
    data = disturbance.to_dict()
    source = next((one for one in data["source"] if one["kind"] == "recorded"), None)
    if source is None:
        raise DescriptionError(
            f"{disturbance.name}: a disturbance without a recorded source, which a report does not show",
            "unknown-kind",
            "name it in an experiment and run that: `crosswind run`; or record one: `crosswind record -o noise.toml`",
        )
    lanes, causes, length = _lanes(source), [str(cause) for cause in source["causes"]], float(source["length_s"])
    duty = duties(lanes, causes, length)
    total = sum(row["share"] for row in duty)
    largest = [row["cause"] for row in duty[:MOST_CAUSES]]
    id_, cpus = f"recorded-{place}", f"{len(lanes)} CPU{'' if len(lanes) == 1 else 's'}"
    first = _most(duty)
    others = len(data["source"]) - 1
    return RecordedSection(
        id=id_,
        title=f"What keeps CPUs from computing in {disturbance.name}?",
        large=[Answer(percent(total), f"of the CPUs' time is taken from programs.{first}")],
        headline=f"CPUs are away for {percent(total)} of the time.{first}",
        where=f"{number(length)} s on {cpus}, {sum(lane.start.size for lane in lanes):,} intervals",
        note=(f"The first {MOST_CPUS} CPUs are drawn. " if len(lanes) > MOST_CPUS else "")
        + (f"{others} other sources of the file are not shown." if others else ""),
        timeline=Figure(
            f"{id_}-timeline",
            "When CPUs were away",
            f"Timeline of {number(length)} s on {cpus}; {percent(total)} of the time is taken.",
            timeline(lanes, causes, length, largest),
        ),
        bars=Figure(
            f"{id_}-causes",
            "What each cause takes",
            f"Bars of the {min(MOST_BARS, len(duty))} causes that take most.{first}",
            cause_bars(duty),
        ),
        table=_table(duty, length, len(lanes)),
        warnings=[warning("recording", str(text), "") for text in source.get("warnings", [])],
    )


def _most(duty: Sequence[Row]) -> str:
    if not duty:
        return ""
    if duty[0]["cause"] == UNKNOWN:
        return f" The cause of the largest part, {percent(duty[0]['share'])}, is unknown."
    return f" {duty[0]['cause']} takes most: {percent(duty[0]['share'])}."


def duties(lanes: Sequence[Lane], causes: Sequence[str], length_s: float) -> list[Row]:
    """Return per cause its share of the time (mean of all CPUs, 0 to 1), count, median and longest (s); worst first."""
    found = []
    for place, cause in enumerate(causes):
        lengths = np.concatenate([lane.duration[lane.cause == place] for lane in lanes] or [np.empty(0)])
        if lengths.size:
            share = float(lengths.sum()) / (length_s * len(lanes))
            spread = {"median_s": float(np.median(lengths)), "longest_s": float(lengths.max())}
            found.append({"cause": cause, "share": share, "count": int(lengths.size), **spread})
    return sorted(found, key=lambda row: (-row["share"], row["cause"]))


def _lanes(source: Document) -> list[Lane]:
    lanes = []
    for cpu in source["cpu"]:
        rows = np.array(cpu["intervals"], dtype=float).reshape(-1, 3)
        lanes.append(Lane(int(cpu["cpu"]), rows[:, 0], rows[:, 1], rows[:, 2].astype(np.int64)))
    return lanes


def _table(duty: Sequence[Row], length_s: float, cpus: int) -> Table:
    columns = [
        Column("cause", term="cause", numeric=False),
        Column("duty", "of the time", "duty"),
        Column("times", "per s and CPU"),
        Column("median", "µs"),
        Column("longest", "µs"),
    ]
    rows = [
        [
            row["cause"],
            percent(row["share"]),
            number(row["count"] / (length_s * cpus)),
            number(1e6 * row["median_s"]),
            number(1e6 * row["longest_s"]),
        ]
        for row in duty[:MOST_ROWS]
    ]
    note = f"The first {MOST_ROWS} of {len(duty)} causes are shown." if len(duty) > MOST_ROWS else ""
    return Table("What had the CPUs", columns, rows, note)


RECORDINGS = Kind(
    "recording of noise",
    "recordings of noise",
    "noise.html.j2",
    of_type(Disturbance),
    each(recorded_section),
    {"recording": Disturbance.load, "noise": Disturbance.load},
)
