"""The paper's figures 1 to 5: the runs that each needs, and the rows that come of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from statistics import fmean
from typing import Any

from crosswind import Disturbance, Experiment, ProgramPoint, ProgramRun, Runs
from crosswind.documents import Document
from crosswind.lab.engine import build_digest
from crosswind.lab.papers.scheduling_and_communication.calibration import (
    MOST_LONGER,
    PAPERS,
    PAPERS_WINDOWS,
    PROGRAMS,
    Calibration,
    Filling,
    Reading,
)
from crosswind.statistics.interval import span

Setting = tuple[Document, Document | None]
"""What a point of a figure sets, and its disturbance."""

WINDOWS = "figure-1"
FILLING = "figure-1-filling"
FINE = "fine-sample"
FINE_FILLING = "fine-sample-filling"
FINE_DISTURBED = "fine-sample-disturbed"
MORE_JOBS = "figure-2-more-jobs"
SYNCS = "connect-syncs"
DRAWN_ANEW = "figure-3-drawn-anew"
SKEWED_BARRIERS = "figure-3-barriers"
BARRIERS = "figure-4-barriers"
LONGER = "figure-4-longer"
DISTURBED = "filling-disturbed"
STAGGERED = "figure-4-staggered"
ONE_SUM = "figure-1-one-sum"
OF_PROGRAMS = ("sums_at_once", "operation_s", "gets_per_sync")
"""Parameters of a program that a figure varies."""
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
    parameters : dict
        Of each program, where they are not those of the calibration.
    """

    id: str
    title: str
    settings: list[Setting]
    parameters: Mapping[str, Document] = field(default_factory=dict)


class FigureGrid:
    """A figure's points as a grid (`crosswind.Grid`), each for the calibration's seeds where any are drawn."""

    kind = "program"

    def __init__(self, figure: Figure, calibration: Calibration) -> None:
        self.name = f"{figure.id}: {figure.title}"
        self._figure, self._calibration = figure, calibration

    def __len__(self) -> int:
        """How many runs."""
        return sum(self._turns(disturbance) for _, disturbance in self._figure.settings)

    def points(self) -> Iterator[ProgramPoint]:
        """Yield every run, the programs in turn, so that the pace so far is that of all."""
        by_program: dict[str, list[tuple[int, Setting, int]]] = {}
        number = 0
        for setting in self._figure.settings:
            for turn in range(self._turns(setting[1])):
                by_program.setdefault(setting[0]["program"], []).append((number, setting, turn))
                number += 1
        for one in chain.from_iterable(zip_longest(*by_program.values())):
            if one is not None:
                yield self._point(*one)

    def _point(self, number: int, setting: Setting, turn: int) -> ProgramPoint:
        params, disturbance = setting
        description = {**self._described(params), "seed": self._calibration.seed + turn}
        return ProgramPoint(
            number, params, description, Disturbance.from_dict(disturbance) if disturbance else None, None
        )

    def _turns(self, disturbance: Mapping[str, Any] | None) -> int:
        return self._calibration.repetitions if is_drawn(disturbance) else 1

    def digest(self, on: str) -> str:
        """Return what identifies these runs, the build included."""
        settings = [[self._described(setting), other] for setting, other in self._figure.settings]
        parts = {"on": on, "settings": settings, "repetitions": self._calibration.repetitions, "build": build_digest()}
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _described(self, setting: Mapping[str, Any]) -> Document:
        return _description(setting, self._calibration, self._figure.parameters)


def is_drawn(disturbance: Mapping[str, Any] | None) -> bool:
    """Whether anything of a disturbance is drawn: otherwise all seeds come to the same.

    Examples
    --------
    >>> is_drawn({"source": [{"kind": "coscheduled", "quantum_s": 0.1}]}), is_drawn(None)
    (False, False)
    >>> is_drawn({"source": [{"kind": "coscheduled", "quantum_s": 0.1, "skew_s": 0.01}]})
    True
    """
    sources = disturbance["source"] if disturbance else []
    return any(source["kind"] != "coscheduled" or source.get("skew_s", 0.0) > 0.0 for source in sources)


