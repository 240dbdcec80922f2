"""The section about one sweep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crosswind.documents import Row
from crosswind.errors import Notice
from crosswind.measure.sweep import Sweep
from crosswind.report.figures.figure import Figure
from crosswind.report.figures.sweep import sweep_interference, sweep_reached
from crosswind.report.sections.measurement import TERMS as OF_MEASUREMENTS
from crosswind.report.sections.section import Answer, Kind, Term, each, of_type
from crosswind.report.words import number, percent, rate
from crosswind.tables import Table
from crosswind.terminal.sizes import size

TERMS = (
    Term(
        "matched-rate",
        "matched rate",
        "The highest rate that every point of the sweep reached. The loss there compares like with like.",
    ),
)


@dataclass(frozen=True)
class SweepSection:
    """One sweep."""

    id: str
    title: str
    large: list[Answer]
    headline: str
    findings: list[str]
    where: str
    figures: list[Figure]
    table: Table
    warnings: list[Notice]

    @property
    def terms(self) -> Sequence[Term]:
        """The terms that it links to."""
        return (*OF_MEASUREMENTS, *TERMS)


def sweep_section(sweep: Sweep, place: int) -> SweepSection:
    """Prepare the section of the sweep at `place` (from 1)."""
    id_ = f"sweep-{place}"
    rows = sweep.to_arrow().to_pylist()
    findings = _findings(rows, sweep.unit)
    return SweepSection(
        id=id_,
        title=f"How does the {_words(sweep)} change interference{_on(sweep)}?",
        large=_answers(rows, sweep.unit),
        headline=findings[0] if findings else "",
        findings=[],
        where=_where(sweep),
        figures=_figures(sweep, id_) if rows else [],
        table=sweep.tables()[0],
        warnings=sweep.warnings,
    )


def _figures(sweep: Sweep, prefix: str) -> list[Figure]:
    points = f"{len(sweep.points)} values of the {_words(sweep)}"
    interference = Figure(
        f"{prefix}-interference",
        f"Interference rate against {_words(sweep)}",
        f"Interference rate with its interval for {points}.",
        sweep_interference(sweep),
    )
    reached = Figure(
        f"{prefix}-reached",
        f"Rate reached against {_words(sweep)}",
        f"Highest transfer rate reached for {points}.",
        sweep_reached(sweep),
    )
    return [interference, reached]


def _words(sweep: Sweep) -> str:
    """Return what is swept, in words."""
    return sweep.kind.replace("-", " ")


def _on(sweep: Sweep) -> str:
    return f" on {sweep.points[0][1].header['host']['name']}" if sweep.points else ""


def _where(sweep: Sweep) -> str:
    if not sweep.points:
        return "No point is complete yet."
    header = sweep.points[0][1].header
    placement = "" if sweep.kind == "placement" else f", placement {header['placement']['mode']}"
    return f"{header['host']['name']}, {header['kernel']['name']}{placement}"


def _ends(rows: list[Row]) -> Iterator[tuple[str, Row, Row]]:
    """Yield each direction with the rows of its least and its largest interference rate."""
    for direction in dict.fromkeys(row["direction"] for row in rows):
        own = [row for row in rows if row["direction"] == direction and np.isfinite(row["ir_s_per_mb"])]
        if len(own) >= 2:
            low = min(own, key=lambda row: row["ir_s_per_mb"])
            high = max(reversed(own), key=lambda row: row["ir_s_per_mb"])  # another one, where all are alike
            yield direction, low, high


def _answers(rows: list[Row], unit: str) -> list[Answer]:
    """Return the range of interference rates of each direction in large type, or that no difference is shown."""
    found = []
    for direction, low, high in _ends(rows):
        moving = "receiving" if direction == "receive" else "sending"
        least, most = (number(1000 * row["ir_s_per_mb"]) for row in (low, high))
        if low["ir_high"] < high["ir_low"]:
            text = f"is the interference rate of {moving}: least at {_value(low, unit)}, most at {_value(high, unit)}"
            found.append(Answer(f"{least} to {most} s/GB", f"{text}{_at_matched(low, high)}.", tone=direction))
        else:
            text = f"is shown for {moving}: {least} s/GB at {_value(low, unit)} and {most} s/GB at {_value(high, unit)}"
            found.append(Answer("No difference", f"{text} have overlapping intervals.", tone=direction))
    return found


def _findings(rows: list[Row], unit: str) -> list[str]:
    """Say for each direction where interference is least and most, or that no difference is shown."""
    found = []
    for direction, low, high in _ends(rows):
        ends = [f"{number(1000 * row['ir_s_per_mb'])} s/GB at {_value(row, unit)}" for row in (low, high)]
        if low["ir_high"] < high["ir_low"]:
            found.append(f"{direction.capitalize()}: least {ends[0]}, most {ends[1]}{_at_matched(low, high)}.")
        else:
            found.append(
                f"{direction.capitalize()}: no clear difference; {ends[0]} and {ends[1]} have overlapping intervals."
            )
    return found


def _at_matched(low: Row, high: Row) -> str:
    """Compare losses at the rate that every point reached: slopes over different ranges alone may mislead."""
    if not np.isfinite([low["loss_at_matched"], high["loss_at_matched"]]).all():
        return ""
    losses = f"{percent(low['loss_at_matched'])} and {percent(high['loss_at_matched'])}"
    return f"; at {rate(low['matched_mb_per_s'])}, which every point reached, they lose {losses}"


def _value(row: Row, unit: str) -> str:
    return size(row["value"]) if unit == "bytes" else str(row["value"])


def _load(path: Path) -> Sweep:
    return Sweep.load(path.parent)


SWEEPS = Kind(
    "sweep",
    "sweeps",
    "sweep.html.j2",
    of_type(Sweep),
    each(sweep_section),
    {"sweep": _load},
)
