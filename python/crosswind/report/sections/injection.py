"""The section about disturbances that were injected into real commands, beside what was expected."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from statistics import fmean
from typing import Any

from crosswind.documents import Row
from crosswind.errors import Notice
from crosswind.files.reading import parse_json, read_bytes
from crosswind.inject import Injected
from crosswind.report.figures.figure import Figure
from crosswind.report.figures.slowdowns import simulated_and_bounds
from crosswind.report.sections.program import PROGRAMS
from crosswind.report.sections.section import Answer, Contents, Kind, Section, Term, of_type
from crosswind.report.words import number, percent
from crosswind.run.results import ProgramRun, Runs
from crosswind.tables import Column, Table

EXPECTED = "if it only computes"
NO_BASE = "Slowdowns need an undisturbed run: inject a disturbance without sources into the same command."


TERMS = (
    Term(
        "injected",
        "injected",
        "The disturbance was done to a real command on this machine. One that only computes, on one rank, "
        "takes 1 / (1 − away) times as long; one that waits for others may take longer, one that waits anyway "
        "less.",
    ),
    Term(
        "dedicated",
        "dedicated",
        "The same program with nothing that takes a processor away.",
    ),
)


@dataclass(frozen=True)
class InjectedSection:
    """All injections into one command."""

    id: str
    title: str
    where: str
    large: list[Answer]
    headline: str
    beside: Figure | None
    table: Table
    warnings: list[Notice]

    @property
    def figures(self) -> list[Figure]:
        """Every figure of the section."""
        return [self.beside] if self.beside else []

    @property
    def terms(self) -> Sequence[Term]:
        """The terms that it links to."""
        return TERMS


def injected_section(several: Sequence[Injected], programs: Sequence[Runs[ProgramRun]], place: int) -> InjectedSection:
    """Prepare the section of the injections into one command at `place` (from 1).

    An injection of a disturbance without sources, or one that found nothing to do, is the undisturbed run; slowdowns
    are relative to the mean of those. Simulated runs stand beside an injection where the file of its disturbance bears
    the name of theirs.
    """
    bare = [one.elapsed_s for one in several if not _away(one)]
    undisturbed_s = fmean(bare) if bare else None
    simulated = _simulated(programs)
    rows: list[Row] = []
    table = []
    for one in several:
        name = PurePath(str(one.summary["disturbance"])).stem
        slowdown = one.elapsed_s / undisturbed_s if undisturbed_s else None
        expected = 1.0 / (1.0 - _away(one)) if _away(one) < 1.0 else None
        model = simulated.get(_plain(name))
        table.append(
            [
                name,
                number(one.elapsed_s, 4),
                percent(_away(one)),
                number(slowdown, 4),
                number(expected, 4),
                number(model, 4),
                number(1000 * max((rank["late_mean_s"] for rank in one.summary["ranks"]), default=0.0)),
            ]
        )
        if slowdown is not None and expected is not None and _away(one):
            for which, value, is_bound in (("injected", slowdown, False), (EXPECTED, expected, True)):
                spot = {"name": name, "which": which, "middle": value, "low": value, "high": value}
                rows.append({**spot, "is_bound": is_bound})
            if model is not None:
                spot = {"name": name, "which": "simulated", "middle": model, "low": model, "high": model}
                rows.append({**spot, "is_bound": False})
    command = shlex.join(several[0].summary["command"])
    return InjectedSection(
        id=f"injected-{place}",
        title=f"How much did a disturbance slow {command if len(command) <= 60 else command[:59] + '…'}?",
        where=f"{len(several)} injection{'' if len(several) == 1 else 's'}",
        large=_answers(several, undisturbed_s),
        headline=_headline(several, undisturbed_s),
        beside=_beside(rows, f"injected-{place}"),
        table=Table("What was injected, and its effect", _COLUMNS, table, _note(undisturbed_s)),
        warnings=[warning for one in several for warning in one.warnings],
    )


def by_command(several: Sequence[Injected]) -> list[list[Injected]]:
    """Return injections into the same command together."""
    gathered: dict[str, list[Injected]] = {}
    for one in several:
        gathered.setdefault(shlex.join(one.summary["command"]), []).append(one)
    return list(gathered.values())


_COLUMNS = [
    Column("disturbance", numeric=False),
    Column("took", "s"),
    Column("away", "of the busiest rank's time"),
    Column("slowdown", "of undisturbed", "injected"),
    Column(EXPECTED, "slowdown", "injected"),
    Column("simulated", "slowdown", "dedicated"),
    Column("began late", "ms, mean"),
]


def _away(one: Injected) -> float:
    """Return the largest part of a rank's time that its processor was taken away."""
    return max((float(rank["share"]) for rank in one.summary["ranks"]), default=0.0)