def _description(setting: Mapping[str, Any], calibration: Calibration, parameters: Mapping[str, Document]) -> Document:
    program = setting["program"]
    workload = {"kind": "program", "program": program, "ranks": calibration.ranks, "seed": calibration.seed}
    given = {**calibration.parameters, **parameters}
    own = {**given.get(program, {}), **{name: setting[name] for name in OF_PROGRAMS if name in setting}}
    if own:
        workload["parameters"] = own
    policy = {
        "window_packets": setting["window"],
        "credit": setting.get("credit", "handled"),
        **setting.get("policy", {}),
    }
    network: Any = calibration.network
    if "polls_per_send" in setting:
        network = Filling(setting["buffer_packets"], setting["polls_per_send"]).network()
    document = {"schema_version": 1, "name": program, "seed": calibration.seed, "network": network}
    whole = {**document, "workload": workload, "policy": policy}
    return dict(Experiment.from_dict(whole).to_dict())


def windows(calibration: Calibration) -> Figure:
    """Figure 1: every program, dedicated, window by window."""
    settings: list[Setting] = [({"program": p, "window": w}, None) for p in PROGRAMS for w in calibration.windows]
    return Figure(WINDOWS, "sensitivity to window size, dedicated", settings)


def one_sum(calibration: Calibration) -> Figure:
    """Figure 1 for a CHOLESKY that waits for each sum: how many are under way the text does not say."""
    settings: list[Setting] = [
        ({"program": "cholesky", "sums_at_once": 1, "window": window}, None) for window in calibration.filling_windows
    ]
    return Figure(ONE_SUM, "sensitivity to window size, one sum of CHOLESKY at a time", settings)


def filling(calibration: Calibration) -> Figure:
    """Figure 1 in a network that can fill, under every reading of it."""
    settings: list[Setting] = [
        ({"program": program, **reading.setting, "window": window}, None)
        for program in PROGRAMS
        for reading in calibration.fillings
        for window in calibration.filling_windows
    ]
    return Figure(
        FILLING, "sensitivity to window size, a network that can fill", settings, calibration.filling_parameters
    )


def filling_disturbed(calibration: Calibration, rows: Rows) -> Figure:
    """Such a network under daemons of 50 ms and beside a serial job: its best dedicated window, and a large one."""
    daemon = described("daemon", interval_s=5.0, duration_s=max(calibration.daemon_durations_s))
    job = serial_job(calibration, min(calibration.shares))
    settings: list[Setting] = []
    for program in calibration.filling_disturbed:
        for reading in calibration.fillings:
            for window in sorted({rows.best_window(program, FILLING, **reading.setting), calibration.large_window}):
                params = {"program": program, **reading.setting, "window": window}
                settings += [({**params, "under": "daemons"}, daemon), ({**params, "under": "serial job"}, job)]
    return Figure(DISTURBED, "large windows in a network that can fill", settings)


def fine_sample(calibration: Calibration) -> Figure:
    """SAMPLE at the finest grain that the processor allows, dedicated, window by window."""
    fine = {"program": "sample", "operation_s": calibration.fine_operation_s}
    settings: list[Setting] = [({**fine, "window": window}, None) for window in calibration.filling_windows]
    return Figure(FINE, "SAMPLE at a fine grain, dedicated", settings)


def fine_sample_filling(calibration: Calibration) -> Figure:
    """SAMPLE at its finest grain in a network that can fill, under every reading of it."""
    fine = {"program": "sample", "operation_s": calibration.fine_operation_s}
    settings: list[Setting] = [
        ({**fine, **reading.setting, "window": window}, None)
        for reading in calibration.fillings
        for window in calibration.filling_windows
    ]
    title = "SAMPLE at a fine grain, a network that can fill"
    return Figure(FINE_FILLING, title, settings, calibration.filling_parameters)


def fine_sample_disturbed(calibration: Calibration, rows: Rows) -> Figure:
    """SAMPLE at a fine grain under the hardest daemons, local scheduling and the greediest serial job."""
    daemon = {"interval_s": 5.0, "duration_s": max(calibration.daemon_durations_s)}
    quantum_s, share = min(calibration.local_quanta_s), min(calibration.shares)
    under: list[tuple[Document, Document | None]] = [
        ({"under": "daemons", "polls": polls, "credit": _credit(polls)}, described("daemon", **daemon, polls=polls))
        for polls in calibration.polls
    ]
    under.append(({"under": "serial job", "credit": "handled"}, serial_job(calibration, share)))
    for reading in (one for one in calibration.readings if one.windows != PAPERS):
        own = {"under": "local", "phases": reading.phases, "credit": reading.credit, "quantum_s": quantum_s}
        under.append((own, local_job(calibration, reading, quantum_s)))
    fine = {"program": "sample", "operation_s": calibration.fine_operation_s}
    tried = sorted({rows.best_window("sample", FINE), PAPERS_WINDOWS["sample"], calibration.large_window})
    settings: list[Setting] = [
        ({**fine, **varied, "window": window}, disturbance) for varied, disturbance in under for window in tried
    ]
    return Figure(FINE_DISTURBED, "SAMPLE at a fine grain, disturbed", settings)


