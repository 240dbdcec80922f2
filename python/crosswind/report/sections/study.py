"""The section about a paper run again: its claims, graded; its figures; what was calibrated."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from crosswind.documents import Row
from crosswind.errors import Notice
from crosswind.lab.papers import studies
from crosswind.lab.papers.grading import DEFECTS, HOLDS, Check
from crosswind.lab.papers.scheduling_and_communication import variants
from crosswind.lab.papers.scheduling_and_communication.calibration import ALL, EM3D_EDGES
from crosswind.lab.papers.scheduling_and_communication.daemons import Daemon, together
from crosswind.lab.papers.scheduling_and_communication.figures import (
    BARRIERS,
    DISTURBED,
    DRAWN_ANEW,
    FILLING,
    FINE,
    FINE_DISTURBED,
    FINE_FILLING,
    LONGER,
    MORE_JOBS,
    ONE_SUM,
    SKEWED_BARRIERS,
    STAGGERED,
    SYNCS,
)
from crosswind.lab.papers.scheduling_and_communication.study import TITLE, Study
from crosswind.lab.papers.studies import AnyStudy
from crosswind.lab.papers.tabled_study import Cell, Part, TabledStudy
from crosswind.report.figures.claims import answers
from crosswind.report.figures.figure import Figure, identifier
from crosswind.report.figures.slowdowns import slowdown_curves, slowdown_dots
from crosswind.report.sections.measurement import Card
from crosswind.report.sections.program import TERMS as OF_PROGRAMS
from crosswind.report.sections.section import Answer, Kind, Term, each, of_type
from crosswind.report.words import number, number_range, percent, plain
from crosswind.tables import Column, Table

MOST_ROWS = 400
Entry = Mapping[str, Any]


TERMS = (
    Term(
        "verdict",
        "verdict",
        'Whether a claim of the paper holds of these runs: all its parts must. "Not decidable from the text": '
        "it holds under one reading of what the text leaves open and fails under another, or is not graded.",
    ),
    Term(
        "limit",
        "limit from",
        "Whence the limit of a part is: printed digits, a printed range, or a word of the text that needs no number."
        f" Not graded: {'; '.join(f'{name}: {why}' for name, why in DEFECTS.items())}.",
    ),
)


@dataclass(frozen=True)
class StudiedSection:
    """A paper run again."""

    id: str
    title: str
    where: str
    large: list[Answer]
    headline: str
    cards: list[Card]
    claims: list[Table]
    answers: list[Figure]
    parts: list[tuple[str, list[Figure], Table]]
    calibration: Table
    daemons: Table | None
    warnings: list[Notice]

    @property
    def figures(self) -> list[Figure]:
        """Every figure of the section."""
        return [*self.answers, *(figure for _, figures, _ in self.parts for figure in figures)]

    @property
    def terms(self) -> Sequence[Term]:
        """The terms that it links to."""
        return (*OF_PROGRAMS, *TERMS)


def studied_section(study: AnyStudy, place: int) -> StudiedSection:
    """Prepare the section of a study at `place` (from 1)."""
    return _tabled(study, place) if isinstance(study, TabledStudy) else _scheduling(study, place)


def _tabled(study: TabledStudy, place: int) -> StudiedSection:
    id_ = f"study-{place}"
    return StudiedSection(
        id=id_,
        title=f"Which claims of “{study.title}” hold?",
        where=f"{study.form} form; {sum(len(part.rows) for part in study.parts):,} rows",
        large=_holding(study),
        headline=_headline(study),
        cards=[],
        claims=[_claims(study), _checks(study)],
        answers=_answers(study, id_),
        parts=[(part.title, _drawings(part, id_), _numbers(part)) for part in study.parts],
        calibration=_calibration(study),
        daemons=None,
        warnings=[],
    )


def _drawings(part: Part, prefix: str) -> list[Figure]:
    return [
        Figure(
            identifier(prefix, part.id, str(number_)),
            drawing.title,
            drawing.words,
            slowdown_curves(drawing.points, drawing.x, log=drawing.log, y=drawing.y)
            if drawing.x
            else slowdown_dots(drawing.points, log=drawing.log, x=drawing.y),
        )
        for number_, drawing in enumerate(part.drawings, 1)
    ]


def _numbers(part: Part) -> Table:
    def is_numeric(at: int) -> bool:
        return all(row[at] is None or isinstance(row[at], (int, float)) for row in part.rows)

    def cell(value: Cell) -> str:
        return number(value, 4) if isinstance(value, float) else "-" if value is None else str(value)

    columns = [Column(label, unit, numeric=is_numeric(at)) for at, (label, unit) in enumerate(part.columns)]
    return Table(f"{part.title}, in numbers", columns, [[cell(value) for value in row] for row in part.rows], part.note)


def _headline(study: AnyStudy) -> str:
    by_verdict = {word: [c.id for c in study.claims if c.verdict == word] for word in _VERDICTS}
    said = [f"{len(ids)} {_VERDICTS[word]} ({', '.join(ids)})" for word, ids in by_verdict.items() if ids]
    return f"Of {len(study.claims)} claims {'; '.join(said)}."


def _holding(study: AnyStudy) -> list[Answer]:
    """Return in large type how many claims hold, and which do not."""
    holding = [claim.id for claim in study.claims if claim.verdict == HOLDS]
    rest = [
        f"{len(ids)} {said} ({', '.join(ids)})"
        for word, said in _VERDICTS.items()
        if word != HOLDS and (ids := [claim.id for claim in study.claims if claim.verdict == word])
    ]
    text = f"claims of the paper hold{'; ' if rest else ''}{', '.join(rest)}."
    return [Answer(f"{len(holding)} of {len(study.claims)}", text)]


def _scheduling(study: Study, place: int) -> StudiedSection:
    id_ = f"study-{place}"
    count = sum(len(figure["rows"]) for figure in study.figures.values())
    return StudiedSection(
        id=id_,
        title=f"Which claims of “{TITLE}” hold?",
        where=f"{study.form} form; {count:,} points",
        large=_holding(study),
        headline=_headline(study),
        cards=[
            Card(f"best window of {program.upper()}", str(window), "packets", "window")
            for program, window in study.best_windows.items()
        ],
        claims=[_claims(study), _checks(study)],
        answers=_answers(study, id_),
        parts=[
            (_heading(name), draw(name, figure["rows"], id_), _rows(name, figure["rows"]))
            for name, figure, draw in _drawn(study)
        ],
        calibration=_calibration(study),
        daemons=_daemons(study),
        warnings=[],
    )


def _calibration(study: AnyStudy) -> Table:
    return Table(
        "What the text leaves open, and the assumption in its place",
        [Column("what", numeric=False), Column("value", numeric=False), Column("whence", numeric=False)],
        [list(row) for row in study.calibration],
    )


_VERDICTS = {
    "holds": "hold",
    "does not hold": "do not hold",
    "not decidable from the text": "cannot be decided",
    "paper wrong": "are excluded by arithmetic",
}
HEADINGS = {
    "figure-1": "The window, dedicated",
    "section-4": "The window, coscheduled",
    "figure-2": "Locally scheduled",
    "figure-2-windows": "The window, locally scheduled",
    "figure-3": "Coscheduling skew",
    "figure-4": "Daemons",
    STAGGERED: "Daemons that never coincide",
    "figure-5": "One non-idle processor",
    ONE_SUM: "The window, dedicated, one sum of CHOLESKY at a time",
    SYNCS: "CONNECT with more syncs, disturbed",
    DRAWN_ANEW: "Coscheduling skew, drawn anew for each quantum",
    FINE: "The window of SAMPLE at a fine grain",
    FINE_FILLING: "The window of SAMPLE at a fine grain, in a network that can fill",
    FINE_DISTURBED: "SAMPLE at a fine grain, disturbed",
    MORE_JOBS: "Locally scheduled with more than one other program",
    FILLING: "The window, dedicated, in a network that can fill",
    DISTURBED: "A large window in a network that can fill, disturbed",
    SKEWED_BARRIERS: "Coscheduling skew, EM3D with other work between barriers",
    BARRIERS: "Daemons, EM3D with other work between barriers",
    LONGER: "Daemons that poll and run longer",
    variants.NAME: "What the paper names and did not build",
}
Draw = Callable[[str, Sequence[Entry], str], list[Figure]]


def _heading(name: str) -> str:
    return HEADINGS.get(name, name)


def _drawn(study: Study) -> list[tuple[str, Mapping[str, Any], Draw]]:
    draw: dict[str, Draw] = {
        "figure-1": lambda name, rows, prefix: _curves(name, rows, prefix, "window", "window, packets", ()),
        "section-4": lambda name, rows, prefix: _curves(name, rows, prefix, "window", "window, packets", ()),
        "figure-2": lambda name, rows, prefix: _local(study, name, rows, prefix),
        "figure-2-windows": lambda name, rows, prefix: _curves(
            name, rows, prefix, "window", "window, packets", ("quantum_s", "phases", "credit")
        ),
        "figure-3": lambda name, rows, prefix: _curves(
            name, _narrow(study, rows), prefix, "skew_s", "skew, s", ("quantum_s",)
        ),
        "figure-4": lambda name, rows, prefix: _curves(
            name, _narrow(study, rows), prefix, "interval_s", "interval, s", ("duration_s", "polls")
        ),
        STAGGERED: lambda name, rows, prefix: _curves(name, rows, prefix, "window", "window, packets", ()),
        "figure-5": lambda name, rows, prefix: (
            _curves(name, _narrow(study, rows), prefix, "share", "share of the parallel program", ("polls",))
            + _large(study, name, rows, prefix)
        ),
        ONE_SUM: lambda name, rows, prefix: _curves(name, rows, prefix, "window", "window, packets", ()),
        FILLING: lambda name, rows, prefix: _curves(
            name, rows, prefix, "window", "window, packets", ("buffer_packets", "polls_per_send")
        ),
        FINE: lambda name, rows, prefix: _curves(name, rows, prefix, "window", "window, packets", ()),
        FINE_FILLING: lambda name, rows, prefix: _curves(
            name, rows, prefix, "window", "window, packets", ("buffer_packets", "polls_per_send")
        ),
        FINE_DISTURBED: _fine_disturbed,
        MORE_JOBS: lambda name, rows, prefix: [
            _dots(
                identifier(prefix, name),
                "Figure 2 with three programs",
                "Slowdowns of five programs that share the machine with two others, by how their quanta lie.",
                [_dot(str(row["program"]).upper(), str(row["phases"]), [row]) for row in rows],
            )
        ],
        SYNCS: _syncs,
        DRAWN_ANEW: lambda name, rows, prefix: _curves(name, rows, prefix, "skew_s", "skew, s", ()),
        SKEWED_BARRIERS: _barriers,
        BARRIERS: _barriers,
        LONGER: _longer,
        DISTURBED: _filling_disturbed,
        variants.NAME: _variants,
    }
    return [(name, study.figures[name], draw[name]) for name in draw if name in study.figures]


def _narrow(study: Study, rows: Sequence[Entry]) -> list[Entry]:
    return [row for row in rows if row["window"] == study.best_windows[row["program"]]]


def _large(study: Study, name: str, rows: Sequence[Entry], prefix: str) -> list[Figure]:
    """Draw what a large window does where the program has the least of the shared node: figure 5's third graph."""
    share, most = min(row["share"] for row in rows), max(row["window"] for row in rows)
    own = [row for row in rows if row["share"] == share and not row["polls"]]
    points = [_dot(str(row["program"]).upper(), "best dedicated window", [row]) for row in _narrow(study, own)]
    points += [_dot(str(row["program"]).upper(), f"{most} packets", [row]) for row in own if row["window"] == most]
    title = f"Figure 5: share {plain(100 * share)} %, windows"
    words = "Slowdowns of five programs with one shared node, with the best dedicated window and with a large one."
    return [_dots(identifier(prefix, name, "windows"), title, words, points)]


