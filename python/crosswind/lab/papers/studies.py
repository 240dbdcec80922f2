"""The papers that can be run again, and what their `study.json` holds."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from crosswind import DescriptionError
from crosswind.files.reading import json_of
from crosswind.lab.papers import driver
from crosswind.lab.papers.driver import Form
from crosswind.lab.papers.meter import Progress
from crosswind.lab.papers.scheduling_and_communication.study import PAPER as SCHEDULING
from crosswind.lab.papers.scheduling_and_communication.study import Study
from crosswind.lab.papers.tabled_study import TabledStudy

AnyStudy: TypeAlias = Study | TabledStudy

MODULES = {
    SCHEDULING: "scheduling_and_communication",
    "communication-interactions": "communication_interactions",
    "quadrics-overlap": "quadrics_overlap",
    "interference-aware-scheduling": "interference_aware_scheduling",
    "interference-in-java": "interference_in_java",
}
"""Name of each paper on the command line -> its package, whose `study` is a `driver.Paper`."""

__all__ = ["MODULES", "AnyStudy", "load", "reproduce", "title"]


def reproduce(
    paper: str,
    directory: str | Path,
    form: Form = "quick",
    *,
    workers: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
    calibration: Any = None,
) -> AnyStudy:
    """Run every figure of a paper, and grade its claims.

    Parameters
    ----------
    paper : str
        Its name on the command line, one of `MODULES`.
    directory : path
        Where files of runs and `study.json` are written; what is there already of the same study is kept.
    form : {"quick", "full"}
        Fewer points, shorter programs, fewer seeds; or the paper's whole grid.
    workers : int, optional
        Runs at a time, at least 1; default: one per CPU. They change nothing in the result.
    force : bool
        Replace another study in `directory`; else it is refused.
    progress : callable, optional
        Called as `progress(fraction, message)`, with the time left in the message.
    calibration : optional
        Instead of that of `form`: the `Calibration` of the paper's package.

    Raises
    ------
    DescriptionError
        For a paper that is unknown, and a directory that cannot be written.
    KeyboardInterrupt
        After ctrl-C; the runs that were finished stand in the directory, and the same call resumes with them.
    """
    if paper not in MODULES:
        raise DescriptionError(f"paper is {paper!r}; it must be one of {', '.join(MODULES)}", "argument")
    found: AnyStudy = driver.reproduce(
        _module(paper), directory, form, workers=workers, force=force, progress=progress, calibration=calibration
    )
    return found


def title(paper: str) -> str:
    """Return a paper's title."""
    return str(_module(paper).TITLE)


def load(path: str | Path) -> AnyStudy:
    """Read a `study.json` of any paper.

    Raises
    ------
    DescriptionError
        When it is none, or one of another version.
    """
    document = json_of(path, "no-study")
    tabled = isinstance(document, dict) and "parts" in document
    return TabledStudy.load(path) if tabled else Study.load(path)


def _module(paper: str) -> Any:
    return import_module(f"crosswind.lab.papers.{MODULES[paper]}.study")