def more_jobs(calibration: Calibration, best: Mapping[str, int]) -> Figure:
    """Figure 2 with more than one other program, the dedicated windows and the shorter quantum."""
    quantum_s = min(calibration.local_quanta_s)
    settings: list[Setting] = []
    for program in PROGRAMS:
        for reading in (one for one in calibration.readings if one.windows != PAPERS):
            other = local_job(calibration, reading, quantum_s, jobs=calibration.more_jobs)
            varied = local_setting(program, reading, quantum_s, best[program])
            settings.append(({**varied, "jobs": calibration.more_jobs}, other))
    return Figure(MORE_JOBS, f"locally scheduled with {calibration.more_jobs - 1} other programs", settings)


def connect_syncs(calibration: Calibration, best: Mapping[str, int]) -> Figure:
    """CONNECT that waits for its gets more often, under the hardest daemons, the largest skew and local scheduling.

    The text has 40 us of computing between messages, and does not say how many gets go before a sync.
    """
    quantum_s, duration_s = min(calibration.skew_quanta_s), max(calibration.daemon_durations_s)
    settings: list[Setting] = []
    for gets in calibration.gets_per_sync:
        own = {"program": "connect", "gets_per_sync": gets, "window": best["connect"]}
        for polls in calibration.polls:
            daemon = described("daemon", interval_s=5.0, duration_s=duration_s, polls=polls)
            settings.append(({**own, "under": "daemons", "polls": polls, "credit": _credit(polls)}, daemon))
        for skew_s in (0.0, max(calibration.skews_s)):
            gang = described("coscheduled", quantum_s=quantum_s, jobs=JOBS, skew_s=skew_s)
            settings.append(({**own, "under": "skew", "quantum_s": quantum_s, "skew_s": skew_s}, gang))
        reading, local_s = calibration.readings[0], min(calibration.local_quanta_s)
        varied = {"under": "local", "phases": reading.phases, "credit": reading.credit, "quantum_s": local_s}
        settings.append(({**own, **varied}, local_job(calibration, reading, local_s)))
    return Figure(SYNCS, "CONNECT with more syncs, disturbed", settings)


def drawn_anew(calibration: Calibration, best: Mapping[str, int]) -> Figure:
    """EM3D under figure 3's largest skew, drawn for each quantum: "offset the start time of each ... quanta"."""
    quantum_s, skew_s = min(calibration.skew_quanta_s), max(calibration.skews_s)
    gang = described("coscheduled", quantum_s=quantum_s, jobs=JOBS, skew_s=skew_s, skew_drawn="per-quantum")
    own = {"program": "em3d", "quantum_s": quantum_s, "skew_s": skew_s, "window": best["em3d"]}
    return Figure(DRAWN_ANEW, "coscheduling skew, drawn anew", [(own, gang)], calibration.skewed_parameters)


def skewed_barriers(calibration: Calibration, best: Mapping[str, int]) -> Figure:
    """EM3D with other work between two barriers, with none and with the largest of figure 3's skews."""
    quantum_s = min(calibration.skew_quanta_s)
    settings: list[Setting] = []
    for operation_s in calibration.em3d_operations_s:
        for skew_s in (0.0, max(calibration.skews_s)):
            gang = described("coscheduled", quantum_s=quantum_s, jobs=JOBS, skew_s=skew_s)
            own = {"program": "em3d", "operation_s": operation_s, "window": best["em3d"]}
            settings.append(({**own, "quantum_s": quantum_s, "skew_s": skew_s}, gang))
    title = "coscheduling skew, EM3D with other work between barriers"
    return Figure(SKEWED_BARRIERS, title, settings, calibration.skewed_parameters)