def _curves(name: str, rows: Sequence[Entry], prefix: str, x: str, title: str, apart: Sequence[str]) -> list[Figure]:
    """Draw one figure for each combination of what stands apart: programs are the series."""
    groups: dict[str, list[Entry]] = {}
    for row in rows:
        groups.setdefault(", ".join(_said(key, row[key]) for key in apart), []).append(row)
    figures = []
    for number_, (group, own) in enumerate(groups.items(), 1):
        points = [
            {
                "value": plain(float(row[x])),
                "series": str(row["program"]).upper(),
                "middle": row["slowdown"],
                "low": _interval(row)[0],
                "high": _interval(row)[1],
            }
            for row in sorted(own, key=lambda row: row[x])
        ]
        wide = max(p["middle"] for p in points) > 10 * min(p["middle"] for p in points)
        heading = name.removesuffix("-windows").replace("-", " ").capitalize()
        figures.append(
            Figure(
                identifier(prefix, name, str(number_)),
                f"{heading}{f': {group}' if group else ''}",
                f"Slowdowns of five programs over {len({p['value'] for p in points})} values of {title}.",
                slowdown_curves(points, title, log=wide),
            )
        )
    return figures


def _local(study: Study, name: str, rows: Sequence[Entry], prefix: str) -> list[Figure]:
    """Draw both graphs of figure 2 for each quantum: windows that are best when dedicated, windows that are best so."""
    figures = []
    for quantum in dict.fromkeys(row["quantum_s"] for row in rows):
        own = [row for row in rows if row["quantum_s"] == quantum]
        fastest: dict[tuple[str, str], Entry] = {}
        for row in own:
            key = (row["program"], _reading(row))
            fastest[key] = min(fastest.get(key, row), row, key=lambda row: float(row["slowdown"]))
        for which, chosen in (
            ("windows best when dedicated", _narrow(study, own)),
            ("windows best when locally scheduled", list(fastest.values())),
        ):
            points = [_dot(str(row["program"]).upper(), _reading(row), [row]) for row in chosen]
            title = f"Figure 2: {_said('quantum_s', quantum)}, {which}"
            words = f"Slowdowns of five programs, phases and return of credits as in each reading, {which}."
            figures.append(
                _dots(identifier(prefix, name, plain(1000 * quantum), which.split()[-1]), title, words, points)
            )
    return figures


