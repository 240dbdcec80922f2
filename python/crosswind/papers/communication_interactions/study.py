"""The whole study in one directory, resumable and graded: `study.json`, and a file of runs per figure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosswind.errors import DescriptionError
from crosswind.files.output import writable
from crosswind.files.stored import made
from crosswind.papers.communication_interactions import calibration as calibrations
from crosswind.papers.communication_interactions.calibration import Calibration, Form
from crosswind.papers.communication_interactions.claims import claims
from crosswind.papers.communication_interactions.figures import Figure, FigureGrid, all_figures
from crosswind.papers.communication_interactions.parts import parts
from crosswind.papers.communication_interactions.rows import Rows
from crosswind.papers.meter import Meter
from crosswind.papers.tabled_study import TabledStudy
from crosswind.run.grid import Progress, run_grid
from crosswind.run.results import Runs

PAPER = "communication-interactions"
"""Name of the paper on the command line and in files."""
TITLE = "Characterizing and Scheduling Communication Interactions of Parallel and Local Jobs"


def reproduce(
    directory: str | Path,
    form: Form = "quick",
    *,
    workers: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
    calibration: Calibration | None = None,
) -> TabledStudy:
    """Run every figure of the paper, and grade its claims.

    Parameters
    ----------
    directory : path
        Where files of runs and `study.json` are written; what is there already of the same study is kept.
    form : {"quick", "full"}
        Fewer points, shorter FT and EP, one seed; or the paper's whole grid with five seeds.
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
    TabledStudy

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
    figures = all_figures(chosen)
    meter = Meter({figure.id: len(FigureGrid(figure, chosen)) for figure in figures}, progress)
    runs = {figure.id: _perform(figure, chosen, directory, workers, force, meter) for figure in figures}
    found = study(runs, chosen)
    found.save(directory / "study.json")
    return found


def study(runs: Mapping[str, Runs[Any]], chosen: Calibration) -> TabledStudy:
    """Return the study of such runs, by figure."""
    rows = Rows(runs, chosen)
    return TabledStudy(PAPER, TITLE, chosen.form, chosen.table(), claims(rows, chosen), parts(rows, chosen))


def _perform(
    figure: Figure, chosen: Calibration, directory: Path, workers: int | None, force: bool, meter: Meter
) -> Runs[Any]:
    grid = FigureGrid(figure, chosen)
    out = directory / f"{figure.id}.json"
    there = _kept(out, grid)
    kept = len(there) if there is not None else 0
    tell = meter.within(figure.id, len(grid), kept)
    return run_grid(grid, workers=workers, out=out, resume=there is not None, force=force, progress=tell)


def _kept(out: Path, grid: FigureGrid) -> Runs[Any] | None:
    """Return the runs of a file, if they are of this very grid; anything else is run anew."""
    try:
        found = Runs.load(out) if out.exists() else None
    except DescriptionError:
        return None
    return found if found is not None and found.digest == grid.digest("sim") else None
