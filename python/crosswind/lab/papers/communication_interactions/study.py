"""The whole study in one directory, resumable and graded: `study.json`, and a file of runs per figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crosswind import Runs
from crosswind.lab.papers.communication_interactions.calibration import Calibration, of
from crosswind.lab.papers.communication_interactions.claims import claims
from crosswind.lab.papers.communication_interactions.figures import all_figures
from crosswind.lab.papers.communication_interactions.parts import parts
from crosswind.lab.papers.communication_interactions.rows import Rows
from crosswind.lab.papers.driver import Work
from crosswind.lab.papers.tabled_study import TabledStudy

__all__ = ["PAPER", "TITLE", "expected", "of", "studied", "study"]

PAPER = "communication-interactions"
"""Name of the paper on the command line and in files."""
TITLE = "Characterizing and Scheduling Communication Interactions of Parallel and Local Jobs"


def expected(chosen: Calibration) -> dict[str, int]:
    """Return how many runs each figure has."""
    return {figure.id: len(figure) for figure in all_figures(chosen)}


def study(chosen: Calibration, work: Work) -> TabledStudy:
    """Run every figure of the paper, and grade its claims."""
    for figure in all_figures(chosen):
        work.perform(figure.id, figure)
    return studied(work.runs, chosen)


def studied(runs: Mapping[str, Runs[Any]], chosen: Calibration) -> TabledStudy:
    """Return the study of such runs, by figure."""
    rows = Rows(runs, chosen)
    return TabledStudy(PAPER, TITLE, chosen.form, chosen.table(), claims(rows, chosen), parts(rows, chosen))