def _reading(row: Entry) -> str:
    return f"{row['phases']}, {row['credit']}"


def _variants(name: str, rows: Sequence[Entry], prefix: str) -> list[Figure]:
    """Draw each disturbance with what the paper did not build against it; of other nodes, the spread over the nodes."""
    figures = []
    for under in dict.fromkeys(str(row["under"]) for row in rows):
        groups: dict[tuple[str, str], list[Entry]] = {}
        for row in rows:
            if row["under"] == under:
                groups.setdefault((str(row["variant"]), str(row["program"]).upper()), []).append(row)
        points = [_dot(variant, program, alike) for (variant, program), alike in groups.items()]
        words = f"Slowdowns of five programs under {under}, as in the paper and with each variant."
        figures.append(_dots(identifier(prefix, name, under), f"Not built in the paper, under {under}", words, points))
    return figures


def _filling_disturbed(name: str, rows: Sequence[Entry], prefix: str) -> list[Figure]:
    """Draw what the dedicated window and a large one come to, for each reading of a network that can fill."""
    most = max(row["window"] for row in rows)
    groups: dict[tuple[str, str], list[Entry]] = {}
    for row in rows:
        reading = ", ".join(_said(key, row[key]) for key in ("buffer_packets", "polls_per_send"))
        groups.setdefault((str(row["under"]), reading), []).append(row)
    figures = []
    for (under, reading), own in groups.items():
        dots: dict[tuple[str, str], list[Entry]] = {}
        for row in own:
            which = f"{most} packets" if row["window"] == most else "best dedicated window"
            dots.setdefault((str(row["program"]).upper(), which), []).append(row)
        words = f"Slowdowns under {under} in a network that can fill ({reading}), best dedicated window, a large one."
        title = f"A network that can fill, under {under}: {reading}"
        id_ = identifier(prefix, name, under, reading)
        figures.append(_dots(id_, title, words, [_dot(*names, alike) for names, alike in dots.items()]))
    return figures


