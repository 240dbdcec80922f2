"""Ratios of sums, and their error: a delete-a-group jackknife over neighbouring rows.

Rows follow each other in time, so noise that outlasts a row counts where groups are of neighbours (Kott 2001, "The
delete-a-group jackknife"). An error of a few groups is widened by Student's t.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from crosswind.statistics.interval import reach

Floats = NDArray[np.float64]

MOST_GROUPS = 40
LEAST_GROUPS = 5
"""With fewer groups there is no interval."""


@dataclass(frozen=True)
class Estimate:
    """A value, its standard error, and from how many groups of quads that error comes.

    Attributes
    ----------
    value : float
        As a share (0.01 is 1 %); NaN where it cannot be had.
    error : float
        Standard error, in the same unit; infinity where there are too few groups.
    groups : int
        Groups of the jackknife, or bursts where there were fewer.
    below, above : float
        By how much it may be lower, or higher, for a reason that is no noise, in the same unit; at least 0.
    part : float
        And the part of all that which it is at least, 0 to 1, where it is above 0.
    """

    value: float
    error: float
    groups: int
    below: float = 0.0
    above: float = 0.0
    part: float = 1.0

    def half_width(self, level: float = 0.05) -> float:
        """Half of the interval that leaves out `level` (0 to 1), two-sided, by Student's distribution."""
        if self.groups < LEAST_GROUPS or not np.isfinite(self.error):
            return float("inf")
        return reach(self.groups - 1, 1.0 - level) * self.error

    def scaled(self, factor: float) -> Estimate:
        """Return the estimate of a multiple of the value."""
        size = abs(factor)
        parts = {name: getattr(self, name) * size for name in ("error", "below", "above")}
        return replace(self, value=self.value * factor, **parts)

    def interval(self, level: float = 0.05) -> tuple[float, float]:
        """Both ends of the interval that leaves out `level` (0 to 1), with all that is not noise.

        Examples
        --------
        >>> low, high = Estimate(0.04, 0.005, 40, part=0.5).interval()
        >>> round(low, 3), round(high, 3)
        (0.015, 0.05)
        """
        half = self.half_width(level)
        low = self.value - half - self.below
        return low * self.part if low > 0.0 else low, self.value + half + self.above

    def to_dict(self) -> dict[str, object]:
        """Return value and error as they stand in files."""
        return {"value": self.value, "error": self.error, "groups": self.groups}


def jackknife(rows: Floats, of_sums: Callable[[Floats], Floats], most: int = MOST_GROUPS) -> Estimate:
    """Estimate a function of sums over rows, with its error by leaving out one group of neighbouring rows at a time.

    Parameters
    ----------
    rows : array of shape (rows, ...)
        In order of time.
    of_sums : callable
        From sums, of shape (..., as a row's), to values of shape (...).
    most : int
        Most groups, at least 2.
    """
    if not len(rows):
        return Estimate(float("nan"), float("inf"), 0)
    groups = min(len(rows), most)
    sums = np.stack([part.sum(axis=0) for part in np.array_split(rows, groups)])
    with np.errstate(divide="ignore", invalid="ignore"):
        whole = float(of_sums(sums.sum(axis=0)))
        without = of_sums(sums.sum(axis=0) - sums)
    if groups < LEAST_GROUPS or not np.all(np.isfinite(without)):
        return Estimate(whole, float("inf"), groups)
    error = float(np.sqrt((groups - 1) / groups * np.sum((without - without.mean()) ** 2)))
    return Estimate(whole, error, groups)
