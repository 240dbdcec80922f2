"""The whole study in one directory, resumable and graded: `study.json`, and a file of runs per figure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from crosswind.errors import DescriptionError
from crosswind.files.output import writable
from crosswind.files.reading import json_of
from crosswind.files.stored import is_of_kind, made, write_json
from crosswind.papers.grading import Claim
from crosswind.papers.meter import Meter
from crosswind.papers.scheduling_and_communication import calibration as calibrations
from crosswind.papers.scheduling_and_communication import daemons, figures, variants
from crosswind.papers.scheduling_and_communication.calibration import PROGRAMS, Calibration, Form
from crosswind.papers.scheduling_and_communication.claims import claims
from crosswind.papers.scheduling_and_communication.figures import Figure, FigureGrid, Row, Rows
from crosswind.run.grid import Progress, run_grid
from crosswind.run.program import remember
from crosswind.run.results import ProgramRun, Runs

SCHEMA_VERSION = 1
PAPER = "scheduling-and-communication"
"""Name of the paper on the command line and in files."""
TITLE = "Re-examining Scheduling and Communication in Parallel Programs"


@dataclass(frozen=True)
class Study:
    """What the reproduction of the paper came to.

    Attributes
    ----------
    form : str
        quick or full.
    calibration : list of (str, str, str)
        What stands in the place of what the text leaves open: name, value, whence.
    best_windows : dict
        The window that is best when dedicated, by program.
    claims : list of Claim
        Graded.
    figures : dict
        Id -> title and rows: what each sets, makespans in s, slowdown as in the figure's caption.
    daemons : list of dict
        Table 1.
    """

    form: str
    calibration: list[tuple[str, str, str]]
    best_windows: dict[str, int]
    claims: list[Claim]
    figures: dict[str, dict[str, Any]]
    daemons: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def load(cls, path: str | Path) -> Study:
        """Read a `study.json`.

        Raises
        ------
        DescriptionError
            When it is none, or one of another version.
        """
        document = json_of(path, "no-study")
        if not is_study(document):
            raise DescriptionError(f"{path}: is no study.json", "no-study", "`crosswind reproduce` writes one")
        if document.get("schema_version") != SCHEMA_VERSION:
            message = f"{path}: schema_version is {document.get('schema_version')}; this build reads {SCHEMA_VERSION}"
            raise DescriptionError(message, "schema-version")
        return cls(
            form=document["form"],
            calibration=[(one[0], one[1], one[2]) for one in document["calibration"]],
            best_windows=document["best_windows"],
            claims=[Claim.from_dict(entry) for entry in document["claims"]],
            figures=document["figures"],
            daemons=document["table_1"],
        )

    def summary(self) -> dict[str, Any]:
        """Return the content of `study.json`: what `crosswind reproduce --json` prints."""
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "study",
            "paper": PAPER,
            "form": self.form,
            "calibration": [list(one) for one in self.calibration],
            "best_windows": self.best_windows,
            "claims": [claim.summary() for claim in self.claims],
            "table_1": self.daemons,
            "figures": self.figures,
        }

    def save(self, path: str | Path) -> None:
        """Write a `study.json`; an existing file is replaced only once the new one is complete."""
        write_json(self.summary(), path)

    def __repr__(self) -> str:
        return f"Study({PAPER}, {self.form}, {len(self.claims)} claims)"


def is_study(document: object) -> bool:
    """Whether the content of a JSON file is that of a `study.json`."""
    return is_of_kind(document, "study")


def reproduce(
    directory: str | Path,
    form: Form = "quick",
    *,
    workers: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
    calibration: Calibration | None = None,
) -> Study:
    """Run every figure of the paper, and grade its claims.

    Parameters
    ----------
    directory : path
        Where files of runs and `study.json` are written; what is there already of the same study is kept.
    form : {"quick", "full"}
        Fewer points, shorter programs, one seed; or the paper's whole grid with five seeds.
    workers : int, optional
        Runs at a time, at least 1; default: one per CPU. They change nothing in the result.
    force : bool
        Replace another study in `directory`; else it is refused.
    progress : callable, optional
        Called as `progress(fraction, message)`, with the time left in the message.
    calibration : Calibration, optional
        Instead of that of `form`.

    Returns
    -------
    Study

    Raises
    ------
    DescriptionError
        When the directory cannot be written.
    KeyboardInterrupt
        After ctrl-C; the runs that were finished stand in the directory, and the same call goes on with them.
    """
    chosen = calibration or calibrations.of(form)
    directory = made(directory)
    writable(directory / "study.json", "study", force=force, of={"paper": PAPER, "form": chosen.form})
    work = _Work(chosen, directory, workers, force, progress)
    work.perform(figures.windows(chosen))
    work.remember_undisturbed()
    best = {program: Rows(work.runs).best_window(program) for program in PROGRAMS}
    work.perform(figures.coscheduled(chosen, best))
    tried = work.perform(figures.local_windows(chosen, best), seeds=1)
    work.perform(figures.local(chosen, best, Rows(work.runs)), given=tried)
    for make in (figures.skew, figures.daemons, figures.shared_node):
        work.perform(make(chosen, best))
    work.perform(variants.not_built(chosen, best), seeds=chosen.variant_repetitions)
    found = _study(Rows(work.runs), chosen, work.runs)
    found.save(directory / "study.json")
    return found


class _Work:
    """Performs one figure after the other, each with its file, and tells how far it is."""

    def __init__(
        self, chosen: Calibration, directory: Path, workers: int | None, force: bool, progress: Progress | None
    ) -> None:
        self.runs: dict[str, Runs[ProgramRun]] = {}
        self._chosen, self._directory, self._workers, self._force = chosen, directory, workers, force
        self._meter = Meter(expected(chosen), progress)

    def perform(
        self, figure: Figure, given: Runs[ProgramRun] | None = None, seeds: int | None = None
    ) -> Runs[ProgramRun]:
        """Run what is missing of a figure; runs of `given` that belong to it too are taken over."""
        chosen = self._chosen if seeds is None else replace(self._chosen, repetitions=seeds)
        grid = FigureGrid(figure, chosen)
        out = self._directory / f"{figure.id}.json"
        there = _kept(out, grid)
        if there is None and given is not None:
            there = _shared(grid, given)
            of = {"experiment": there.experiment, "on": there.on, "digest": there.digest}
            writable(out, "runs", force=self._force, of=of)
            there.save(out)
        kept = len(there) if there is not None else 0
        tell = self._meter.within(figure.id, len(grid), kept)
        found = run_grid(
            grid, workers=self._workers, out=out, resume=there is not None, force=self._force, progress=tell
        )
        self.runs[figure.id] = found
        return found

    def remember_undisturbed(self) -> None:
        """Spare a study that goes on what the first figure's file says."""
        grid = FigureGrid(figures.windows(self._chosen), self._chosen)
        known = {json.dumps(run.params, sort_keys=True): run for run in self.runs[figures.WINDOWS]}
        for point in grid.points():
            remember(point, known[json.dumps(point.params, sort_keys=True)])