def barriers(calibration: Calibration, best: Mapping[str, int]) -> Figure:
    """EM3D with the least and the most work between two barriers, under figure 4's hardest daemons."""
    duration_s = max(calibration.daemon_durations_s)
    settings: list[Setting] = []
    for operation_s in sorted({min(calibration.em3d_operations_s), max(calibration.em3d_operations_s)}):
        for polls in calibration.polls:
            daemon = described("daemon", interval_s=5.0, duration_s=duration_s, polls=polls)
            own = {"program": "em3d", "operation_s": operation_s, "window": best["em3d"]}
            varied = {"duration_s": duration_s, "interval_s": 5.0, "polls": polls, "credit": _credit(polls)}
            settings.append(({**own, **varied}, daemon))
    return Figure(BARRIERS, "daemon processes, EM3D with other work between barriers", settings)


def longer(calibration: Calibration, best: Mapping[str, int], rows: Rows) -> Figure:
    """Daemons that poll, and run as much longer as buffering could make them: "may run longer" (section 6).

    Credits return when packets are handled, so this is the most that such daemons cost. Then it makes no difference
    whether they poll.
    """
    fine = {"program": "sample", "operation_s": calibration.fine_operation_s}
    points: list[tuple[Document, Iterable[int]]] = [({"program": p}, dedicated_windows(best, p)) for p in PROGRAMS]
    heavy: list[tuple[Document, Iterable[int]]] = [
        (fine, {rows.best_window("sample", FINE), PAPERS_WINDOWS["sample"]}),
        *(({"program": "connect", "gets_per_sync": gets}, {best["connect"]}) for gets in calibration.gets_per_sync),
    ]
    settings: list[Setting] = []
    for duration_s, interval_s in calibration.longer_daemons_s:
        hardest = duration_s == max(calibration.daemon_durations_s)
        daemon = described("daemon", interval_s=interval_s, duration_s=MOST_LONGER * duration_s, polls=True)
        varied = {"duration_s": duration_s, "interval_s": interval_s, "polls": True, "credit": "handled"}
        for own, tried in points + (heavy if hardest else []):
            settings += [({**own, **varied, "window": window}, daemon) for window in sorted(tried)]
    return Figure(LONGER, "daemon processes that run longer", settings)


def dedicated_windows(best: Mapping[str, int], program: str) -> set[int]:
    """Return the windows that are best when dedicated: here, and in the paper."""
    return {best[program], PAPERS_WINDOWS.get(program, best[program])}


def coscheduled(calibration: Calibration, best: Mapping[str, int]) -> Figure:
    """Section 4's comparison: every program coscheduled with another, window by window."""
    gang = described("coscheduled", quantum_s=COSCHEDULED_QUANTUM_S, jobs=JOBS)
    tried = {p: sorted({*calibration.coscheduled_windows, best[p]}) for p in PROGRAMS}
    settings: list[Setting] = [
        ({"program": p, "quantum_s": COSCHEDULED_QUANTUM_S, "window": w}, gang) for p in PROGRAMS for w in tried[p]
    ]
    return Figure("section-4", "coscheduled with another program, quantum 0.1 s", settings)


def local_windows(calibration: Calibration, best: Mapping[str, int]) -> Figure:
    """Which window is best under local scheduling: all that are tried, under every reading, with one seed each."""
    tried = {p: sorted({*calibration.local_windows, *dedicated_windows(best, p)}) for p in PROGRAMS}
    return _local("figure-2-windows", "locally scheduled, window by window", calibration, lambda p, *_: tried[p])


def local(calibration: Calibration, best: Mapping[str, int], tried: Rows) -> Figure:
    """Figure 2: every program scheduled locally, with the window that is best dedicated and the one that is best so."""

    def both(program: str, reading: Reading, quantum_s: float) -> list[int]:
        where = {"phases": reading.phases, "credit": reading.credit, "quantum_s": quantum_s}
        rows = tried.of("figure-2-windows", program=program, **where)
        fastest = min(rows, key=lambda row: (row.makespan_s, row.params["window"]))
        return sorted({*dedicated_windows(best, program), int(fastest.params["window"])})

    return _local("figure-2", "locally scheduled with one other program", calibration, both)


def _local(
    name: str, title: str, calibration: Calibration, windows_of: Callable[[str, Reading, float], Sequence[int]]
) -> Figure:
    settings: list[Setting] = []
    for program in PROGRAMS:
        for reading in (one for one in calibration.readings if one.windows != PAPERS):
            for quantum in calibration.local_quanta_s:
                other = local_job(calibration, reading, quantum)
                for window in windows_of(program, reading, quantum):
                    settings.append((local_setting(program, reading, quantum, window), other))
    return Figure(name, title, settings)


