"""The section about runs of a parallel program: slowdowns, simulated beside closed forms beside real."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from crosswind.documents import Params, Row
from crosswind.errors import Notice
from crosswind.report.comparisons import shown_param, shown_value
from crosswind.report.figures.axes import axes
from crosswind.report.figures.figure import Figure, identifier
from crosswind.report.figures.slowdowns import WHICH, simulated_and_bounds, slowdown_curves
from crosswind.report.sections.measurement import Card
from crosswind.report.sections.section import Answer, Kind, Term, grouped
from crosswind.report.words import number, number_range, percent, with_half
from crosswind.run.results import ProgramRun, Runs
from crosswind.statistics.interval import span
from crosswind.tables import Column, Table

MOST_CURVES = 7
MOST_FIGURES = 8
MOST_POINTS = 30
MOST_ROWS = 200
ON = {"sim": "simulated", "local": "run", "injected": "injected"}
WHERE = {"sim": "in virtual time", "local": "by real processes on one machine"}
UNITS = {
    "quantum_s": "s",
    "skew_s": "s",
    "interval_s": "s",
    "duration_s": "s",
    "window_packets": "packets",
    "window": "packets",
}


TERMS = (
    Term(
        "slowdown",
        "slowdown",
        "The makespan over what the program would take if all its ranks were always away together "
        "(coscheduling). In a study: relative to the baseline in the paper's caption.",
    ),
    Term(
        "dedicated",
        "dedicated",
        "The same program with the same seed, and nothing that takes a processor away.",
    ),
    Term(
        "coscheduled",
        "coscheduling",
        "All ranks of a program run and are away at the same times. Two jobs that share the machine so take "
        "twice their dedicated time each.",
    ),
    Term(
        "window",
        "window, waiting for credits",
        "The packets that may be under way to one destination; a sender without credit waits until the "
        "receiver has given one back. A receiver that is away gives none.",
    ),
    Term(
        "closed-form",
        "closed form",
        "What a formula says about the slowdown, from the disturbance and the work between barriers alone: "
        "with its assumptions, such as perfect balance or independent ranks.",
    ),
)


@dataclass(frozen=True)
class Spot:
    """All runs of one point: means over the seeds; `low` and `high` are the 95 % interval of the slowdown."""

    name: str
    which: str
    params: Params
    slowdown: float
    low: float
    high: float
    of_dedicated: float
    makespan_s: float
    dedicated_s: float
    stalled: float
    seeds: int
    bounds: dict[str, float]


@dataclass(frozen=True)
class DisturbedSection:
    """All runs of one experiment of kind program, wherever they ran."""

    id: str
    title: str
    where: str
    large: list[Answer]
    headline: str
    findings: list[str]
    cards: list[Card]
    curves: list[tuple[Figure, str]]
    beside: Figure | None
    table: Table
    warnings: list[Notice]

    @property
    def figures(self) -> list[Figure]:
        """Every figure of the section."""
        return [*(figure for figure, _ in self.curves), *([self.beside] if self.beside else [])]

    @property
    def terms(self) -> Sequence[Term]:
        """The terms that it links to."""
        return TERMS


def disturbed_section(several: Sequence[Runs[ProgramRun]], place: int) -> DisturbedSection:
    """Prepare the section of the runs of one experiment at `place` (from 1)."""
    id_ = f"program-{place}"
    spots = [_spot(alike, runs.on) for runs in several for alike in runs.by_point()]
    simulated = [spot for spot in spots if spot.which == "simulated"]
    programs = ", ".join(
        dict.fromkeys(f"{run.data['program']} of {run.data['ranks']:,} ranks" for runs in several for run in runs)
    )
    count = "; ".join(
        f"{len(runs):,} run{'' if len(runs) == 1 else 's'} {WHERE.get(runs.on, runs.on)}" for runs in several
    )
    findings = _findings(spots)
    return DisturbedSection(
        id=id_,
        title=f"How much is {several[0].experiment} slowed?",
        where=f"{programs}; {count}",
        large=_answers(spots),
        headline=findings[0] if findings else "",
        findings=findings[1:],
        cards=_cards(spots[0]) if len(spots) == 1 else [],
        curves=_curves(simulated, id_),
        beside=_beside(spots, id_),
        table=_table(spots),
        warnings=[warning for runs in several for warning in runs.warnings],
    )


def _spot(alike: Sequence[ProgramRun], on: str) -> Spot:
    first = alike[0]
    slowdown, low, high = span([run.slowdown for run in alike])
    own = {path: value for path, value in first.params.items() if path != "seed"}
    whole = sum(run.makespan_s for run in alike) * first.data["ranks"]
    return Spot(
        name=", ".join(_shown(path, value) for path, value in own.items()) or str(first.data["program"]),
        which=ON.get(on, on),
        params=own,
        slowdown=slowdown,
        low=low,
        high=high,
        of_dedicated=fmean(run.slowdown_dedicated for run in alike),
        makespan_s=fmean(run.makespan_s for run in alike),
        dedicated_s=fmean(run.dedicated_s for run in alike),
        stalled=sum(run.data["stalled_s"] for run in alike) / whole if whole else 0.0,
        seeds=len(alike),
        bounds={name: fmean(run.bounds[name] for run in alike if name in run.bounds) for name in first.bounds},
    )


def _shown(path: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return str(value.get("name", "inline"))
    word = path.rsplit(".", maxsplit=1)[-1]
    if isinstance(value, bool):
        return f"{word} {'yes' if value else 'no'}"
    if isinstance(value, (int, float)):
        return f"{_word(path)} {shown_value(value)}{' s' if word.endswith('_s') else ''}"
    return shown_param(path, value)


def _word(path: str) -> str:
    """Return the last part of a dotted path without its unit."""
    return path.rsplit(".", maxsplit=1)[-1].removesuffix("_s").removesuffix("_packets").replace("_", " ")


def _findings(spots: Sequence[Spot]) -> list[str]:
    simulated = [spot for spot in spots if spot.which == "simulated"]
    found = []
    if len(spots) == 1:
        spot = spots[0]
        found.append(
            f"{number(spot.makespan_s)} s instead of {number(spot.dedicated_s)} s undisturbed: "
            f"{number(spot.slowdown)} times what coscheduling would take, {number(spot.of_dedicated)} times dedicated."
        )
    elif simulated:
        worst, least = max(simulated, key=lambda s: s.slowdown), min(simulated, key=lambda s: s.slowdown)
        found.append(
            f"Slowdowns of {number(least.slowdown)} ({least.name}) to {number(worst.slowdown)} ({worst.name}), "
            "relative to coscheduling."
        )
    gaps = [
        (spot, real) for spot in simulated for real in spots if real.which != "simulated" and real.name == spot.name
    ]
    if gaps:
        apart = [real.slowdown / spot.slowdown - 1.0 for spot, real in gaps]
        low, high = (f"{100 * end:+.1f}".replace("-", "−") for end in (min(apart), max(apart)))
        ends = low if low == high else f"{low} to {high}"
        found.append(f"Real slowdowns are {ends} % above the simulated ones ({len(gaps)} points).")
    return found


def _answers(spots: Sequence[Spot]) -> list[Answer]:
    """Return the slowdown, or the least and the largest of several, in large type."""
    if len(spots) == 1:
        (spot,) = spots
        value, half = with_half(spot.slowdown, 0.5 * (spot.high - spot.low) if spot.seeds > 1 else 0.0)
        text = (
            f"times as long as with all nodes in step: {number(spot.makespan_s)} s, "
            f"{number(spot.dedicated_s)} s undisturbed."
        )
        return [Answer(value, text, half)]
    simulated = [spot for spot in spots if spot.which == "simulated"]
    if not simulated:
        return []
    worst, least = max(simulated, key=lambda s: s.slowdown), min(simulated, key=lambda s: s.slowdown)
    text = f"times as long as with all nodes in step. Least: {least.name}. Most: {worst.name}."
    return [Answer(f"{number(least.slowdown)} to {number(worst.slowdown)}", text)]


def _cards(spot: Spot) -> list[Card]:
    seeds = f"{number_range(spot.low, spot.high)} (95 %, {spot.seeds} seeds)" if spot.seeds > 1 else "one seed"
    cards = [
        Card("slowdown", number(spot.slowdown), seeds, "slowdown"),
        Card("makespan", number(spot.makespan_s), f"s; dedicated {number(spot.dedicated_s)} s", "dedicated"),
        Card("waiting for credits", percent(spot.stalled), "of the ranks' time", "window"),
    ]
    return cards + [Card(name, number(value), "closed form", "closed-form") for name, value in spot.bounds.items()]


def _curves(spots: Sequence[Spot], prefix: str) -> list[tuple[Figure, str]]:
    """Draw the slowdown along the axis of what varies; the other paths are the series."""
    varied = axes(spot.params for spot in spots)
    if varied is None:
        return []
    x, others = varied.x, varied.others
    names = [", ".join(_shown(path, spot.params[path]) for path in others if path in spot.params) for spot in spots]
    series = list(dict.fromkeys(names))
    drawn = []
    word = x.rsplit(".", maxsplit=1)[-1]
    for start in range(0, min(len(series), MOST_CURVES * MOST_FIGURES), MOST_CURVES):
        chosen = set(series[start : start + MOST_CURVES])
        rows: list[Row] = [
            {
                "value": _plain(spot.params.get(x)),
                "series": name or "all",
                "middle": spot.slowdown,
                "low": spot.low,
                "high": spot.high,
            }
            for spot, name in zip(spots, names, strict=True)
            if name in chosen
        ]
        unit = UNITS.get(word, "")
        title = f"{_word(x)}{f', {unit}' if unit else ''}"
        wide = max(row["middle"] for row in rows) > 10 * min(row["middle"] for row in rows)
        which = (
            ""
            if len(series) <= MOST_CURVES
            else f", {start + 1} to {min(start + MOST_CURVES, len(series))} of {len(series)}"
        )
        figure = Figure(
            identifier(prefix, "slowdown", str(start // MOST_CURVES + 1)),
            f"Slowdown against {_word(x)}{which}",
            f"Slowdowns of {len(chosen)} series over {len(varied.values)} values of {title}.",
            slowdown_curves(rows, title, log=wide),
        )
        drawn.append((figure, " and ".join(_word(path) for path in others)))
    return drawn


def _plain(value: Any) -> str:
    return str(value.get("name", "inline")) if isinstance(value, Mapping) else shown_value(value)


def _beside(spots: Sequence[Spot], prefix: str) -> Figure | None:
    """Draw what was simulated beside the closed forms and what ran for real, where there is either."""
    real = {spot.name for spot in spots if spot.which != "simulated"}
    chosen = [spot for spot in spots if (spot.name in real if real else spot.bounds)]
    names = list(dict.fromkeys(spot.name for spot in chosen))[:MOST_POINTS]
    if not names:
        return None
    rows = []
    for spot in chosen:
        if spot.name in names:
            own = {"name": spot.name, "which": spot.which, "middle": spot.slowdown, "low": spot.low, "high": spot.high}
            rows.append({**own, "is_bound": False})
            for name, value in spot.bounds.items() if spot.which == "simulated" else ():
                form = {"name": spot.name, "which": name, "middle": value, "low": value, "high": value}
                rows.append({**form, "is_bound": True})
    words = " and ".join(word for word in WHICH if any(row["which"] == word for row in rows))
    return Figure(
        f"{prefix}-beside",
        f"Slowdown: {words} beside closed forms",
        f"Dots of {words} slowdowns of {len(names)} points; ticks are closed forms.",
        simulated_and_bounds(rows),
    )


def _table(spots: Sequence[Spot]) -> Table:
    bounds = list(dict.fromkeys(name for spot in spots for name in spot.bounds))
    columns = [
        Column("point", numeric=False),
        Column("", numeric=False),
        Column("seeds"),
        Column("makespan", "s"),
        Column("dedicated", "s", "dedicated"),
        Column("slowdown", "", "slowdown"),
        Column("95 %", "of the mean over seeds"),
        Column("of dedicated", "", "dedicated"),
        Column("waiting for credits", "of the time", "window"),
        *(Column(name, "closed form", "closed-form") for name in bounds),
    ]
    rows = [
        [
            spot.name,
            spot.which,
            str(spot.seeds),
            number(spot.makespan_s, 4),
            number(spot.dedicated_s, 4),
            number(spot.slowdown, 4),
            number_range(spot.low, spot.high, 4) if spot.seeds > 1 else "–",
            number(spot.of_dedicated, 4),
            percent(spot.stalled),
            *(number(spot.bounds.get(name), 4) for name in bounds),
        ]
        for spot in spots[:MOST_ROWS]
    ]
    cut = len(spots) > len(rows)
    note = f"The first {len(rows)} of {len(spots)} points are shown; runs.json has all." if cut else ""
    return Table("Slowdown of each point", columns, rows, note)


def by_experiment(programs: Sequence[Runs[ProgramRun]]) -> list[list[Runs[ProgramRun]]]:
    """Return the runs by experiment, so that what was simulated stands beside what was run."""
    gathered: dict[str, list[Runs[ProgramRun]]] = {}
    for runs in programs:
        if len(runs):
            gathered.setdefault(json.dumps(runs.experiment), []).append(runs)
    return list(gathered.values())


PROGRAMS = Kind(
    "file of program runs",
    "files of program runs",
    "program.html.j2",
    lambda item: isinstance(item, Runs) and item.kind == "program",
    grouped(by_experiment, disturbed_section),
)
