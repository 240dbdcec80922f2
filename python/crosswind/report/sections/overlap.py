"""The section about overlap: what messages and computation cost each other on the same processors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crosswind.errors import Notice
from crosswind.overlap.result import Overlap
from crosswind.overlap.verdict import WORDS
from crosswind.report.figures.figure import Figure
from crosswind.report.figures.overlaps import alone_and_together
from crosswind.report.sections.section import Answer, Kind, Term, each, of_type
from crosswind.tables import Table
from crosswind.terminal.sizes import size

TERMS = (
    Term(
        "overlap-wait",
        "how messages are waited for",
        "event: the process blocks until the kernel wakes it. poll: it asks again and again. spin-block: it "
        "asks for as long as a wake-up costs, then blocks. buffered (simulated only): it blocks, and messages "
        "move in slices that both nodes agree on. Both ends of the messages do the same.",
    ),
    Term(
        "overlap-verdict",
        "verdict of overlap",
        "Overlapped: both took as long as alone, within 10 % or 10 ms. Serialised by x %: one waited for this "
        "part of the other's whole time, 50 % or more. Delayed: one took longer, but waited for less. Both "
        "damaged: both took longer. One single message says little.",
    ),
    Term(
        "overlap-change",
        "what to change",
        "The way to wait and the nice level with which both together lost least for the same messages, where "
        "that saves 10 % or more; or, where the messages themselves need the processors that compute, to "
        "leave them one.",
    ),
)


@dataclass(frozen=True)
class OverlappedSection:
    """An overlap matrix."""

    id: str
    title: str
    where: str
    large: list[Answer]
    headline: str
    findings: list[str]
    times: Figure | None
    table: Table
    changes: Table | None
    warnings: list[Notice]

    @property
    def figures(self) -> list[Figure]:
        """Every figure of the section."""
        return [self.times] if self.times else []

    @property
    def terms(self) -> Sequence[Term]:
        """The terms that it links to."""
        return TERMS


def overlapped_section(overlap: Overlap, place: int) -> OverlappedSection:
    """Prepare the section of an overlap matrix at `place` (from 1)."""
    about, prefix, tables = overlap.summary, f"overlap-{place}", overlap.tables()
    host = about.get("host")
    by = f"on {host['name']}" if host else f"under the {about['scheduler']} scheduler, simulated"
    there = about.get("peer")
    with_whom = "" if there is None else " with this machine itself" if there["loopback"] else f" with {there['host']}"
    findings = [f"{finding[0].upper()}{finding[1:]}." for finding in overlap.findings]
    return OverlappedSection(
        id=prefix,
        title=f"Do messages and computation overlap {by}?",
        where=(
            f"messages{with_whom} beside {about['burners']} programs that compute, on {about['cpus']} processors; "
            f"{len(overlap)} cells, medians of {about['repetitions']} run{'' if about['repetitions'] == 1 else 's'}"
        ),
        large=_answers(overlap),
        headline=findings[0] if findings else "No cell has all its runs yet.",
        findings=findings,
        times=_times(overlap, prefix),
        table=tables[0],
        changes=tables[1] if len(tables) > 1 else None,
        warnings=overlap.warnings,
    )


def _answers(overlap: Overlap) -> list[Answer]:
    """Return in large type how many cells overlap, and how the others end."""
    verdicts = [str(cell["verdict"]) for cell in overlap]
    if not verdicts:
        return []
    good, total = verdicts.count("overlapped"), len(verdicts)
    counts = [f"{verdicts.count(word)} {said}" for word, said in WORDS.items() if word in verdicts]
    text = "combinations of messages, way to wait and priority overlap"
    rest = f": {', '.join(counts)}." if good < total else "."
    return [Answer(f"{good} of {total}", text + rest, tone="good" if good == total else "" if good else "poor")]


def _label(cell: Mapping[str, Any]) -> str:
    return f"{cell['messages']:,} × {size(cell['message_bytes'])}, {cell['wait']}, nice {cell['burn_nice']}"


def _times(overlap: Overlap, prefix: str) -> Figure | None:
    cells: Sequence[Mapping[str, Any]] = overlap.cells
    rows = [
        {"cell": _label(cell), "which": which, "alone": cell[f"{name}_alone_s"], "together": cell[f"{name}_s"]}
        for cell in cells
        for which, name in (("messages", "ping"), ("computation", "burn"))
    ]
    if not rows:
        return None
    alt = f"Times of messages and computation in {len(overlap)} cells: ticks alone, dots together."
    return Figure(f"{prefix}-times", "Alone, and together", alt, alone_and_together(rows))


OVERLAPS = Kind(
    "test of overlap",
    "tests of overlap",
    "overlap.html.j2",
    of_type(Overlap),
    each(overlapped_section),
    {"overlap": Overlap.load},
)