def local_job(calibration: Calibration, reading: Reading, quantum_s: float, jobs: int = JOBS) -> Document:
    """Return the other programs of figure 2."""
    drift = {"drift": calibration.drift} if reading.phases == "drifting" else {}
    return described("local", quantum_s=quantum_s, jobs=jobs, phases=reading.phases, polls=reading.polls, **drift)


def local_setting(program: str, reading: Reading, quantum_s: float, window: int) -> Document:
    """Return what a point of figure 2 sets."""
    return {
        "program": program,
        "phases": reading.phases,
        "credit": reading.credit,
        "quantum_s": quantum_s,
        "window": window,
    }


def skew(calibration: Calibration, best: Mapping[str, int]) -> Figure:
    """Figure 3: coscheduled with skew, with the dedicated window; at the hardest point with a large one as well."""
    settings: list[Setting] = []
    for program in PROGRAMS:
        for quantum in calibration.skew_quanta_s:
            for skew_s in (0.0, *calibration.skews_s):
                gang = described("coscheduled", quantum_s=quantum, jobs=JOBS, skew_s=skew_s)
                hardest = skew_s == max(calibration.skews_s) and quantum == min(calibration.skew_quanta_s)
                wide = {calibration.large_window} if hardest else set()
                for window in sorted({best[program], *wide}):
                    own = {"program": program, "quantum_s": quantum, "skew_s": skew_s, "window": window}
                    settings.append((own, gang))
    return Figure("figure-3", "coscheduling skew", settings, calibration.skewed_parameters)


def daemons(calibration: Calibration, best: Mapping[str, int]) -> Figure:
    """Figure 4: daemons on every rank, with the dedicated window; at 50 ms every 5 s with a large one as well."""
    settings: list[Setting] = []
    for program in PROGRAMS:
        for duration in calibration.daemon_durations_s:
            for interval in calibration.daemon_intervals_s:
                for polls in calibration.polls if (duration, interval) in calibration.polled_daemons_s else (False,):
                    daemon = described("daemon", interval_s=interval, duration_s=duration, polls=polls)
                    hardest = duration == max(calibration.daemon_durations_s) and interval == 5.0
                    wide = {calibration.large_window} if hardest else set()
                    for window in sorted({*dedicated_windows(best, program), *wide}):
                        varied = {
                            "duration_s": duration,
                            "interval_s": interval,
                            "polls": polls,
                            "credit": _credit(polls),
                        }
                        settings.append(({"program": program, **varied, "window": window}, daemon))
    return Figure("figure-4", "daemon processes", settings)


def staggered(calibration: Calibration, best: Mapping[str, int]) -> Figure:
    """EM3D under figure 4's hardest daemons, one rank after the other, so that no two of them ever coincide."""
    interval, duration = 5.0, max(calibration.daemon_durations_s)
    cpus = [
        {"cpu": rank, "intervals": [[rank * interval / calibration.ranks, duration, 0]]}
        for rank in range(calibration.ranks)
    ]
    in_turn = described("recorded", length_s=interval, causes=["daemon"], aligned=True, cpu=cpus)
    settings: list[Setting] = [
        ({"program": "em3d", "daemons": "in turn", "window": window}, in_turn)
        for window in sorted(dedicated_windows(best, "em3d"))
    ]
    return Figure(STAGGERED, "daemons that never coincide", settings)


def shared_node(calibration: Calibration, best: Mapping[str, int]) -> Figure:
    """Figure 5: a serial job on one node, with and without polling; at the least share also with a large window.

    There CHOLESKY has small windows too: the text gives none that is best for it, so any may be what the large one is
    compared with.
    """
    settings: list[Setting] = []
    for program in PROGRAMS:
        for share in calibration.shares:
            for polls in (False, True):
                job = serial_job(calibration, share, polls=polls)
                greediest = share == min(calibration.shares) and not polls
                small = calibration.small_windows if program == "cholesky" else ()
                wide = {calibration.large_window, *small} if greediest else set()
                for window in sorted({*dedicated_windows(best, program), *wide}):
                    varied = {"share": share, "polls": polls, "credit": _credit(polls)}
                    settings.append(({"program": program, **varied, "window": window}, job))
    return Figure("figure-5", "one non-idle processor", settings)


