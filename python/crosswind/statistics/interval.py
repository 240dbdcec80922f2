"""Intervals of means by Student's t: 95 %, where nothing else is said."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import floor, log10, sqrt
from statistics import fmean, stdev
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

CONFIDENCE = 0.95
SHOWN = 0.01
"""A cost that runs are to show, as a share of the undisturbed time."""


@lru_cache(maxsize=4096)
def reach(freedom: float, confidence: float = CONFIDENCE) -> float:
    """Return half of a two-sided interval in standard errors.

    Parameters
    ----------
    freedom : float
        Degrees of freedom, greater than 0; infinity for a normal distribution.
    confidence : float
        How often the interval is to hold, 0 to 1.

    Examples
    --------
    >>> [round(reach(freedom), 2) for freedom in (2, 10, math.inf)]
    [4.3, 2.23, 1.96]
    """
    from scipy import special  # scipy.stats takes a second to import

    tail = 0.5 + confidence / 2.0
    return float(special.stdtrit(freedom, tail) if math.isfinite(freedom) else special.ndtri(tail))


def pooled_freedom(parts: Iterable[tuple[float, float]]) -> float:
    """Return the degrees of freedom of a sum of variances (Welch 1947, Satterthwaite 1946); infinity for a sum of 0.

    Parameters
    ----------
    parts : iterable of (float, float)
        Variance and degrees of freedom of each.

    Examples
    --------
    >>> round(pooled_freedom([(1.0, 9.0), (1.0, 9.0)])), round(pooled_freedom([(1.0, 9.0), (0.0, 3.0)]))
    (18, 9)
    """
    found = list(parts)
    weights = sum(variance**2 / freedom for variance, freedom in found)
    return sum(variance for variance, _ in found) ** 2 / weights if weights > 0.0 else math.inf


MOST_DIGITS = 6


def span(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean and the ends of its 95 % confidence interval; of one value the value three times.

    Examples
    --------
    >>> [round(end, 2) for end in span([9.0, 10.0, 11.0])], span([2.0])
    ([10.0, 7.52, 12.48], (2.0, 2.0, 2.0))
    """
    mean = fmean(values)
    if len(values) < 2:
        return mean, mean, mean
    half = reach(len(values) - 1) * stdev(values) / sqrt(len(values))
    return mean, mean - half, mean + half


@dataclass(frozen=True)
class MeanInterval:
    """A mean and its 95 % interval, in the unit of what was averaged; infinite ends where there is one value.

    Examples
    --------
    >>> import numpy as np
    >>> mean_interval(np.array([1.0, 2.0, 3.0]))  # doctest: +ELLIPSIS
    MeanInterval(mean=2.0, low=-0.48..., high=4.48...)
    """

    mean: float
    low: float
    high: float
    alike: bool = False
    """Whether all values are alike, so that the interval is an assumption (`crosswind.blame.shares.cost_estimate`)."""

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.low > 0.0 or self.high < 0.0

    @property
    def is_small(self) -> bool:
        """Whether a cost, as a share of the undisturbed time, is for certain below 1 %, and so is a gain."""
        return self.low > -SHOWN and self.high < SHOWN

    @property
    def is_settled(self) -> bool:
        """Whether such a share is distinguishable from 0, or small for certain.

        Examples
        --------
        >>> shares = ((0.2, 0.1, 0.3), (0.001, -0.004, 0.006), (0.01, -0.02, 0.04))
        >>> [MeanInterval(*one).is_settled for one in shares]
        [True, True, False]
        """
        return self.excludes_zero or self.is_small


def mean_interval(values: Floats, least_variance: float = 0.0) -> MeanInterval:
    """Return the mean of values with Student's interval.

    A spread of few values may be small by chance: a variance of one value that is known to be there is the least.

    Raises
    ------
    ValueError
        When there is no value.
    """
    if not values.size:
        raise ValueError("an estimate needs a value")
    mean = float(values.mean())
    if values.size == 1:
        return MeanInterval(mean, -math.inf, math.inf)
    variance = max(float(values.var(ddof=1)), least_variance)
    half = student_half(variance, values.size)
    return MeanInterval(mean, mean - half, mean + half)


def student_half(variance: float, count: int) -> float:
    """Return half of the 95 % interval of a mean of `count` values, at least 2, of this variance."""
    return reach(count - 1) * sqrt(variance / count)


MOST_DIGITS = 6


def digits_of(half: float) -> int:
    """Return the digits after the point that half of an interval supports: one, or two where the first is a 1.

    Examples
    --------
    >>> digits_of(3.2), digits_of(1.4), digits_of(0.04), digits_of(133.0)
    (0, 1, 2, 0)
    """
    place = floor(log10(half) + 1e-12)
    return min(max(0, -place + (half < 2 * 10.0**place)), MOST_DIGITS)
