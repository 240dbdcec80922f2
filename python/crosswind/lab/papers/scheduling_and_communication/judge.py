"""Slowdowns by figure, readings of the text, and what a disturbance can cost at most, for all claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from crosswind.lab.papers.grading import (
    Band,
    Check,
    Reach,
    check_numbers,
    check_readings,
)
from crosswind.lab.papers.scheduling_and_communication.calibration import (
    EM3D_EDGES,
    PAPERS,
    PAPERS_WINDOWS,
    PROGRAMS,
    Calibration,
    Filling,
    Reading,
)
from crosswind.lab.papers.scheduling_and_communication.figures import (
    DISTURBED,
    FILLING,
    FINE,
    FINE_FILLING,
    JOBS,
    Row,
    Rows,
    local_setting,
)

ONE_WAY = ("column", "em3d", "sample")
"""Programs that communicate mostly one way (section 2.3); the others ask and wait for answers."""
DENOMINATORS = {"twice the dedicated time (the caption)": 1, "the dedicated time": JOBS}
"""What a slowdown of figure 2 is relative to -> times as large as by the caption (E2-5)."""
RANKS = 64
SPREAD_HEAVY = 1.0 / (1.0 - 0.05 / 5.0) ** RANKS
"""What daemons of 50 ms every 5 s cost where each rank has a phase of its own, over the mean part of the time that none
of them takes (D2-7)."""
STAGGERED_HEAVY = 1.0 / (1.0 - RANKS * 0.05 / 5.0)
"""The same where they never coincide."""
ROUND_TRIP_PACKETS = (2 * 6.0 + 4 * 2.2) / 4.0
"""Packets that fit into a round trip of the CM-5: (2 L + 4 o) / g."""
NETWORK = (
    "how much the network holds and how often a sender polls, which the text does not say: a fat tree with finite"
    " buffers (figure-1-filling), beside a network that holds whatever is sent"
)
PHASES = (
    "how the ranks' quanta lie to each other, which the text does not say: spread or drifting; and the dedicated"
    " windows, which follow from the network"
)
WINDOWS = "the dedicated windows, which follow from the network: those found here, or the paper's"
GRAIN = (
    "how much of SAMPLE is communication, which the text does not say: 5 us a comparison, or the 10 cycles of 0.3 us"
    " (fine-sample)"
)
OFTEN = "how many gets CONNECT sends before it waits for them, which the text does not say (connect-syncs)"
PHASED = (
    "how the nodes' daemons lie to each other, which the text does not say: with phases drawn for each, what any of"
    f" them takes allows {SPREAD_HEAVY:.2f} on average, one after the other {STAGGERED_HEAVY:.2f}"
)
WORK = (
    "how much EM3D computes between barriers, of which the text has more than one every 10 ms: 6.4 ms, or 4.8 to 9.0"
    " (figure-3-barriers, figure-4-barriers). The barriers per second of the paper's EM3D would settle it"
)
ANEW = "whether a node's delay is drawn once, or for each of its quanta (figure-3-drawn-anew)"
UNLIMITED = "a network that holds everything"
COARSE_GRAIN, FINE_GRAIN = "5 us a comparison", "0.3 us a comparison"

Ask = Callable[[Reading], tuple[bool, str]]
AskNetwork = Callable[[Filling | None], tuple[bool, str]]
AskWindows = Callable[[bool], tuple[bool, str]]


def daemons_reach(duration_s: float, interval_s: float) -> Reach:
    """Return what daemons on every rank can cost a program: nothing, or all of their time where they never coincide.

    Examples
    --------
    >>> round(daemons_reach(0.010, 5.0).most, 3)
    1.147
    """
    most = 1.0 / (1.0 - RANKS * duration_s / interval_s)
    why = (
        f"{RANKS} daemons of {1000 * duration_s:g} ms every {interval_s:g} s cost any program at most"
        f" {100 * (most - 1):.1f} %, even where they never coincide; what the CM-5 lost beyond that would settle it"
    )
    return Reach(1.0, most, why)


def skew_reach(skew_s: float, quantum_s: float) -> Reach:
    """Return what a skew can cost a program: nothing, or its part of every quantum.

    Examples
    --------
    >>> round(skew_reach(0.010, 1.0).most, 4)
    1.0101
    """
    most = 1.0 / (1.0 - skew_s / quantum_s)
    why = (
        f"a skew of {1000 * skew_s:g} ms takes at most {100 * (most - 1):.1f} % of quanta of {quantum_s:g} s from any"
        " program; the scatter of the paper's five runs would settle what its 3 % says"
    )
    return Reach(1.0, most, why)


def longest_daemons_s(limit: float, interval_s: float) -> float:
    """Return how long daemons on every rank must run to allow a slowdown, where they never coincide.

    Examples
    --------
    >>> round(longest_daemons_s(1.2, 5.0), 4)
    0.013
    """
    return (1.0 - 1.0 / limit) * interval_s / RANKS


class Judge:
    """Slowdowns by figure, and ways to ask them.

    Parameters
    ----------
    rows : Rows
        Of all figures.
    calibration : Calibration
        With which they were run.
    """

    def __init__(self, rows: Rows, calibration: Calibration) -> None:
        self.rows, self.calibration = rows, calibration
        self.best = {program: rows.best_window(program) for program in PROGRAMS}

    def window(self, program: str, papers: bool) -> int:
        """Return the window that is best when dedicated: here, or in the paper."""
        return PAPERS_WINDOWS.get(program, self.best[program]) if papers else self.best[program]

    # Slowdowns of each figure, by its caption; with the paper's windows, as if they were the best here.

    def local(self, program: str, reading: Reading, quantum_s: float, *, tried: bool = False) -> float:
        """Figure 2, with the dedicated window of the reading, or the best of those tried under local scheduling."""
        papers = reading.windows == PAPERS
        if not tried:
            window = self.window(program, papers)
            row = self.rows.one("figure-2", **local_setting(program, reading, quantum_s, window))
            return self.rows.slowdown("figure-2", row, own_window=papers)
        rows = self.rows.of(
            "figure-2", program=program, phases=reading.phases, credit=reading.credit, quantum_s=quantum_s
        )
        return min(self.rows.slowdown("figure-2", row) for row in rows)

    def daemon(
        self,
        program: str,
        duration_s: float,
        interval_s: float,
        polls: bool,
        window: int | None = None,
        *,
        papers: bool = False,
    ) -> float:
        """Figure 4; window None: the best dedicated one."""
        found = self.rows.one(
            "figure-4",
            program=program,
            duration_s=duration_s,
            interval_s=interval_s,
            polls=polls,
            window=window or self.window(program, papers),
        )
        return self.rows.slowdown("figure-4", found, own_window=papers and window is None)

    def shared(
        self, program: str, share: float, polls: bool = False, window: int | None = None, *, papers: bool = False
    ) -> float:
        """Figure 5."""
        chosen = window or self.window(program, papers)
        found = self.rows.one("figure-5", program=program, share=share, polls=polls, window=chosen)
        return self.rows.slowdown("figure-5", found, own_window=papers and window is None)

    def under_readings(self, text: str, ask: Ask, band: Band) -> Check:
        """Ask under every reading of local scheduling."""
        results = [(reading.name, *ask(reading)) for reading in self.calibration.readings]
        return check_readings(text, results, band, PHASES)

    def in_networks(self, text: str, ask: AskNetwork, band: Band) -> Check:
        """Ask of a network that holds everything, and of those that can fill."""
        results = [(UNLIMITED, *ask(None)), *((one.name, *ask(one)) for one in self.calibration.fillings)]
        return check_readings(text, results, band, NETWORK)

    def with_windows(self, text: str, ask: AskWindows, band: Band, hangs_on: str = WINDOWS) -> Check:
        """Ask with the windows that are best here, and with the paper's."""
        results = [("windows best here", *ask(False)), ("the paper's windows", *ask(True))]
        return check_readings(text, results, band, hangs_on)

    def worst(self, text: str, slow: Callable[[bool], dict[str, float]], band: Band, reach: Reach) -> Check:
        """Ask of the program that is slowed down most."""
        found = [(name, slow(papers)) for name, papers in (("windows best here", False), ("the paper's windows", True))]
        results = [(name, max(one.values()), listed(one, digits=3)) for name, one in found]
        return check_numbers(text, results, band, WINDOWS, reach=reach)

    # The claims.

    def filling_rows(self, program: str, network: Filling, under: str) -> tuple[Row, Row]:
        """Return the rows of the dedicated and of a large window, in a network that can fill."""
        where = {"program": program, **network.setting}
        best = self.rows.best_window(program, FILLING, **network.setting)
        narrow = self.rows.one(DISTURBED, under=under, window=best, **where)
        return narrow, self.rows.one(DISTURBED, under=under, window=self.calibration.large_window, **where)

    def best_in(self, program: str, network: Filling | None) -> int:
        """Return the window that is best when dedicated, in such a network."""
        return self.best[program] if network is None else self.rows.best_window(program, FILLING, **network.setting)

    def costs_of_windows(self, program: str, network: Filling | None) -> dict[int, float]:
        """Return by how much each window is slower than the fastest."""
        figure, where = ("figure-1", {}) if network is None else (FILLING, network.setting)
        return costs_by_window(self.rows.of(figure, program=program, **where))

    def fine_costs(self) -> list[tuple[Filling | None, dict[int, float]]]:
        """Return by how much each window of SAMPLE at its finest grain is slower than the fastest, by network."""
        if not (self.rows.has(FINE) and self.rows.has(FINE_FILLING)):
            return []
        every = [
            (None, self.rows.of(FINE)),
            *((one, self.rows.of(FINE_FILLING, **one.setting)) for one in self.calibration.fillings),
        ]
        return [(one, costs_by_window(rows)) for one, rows in every if rows]