def _fine_disturbed(name: str, rows: Sequence[Entry], prefix: str) -> list[Figure]:
    """Draw SAMPLE's slowdowns, window by window, under each disturbance."""

    def disturbance(row: Entry) -> str:
        return ", ".join([str(row["under"]), *(_said(key, row[key]) for key in ("polls", "phases") if key in row)])

    points = [_dot(disturbance(row), f"{row['window']} packets", [row]) for row in rows]
    words = "Slowdowns of SAMPLE at its finest grain, with its best dedicated windows and with a large one."
    return [_dots(identifier(prefix, name), "SAMPLE at a fine grain, disturbed", words, points)]


def _syncs(name: str, rows: Sequence[Entry], prefix: str) -> list[Figure]:
    """Draw CONNECT's slowdowns by how often it waits for its gets."""

    def disturbance(row: Entry) -> str:
        if row["under"] == "daemons":
            return f"daemons, {_said('polls', row['polls'])}"
        return f"skew {plain(1000 * row['skew_s'])} ms" if row["under"] == "skew" else "locally scheduled"

    points = [_dot(disturbance(row), f"{row['gets_per_sync']} gets/sync", [row]) for row in rows]
    words = "Slowdowns of CONNECT under daemons, skew and local scheduling, by gets before a sync."
    return [_dots(identifier(prefix, name), "CONNECT with more syncs, disturbed", words, points)]


