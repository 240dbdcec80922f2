"""Numbers for people: no more digits than the uncertainty supports."""

from __future__ import annotations

import math
from collections.abc import Sequence

from crosswind.statistics.interval import MeanInterval, digits_of


def with_half(value: float, half: float, unit: str = "", *, least: int = 3) -> str:
    """Return a value with half of its interval, to the digits that the interval supports.

    Parameters
    ----------
    value, half : float
        A half that is not finite, or 0, is left out.
    unit : str
        Stands after the value.
    least : int
        Significant digits of a value without an interval.

    Examples
    --------
    >>> with_half(15.96, 3.2, " %"), with_half(4.77, 1.41, " %"), with_half(0.3361, 0.039), with_half(21.04, 132.8)
    ('16 % ± 3', '4.8 % ± 1.4', '0.34 ± 0.04', '21 ± 133')
    >>> with_half(6.5788, 0.0), with_half(2.1, math.inf, " %")
    ('6.58', '2.10 %')
    """
    if not math.isfinite(value):
        return "unknown"
    if not (math.isfinite(half) and half > 0) or half < 1e-9 * abs(value):
        return f"{plain(value, least)}{unit}"
    digits = digits_of(half)
    return f"{_zero(value, digits):.{digits}f}{unit} ± {half:.{digits}f}"


def plain(value: float, least: int = 3) -> str:
    """Return a number with some significant digits, all of those before the point, and no exponent where it has few.

    Examples
    --------
    >>> plain(6.5788), plain(1234.56), plain(0.0), plain(98.5), plain(0.01234)
    ('6.58', '1235', '0', '98.5', '0.0123')
    """
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e6:
        return f"{value:.{least}g}"
    place = math.floor(math.log10(abs(value)) + 1e-12)
    return f"{value:.{max(0, least - 1 - place)}f}"


def in_seconds(found: MeanInterval) -> str:
    """Return a mean with half of its interval, to four digits without one."""
    return with_half(found.mean, half_of(found.mean, (found.low, found.high)), least=4)


def part_of(found: MeanInterval, whole: MeanInterval) -> str:
    """Return a time as a part of another, with half of its interval.

    Examples
    --------
    >>> part_of(MeanInterval(0.29, 0.26, 0.32), MeanInterval(35.5, 35.5, 35.5))
    '0.82 % ± 0.08'
    """
    if not whole.mean:
        return "unknown"
    half = half_of(found.mean, (found.low, found.high))
    return with_half(100 * found.mean / whole.mean, 100 * half / whole.mean, " %")


def half_of(value: float, ends: Sequence[float]) -> float:
    """Return the larger distance from a value to the ends of its interval: ± never claims more than the interval.

    Examples
    --------
    >>> half_of(36.0, (34.0, 39.0))
    3.0
    """
    return max(ends[1] - value, value - ends[0])


def percent(part: float, ends: Sequence[float] | None = None) -> str:
    """Return a part as per cent, with half of its interval.

    Examples
    --------
    >>> percent(0.361, (0.339, 0.393)), percent(0.985)
    ('36 % ± 3', '98.5 %')
    """
    half = half_of(100 * part, [100 * end for end in ends]) if ends is not None else math.nan
    return with_half(100 * part, half, " %")


def _zero(value: float, digits: int) -> float:
    """Return the value, without the sign of a zero that rounding leaves."""
    return 0.0 if abs(value) < 0.5 * 10.0**-digits else value
