"""The session of a comparison: quads of runs until it is known, or the time is over. Clock and runs are handed in."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from crosswind.compare.process import LateError, Run
from crosswind.compare.result import Comparison
from crosswind.errors import MeasurementError, warning
from crosswind.statistics.interim import Looks
from crosswind.statistics.jackknife import LEAST_GROUPS
from crosswind.statistics.quads import order_of_quad
from crosswind.terminal.progress import Advance

if TYPE_CHECKING:
    from crosswind.documents.comparison import ComparisonDocument

HELD_TO = 1.1
"""Longest duration of a session, as a multiple of its limit."""


class Runs(Protocol):
    """What runs commands."""

    def run(self, words: Sequence[str], asked_to_end: Callable[[], bool], until: float | None) -> Run | None:
        """Run one; None: it was asked to end."""


@dataclass(frozen=True)
class Settings:
    """What a session does: its limit in s, runs that do not count, one look at the end, seed of the order."""

    seconds: float
    warm_up: int = 1
    to_the_end: bool = False
    seed: int = 1


@dataclass
class Session:
    """Two commands that run in turn; what is measured is added to the document."""

    words: Sequence[Sequence[str]]
    runner: Runs
    settings: Settings
    document: ComparisonDocument
    base: Comparison | None = None
    asked_to_end: Callable[[], bool] = lambda: False
    progress: Advance | None = None
    clock: Callable[[], float] = time.monotonic
    _left: list[dict[str, int]] = field(default_factory=lambda: [{}, {}])
    _runs_left: list[int] = field(default_factory=lambda: [0, 0])
    _longest_s: list[float] = field(default_factory=lambda: [0.0, 0.0])

    def run(self) -> None:
        """Measure until the verdict of the gate is final, or the time is over.

        Raises
        ------
        MeasurementError
            When a command fails, or there is no time for enough runs.
        """
        self._begun = self.clock()
        draw, looks = np.random.default_rng(self.settings.seed), Looks.from_dict(self.document["looks"])
        measured_s, settled = 0.0, not self._warmed_up()
        while not settled and not self.asked_to_end() and self._has_time():
            quad = self._quad(draw)
            if quad is None:
                break
            self.document["wall_s"].append(quad["wall_s"])
            self.document["cpu_s"].append(quad["cpu_s"])
            measured_s = self.clock() - self._begun
            if measured_s >= looks.next_s() and not self.settings.to_the_end:
                looks.look(measured_s)
                self.document["looks"] = looks.to_dict()
                settled = self._is_settled()
            if self.progress:
                part = min(measured_s / self.settings.seconds, 1.0)
                self.progress(part, f"{2 * len(self.document['wall_s'])} runs of each")
        if self.document["wall_s"] and not settled:
            # It ends by the clock, not for what was seen. A look that was taken at the same runs stands.
            looks.look(measured_s, at_the_end=not self.asked_to_end())
            self.document["looks"] = looks.to_dict()
        self._tell_of_what_was_left()
        self.document["interrupted"] = self.asked_to_end()

    def _is_settled(self) -> bool:
        found = Comparison(self.document, self.base)
        return (found.against_base or found.verdict).is_final

    def _warmed_up(self) -> bool:
        """Run each as often as asked without counting; False: it was asked to end."""
        for _ in range(self.settings.warm_up):
            for label in (0, 1):
                if self._run(label) is None:
                    return False
        # The time limit is checked against runs that count: the first one may be slow because caches are cold.
        self._longest_s = [0.0, 0.0]
        return True

    def _run(self, label: int) -> Run | None:
        until = self._begun + HELD_TO * self.settings.seconds
        try:
            run = self.runner.run(self.words[label], self.asked_to_end, until)
        except LateError:
            if self.document["wall_s"]:
                return None
            raise self._too_long(f"{'AB'[label]} had not ended by then") from None
        if run is not None:
            self._longest_s[label] = max(self._longest_s[label], run.wall_s)
            self._runs_left[label] += bool(run.left)
            for name in run.left:
                self._left[label][name] = self._left[label].get(name, 0) + 1
        return run

    def _quad(self, draw: np.random.Generator) -> dict[str, list[float]] | None:
        sums = {"wall_s": [0.0, 0.0], "cpu_s": [0.0, 0.0]}
        for label in order_of_quad(draw):
            run = self._run(label)
            if run is None:
                return None
            sums["wall_s"][label] += run.wall_s
            sums["cpu_s"][label] += run.cpu_s
            if not self.document["wall_s"] and all(sums["wall_s"]):
                self._refuse_too_long(sum(sums["wall_s"]))
        return sums

    @property
    def _quad_s(self) -> float:
        """How long a quad takes, at most, so far."""
        return 2.0 * sum(self._longest_s)

    def _has_time(self) -> bool:
        gone = self.clock() - self._begun
        return gone < self.settings.seconds and gone + self._quad_s <= HELD_TO * self.settings.seconds

    def _refuse_too_long(self, of_first_quad_s: float) -> None:
        """Refuse, once one run of each is timed, what has no time for the fewest quads that give an interval."""
        needed = self.clock() - self._begun + LEAST_GROUPS * self._quad_s - of_first_quad_s
        if needed > HELD_TO * self.settings.seconds:
            a, b = (f"{one:.3g} s" for one in self._longest_s)
            raise self._too_long(f"one run of A takes {a}, one of B {b}", needed)

    def _too_long(self, why: str, needed: float = math.nan) -> MeasurementError:
        runs = 2 * LEAST_GROUPS
        message = f"--seconds is {self.settings.seconds:g}, and {runs} runs of each are the fewest: {why}"
        hint = "a smaller input" if math.isnan(needed) else f"--seconds {math.ceil(needed)} or more, or a smaller input"
        return MeasurementError(message, "too-long", hint)

    def _tell_of_what_was_left(self) -> None:
        for label, names in enumerate(self._left):
            if names:
                count, runs = sum(names.values()), self._runs_left[label]
                shown = ", ".join(sorted(names, key=lambda name: -names[name])[:3])
                message = (
                    f"{'AB'[label]} left {count} process{'es' * (count > 1)} behind in {runs} run{'s' * (runs > 1)} "
                )
                message += f"({shown}): they were ended, and their CPU time is not counted"
                hint = "have it wait for what it starts (`wait` in a shell), so that this is timed as well"
                self.document["warnings"].append(warning("left-behind", message, hint))