def _barriers(name: str, rows: Sequence[Entry], prefix: str) -> list[Figure]:
    """Draw EM3D's slowdowns by its work between two barriers."""

    def disturbance(row: Entry) -> str:
        return (
            f"skew {plain(1000 * row['skew_s'])} ms" if "skew_s" in row else f"daemons, {_said('polls', row['polls'])}"
        )

    points = [_dot(disturbance(row), f"{1000 * EM3D_EDGES * row['operation_s']:.1f} ms", [row]) for row in rows]
    words = "Slowdowns of EM3D by its work between two barriers."
    return [_dots(identifier(prefix, name), HEADINGS[name], words, points)]


def _longer(name: str, rows: Sequence[Entry], prefix: str) -> list[Figure]:
    """Draw slowdowns by daemons that run longer, by how long they would run if nothing had to be buffered."""

    def program(row: Entry) -> str:
        fine = f", {1e6 * row['operation_s']:g} µs a comparison" if "operation_s" in row else ""
        syncs = f", {row['gets_per_sync']} gets/sync" if "gets_per_sync" in row else ""
        return f"{str(row['program']).upper()}{fine}{syncs}, window {row['window']}"

    points = [_dot(program(row), _said("duration_s", row["duration_s"]), [row]) for row in rows]
    words = "Slowdowns of five programs by daemons that run as much longer as buffering could make them."
    return [_dots(identifier(prefix, name), HEADINGS[name], words, points)]


def _dot(name: str, series: str, alike: Sequence[Entry]) -> Row:
    middle = fmean(row["slowdown"] for row in alike)
    # Rows are drawn apart from each other, so the squares of their half-widths add up.
    half = math.hypot(*(0.5 * (high - low) for low, high in map(_interval, alike))) / len(alike)
    return {"name": name, "series": series, "middle": middle, "low": middle - half, "high": middle + half}


def _interval(row: Entry) -> tuple[float, float]:
    """Return the 95 % interval of a row's slowdown; a study of version 0.2.0 has none, and no bar is drawn."""
    low, high = row.get("slowdown_ci95") or (row["slowdown"], row["slowdown"])
    return float(low), float(high)


def _dots(id_: str, title: str, words: str, points: Sequence[Mapping[str, Any]]) -> Figure:
    wide = max(p["middle"] for p in points) > 10 * min(p["middle"] for p in points)
    return Figure(id_, title, words, slowdown_dots(points, log=wide))


_SAID: dict[str, Callable[[Any], str]] = {
    "quantum_s": lambda value: f"quantum {plain(1000 * value)} ms",
    "duration_s": lambda value: f"{plain(1000 * value)} ms",
    "polls": lambda value: "polling" if value else "not polling",
    "credit": lambda value: f"credit back when {value}",
    "buffer_packets": lambda value: f"buffers of {value}",
    "polls_per_send": lambda value: f"polls {'all' if value == ALL else value} between two sends",
}


def _said(key: str, value: Any) -> str:
    say = _SAID.get(key)
    return say(value) if say else f"{key} {value}"


def _answers(study: AnyStudy, prefix: str) -> list[Figure]:
    """Draw a figure for each claim: its parts under every reading of the text."""
    figures = []
    for claim in study.claims:
        rows = [
            {
                "part": str(number_),
                "text": check.text,
                "reading": answer.reading,
                "answer": "holds" if answer.holds else "does not",
                "found": answer.found,
            }
            for number_, check in enumerate(claim.checks, 1)
            for answer in check.answers
        ]
        if rows:
            words = (
                f"Whether each of {len(claim.checks)} parts of claim {claim.id} holds, under every reading of the text."
            )
            title = f"{claim.id}: {claim.text}"
            figures.append(Figure(identifier(prefix, claim.id), title, words, answers(rows)))
    return figures


