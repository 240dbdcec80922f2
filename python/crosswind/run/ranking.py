"""Ranks of the values of a swept field, and how far each is behind the best: differences paired by seed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb, sqrt
from statistics import fmean, stdev
from typing import Any

from crosswind.run.fastest import ROUNDING
from crosswind.run.results import AnyRun, Runs, shown_value
from crosswind.statistics.digits import plain, with_half
from crosswind.statistics.interval import CONFIDENCE, reach
from crosswind.tables import Column, Table

ORDER = "policy.order"
MEASURES = {"farm": "makespan_s", "program": "slowdown"}
"""What is compared by default; the smallest is the best."""
FLOW = "flow.mean_s"
"""What is compared by default where tasks arrive over time."""


@dataclass(frozen=True)
class Ranked:
    """One value of the field.

    Attributes
    ----------
    value
        As in the sweep.
    rank : float
        Mean over points and seeds, 1 is the best; equal values share the mean of their ranks.
    best_at : int
        Points where no value has a smaller mean over the seeds.
    behind : float
        By how much its measure is above that of the best value, as a part of it: mean over points and seeds.
    half : float or None
        Half of the interval of `behind`; None with one seed. The level of 95 % holds for all pairs at once.
    """

    value: Any
    rank: float
    best_at: int
    behind: float
    half: float | None

    @property
    def difference(self) -> str:
        """`behind` in per cent with its interval, and whether it is tied."""
        if self.half is None:
            return plain(100 * self.behind)
        return f"{with_half(100 * self.behind, 100 * self.half)}{', tied' if self.is_tied else ''}"

    @property
    def is_tied(self) -> bool:
        """Whether the interval of `behind` includes 0."""
        return self.behind <= ROUNDING if self.half is None else self.behind - self.half <= ROUNDING


@dataclass(frozen=True)
class Ranking:
    """The values of a field, the best first.

    Attributes
    ----------
    path : str
        The swept field.
    measure : str
        What is compared; the smallest is the best.
    rows : list of Ranked
        By `behind`; the first is the best value, 0 behind.
    points : int
        Combinations of the other swept fields.
    seeds : int
        Seeds that each value ran with at each point. The same ones: common random numbers.
    left_out : int
        Runs that another value, or another point, has not with the same seed.
    """

    path: str
    measure: str
    rows: list[Ranked]
    points: int
    seeds: int
    left_out: int

    def tables(self, most: int | None = None) -> list[Table]:
        """Return the values, the best first, with how far each is behind it.

        Examples
        --------
        >>> rows = [Ranked("planned", 1.1, 15, 0.0, 0.0), Ranked("arrival", 1.9, 1, 0.0612, 0.0075)]
        >>> Ranking("policy.order", "makespan_s", rows, 16, 30, 0).tables()[0].rows
        [['planned', '1.1', '15 of 16', 'the best'], ['arrival', '1.9', '1 of 16', '6.1 ± 0.8']]
        """
        name = self.path.rsplit(".", 1)[-1]
        columns = [Column(name, term="order" if self.path == ORDER else "", numeric=False)]
        columns += [Column("mean rank"), Column("best at"), Column("% behind the best")]
        rows = [
            [
                shown_value(row.value),
                f"{row.rank:.1f}",
                f"{row.best_at} of {self.points}",
                "the best" if row is self.rows[0] else row.difference,
            ]
            for row in self.rows[:most]
        ]
        title, first = f"Ranks by {self.measure}", (name, "% behind the best", "mean rank")
        return [Table(title, columns, rows, " ".join(self.notes), first=first)]

    @property
    def notes(self) -> list[str]:
        """How the runs are paired, and what ± holds for."""
        points = f"{self.points} point{'' if self.points == 1 else 's'}"
        if self.seeds == 1:
            notes = [
                "Ranks are of one run per value and point; with drawn tasks, --set repetitions=30 gives intervals."
            ]
        else:
            paired = f"Ranks: every value ran with the same {self.seeds} seeds at {points} (common random numbers)."
            notes = [paired, "± of a difference: paired by seed, 95 % for all pairs of values at once."]
        if self.left_out:
            runs = f"{self.left_out} run{'' if self.left_out == 1 else 's'}"
            notes.append(f"{runs} without a partner of the same seed and point: left out of the ranks.")
        return notes

    @property
    def is_settled(self) -> bool:
        """Whether each other value is behind the best by more than chance explains."""
        return not any(row.is_tied for row in self.rows[1:])


def ranking(runs: Runs[Any], path: str = ORDER, measure: str | None = None) -> Ranking | None:
    """Rank the values of a swept field over all points.

    The best is the value with the smallest mean over points and seeds, each run as a part of the mean over all values
    with the same point and seed. The interval of a difference is Student's over the seeds, of the differences averaged
    over the points; its level is Bonferroni's for all pairs, so that it holds although the best is chosen by the data.

    Parameters
    ----------
    runs : Runs
    path : str
        Of the sweep.
    measure : str, optional
        A column of the runs (`Runs.to_arrow`) with numbers above 0; default: the makespan of farms, their mean
        flow time where tasks arrive over time, the slowdown of programs.

    Returns
    -------
    Ranking or None
        None where fewer than two values ran with the same point and seed, or the runs have no such measure.

    Examples
    --------
    >>> def run(order, seed, makespan):
    ...     return Run({"params": {"policy.order": order}, "seed": seed, "makespan_s": makespan})
    >>> from crosswind.run.results import Run
    >>> seconds = {"planned": [10.0, 20.0, 30.0], "arrival": [11.0, 22.2, 33.0]}
    >>> made = [run(order, seed, s) for order, several in seconds.items() for seed, s in enumerate(several)]
    >>> for row in ranking(Runs("e", "sim", made)).rows:
    ...     print(row.value, row.rank, row.best_at, f"{100 * row.behind:.2f} % ± {100 * row.half:.2f}")
    planned 1.0 1 0.00 % ± 0.00
    arrival 2.0 0 10.33 % ± 1.43
    """
    measure = measure or _usual(runs)
    if measure is None:
        return None
    cells = _cells(runs, path, measure)
    keys = list(dict.fromkeys(key for point in cells.values() for key in point))
    if len(keys) < 2:
        return None
    whole = [
        {seed for seed in _seeds(point) if all(seed in point.get(key, {}) for key in keys)} for point in cells.values()
    ]
    seeds = sorted(set.intersection(*whole))
    if not seeds:
        return None
    table = [[[point[key][seed] for key in keys] for seed in seeds] for point in cells.values()]
    return ranked(
        table, [json.loads(key) for key in keys], path, measure, len(runs) - len(table) * len(seeds) * len(keys)
    )


def _usual(runs: Runs[Any]) -> str | None:
    flows = runs.kind == "farm" and all(run.data.get("flow") is not None for run in runs)
    return FLOW if flows else MEASURES.get(runs.kind)


def _cells(runs: Runs[AnyRun], path: str, measure: str) -> dict[str, dict[str, dict[int, float]]]:
    """Return point -> value of the path -> seed -> measure, for the runs that have them."""
    cells: dict[str, dict[str, dict[int, float]]] = {}
    for run in runs:
        value = _number_of(run, measure)
        if path in run.params and value is not None and value > 0:
            others = {name: one for name, one in run.params.items() if name not in (path, "seed")}
            point = cells.setdefault(json.dumps(others, sort_keys=True), {})
            point.setdefault(json.dumps(run.params[path], sort_keys=True), {})[run.seed] = value
    return cells


def _number_of(run: AnyRun, measure: str) -> float | None:
    value = run.data.get(measure) if measure in run.data else run.row().get(measure)
    return float(value) if isinstance(value, int | float) else None


def _seeds(point: Mapping[str, Mapping[int, float]]) -> set[int]:
    return {seed for by_seed in point.values() for seed in by_seed}


def ranked(table: list[list[list[float]]], values: list[Any], path: str, measure: str, left_out: int = 0) -> Ranking:
    """Rank a complete table of measures above 0, by point, seed and value; `ranking` says how.

    Examples
    --------
    >>> [row.value for row in ranked([[[1.0, 2.0], [1.1, 2.1]]], ["gang", "local"], "schedule", "s").rows]
    ['gang', 'local']
    """
    points, seeds = len(table), len(table[0])
    blocks = [block for point in table for block in point]
    relative = [fmean(block[at] / fmean(block) for block in blocks) for at in range(len(values))]
    best = min(range(len(values)), key=lambda at: relative[at])
    factor = _factor(len(values), seeds)
    rows = []
    for at, value in enumerate(values):
        by_seed = [fmean(point[turn][at] / point[turn][best] - 1.0 for point in table) for turn in range(seeds)]
        half = factor * stdev(by_seed) / sqrt(seeds) if factor is not None else None
        rank = fmean(_rank(block, at) for block in blocks)
        rows.append(Ranked(value, rank, _best_at(table, at), fmean(by_seed), half))
    rows.sort(key=lambda row: (row.value != values[best], row.behind))
    return Ranking(path, measure, rows, points, seeds, left_out)


def _factor(values: int, seeds: int) -> float | None:
    """Return Student's quantile for all pairs of values at once; None with one seed."""
    if seeds < 2:
        return None
    return reach(seeds - 1, 1.0 - (1.0 - CONFIDENCE) / comb(values, 2))


def _rank(block: Sequence[float], at: int) -> float:
    """Return the rank of a value in a block from 1; ties share the mean of their ranks.

    Examples
    --------
    >>> [_rank([3.0, 1.0, 3.0], at) for at in range(3)]
    [2.5, 1.0, 2.5]
    """
    least = ROUNDING * block[at]
    smaller = sum(other < block[at] - least for other in block)
    equal = sum(abs(other - block[at]) <= least for other in block)
    return 1.0 + smaller + (equal - 1) / 2.0


def _best_at(table: list[list[list[float]]], at: int) -> int:
    means = [[fmean(block[value] for block in point) for value in range(len(point[0]))] for point in table]
    return sum(row[at] <= min(row) * (1.0 + ROUNDING) for row in means)
