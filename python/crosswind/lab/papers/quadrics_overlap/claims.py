"""What the paper claims about overlap (F-1 to F-4), asked of the simulated matrix.

Words without a number ("hardly", "significant") have none here either: such parts are not decided. Four numbers of the
tables are what the simulation is calibrated on (`calibration`); what they decide is not graded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from crosswind.lab.papers.grading import (
    Band,
    Check,
    Claim,
    barred,
    below,
    check,
    check_readings,
    excluded,
    own,
    unsettled,
    word,
)
from crosswind.lab.papers.quadrics_overlap.matrix import Matrix
from crosswind.lab.papers.quadrics_overlap.tables import CELLS, in_words, printed

WAIT = "whether a wait for an event gives its processor away at once, or lingers, which the text does not say"
SCATTER = (
    "by how much single runs differ, of which the tables have the mean of three; `crosswind overlap` measures both"
    " here, with intervals"
)
SMALL, LARGE = (6400, 1), (100, 64)
"""Many small messages and few large ones of the same volume."""


def claims(readings: Mapping[str, Matrix]) -> list[Claim]:
    """Grade every claim.

    Parameters
    ----------
    readings : mapping
        How long a wait for an event lingers, in words -> the matrix under that. The first is what tables show.
    """
    shown = next(iter(readings.values()))
    return [_event(shown), _raised(shown), _lowered(readings), _polling(readings)]


def _event(matrix: Matrix) -> Claim:
    ping = {in_words(cell): matrix["event", cell].ping_slowdown for cell in CELLS}
    burn = {in_words(cell): matrix["event", cell].burn_slowdown for cell in CELLS}
    one = below(1.01, "a slowdown of less than 1%")
    checks = [
        excluded(
            check("event wait: a ping is slower by less than 1 %", max(ping.values()) in one, _said(ping), one),
            "tables 1 and 2: 8.9 s for 8 s is 11 %, 47 for 46.5 s is 1.1 % (E3-1)",
        ),
        check(
            "event wait: burners are hardly slower",
            max(burn.values()) < 2,
            _said(burn),
            own('"not too significant", "hardly affected"'),
            SCATTER,
        ),
    ]
    return Claim("F-1", "Overlapping, table 2", "With event-driven waiting both are hardly affected", checks)


def _raised(matrix: Matrix) -> Claim:
    after = {in_words(cell): matrix["burn -20", cell].ping_s / matrix["burn -20", cell].burn_s for cell in CELLS}
    gained = {in_words(cell): matrix["burn -20", cell].burn_s / matrix["event", cell].burn_s for cell in CELLS}
    checks = [
        excluded(
            check(
                "burners at -20: no ping ends before the burners",
                min(after.values()) >= 1,
                f"over the burners' end: {_said(after)}",
                word('"blocks dping from running until burn_cycles is completed"'),
            ),
            "table 3: the first ping ends at 60 s, its burners at 63.3 (E3-2)",
        ),
        check(
            "burners at -20 are no faster than at 0",
            min(gained.values()) > 0,
            _said(gained),
            own('"not improved": table 3 itself has 63.7 s for 64.1'),
            SCATTER,
        ),
    ]
    text = "Raising the burners' priority serialises the ping behind them, and gains them nothing"
    return Claim("F-2", "Effect of priorities, table 3", text, checks)


def _lowered(readings: Mapping[str, Matrix]) -> Claim:
    def gains(matrix: Matrix) -> tuple[bool, str]:
        found = {in_words(cell): matrix["burn +20", cell].ping_s / matrix["event", cell].ping_s for cell in CELLS}
        return min(found.values()) > 0, _said(found)

    def hurt(matrix: Matrix) -> tuple[bool, str]:
        found = {cell: matrix["burn +20", cell].burn_s / matrix["event", cell].burn_s for cell in CELLS}
        most = max(found, key=lambda cell: found[cell])
        return most == SMALL and found[SMALL] > 1, _said({in_words(cell): value for cell, value in found.items()})

    checks = [
        _under(
            "burners at +20: a ping has no significant speedup",
            readings,
            gains,
            own('"no significant speedup": tables 2 and 3 have 8 s for 8.9'),
            SCATTER,
        ),
        barred(
            _under(
                "burners at +20 are delayed most by many small messages",
                readings,
                hurt,
                word('"most noticeable"'),
                WAIT,
            ),
            "own figures",
            "lingering is calibrated on this very cell, and without it no burner is delayed; whether a wait of 2001"
            " lingered, which the libraries' source would tell, would settle it",
        ),
    ]
    text = "Lowering the burners' priority gains the ping nothing; burners are hurt by many small messages only"
    return Claim("F-3", "Effect of priorities, table 3", text, checks)


def _polling(readings: Mapping[str, Matrix]) -> Claim:
    shown = next(iter(readings.values()))

    def as_printed(text: str, cell: tuple[int, int], process: str) -> Check:
        one = printed("poll", cell)
        wanted = one.ping_s if process == "ping" else one.burn_s
        found = shown["poll", cell].ping_s if process == "ping" else shown["poll", cell].burn_s
        return check(
            f"polling, {text}: {process} as in table 4",
            abs(found / wanted - 1) < 1,
            f"{found:.1f} s, printed {wanted:g}",
            own('times of means of three runs, "approximate"'),
            SCATTER,
        )

    def costs_more(matrix: Matrix) -> tuple[bool, str]:
        found = {
            f"{what}, {in_words(cell)}": getattr(matrix["poll", cell], field) / getattr(matrix["event", cell], field)
            for cell in (SMALL, LARGE)
            for what, field in (("ping", "ping_s"), ("burners", "burn_s"))
        }
        return min(found.values()) > 1, _said(found)

    def small_cost_more(matrix: Matrix) -> tuple[bool, str]:
        small, large = matrix["poll", SMALL], matrix["poll", LARGE]
        found = (
            f"ping {small.ping_slowdown:.2f} to {large.ping_slowdown:.2f}, "
            f"burners {small.burn_slowdown:.2f} to {large.burn_slowdown:.2f}"
        )
        return small.ping_slowdown > large.ping_slowdown and small.burn_slowdown > large.burn_slowdown, found

    checks = [
        *(
            as_printed(text, cell, process)
            for text, cell in (("many small messages", SMALL), ("few large messages", LARGE))
            for process in ("ping", "burners")
        ),
        _under(
            "polling costs ping and burners more than waiting for events, many small messages and few large ones",
            readings,
            costs_more,
            word('"adverse effect on other applications", "also on the communicating application itself"'),
            WAIT,
        ),
        _under(
            "many small messages cost both more than few large ones",
            readings,
            small_cost_more,
            word('"as opposed to a small amount of large"'),
            WAIT,
        ),
        unsettled(
            "alone, a ping is slightly faster polling than waiting for events",
            "times of both, which are not printed; here it follows from what a wake-up is taken to cost."
            " `crosswind overlap` measures it",
        ),
    ]
    text = "Polling hurts both with many small messages, and the burners with few large ones"
    return Claim("F-4", "Effect of polling mechanism, table 4", text, checks)


def _under(
    text: str, readings: Mapping[str, Matrix], ask: Callable[[Matrix], tuple[bool, str]], band: Band, hangs_on: str
) -> Check:
    return check_readings(text, [(name, *ask(matrix)) for name, matrix in readings.items()], band, hangs_on)


def _said(found: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in found.items())
