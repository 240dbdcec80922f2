"""Runs a paper again: what all studies share. A study says which runs it needs and what they come to.

The runs of each grid stand in a file of their own in the study's directory, so a study that was stopped resumes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

from crosswind import DescriptionError, Grid, Runs, run
from crosswind.files.atomic import made
from crosswind.files.output import writable
from crosswind.lab.papers.meter import Meter, Progress

Form = Literal["quick", "full"]


class Outcome(Protocol):
    """The result of a study."""

    def save(self, path: str | Path) -> None:
        """Write the `study.json`."""


class Paper(Protocol):
    """The module `study` of a paper's package.

    `PAPER` and `TITLE` are its name on the command line and its title; `of(form)` the calibration of a form (which has
    the field `form`); `expected(chosen)` how many runs each grid has, about; `study(chosen, work)` performs them and
    returns their results.
    """

    PAPER: str
    TITLE: str

    def of(self, form: Form) -> Any:
        """Return the calibration of a form."""

    def expected(self, chosen: Any) -> Mapping[str, int]:
        """Return how many runs each grid has, about."""

    def study(self, chosen: Any, work: Work) -> Any:
        """Perform the runs, and return their results."""


class Work:
    """Performs one grid after the other, each with its file, and reports the study's progress.

    Attributes
    ----------
    runs : dict
        Id of each grid that was performed -> its runs.
    workers : int or None
        Runs at a time.
    """

    def __init__(
        self,
        directory: Path,
        sizes: Mapping[str, int],
        workers: int | None = None,
        force: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self.runs: dict[str, Runs[Any]] = {}
        self.workers = workers
        self._directory, self._force = directory, force
        self._meter = Meter(sizes, progress)

    def perform(self, name: str, grid: Grid, given: Runs[Any] | None = None) -> Runs[Any]:
        """Run what is missing of a grid; runs of `given` that belong to it too are taken over."""
        out = self._directory / f"{name}.json"
        there = _kept(out, grid)
        if there is None and given is not None:
            there = _shared(grid, given)
            of = {"experiment": there.experiment, "on": there.on, "digest": there.digest}
            writable(out, "runs", force=self._force, of=of)
            there.save(out)
        tell = self.tell(name, len(grid), len(there) if there is not None else 0)
        found = run(grid, workers=self.workers, out=out, resume=there is not None, force=self._force, progress=tell)
        self.runs[name] = found
        return found

    def tell(self, name: str, size: int, kept: int = 0) -> Progress:
        """Return the progress callback of one grid, or of other runs; `kept` of them were done earlier."""
        return self._meter.within(name, size, kept)


def reproduce(
    paper: Paper,
    directory: str | Path,
    form: Form = "quick",
    *,
    workers: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
    calibration: Any = None,
) -> Any:
    """Run a paper again, and write its `study.json`; arguments as those of `crosswind.lab.papers.studies.reproduce`."""
    chosen = calibration or paper.of(form)
    place = made(directory)
    writable(place / "study.json", "study", force=force, of={"paper": paper.PAPER, "form": chosen.form})
    found = paper.study(chosen, Work(place, paper.expected(chosen), workers, force, progress))
    found.save(place / "study.json")
    return found


def _kept(out: Path, grid: Grid) -> Runs[Any] | None:
    """Return the runs of a file, if they are of this very grid; anything else is run anew."""
    try:
        found: Runs[Any] | None = Runs.load(out) if out.exists() else None
    except DescriptionError:
        return None
    return found if found is not None and found.digest == grid.digest("sim") else None


def _shared(grid: Grid, given: Runs[Any]) -> Runs[Any]:
    """Return those of `given` that are points of the grid as well."""
    wanted = {(json.dumps(point.params, sort_keys=True), point.seed) for point in grid.points()}
    found = [one for one in given if (json.dumps(one.params, sort_keys=True), one.seed) in wanted]
    return Runs(grid.name, "sim", found, grid.digest("sim"), grid.kind)