def faster(narrow: Row, wide: Row) -> bool:
    """Whether every run with the large window is faster than every run with the other one."""
    return wide.high_s < narrow.low_s


def none_faster(name: str, pairs: Mapping[str, tuple[Row, Row]]) -> tuple[str, bool, str]:
    """Return an answer: whether no program is faster with the second of its two windows."""
    gains = {p: narrow.makespan_s / wide.makespan_s for p, (narrow, wide) in pairs.items()}
    return name, not any(faster(*pair) for pair in pairs.values()), listed(gains, "times", 3)


def costs_by_window(rows: Iterable[Row]) -> dict[int, float]:
    """Return by how much each window is slower than the fastest."""
    makespans = {int(row.params["window"]): row.makespan_s for row in rows}
    fastest = min(makespans.values())
    return {window: makespan / fastest - 1.0 for window, makespan in makespans.items()}


def slowed_most(program: str, slow: dict[str, float]) -> tuple[bool, str]:
    """Return an answer: whether a program is slowed down most."""
    return slow[program] >= max(slow.values()), listed(slow)


def listed(values: Mapping[str, float], unit: str = "", digits: int = 2) -> str:
    """Return values in words, the largest first."""
    ordered = sorted(values.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {value:.{digits}f}" for name, value in ordered) + (f" {unit}" if unit else "")


def range_of(values: dict[str, float]) -> str:
    """Return the least and the largest of values, in words."""
    low, high = min(values, key=lambda k: values[k]), max(values, key=lambda k: values[k])
    return f"{values[low]:.3f} ({low}) to {values[high]:.3f} ({high})"


def in_ms(operation_s: float) -> str:
    """Return EM3D's work between two barriers in words, by the time of an edge.

    Examples
    --------
    >>> in_ms(2e-6)
    '6.4 ms between barriers'
    """
    return f"{1000 * EM3D_EDGES * operation_s:.1f} ms between barriers"


def percent(part: float) -> str:
    """Return a part as a percentage, in words."""
    return f"{100 * part:.0f} %"
