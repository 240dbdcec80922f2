"""Runs of two commands in randomised quads: their times, the ratio of sums with its error, the verdict. No process."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from crosswind.compare.clock import By
from crosswind.statistics.jackknife import LEAST_GROUPS, Estimate, Floats, jackknife

Outcome = Literal["equivalent", "faster", "slower", "not-slower", "unknown"]
CODES: dict[Outcome, int] = {"equivalent": 0, "faster": 0, "not-slower": 0, "slower": 4, "unknown": 3}


@dataclass(frozen=True)
class Pairs:
    """Time of both commands, summed over the two runs that each has in a quad.

    Attributes
    ----------
    wall_s, cpu_s : arrays of shape (quads, 2)
        Wall and CPU time, s; column 0: A, column 1: B.
    """

    wall_s: Floats
    cpu_s: Floats

    @classmethod
    def of(cls, wall_s: Sequence[Sequence[float]], cpu_s: Sequence[Sequence[float]]) -> Pairs:
        """Make them of lists, one pair a quad."""
        return cls(*(np.array(each, dtype=float).reshape(-1, 2) for each in (wall_s, cpu_s)))

    def __len__(self) -> int:
        return len(self.wall_s)

    def by(self, by: By) -> Floats:
        """Return the times by wall or by CPU."""
        return self.wall_s if by == "wall" else self.cpu_s


def slowdown(pairs: Pairs, by: By) -> Estimate:
    """Estimate by how much B takes longer than A, as a share of A's time: a ratio of sums, less 1.

    Examples
    --------
    >>> four = np.array([[2.0, 2.1], [2.2, 2.3], [2.0, 2.1], [2.1, 2.2]])
    >>> round(slowdown(Pairs(four, four), "wall").value, 3)
    0.048
    """
    return jackknife(pairs.by(by), lambda sums: sums[..., 1] / sums[..., 0] - 1.0)


@dataclass(frozen=True)
class Judged:
    """How B does against A.

    Attributes
    ----------
    outcome : str
        "equivalent": the whole interval is within the margin. "slower": above it. "faster": below 0 and not within it.
        "not-slower": below the margin. "unknown": none of these.
    value, low, high : float
        How much longer B takes, with its interval at all looks together, as shares.
    margin : float
        What counts as equivalent, as a share.
    more_quads : float
        How many more quads it takes to know, at least; 0 when it is known.
    """

    outcome: Outcome
    value: float
    low: float
    high: float
    margin: float
    more_quads: float

    @property
    def is_final(self) -> bool:
        """Whether more runs would not change what a gate does: "not-slower" may still become "equivalent"."""
        return self.outcome in ("equivalent", "faster", "slower")

    @property
    def sentence(self) -> str:
        """The verdict in words.

        Examples
        --------
        >>> Judged("slower", 0.05, 0.04, 0.06, 0.02, 0.0).sentence
        'B is slower: +5.00 % ± 1.00'
        """
        if not math.isfinite(self.high):
            return f"Not settled: too few runs; at least {2 * LEAST_GROUPS} of each are needed"
        found = f"{100 * self.value:+.2f} % ± {50 * (self.high - self.low):.2f}"
        margin = f"{100 * self.margin:.3g} %"
        if self.outcome == "equivalent":
            return f"equivalent within {margin}: B takes {found}"
        if self.outcome == "not-slower":
            return f"B is not slower by {margin} or more: {found}"
        if self.outcome == "unknown":
            more = math.ceil(2 * self.more_quads) if self.more_quads < 1e5 else 0
            after = f". At least {more} more runs of each are needed" if more else ""
            return f"Not settled: B takes {found}, the margin is {margin}{after}"
        return f"B is {self.outcome}: {found}"

    def to_dict(self) -> dict[str, object]:
        """Return it as it stands in files."""
        fields = {name: getattr(self, name) for name in ("outcome", "value", "low", "high", "margin", "more_quads")}
        return fields | {"sentence": self.sentence}


def judge(found: Estimate, margin: float, level: float, quads: int) -> Judged:
    """Judge how much longer B takes.

    Parameters
    ----------
    found : Estimate
        Of `slowdown`.
    margin : float
        What counts as equivalent, as a share greater than 0.
    level : float
        What the interval leaves out, 0 to 1.
    quads : int
        From how many quads it comes.
    """
    half = found.half_width(level)
    low, high = found.value - half, found.value + half
    if not math.isfinite(half):
        return Judged("unknown", found.value, -math.inf, math.inf, margin, math.inf)
    outcome: Outcome = "unknown"
    if -margin < low and high < margin:
        outcome = "equivalent"
    elif low > margin:
        outcome = "slower"
    elif high < 0.0:
        outcome = "faster"
    elif high < margin:
        outcome = "not-slower"
    # The mean is noisy: all within half of the interval may be true, and the farthest from the margin is known first.
    distance = max(abs(abs(found.value + sign * 0.5 * half) - margin) for sign in (-1.0, 1.0))
    widths = half / distance if distance > 0.0 else math.inf
    more = quads * max(widths * widths * 1.2 - 1.0, 0.1)
    return Judged(outcome, found.value, low, high, margin, more if outcome in ("unknown", "not-slower") else 0.0)
