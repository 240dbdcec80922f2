"""Claims: what *Re-examining Scheduling and Communication* says of programs under disturbances (D-1 to D-8), graded.

`crosswind reproduce scheduling-and-communication`: five programs on 64 ranks, windows of 1 to 512 packets; in the full
form means over five seeds where anything is drawn. The record says which form it is of, and keeps each claim's parts
with their grades, and each figure's slowdowns (mean, least, most over the seeds). Nothing is timed but the study as a
whole: a simulation says the same on any machine. It goes on where it was stopped, so it may be run in slices; then the
record has no time.

    python benchmarks/scheduling_study.py [full|quick [DIRECTORY [SECONDS]]]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import record

from crosswind.papers.scheduling_and_communication import calibration
from crosswind.papers.scheduling_and_communication.study import Study, reproduce
from crosswind.run.results import Runs


class OutOfTimeError(Exception):
    """The slice is over."""


def columns(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what each point sets and what came of it, as columns."""
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in ("bounds", "policy")]
    return {name: [_short(row.get(name)) for row in rows] for name in names}


def _short(value: Any) -> Any:
    return float(f"{value:.5g}") if isinstance(value, float) else value


def claims(study: Study) -> list[dict[str, Any]]:
    """Return each claim with its parts and their grades."""
    return [claim.summary() for claim in study.claims]


def main(form: calibration.Form, directory: Path, seconds: float) -> None:
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
        study = reproduce(directory, form, progress=progress)
    except OutOfTimeError:
        print("the slice is over; the same command goes on")
        sys.exit(75)
    runs = {path.stem: len(Runs.load(path)) for path in sorted(directory.glob("*.json")) if path.stem != "study"}
    took = {"wall_s": time.monotonic() - begun, "cpu_s": time.process_time(), "cpus": len(os.sched_getaffinity(0))}
    found = record.write(
        "scheduling_study",
        [],
        form=study.form,
        runs=runs,
        took=None if took_up else {name: round(value, 1) for name, value in took.items()},
        calibration=calibration.of(form).summary(),
        best_windows=study.best_windows,
        claims=claims(study),
        figures={name: columns(figure["rows"]) for name, figure in study.figures.items()},
    )
    for claim in study.claims:
        print(f"{claim.id}  {claim.verdict:26}  {claim.parts}")
    print(found)


if __name__ == "__main__":
    form_, directory_, seconds_, *_ = [*sys.argv[1:], *("full", "", "inf")[len(sys.argv) - 1 :]]
    kept = Path(directory_) if directory_ else Path(tempfile.mkdtemp(prefix="study-"))
    main("quick" if form_ == "quick" else "full", kept, float(seconds_))
