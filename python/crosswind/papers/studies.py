"""The papers that can be run again, and what their `study.json` holds."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from crosswind.errors import DescriptionError
from crosswind.files.reading import json_of
from crosswind.papers.scheduling_and_communication.study import PAPER as SCHEDULING
from crosswind.papers.scheduling_and_communication.study import Study, is_study
from crosswind.papers.tabled_study import TabledStudy

if TYPE_CHECKING:
    from crosswind.run.grid import Progress

AnyStudy: TypeAlias = Study | TabledStudy
Form = Literal["quick", "full"]

MODULES = {
    SCHEDULING: "scheduling_and_communication",
    "communication-interactions": "communication_interactions",
    "quadrics-overlap": "quadrics_overlap",
}
"""Name of each paper on the command line -> its package, whose `study` has `reproduce` and `TITLE`."""

__all__ = ["MODULES", "AnyStudy", "is_study", "load", "reproduce", "title"]


def reproduce(
    paper: str,
    directory: str | Path,
    form: Form = "quick",
    *,
    workers: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> AnyStudy:
    """Run a paper again; parameters as of its own `reproduce`.

    Raises
    ------
    DescriptionError
        For a paper that is unknown, and a directory that cannot be written.
    """
    if paper not in MODULES:
        raise DescriptionError(f"paper is {paper!r}; it must be one of {', '.join(MODULES)}", "argument")
    run: Callable[..., AnyStudy] = _module(paper).reproduce
    return run(directory, form, workers=workers, force=force, progress=progress)


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
    return import_module(f"crosswind.papers.{MODULES[paper]}.study")
