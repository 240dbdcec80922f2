"""Longest processing time first (LPT): its schedule, the optimum, and Graham's bound on their ratio."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from crosswind import DescriptionError, InfeasibleError
from crosswind.lab import engine
from crosswind.lab.drawing import COLOURS, IDLE, MUTED, Drawing, fits, write_drawing

MOST_JOBS, MOST_MACHINES = 1000, 100
_SEARCHED = 40  # jobs: with more, the search takes a minute to prove nothing
_WIDTH, _LABEL, _ROW = 960.0, 110.0, 34.0


@dataclass(frozen=True)
class LongestFirst:
    """Jobs on identical machines, longest first, beside the optimum.

    Attributes
    ----------
    longest_first : list of list of float
        Jobs of each machine, in the order in which it runs them; any unit of time.
    optimum : list of list of float, optional
        An optimal schedule; None where the search, of at most 40 jobs, did not prove one.
    makespan : float
        When the last job ends, longest first.
    least : float
        The optimum's makespan; without an optimum a lower bound of it.
    guarantee : float
        4/3 - 1/(3m), the most that `ratio` can be on m machines (Graham 1969).
    """

    longest_first: list[list[float]]
    optimum: list[list[float]] | None
    makespan: float
    least: float
    guarantee: float

    @property
    def ratio(self) -> float:
        """Makespan over the optimum's, at least 1; without an optimum at most this."""
        return self.makespan / self.least


def longest_first(times: Sequence[float], machines: int) -> LongestFirst:
    """Schedule jobs longest first, and search for the optimum.

    Parameters
    ----------
    times : sequence of float
        1 to 1000 jobs, greater than 0, any unit.
    machines : int
        1 to 100.

    Raises
    ------
    DescriptionError
        When an argument is out of range.

    Examples
    --------
    >>> found = longest_first([5, 5, 4, 4, 3, 3, 3], 3)
    >>> found.makespan, found.least, found.optimum
    (11.0, 9.0, [[5.0, 4.0], [5.0, 4.0], [3.0, 3.0, 3.0]])
    >>> round(found.ratio / found.guarantee, 12)
    1.0
    """
    _check(times, machines)
    jobs = sorted(map(float, times), reverse=True)
    makespan, greedy = engine.makespan(jobs, machines)
    least = _lower_bound(jobs, machines)
    optimum: list[int] | None = greedy if makespan == least else None
    if optimum is None and len(jobs) <= _SEARCHED:
        with suppress(InfeasibleError):  # the lower bound stands then
            least, optimum = engine.makespan(jobs, machines, engine.EXACT_BUDGET)
    guarantee = engine.lpt_ratio_bound(machines)
    proven = None if optimum is None else _by_machine(jobs, optimum, machines)
    return LongestFirst(_by_machine(jobs, greedy, machines), proven, makespan, least, guarantee)


def tight(machines: int) -> list[float]:
    """Return 2m + 1 jobs on which longest first reaches Graham's bound: 4m - 1 instead of 3m.

    Raises
    ------
    DescriptionError
        When `machines` is out of range.
    """
    _check([1.0], machines)
    return engine.tight_family(machines)


def write_figure(found: LongestFirst, out: str | Path) -> None:
    """Draw both schedules, one below the other, as SVG, PNG or PDF by the suffix."""
    shown = [("longest first", found.longest_first)]
    if found.optimum is not None:
        shown.append(("optimum", found.optimum))
    rows = len(found.longest_first)
    drawing = Drawing(_WIDTH, len(shown) * (rows * _ROW + 74.0) + 30.0)
    scale = (_WIDTH - _LABEL - 20.0) / found.makespan
    colours = {job: COLOURS[1 + at % (len(COLOURS) - 1)] for at, job in enumerate(_lengths(found.longest_first))}
    top = 40.0
    for name, schedule in shown:
        last = max(map(sum, schedule))
        drawing.text(10, top - 14, f"{name}: the last job ends at {last:.10g}", 20)
        for machine, jobs in enumerate(schedule):
            _draw_machine(drawing, top + machine * _ROW, machine, jobs, scale, colours, found.makespan)
        drawing.line(_LABEL + last * scale, top - 6, _LABEL + last * scale, top + rows * _ROW, "#1c2126", 2)
        top += rows * _ROW + 74.0
    ratio = f"{'' if found.optimum else 'at most '}{found.ratio:.3f} times the optimum"
    graham = f"at most {found.guarantee:.3f} on {rows} machine{'s' if rows > 1 else ''} (4/3 - 1/(3m))"
    drawing.text(10, top - 30, f"{ratio}; {graham}", 18, colour=MUTED)
    write_drawing(drawing, out)


def _draw_machine(
    drawing: Drawing, y: float, machine: int, jobs: list[float], scale: float, colours: dict[float, str], end: float
) -> None:
    drawing.text(10, y + 20, f"machine {machine + 1}", 16)
    drawing.rect(_LABEL, y, end * scale, _ROW - 6, IDLE)
    begin = 0.0
    for job in jobs:
        x, width = _LABEL + begin * scale, job * scale
        drawing.rect(x, y, max(width - 1.0, 0.5), _ROW - 6, colours[job])
        if fits(f"{job:.10g}", width, 15):
            drawing.text(x + width / 2, y + 20, f"{job:.10g}", 15, "middle", "#ffffff")
        begin += job


def _lengths(schedule: list[list[float]]) -> list[float]:
    return sorted({job for jobs in schedule for job in jobs}, reverse=True)


def _by_machine(jobs: list[float], assigned: list[int], machines: int) -> list[list[float]]:
    """Return the jobs of each machine, in the order given."""
    parts: list[list[float]] = [[] for _ in range(machines)]
    for job, machine in zip(jobs, assigned, strict=True):
        parts[machine].append(job)
    return parts


def _lower_bound(jobs: list[float], machines: int) -> float:
    """Return a bound of every makespan: the mean load, the longest job, and two of the m + 1 longest on one machine."""
    two = jobs[machines - 1] + jobs[machines] if len(jobs) > machines else 0.0
    return max(math.fsum(jobs) / machines, jobs[0], two)


def _check(times: Sequence[float], machines: int) -> None:
    if isinstance(machines, bool) or not isinstance(machines, int) or not 1 <= machines <= MOST_MACHINES:
        raise DescriptionError(
            f"machines is {machines!r}; it must be a whole number from 1 to {MOST_MACHINES}", "argument"
        )
    if not 1 <= len(times) <= MOST_JOBS:
        raise DescriptionError(f"there are {len(times)} jobs; there must be 1 to {MOST_JOBS}", "argument")
    if (wrong := next((job for job in times if not 0.0 < job <= 1e9), None)) is not None:
        raise DescriptionError(f"a job is {wrong:g}; it must be greater than 0 and at most 1e9", "argument")
