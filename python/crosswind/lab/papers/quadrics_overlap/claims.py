"""What the paper claims about overlap (F-1 to F-4), asked of the simulated matrix.

Bands hold the printed number and the closed forms (docs/papers). What the text has only words for ("hardly", "nothing")
has a number here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from crosswind.lab.papers.grading import Check, Claim, check, check_readings
from crosswind.lab.papers.quadrics_overlap.matrix import Matrix
from crosswind.lab.papers.quadrics_overlap.tables import CELLS, in_words

HARDLY = 0.02
"""A run time that changes by no more than this part is hardly affected: F-1's band; printed are up to 11 % (E3-1)."""
SERIALISED = 0.9
"""A ping that ends after this part of what both take one after the other is serialised; printed are 0.91 to 0.97."""
WAIT = "whether a wait for an event gives its processor away at once, or lingers, which the text does not say"
HURT = 1.10
"""Burners that take this much longer are hurt."""
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
    return [_event(shown), _raised(shown), _lowered(readings), _polling(shown)]


def _event(matrix: Matrix) -> Claim:
    ping = {in_words(cell): matrix["event", cell].ping_slowdown for cell in CELLS}
    burn = {in_words(cell): matrix["event", cell].burn_slowdown for cell in CELLS}
    checks = [
        check(f"event wait: a ping is slower by at most {HARDLY:.0%}", max(ping.values()) <= 1 + HARDLY, _said(ping)),
        check(f"event wait: burners are slower by at most {HARDLY:.0%}", max(burn.values()) <= 1 + HARDLY, _said(burn)),
    ]
    return Claim("F-1", "Overlapping, table 2", "With event-driven waiting both are hardly affected", checks)


def _raised(matrix: Matrix) -> Claim:
    serial = {in_words(cell): matrix["burn -20", cell].serialised for cell in CELLS}
    gained = {in_words(cell): matrix["burn -20", cell].burn_s / matrix["event", cell].burn_s for cell in CELLS}
    checks = [
        check(
            f"burners at -20: a ping ends after {SERIALISED:.0%} of both one after the other, or later",
            min(serial.values()) >= SERIALISED,
            _said(serial),
        ),
        check(
            f"burners at -20 are faster by at most {HARDLY:.0%} than at 0",
            min(gained.values()) >= 1 - HARDLY,
            _said(gained),
        ),
    ]
    text = "Raising the burners' priority serialises the ping behind them, and gains them nothing"
    return Claim("F-2", "Effect of priorities, table 3", text, checks)


def _lowered(readings: Mapping[str, Matrix]) -> Claim:
    def gains(matrix: Matrix) -> tuple[bool, str]:
        found = {in_words(cell): matrix["burn +20", cell].ping_s / matrix["event", cell].ping_s for cell in CELLS}
        return min(found.values()) >= 1 - HARDLY, _said(found)

    def hurt(matrix: Matrix) -> tuple[bool, str]:
        found = {cell: matrix["burn +20", cell].burn_slowdown for cell in CELLS}
        others = max(value for cell, value in found.items() if cell != SMALL)
        return found[SMALL] >= HURT > others, _said({in_words(cell): value for cell, value in found.items()})

    checks = [
        _under(f"burners at +20: a ping is faster by at most {HARDLY:.0%} than beside burners at 0", readings, gains),
        _under(
            f"burners at +20 are hurt (by {HURT - 1:.0%}) by many small messages, and by nothing else", readings, hurt
        ),
    ]
    text = "Lowering the burners' priority gains the ping nothing; burners are hurt by many small messages only"
    return Claim("F-3", "Effect of priorities, table 3", text, checks)


def _polling(matrix: Matrix) -> Claim:
    small, large = matrix["poll", SMALL], matrix["poll", LARGE]

    def within(text: str, value: float, low: float, high: float) -> Check:
        return check(f"{text}: {low:g} to {high:g} times", low <= value <= high, f"{value:.3f}")

    checks = [
        # 1.5 where one end has 2/3 of a processor, 2.25 where both must have it at once.
        within("polling, many small messages: the ping (printed: 2.0)", small.ping_slowdown, 1.5, 2.25),
        # Two thirds of a processor for as long as the ping lasts.
        within("polling, many small messages: the burners (printed: 1.43)", small.burn_slowdown, 1.33, 1.5),
        within("polling, few large messages: the ping (printed: 1.11)", large.ping_slowdown, 1.02, 1.25),
        within("polling, few large messages: the burners (printed: 1.27)", large.burn_slowdown, 1.2, 1.35),
        check(
            "polling costs ping and burners more than waiting for events, many small messages and few large ones",
            all(
                matrix["poll", cell].ping_s > matrix["event", cell].ping_s
                and matrix["poll", cell].burn_s > matrix["event", cell].burn_s
                for cell in (SMALL, LARGE)
            ),
            f"{small.ping_s:.1f} and {small.burn_s:.1f} s, {large.ping_s:.1f} and {large.burn_s:.1f} s",
        ),
        check(
            "many small messages cost both more than few large ones",
            small.ping_slowdown > large.ping_slowdown and small.burn_slowdown > large.burn_slowdown,
            f"ping {small.ping_slowdown:.2f} to {large.ping_slowdown:.2f}, "
            f"burners {small.burn_slowdown:.2f} to {large.burn_slowdown:.2f}",
        ),
    ]
    text = "Polling hurts both with many small messages, and the burners with few large ones"
    return Claim("F-4", "Effect of polling mechanism, table 4", text, checks)


def _under(text: str, readings: Mapping[str, Matrix], ask: Callable[[Matrix], tuple[bool, str]]) -> Check:
    return check_readings(text, [(name, *ask(matrix)) for name, matrix in readings.items()], WAIT)


def _said(found: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in found.items())
