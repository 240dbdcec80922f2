"""A GPU's fit in words: sentences, and figures with their intervals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crosswind.gpu.fit import GpuFit


def sentences(fit: GpuFit) -> list[str]:
    """Return the answer in words: what costs a kernel most, and what costs nothing measurable."""
    known = [one for one in fit.pairs if one.costs]
    found = []
    for one in sorted(known, key=lambda pair: -pair.unpaced.loss)[:1]:
        found.append(
            f"{one.traffic} costs most: at {gb_per_s(one.unpaced.mb_per_s)} GB/s the {one.kernel} kernel loses "
            f"{per_cent(one.unpaced.loss, one.unpaced.ci95)} of its rate."
        )
    slowed = [one for one in fit.pairs if one.traffic_ci95[0] > 0.0]
    for one in sorted(slowed, key=lambda pair: -pair.traffic_loss)[:1]:
        found.append(
            f"The other way, {one.kernel} slows {one.traffic} most: by {per_cent(one.traffic_loss, one.traffic_ci95)} "
            f"of its {gb_per_s(one.alone_mb_per_s)} GB/s."
        )
    free = sum(one.costs is None for one in fit.pairs)
    if free:
        found.append(f"In {free} of {len(fit.pairs)} pairs the kernel's loss is not distinguishable from 0.")
    return found


def gb_per_s(mb_per_s: float) -> str:
    """Return a rate in GB/s at three digits, without an exponent.

    Examples
    --------
    >>> gb_per_s(1_213_400.0), gb_per_s(33_620.0), gb_per_s(0.0)
    ('1210', '33.6', '0')
    """
    return f"{float(f'{mb_per_s / 1e3:.3g}'):g}"


def per_cent(value: float, ci95: tuple[float, float]) -> str:
    """Return a share in per cent with half of its interval.

    Examples
    --------
    >>> per_cent(0.158, (0.155, 0.161))
    '15.8 ± 0.3 %'
    """
    half = max(value - ci95[0], ci95[1] - value)
    digits = 1 if half >= 0.001 else 2
    return f"{100 * value:.{digits}f} ± {100 * half:.{digits}f} %"


def with_half(value: float, ci95: tuple[float, float]) -> str:
    """Return a value with half of its interval, at the digits that the interval supports.

    Examples
    --------
    >>> with_half(0.01234, (0.012, 0.0127)), with_half(math.nan, (math.nan, math.nan))
    ('0.01234 ± 0.00036', '-')
    """
    if not math.isfinite(value):
        return "-"
    half = max(value - ci95[0], ci95[1] - value)
    digits = max(0, 1 - math.floor(math.log10(half))) if 0 < half < 1 else 2
    return f"{value:.{digits}f} ± {half:.{digits}f}"
