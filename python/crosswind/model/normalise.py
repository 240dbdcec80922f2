"""What a compute rate of 1 means: the idle mean, or, as in the papers, the highest rate seen.

The highest of many noisy rates is no typical rate: it makes every normalised rate too small, and the papers' intercepts
fall below 1 (0.980 on average when receiving). It is kept to be compared with the papers.
"""

from __future__ import annotations

from typing import Literal

from crosswind.errors import DescriptionError
from crosswind.model.points import Points

Normalise = Literal["idle", "max"]


def reference_rate(points: Points, how: Normalise = "idle") -> float:
    """Return the compute rate, work units/s, that is called 1.

    Raises
    ------
    DescriptionError
        When `how` is neither, or no point without traffic is there.
    """
    if how not in ("idle", "max"):
        raise DescriptionError(f'normalise is "{how}"; it must be "idle" or "max"', "normalise")
    idle = points.y_work_per_s[points.idle]
    if not idle.size or not idle.mean() > 0:
        hint = "measure some blocks without traffic, on a quieter host"
        raise DescriptionError("no computation without traffic: nothing to normalise by", "no-idle", hint)
    return float(idle.mean() if how == "idle" else points.y_work_per_s.max())
