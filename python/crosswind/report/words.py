"""Numbers and findings in words: what stands in headlines, tables and labels."""

from __future__ import annotations

import math

from crosswind.statistics.interval import digits_of

GOOD_RATES_MB_PER_S = (1000.0, 100.0, 10.0, 1.0, 0.1)


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with `digits` significant digits, without exponent where people would write none.

    Examples
    --------
    >>> number(12345.678), number(0.001234), number(None), number(float("nan")), number(0.0)
    ('12,346', '0.00123', '–', '–', '0')
    """
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if size >= 6 or size < -5:
        return f"{value:.{digits - 1}e}".replace("-", "−")
    decimals = max(0, digits - 1 - size)
    text = f"{value:,.{decimals}f}"
    return text.replace("-", "−")


def plain(value: float) -> str:
    """Return a number as people write it in a sentence: at most four significant digits, no trailing zeros.

    Examples
    --------
    >>> plain(2.0), plain(0.05), plain(12345.6)
    ('2', '0.05', '12,350')
    """
    text = number(float(f"{value:.4g}"), 4)
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def percent(share: float | None) -> str:
    """Return a share as a percentage: whole from 10 % on, with one decimal below, two below 1 %.

    Examples
    --------
    >>> percent(0.1523), percent(0.0312), percent(0.0031), percent(None)
    ('15 %', '3.1 %', '0.31 %', '–')
    """
    if share is None or not math.isfinite(share):
        return "–"
    part = 100.0 * share
    decimals = 0 if abs(part) >= 9.95 else 1 if abs(part) >= 0.995 else 2
    return f"{part:.{decimals}f} %".replace("-", "−")


def with_half(value: float, half: float, unit: str = "") -> tuple[str, str]:
    """Return a value and half of its interval, both to the digits that the interval supports.

    Parameters
    ----------
    value, half : float
        A half that is not finite, or 0, supports nothing: the value has three digits, and the half is "".
    unit : str
        Stands after the value.

    Examples
    --------
    >>> with_half(11.04, 0.072, " %"), with_half(-583.0, 360.7, " %"), with_half(1.2053, 0.013)
    (('11.04 %', '0.07'), ('−583 %', '361'), ('1.205', '0.013'))
    >>> with_half(6.5788, 0.0), with_half(2.1, math.inf, " %")
    (('6.58', ''), ('2.10 %', ''))
    """
    if not (math.isfinite(half) and half > 1e-9 * abs(value)):
        return f"{number(value)}{unit}", ""
    digits = digits_of(half)
    shown = round(value, digits) + 0.0  # no minus before a 0
    return f"{shown:,.{digits}f}{unit}".replace("-", "−"), f"{half:,.{digits}f}"


def percent_range(low: float, high: float) -> str:
    """Return an interval of shares, `14 .. 16 %`.

    Examples
    --------
    >>> percent_range(0.142, 0.161), percent_range(-0.002, 0.013)
    ('14 .. 16 %', '−0.20 .. 1.3 %')
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return "interval unknown"
    return f"{percent(low).removesuffix(' %')} .. {percent(high)}"


def number_range(low: float, high: float, digits: int = 3) -> str:
    """Return an interval of numbers; one without an end says nothing.

    Examples
    --------
    >>> number_range(1.2345, 20.0), number_range(float("-inf"), float("inf"))
    ('1.23 .. 20.0', '–')
    """
    if math.isinf(low) or math.isinf(high):
        return "–"
    return f"{number(low, digits)} .. {number(high, digits)}"


def rate(mb_per_s: float) -> str:
    """Return a transfer rate with the unit that suits it.

    Examples
    --------
    >>> rate(2513.0), rate(10.8), rate(1000.0)
    ('2.51 GB/s', '10.8 MB/s', '1 GB/s')
    """
    value, unit = (mb_per_s / 1000.0, "GB/s") if mb_per_s >= 1000 else (mb_per_s, "MB/s")
    return f"{plain(float(f'{value:.3g}'))} {unit}"


def reference_rate_mb_per_s(top_mb_per_s: float) -> float:
    """Return the round rate to speak of: the largest of 1 GB/s, 100, 10, 1 and 0.1 MB/s within the measured range.

    Examples
    --------
    >>> reference_rate_mb_per_s(2500.0), reference_rate_mb_per_s(117.0)
    (1000.0, 100.0)
    """
    return next((rate for rate in GOOD_RATES_MB_PER_S if rate <= top_mb_per_s * 1.02), GOOD_RATES_MB_PER_S[-1])


def shortened(name: str, most: int = 32) -> str:
    """Return a name that fits a label: long ones lose their middle.

    Examples
    --------
    >>> shortened("abcdefghij", 7)
    'abc…hij'
    """
    if len(name) <= most:
        return name
    half = (most - 1) // 2
    return f"{name[: most - 1 - half]}…{name[-half:]}"
