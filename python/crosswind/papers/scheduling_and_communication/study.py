"""The whole study in one directory, resumable and graded: `study.json`, and a file of runs per figure."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from crosswind.description import read_bytes
from crosswind.errors import DescriptionError
from crosswind.papers.scheduling_and_communication import calibration as calibrations
from crosswind.papers.scheduling_and_communication import daemons, figures
from crosswind.papers.scheduling_and_communication.calibration import PROGRAMS, Calibration, Form
from crosswind.papers.scheduling_and_communication.claims import claims
from crosswind.papers.scheduling_and_communication.figures import Figure, FigureGrid, Row, Rows
from crosswind.papers.scheduling_and_communication.grading import Claim
from crosswind.run.grid import Progress, run_grid
from crosswind.run.results import ProgramRun, Runs

SCHEMA_VERSION = 1
PAPER = "scheduling-and-communication"
"""Name of the paper on the command line and in files."""


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
        try:
            document = json.loads(read_bytes(path))
        except ValueError as error:
            raise DescriptionError(f"{path}: is no JSON: {error}", "no-study") from None
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
        part = Path(f"{path}.part")
        part.write_text(json.dumps(self.summary(), indent=1) + "\n", encoding="utf-8")
        part.replace(path)

    def __repr__(self) -> str:
        return f"Study({PAPER}, {self.form}, {len(self.claims)} claims)"


def is_study(document: object) -> bool:
    """Whether the content of a JSON file is that of a `study.json`."""
    return isinstance(document, dict) and document.get("kind") == "study"


def reproduce(
    directory: str | Path,
    form: Form = "quick",
    *,
    workers: int | None = None,
    progress: Progress | None = None,
    calibration: Calibration | None = None,
) -> Study:
    """Run every figure of the paper, and grade its claims.

    Parameters
    ----------
    directory : path
        Where files of runs and `study.json` are written; what is there already of the same study is kept.
    form : {"quick", "full"}
        Fewer points, shorter programs, one seed: about a minute; or the paper's whole grid with five seeds.
    workers : int, optional
        Runs at a time, at least 1; default: one per CPU. They change nothing in the result.
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
    """
    chosen = calibration or calibrations.of(form)
    directory = Path(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DescriptionError(f"{directory}: {(error.strerror or str(error)).lower()}", "out") from None
    runs: dict[str, Runs[ProgramRun]] = {}
    # How many points the later figures have does not depend on which windows the first finds best, or by a few only.
    likely = dict.fromkeys(PROGRAMS, chosen.windows[0])
    later: list[Callable[[Mapping[str, int]], Figure]] = [
        lambda best: figures.coscheduled(chosen, best),
        lambda best: figures.local(chosen, best),
        lambda best: figures.skew(chosen, best),
        lambda best: figures.daemons(chosen, best),
        lambda best: figures.shared_node(chosen, best),
    ]
    first = figures.windows(chosen)
    ahead = [len(FigureGrid(figure, chosen)) for figure in (first, *(make(likely) for make in later))]
    meter = _Meter(ahead, progress)

    def perform(figure: Figure) -> None:
        grid = FigureGrid(figure, chosen)
        out = directory / f"{figure.id}.json"
        there = out.exists() and _same(out, grid)
        runs[figure.id] = run_grid(grid, workers=workers, out=out, resume=there, progress=meter.within(len(grid)))

    perform(first)
    best = {program: Rows(runs).best_window(program) for program in PROGRAMS}
    for make in later:
        perform(make(best))
    found = _study(Rows(runs), chosen, runs)
    found.save(directory / "study.json")
    return found


def _same(out: Path, grid: FigureGrid) -> bool:
    """Whether a file holds runs of this very grid; anything else is run anew."""
    try:
        return Runs.load(out).digest == grid.digest("sim")
    except DescriptionError:
        return False


def _study(rows: Rows, chosen: Calibration, runs: Mapping[str, Runs[ProgramRun]]) -> Study:
    return Study(
        form=chosen.form,
        calibration=chosen.table(),
        best_windows={program: rows.best_window(program) for program in PROGRAMS},
        claims=claims(rows, chosen),
        figures={
            name: {
                "title": ours.experiment.split(": ", 1)[1],
                "rows": [_entry(name, row, rows) for row in rows.of(name)],
            }
            for name, ours in runs.items()
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


class _Meter:
    """Joins the progress of several grids into one, with the time left at the pace so far."""

    def __init__(self, sizes: list[int], progress: Progress | None) -> None:
        self._whole, self._done, self._progress = sum(sizes), 0, progress
        self._begun = time.monotonic()

    def within(self, size: int) -> Progress | None:
        """Return what one grid tells its progress to."""
        if self._progress is None:
            return None
        before, self._done = self._done, self._done + size
        progress = self._progress

        def tell(fraction: float, message: str) -> None:
            share = min((before + fraction * size) / self._whole, 1.0)
            left = (time.monotonic() - self._begun) * (1.0 - share) / share
            progress(share, f"{round(share * self._whole)} of about {self._whole} runs, {left:.0f} s left")

        return tell