def _kept(out: Path, grid: FigureGrid) -> Runs[ProgramRun] | None:
    """Return the runs of a file, if they are of this very grid; anything else is run anew."""
    try:
        found = Runs.load(out) if out.exists() else None
    except DescriptionError:
        return None
    return found if found is not None and found.digest == grid.digest("sim") else None


def _shared(grid: FigureGrid, given: Runs[ProgramRun]) -> Runs[ProgramRun]:
    """Return those of `given` that are points of the grid as well."""
    wanted = {(json.dumps(point.params, sort_keys=True), point.seed) for point in grid.points()}
    found = [run for run in given if (json.dumps(run.params, sort_keys=True), run.seed) in wanted]
    return Runs(grid.name, "sim", found, grid.digest("sim"), grid.kind)


def expected(chosen: Calibration) -> dict[str, int]:
    """Return how many runs each figure has, about: some depend on which windows the first finds best."""
    best = dict.fromkeys(PROGRAMS, chosen.windows[0])
    tried = figures.local_windows(chosen, best)
    # Of the windows tried, the best when dedicated and the best so: two.
    local = 2 * len(PROGRAMS) * len(chosen.readings) * len(chosen.local_quanta_s) * chosen.repetitions
    after = (figures.coscheduled, figures.skew, figures.daemons, figures.shared_node)
    count = {figure.id: len(FigureGrid(figure, chosen)) for figure in (make(chosen, best) for make in after)}
    named = variants.not_built(chosen, best)
    return {
        figures.WINDOWS: len(FigureGrid(figures.windows(chosen), chosen)),
        tried.id: len(tried.settings),
        "figure-2": local,
        **count,
        named.id: len(named.settings) * chosen.variant_repetitions,
    }


def _study(rows: Rows, chosen: Calibration, runs: Mapping[str, Runs[ProgramRun]]) -> Study:
    return Study(
        form=chosen.form,
        calibration=chosen.table(),
        best_windows={program: rows.best_window(program) for program in PROGRAMS},
        claims=claims(rows, chosen),
        figures={
            name: {
                "title": own.experiment.split(": ", 1)[1],
                "rows": [_entry(name, row, rows) for row in rows.of(name)],
            }
            for name, own in runs.items()
        },
        daemons=[asdict(one) for one in daemons.load()],
    )


def _entry(figure: str, row: Row, rows: Rows) -> dict[str, Any]:
    reference_s = rows.reference_s(figure, row)
    return {
        **row.params,
        "makespan_s": row.makespan_s,
        "slowdown": row.makespan_s / reference_s,
        "slowdown_low": row.low_s / reference_s,
        "slowdown_high": row.high_s / reference_s,
        "stalled": row.stalled,
        "bounds": row.bounds,
    }
