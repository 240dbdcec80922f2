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
    check_numbers,
    check_readings,
    digits,
    excluded,
    needs_number,
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
SCHEDULER = "which scheduler the nodes had: the text names Linux and no version"
LINUX = (
    f"{SCHEDULER}; it lowers hungry processes and raises those that wake, which several forms do. The kernel's version,"
    " or times of single runs, would settle it"
)
EQUAL_SHARES = {
    (SMALL, "ping"): (
        f"{LINUX}. With equal turns, which are not built, each end would run 2/3 of the time and both 4/9:"
        " 41.7 s / (4/9) = 94 s"
    ),
    (SMALL, "burners"): (
        f"{LINUX}. With equal turns, which are not built, burners would have 2/3 of the processors while the ping"
        " lasts, about 94 s: 63.1 s / (2/3) = 94.7 s"
    ),
    (LARGE, "ping"): f"{LINUX}. How long an end waits for its turn after each flight is the scheduler's",
    (LARGE, "burners"): (
        f"{LINUX}. A third of the ping's own time is added to the burners' 63.1 s, and that time is the scheduler's"
    ),
}
"""Cell and process -> why its time under polling hangs on the scheduler."""


def claims(readings: Mapping[str, Matrix]) -> list[Claim]:
    """Grade every claim.

    Parameters
    ----------
    readings : mapping
        How long a wait for an event lingers, or which scheduler, in words -> the matrix under that. The first is what
        tables show.
    """
    return [_event(readings), _raised(readings), _lowered(readings), _polling(readings)]


def _event(readings: Mapping[str, Matrix]) -> Claim:
    matrix = next(iter(readings.values()))

    def ping(under: Matrix) -> tuple[bool, str]:
        found = {in_words(cell): under["event", cell].ping_slowdown for cell in CELLS}
        return max(found.values()) in one, _said(found)

    burn = {in_words(cell): matrix["event", cell].burn_slowdown for cell in CELLS}
    one = below(1.01, "a slowdown of less than 1%")
    checks = [
        excluded(
            _under("event wait: a ping is slower by less than 1 %", readings, ping, one, SCHEDULER),
            "tables 1 and 2: 8.9 s for 8 s is 11 %, 47 for 46.5 s is 1.1 % (E3-1)",
        ),
        needs_number(
            "event wait: burners are hardly slower",
            _said(burn),
            '"not too significant", "hardly affected"',
            SCATTER,
        ),
    ]
    return Claim("F-1", "Overlapping, table 2", "With event-driven waiting both are hardly affected", checks)


def _raised(readings: Mapping[str, Matrix]) -> Claim:
    matrix = next(iter(readings.values()))

    def after(under: Matrix) -> tuple[bool, str]:
        found = {in_words(cell): under["burn -20", cell].ping_s / under["burn -20", cell].burn_s for cell in CELLS}
        return min(found.values()) >= 1, f"over the burners' end: {_said(found)}"

    gained = {in_words(cell): matrix["burn -20", cell].burn_s / matrix["event", cell].burn_s for cell in CELLS}
    checks = [
        excluded(
            _under(
                "burners at -20: no ping ends before the burners",
                readings,
                after,
                word('"blocks dping from running until burn_cycles is completed"'),
                SCHEDULER,
            ),
            "table 3: the first ping ends at 60 s, its burners at 63.3 (E3-2)",
        ),
        needs_number(
            "burners at -20 are no faster than at 0",
            _said(gained),
            '"not improved": table 3 itself has 63.7 s for 64.1',
            SCATTER,
        ),
    ]
    text = "Raising the burners' priority serialises the ping behind them, and gains them nothing"
    return Claim("F-2", "Effect of priorities, table 3", text, checks)


def _lowered(readings: Mapping[str, Matrix]) -> Claim:
    def gains(matrix: Matrix) -> str:
        return _said({in_words(cell): matrix["burn +20", cell].ping_s / matrix["event", cell].ping_s for cell in CELLS})

    def hurt(matrix: Matrix) -> tuple[bool, str]:
        found = {cell: matrix["burn +20", cell].burn_s / matrix["event", cell].burn_s for cell in CELLS}
        most = max(found, key=lambda cell: found[cell])
        return most == SMALL and found[SMALL] > 1, _said({in_words(cell): value for cell, value in found.items()})

    checks = [
        needs_number(
            "burners at +20: a ping has no significant speedup",
            "; ".join(f"{name}: {gains(matrix)}" for name, matrix in readings.items()),
            '"no significant speedup": tables 2 and 3 have 8 s for 8.9',
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
    def as_printed(text: str, cell: tuple[int, int], process: str) -> Check:
        field = "ping_s" if process == "ping" else "burn_s"
        wanted = getattr(printed("poll", cell), field)
        results = [
            (name, found := getattr(matrix["poll", cell], field), f"{found:.1f} s, printed {wanted:g}")
            for name, matrix in readings.items()
        ]
        part = check_numbers(f"polling, {text}: {process} as in table 4", results, digits(wanted, 0.1), LINUX)
        return barred(part, "open input", EQUAL_SHARES[cell, process])

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
            SCHEDULER,
        ),
        _under(
            "many small messages cost both more than few large ones",
            readings,
            small_cost_more,
            word('"as opposed to a small amount of large"'),
            SCHEDULER,
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
