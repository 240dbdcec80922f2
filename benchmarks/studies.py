"""Claims: what the papers say, run again by `crosswind reproduce` and graded, one record for each paper.

The record says which form it is of, and keeps each claim's parts with their grades, and what its tables and figures
came to (mean, least, most over the seeds). Nothing is timed but the study as a whole: a simulation says the same on
any machine. A study goes on where it was stopped, so it may be run in slices; then its record has no time.

    python benchmarks/studies.py [full|quick [PAPER [DIRECTORY [SECONDS]]]]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import record

from crosswind.lab.papers import studies
from crosswind.lab.papers.scheduling_and_communication import calibration as scheduling
from crosswind.lab.papers.tabled_study import TabledStudy
from crosswind.run.results import Runs

RECORDS = {
    "scheduling-and-communication": "scheduling_study",
    "communication-interactions": "interactions_study",
    "quadrics-overlap": "overlap_study",
    "interference-aware-scheduling": "fork_study",
    "interference-in-java": "java_study",
}


class OutOfTimeError(Exception):
    """The slice is over."""


def columns(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what each point sets and what came of it, as columns."""
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in ("bounds", "policy")]
    return {name: [_short(row.get(name)) for row in rows] for name in names}


def _short(value: Any) -> Any:
    return float(f"{value:.5g}") if isinstance(value, float) else value


def found(study: studies.AnyStudy) -> dict[str, Any]:
    """Return what the study's tables and figures came to."""
    if isinstance(study, TabledStudy):
        parts = {
            part.id: {"columns": part.columns, "rows": [[_short(cell) for cell in row] for row in part.rows]}
            for part in study.parts
        }
        return {"calibration": study.calibration, "parts": parts}
    return {
        "calibration": scheduling.of(study.form).summary(),
        "best_windows": study.best_windows,
        "figures": {name: columns(figure["rows"]) for name, figure in study.figures.items()},
    }


def main(form: studies.Form, paper: str, directory: Path, seconds: float) -> None:
    begun, told = time.monotonic(), 0.0
    took_up = any(directory.glob("*.json"))

    def progress(part: float, message: str) -> None:
        nonlocal told
        now = time.monotonic() - begun
        if now > seconds:
            raise OutOfTimeError
        if now > told + 20.0:
            told = now
            print(f"{part:6.1%}  {message}", flush=True)

    try:
        study = studies.reproduce(paper, directory, form, progress=progress)
    except OutOfTimeError:
        print("the slice is over; the same command goes on")
        sys.exit(75)
    runs = {path.stem: len(Runs.load(path)) for path in sorted(directory.glob("*.json")) if path.stem != "study"}
    took = {"wall_s": time.monotonic() - begun, "cpu_s": time.process_time(), "cpus": len(os.sched_getaffinity(0))}
    written = record.write(
        RECORDS[paper],
        [],
        form=study.form,
        runs=runs,
        took=None if took_up else {name: round(value, 1) for name, value in took.items()},
        claims=[claim.summary() for claim in study.claims],
        **found(study),
    )
    for claim in study.claims:
        print(f"{claim.id}  {claim.verdict:26}  {claim.parts}")
    print(written)


if __name__ == "__main__":
    form_, paper_, directory_, seconds_, *_ = [*sys.argv[1:], *("full", "", "", "inf")[len(sys.argv) - 1 :]]
    for each in [paper_] if paper_ else list(RECORDS):
        kept = Path(directory_) / each if directory_ else Path(tempfile.mkdtemp(prefix="study-"))
        main("quick" if form_ == "quick" else "full", each, kept, float(seconds_))