def _claims(study: AnyStudy) -> Table:
    columns = [
        Column("claim", numeric=False),
        Column("verdict", numeric=False, term="verdict"),
        Column("of its parts", numeric=False, term="verdict"),
        Column("claim", numeric=False),
        Column("section", numeric=False),
        Column("hangs on", numeric=False),
    ]
    rows = [[claim.id, claim.verdict, claim.parts, claim.text, claim.section, claim.hangs_on] for claim in study.claims]
    return Table("The claims", columns, rows)


def _checks(study: AnyStudy) -> Table:
    columns = [
        Column("claim", numeric=False),
        Column("part", numeric=False),
        Column("verdict", numeric=False, term="verdict"),
        Column("what must be true", numeric=False),
        Column("limit from", numeric=False, term="limit"),
        Column("found", numeric=False),
        Column("hangs on", numeric=False),
    ]
    rows = [
        [
            *(claim.id, str(number_), check.verdict, check.text, _limit(check), check.found),
            check.hangs_on if check.verdict != HOLDS else "",
        ]
        for claim in study.claims
        for number_, check in enumerate(claim.checks, 1)
    ]
    return Table("What each claim was asked", columns, rows)


def _limit(check: Check) -> str:
    """Return whence a part's limit is, or why the part is not graded."""
    if check.defect:
        return f"not graded: {check.defect}"
    return check.band.source if check.band is not None else ""


def _rows(name: str, rows: Sequence[Entry]) -> Table:
    known = {"program", "makespan_s", "slowdown", "slowdown_low", "slowdown_high", "slowdown_ci95", "stalled", "bounds"}
    known.add("policy")
    varied = list(dict.fromkeys(key for row in rows for key in row if key not in known))
    bounds = list(dict.fromkeys(bound for row in rows for bound in row["bounds"]))
    columns = [
        Column("program", numeric=False),
        *(Column(key.removesuffix("_s").replace("_", " "), "s" if key.endswith("_s") else "") for key in varied),
        Column("makespan", "s"),
        Column("slowdown", "", "slowdown"),
        Column("over the seeds"),
        Column("waiting for credits", "of the time", "window"),
        *(Column(bound, "closed form", "closed-form") for bound in bounds),
    ]
    table = [
        [
            str(row["program"]).upper(),
            *(_cell(row.get(key)) for key in varied),
            number(row["makespan_s"], 4),
            number(row["slowdown"], 4),
            number_range(row["slowdown_low"], row["slowdown_high"], 4),
            percent(row["stalled"]),
            *(number(row["bounds"].get(bound), 4) for bound in bounds),
        ]
        for row in rows[:MOST_ROWS]
    ]
    note = (
        f"The first {len(table)} of {len(rows)} points are shown; {name}.json has all."
        if len(rows) > len(table)
        else ""
    )
    return Table(f"{_heading(name)}, in numbers", columns, table, note)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return plain(float(value)) if isinstance(value, (int, float)) else str(value)


def _daemons(study: Study) -> Table:
    columns = [
        Column("daemon", numeric=False),
        Column("run time", "ms"),
        Column("interval", "s"),
        Column("of the processor"),
    ]
    found = [Daemon(**entry) for entry in study.daemons]
    rows = []
    for one in found:
        spread = f"{plain(one.run_least_ms)} to {plain(one.run_most_ms)}"
        run = plain(one.run_ms) if one.run_least_ms == one.run_most_ms else spread
        rows.append([one.daemon, run, plain(one.interval_s), f"{100 * one.run_ms / 1000 / one.interval_s:.4f} %"])
    if found:
        all_ = together(found)
        rows.append(["all together", number(all_.run_ms), number(all_.interval_s), f"{100 * all_.part:.4f} %"])
    return Table("Table 1: daemons of a DECstation 5000", columns, rows)


STUDIES = Kind(
    "study",
    "studies",
    "study.html.j2",
    of_type(Study, TabledStudy),
    each(studied_section),
    {"study": studies.load},
)
