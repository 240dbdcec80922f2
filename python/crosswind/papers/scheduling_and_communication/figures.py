"""The paper's figures 1 to 5: the runs that each needs, and the rows that come of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from crosswind.disturbance import Disturbance
from crosswind.experiment import Experiment, ProgramPoint
from crosswind.papers.scheduling_and_communication.calibration import PROGRAMS, Calibration, Reading
from crosswind.run.results import ProgramRun, Runs

Setting = tuple[dict[str, Any], dict[str, Any] | None]
"""What a point of a figure sets, and its disturbance."""

JOBS = 2
COSCHEDULED_QUANTUM_S = 0.1


@dataclass(frozen=True)
class Figure:
    """A figure of the paper: points of all programs.

    Attributes
    ----------
    id, title : str
        Such as figure-1.
    settings : list of Setting
        What each point sets: `program`, `window`, `credit`, and what the figure varies.
    """

    id: str
    title: str
    settings: list[Setting]


class FigureGrid:
    """A figure's points as a grid (`crosswind.run.grid.Grid`), each for the calibration's seeds."""

    kind = "program"

    def __init__(self, figure: Figure, calibration: Calibration) -> None:
        self.name = f"{figure.id}: {figure.title}"
        self._figure, self._calibration = figure, calibration

    def __len__(self) -> int:
        """How many runs."""
        return len(self._figure.settings) * self._calibration.repetitions

    def points(self) -> Iterator[ProgramPoint]:
        """Yield every run, the repetitions of a setting together."""
        number = 0
        for setting, disturbance in self._figure.settings:
            description = _description(setting, self._calibration)
            described = Disturbance.from_dict(disturbance) if disturbance else None
            for turn in range(self._calibration.repetitions):
                ours = {**description, "seed": self._calibration.seed + turn}
                yield ProgramPoint(number, setting, ours, described, None)
                number += 1

    def digest(self, on: str) -> str:
        """Return what tells these runs from any others."""
        settings = [[_description(setting, self._calibration), other] for setting, other in self._figure.settings]
        parts = {"on": on, "settings": settings, "repetitions": self._calibration.repetitions}
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _description(setting: Mapping[str, Any], calibration: Calibration) -> dict[str, Any]:
    program = setting["program"]
    workload = {"kind": "program", "program": program, "ranks": calibration.ranks}
    if program in calibration.parameters:
        workload["parameters"] = calibration.parameters[program]
    policy = {"window_packets": setting["window"], "credit": setting.get("credit", "handled")}
    document = {"schema_version": 1, "name": program, "seed": calibration.seed, "network": calibration.network}
    whole = {**document, "workload": workload, "policy": policy}
    return dict(Experiment.from_dict(whole).to_dict())


def windows(calibration: Calibration) -> Figure:
    """Figure 1: every program, dedicated, window by window."""
    settings: list[Setting] = [({"program": p, "window": w}, None) for p in PROGRAMS for w in calibration.windows]
    return Figure("figure-1", "sensitivity to window size, dedicated", settings)


def coscheduled(calibration: Calibration, best: Mapping[str, int]) -> Figure:
    """Section 4's comparison: every program coscheduled with another, window by window."""
    gang = _disturbance("coscheduled", quantum_s=COSCHEDULED_QUANTUM_S, jobs=JOBS)
    tried = {p: sorted({*calibration.coscheduled_windows, best[p]}) for p in PROGRAMS}
    settings: list[Setting] = [({"program": p, "window": w}, gang) for p in PROGRAMS for w in tried[p]]
    return Figure("section-4", "coscheduled with another program, quantum 0.1 s", settings)


def local(calibration: Calibration, best: Mapping[str, int]) -> Figure:
    """Figure 2: every program scheduled locally, with the dedicated window and others, under every reading."""
    settings: list[Setting] = []
    for program in PROGRAMS:
        for reading in calibration.readings:
            for quantum in calibration.local_quanta_s:
                drift = {"drift": calibration.drift} if reading.phases == "drifting" else {}
                alone = _disturbance("local", quantum_s=quantum, jobs=JOBS, phases=reading.phases, **drift)
                for window in sorted({*calibration.local_windows, best[program]}):
                    settings.append((local_setting(program, reading, quantum, window), alone))
    return Figure("figure-2", "locally scheduled with one other program", settings)


def local_setting(program: str, reading: Reading, quantum_s: float, window: int) -> dict[str, Any]:
    """Return what a point of figure 2 sets."""
    return {
        "program": program,
        "phases": reading.phases,
        "credit": reading.credit,
        "quantum_s": quantum_s,
        "window": window,
    }


def skew(calibration: Calibration, best: Mapping[str, int]) -> Figure:
    """Figure 3: coscheduled with skew, with the dedicated window; at the largest skew with a large one as well."""
    settings: list[Setting] = []
    for program in PROGRAMS:
        for quantum in calibration.skew_quanta_s:
            for skew_s in (0.0, *calibration.skews_s):
                gang = _disturbance("coscheduled", quantum_s=quantum, jobs=JOBS, skew_s=skew_s)
                wide = {calibration.large_window} if skew_s == max(calibration.skews_s) else set()
                for window in sorted({best[program], *wide}):
                    ours = {"program": program, "quantum_s": quantum, "skew_s": skew_s, "window": window}
                    settings.append((ours, gang))
    return Figure("figure-3", "coscheduling skew", settings)


