"""The interval of a mean over repetitions: 95 %, by Student's t. Every ± of runs and every error bar is this one."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev


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
    from scipy import stats

    half = float(stats.t.ppf(0.975, len(values) - 1)) * stdev(values) / sqrt(len(values))
    return mean, mean - half, mean + half