def _simulated(programs: Sequence[Runs[ProgramRun]]) -> dict[str, float]:
    """Return the mean slowdown over dedicated of simulated runs, by the name of their disturbance."""
    found: dict[str, list[float]] = {}
    for runs in programs:
        for run in runs if runs.on == "sim" else []:
            if run.data.get("disturbance"):
                found.setdefault(_plain(str(run.data["disturbance"])), []).append(run.slowdown_dedicated)
    return {name: fmean(values) for name, values in found.items()}


def _plain(name: str) -> str:
    return name.replace("_", " ").replace("-", " ").lower()


def _headline(several: Sequence[Injected], undisturbed_s: float | None) -> str:
    hit = [one for one in several if _away(one)]
    if not hit:
        return "Nothing was taken away."
    worst = max(hit, key=lambda one: one.elapsed_s)
    took = f"{number(worst.elapsed_s)} s with {percent(_away(worst))} of the busiest rank's time taken away"
    return f"{took}: {number(worst.elapsed_s / undisturbed_s)} times undisturbed." if undisturbed_s else f"{took}."


def _answers(several: Sequence[Injected], undisturbed_s: float | None) -> list[Answer]:
    """Return the largest slowdown in large type; without an undisturbed run, what was taken away."""
    hit = [one for one in several if _away(one)]
    if not hit:
        return [Answer("Nothing", "was taken away.")]
    worst = max(hit, key=lambda one: one.elapsed_s)
    name, took = PurePath(str(worst.summary["disturbance"])).stem, f"{number(worst.elapsed_s)} s"
    away = f"{percent(_away(worst))} of the busiest rank's time taken away"
    if undisturbed_s:
        text = f"times as long as undisturbed: {took} under {name}, with {away}."
        return [Answer(number(worst.elapsed_s / undisturbed_s), text)]
    text = f"of the busiest rank's time was taken away by {name}; the command took {took}. {NO_BASE}"
    return [Answer(percent(_away(worst)), text)]


def _beside(rows: Sequence[Mapping[str, Any]], prefix: str) -> Figure | None:
    if not rows:
        return None
    count = len({row["name"] for row in rows})
    alt = f"Dots of slowdowns under {count} disturbances; ticks are what computing alone expects."
    return Figure(f"{prefix}-beside", "Slowdown: injected, simulated, expected", alt, simulated_and_bounds(rows))


def _note(undisturbed_s: float | None) -> str:
    if undisturbed_s is not None:
        return f"Undisturbed: {number(undisturbed_s, 4)} s."
    return NO_BASE


def _sections(items: Sequence[Injected], contents: Contents) -> list[Section]:
    several = enumerate(by_command(items), 1)
    return [injected_section(alike, contents.get(PROGRAMS, ()), place) for place, alike in several]


def _load(path: Path) -> Injected:
    return Injected(parse_json(read_bytes(path)), "")


INJECTIONS = Kind(
    "injection",
    "injections",
    "injection.html.j2",
    of_type(Injected),
    _sections,
    {"injection": _load},
)