def daemons(calibration: Calibration, best: Mapping[str, int]) -> Figure:
    """Figure 4: daemons on every rank, with the dedicated window; at 50 ms every 5 s with a large one as well."""
    settings: list[Setting] = []
    for program in PROGRAMS:
        for duration in calibration.daemon_durations_s:
            for interval in calibration.daemon_intervals_s:
                for polls in calibration.polls:
                    daemon = _disturbance("daemon", interval_s=interval, duration_s=duration, polls=polls)
                    hardest = duration == max(calibration.daemon_durations_s) and interval == 5.0
                    wide = {calibration.large_window} if hardest else set()
                    for window in sorted({best[program], *wide}):
                        varied = {"duration_s": duration, "interval_s": interval, "polls": polls}
                        settings.append(({"program": program, **varied, "window": window}, daemon))
    return Figure("figure-4", "daemon processes", settings)


def shared_node(calibration: Calibration, best: Mapping[str, int]) -> Figure:
    """Figure 5: a serial job on one node, with and without polling, with the dedicated window and a large one."""
    settings: list[Setting] = []
    for program in PROGRAMS:
        for share in calibration.shares:
            for polls in (False, True):
                job = _disturbance(
                    "job", ranks=[calibration.shared_rank], share=share, slice_s=calibration.slice_s, polls=polls
                )
                wide = set() if polls else {calibration.large_window}
                for window in sorted({best[program], *wide}):
                    settings.append(({"program": program, "share": share, "polls": polls, "window": window}, job))
    return Figure("figure-5", "one non-idle processor", settings)


def _disturbance(kind: str, **fields: Any) -> dict[str, Any]:
    return {"schema_version": 1, "name": kind, "source": [{"kind": kind, **fields}]}


@dataclass(frozen=True)
class Row:
    """A point of a figure: what it sets, and means over the seeds.

    Attributes
    ----------
    params : dict
        What the point sets.
    makespan_s, dedicated_s : float
        With the disturbance, and with none.
    low_s, high_s : float
        The shortest and the longest makespan over the seeds.
    stalled : float
        Part of the ranks' time that they waited for credits.
    bounds : dict
        Closed forms of the slowdown, where some apply.
    """

    params: dict[str, Any]
    makespan_s: float
    low_s: float
    high_s: float
    dedicated_s: float
    stalled: float
    bounds: dict[str, float]


class Rows:
    """The rows of every figure, found by what they set.

    Parameters
    ----------
    runs : mapping
        Id of a figure -> its runs.
    """

    def __init__(self, runs: Mapping[str, Runs[ProgramRun]]) -> None:
        self._rows = {figure: [_row(alike) for alike in ours.by_point()] for figure, ours in runs.items()}

    def of(self, figure: str, **where: Any) -> list[Row]:
        """Return the rows of a figure that set all this."""
        return [row for row in self._rows[figure] if all(row.params.get(k) == v for k, v in where.items())]

    def one(self, figure: str, **where: Any) -> Row:
        """Return the only such row.

        Raises
        ------
        KeyError
            When there is none, or more than one.
        """
        found = self.of(figure, **where)
        if len(found) != 1:
            raise KeyError(f"{len(found)} rows of {figure} set {where}")
        return found[0]

    def best_window(self, program: str, figure: str = "figure-1") -> int:
        """Return the window with the shortest mean makespan; of windows alike to the last digit, the smallest."""
        rows = sorted(self.of(figure, program=program), key=lambda row: (row.makespan_s, row.params["window"]))
        return int(rows[0].params["window"])

    def dedicated_s(self, program: str) -> float:
        """Return the dedicated makespan with the best window: what slowdowns are relative to."""
        return self.one("figure-1", program=program, window=self.best_window(program)).makespan_s

    def reference_s(self, figure: str, row: Row) -> float:
        """Return what the figure's caption divides a makespan by, s: the slowdown's denominator (E2-5)."""
        program = row.params["program"]
        match figure:
            case "section-4" | "figure-2":
                return JOBS * self.dedicated_s(program)
            case "figure-3":
                perfect = {"program": program, "quantum_s": row.params["quantum_s"], "skew_s": 0.0}
                return self.one(figure, **perfect, window=self.best_window(program)).makespan_s
        return self.dedicated_s(program)

    def slowdown(self, figure: str, row: Row) -> float:
        """Return a row's slowdown as the figure's caption defines it."""
        return row.makespan_s / self.reference_s(figure, row)


def _row(alike: Sequence[ProgramRun]) -> Row:
    makespans = [run.makespan_s for run in alike]
    whole = sum(makespans) * alike[0].data["ranks"]
    bounds = {name: fmean(run.bounds[name] for run in alike) for name in alike[0].bounds}
    return Row(
        params=alike[0].params,
        makespan_s=fmean(makespans),
        low_s=min(makespans),
        high_s=max(makespans),
        dedicated_s=fmean(run.dedicated_s for run in alike),
        stalled=sum(run.data["stalled_s"] for run in alike) / whole if whole else 0.0,
        bounds=bounds,
    )