def serial_job(calibration: Calibration, share: float, **fields: Any) -> Document | None:
    """Return the serial job of figure 5, on the shared rank unless `everywhere`; None where it has nothing."""
    on = {} if fields.get("everywhere") else {"ranks": [calibration.shared_rank]}
    return described("job", share=share, slice_s=calibration.slice_s, **{**on, **fields}) if share < 1.0 else None


def _credit(polls: bool) -> str:
    return "extracted" if polls else "handled"


def described(kind: str, **fields: Any) -> Document:
    """Return a disturbance of one source."""
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
    interval_s : tuple of float
        95 % confidence interval of `makespan_s`.
    stalled : float
        Part of the ranks' time that they waited for credits.
    bounds : dict
        Closed forms of the slowdown, where some apply.
    """

    params: Document
    makespan_s: float
    low_s: float
    high_s: float
    interval_s: tuple[float, float]
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
        self._rows = {figure: [_row(alike) for alike in own.by_point()] for figure, own in runs.items()}

    def of(self, figure: str, **where: Any) -> list[Row]:
        """Return the rows of a figure that set all this."""
        return [row for row in self._rows[figure] if all(row.params.get(k) == v for k, v in where.items())]

    def has(self, figure: str) -> bool:
        """Whether the study has this figure."""
        return figure in self._rows

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

    def best_window(self, program: str, figure: str = "figure-1", **where: Any) -> int:
        """Return the window with the shortest mean makespan; of windows alike to the last digit, the smallest."""
        rows = sorted(self.of(figure, program=program, **where), key=lambda row: (row.makespan_s, row.params["window"]))
        return int(rows[0].params["window"])

    def dedicated_s(self, program: str) -> float:
        """Return the dedicated makespan with the best window: what slowdowns are relative to."""
        return self.one("figure-1", program=program, window=self.best_window(program)).makespan_s

    def reference_s(self, figure: str, row: Row) -> float:
        """Return what the figure's caption divides a makespan by, s: the slowdown's denominator (E2-5).

        Always with the window that is best when dedicated, and credits that go back as in the row.
        """
        program = row.params["program"]
        if figure in ("figure-1", "not-built"):
            return self.dedicated_s(program) * jobs(row.params)
        if figure in (ONE_SUM, FINE, FILLING, FINE_FILLING):
            alike = {name: value for name, value in row.params.items() if name != "window"}
            return min(other.makespan_s for other in self.of(figure, **alike))
        if figure in (DISTURBED, STAGGERED, FINE_DISTURBED, MORE_JOBS, SYNCS, BARRIERS, LONGER):
            return row.dedicated_s * jobs(row.params)
        if figure == SKEWED_BARRIERS:
            return self.one(figure, **{**row.params, "skew_s": 0.0}).makespan_s
        narrow = {**row.params, "window": self.best_window(program)}
        if figure in ("figure-3", DRAWN_ANEW):
            return self.one("figure-3", **{**narrow, "skew_s": 0.0}).makespan_s
        return self.one(figure, **narrow).dedicated_s * jobs(row.params)

    def slowdown(self, figure: str, row: Row, *, own_window: bool = False) -> float:
        """Return a row's slowdown as the figure's caption defines it; `own_window`: as if the row's were the best."""
        reference = row.dedicated_s * jobs(row.params) if own_window else self.reference_s(figure, row)
        return row.makespan_s / reference


def jobs(params: Mapping[str, Any]) -> int:
    """Return how many programs share the machine in a point of a figure."""
    return int(params.get("jobs", JOBS)) if "quantum_s" in params else 1


def _row(alike: Sequence[ProgramRun]) -> Row:
    makespans = [run.makespan_s for run in alike]
    whole = sum(makespans) * alike[0].data["ranks"]
    bounds = {name: fmean(run.bounds[name] for run in alike) for name in alike[0].bounds}
    return Row(
        params=alike[0].params,
        makespan_s=fmean(makespans),
        low_s=min(makespans),
        high_s=max(makespans),
        interval_s=span(makespans)[1:],
        dedicated_s=fmean(run.dedicated_s for run in alike),
        stalled=sum(run.data["stalled_s"] for run in alike) / whole if whole else 0.0,
        bounds=bounds,
    )
