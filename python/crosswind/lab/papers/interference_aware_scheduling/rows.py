"""Results of the runs: times over that of RootComputes, by reading, application and algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crosswind import Run, Runs
from crosswind.lab.papers.figure import key
from crosswind.lab.papers.interference_aware_scheduling.calibration import Calibration, Reading
from crosswind.lab.papers.interference_aware_scheduling.figures import ALGORITHMS, APPLICATIONS, PLANNED, params

ROOT = "RootComputes"


class Rows:
    """The runs of every figure, found by what they set.

    Parameters
    ----------
    runs : mapping
        Id of a figure -> its runs.
    calibration : Calibration
        With which they were run.
    """

    def __init__(self, runs: Mapping[str, Runs[Any]], calibration: Calibration) -> None:
        self.calibration = calibration
        self._found: dict[tuple[str, str], Run] = {
            (figure, key(run.params)): run for figure, own in runs.items() for run in own
        }

    def time(self, reading: Reading, application: tuple[int, int], algorithm: str, figure: str = "figure-5") -> float:
        """Return the makespan over that of RootComputes.

        Raises
        ------
        KeyError
            When there is no such point.
        """
        alone = self._found["figure-5", key(params(reading, application, ROOT))].makespan_s
        return self._found[figure, key(params(reading, application, algorithm))].makespan_s / alone

    def times(self, reading: Reading, application: tuple[int, int]) -> dict[str, float]:
        """Return the times of the six algorithms."""
        return {name: self.time(reading, application, name) for name in ALGORITHMS}

    def best(self, reading: Reading, application: tuple[int, int]) -> str:
        """Return the fastest of the six."""
        times = self.times(reading, application)
        return min(times, key=lambda name: times[name])

    def won(self, reading: Reading, algorithm: str) -> list[tuple[int, int]]:
        """Return the applications at which an algorithm is the fastest of the six."""
        return [application for application in APPLICATIONS if self.best(reading, application) == algorithm]

    def of_bound(self, reading: Reading) -> float:
        """Return the least part of the bound that the exact plan's rates reach, over the applications."""
        found = [self._found["figure-5", key(params(reading, a, PLANNED))].of_bound for a in APPLICATIONS]
        return min(part for part in found if part is not None)
