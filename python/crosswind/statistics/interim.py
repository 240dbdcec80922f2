"""Looking at a result while it comes in, and stopping when it is known, without more false alarms.

Of the permitted error, alpha, a part is spent at every look. The limits follow by recursive integration (Armitage,
McPherson & Rowe 1969) of the density of the sum over all earlier looks that did not stop (Lan & DeMets 1983). Intervals
with these limits cover at all looks together (repeated confidence intervals, Jennison & Turnbull 1989): they may be
quoted whenever it is stopped, for whatever reason.

A session that continues after its planned end has spent only four fifths of what it had; the next stage has four fifths
of the rest. No clock here: time is handed in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from crosswind.documents.values import Looks as LooksDocument

Spending = Literal["pocock", "obrien-fleming"]

ALPHA = 0.05
SHARE_OF_A_STAGE = 0.8
PLANNED = (0.1, 0.2, 0.4, 0.7, 1.0)
"""Where a stage is looked at, as parts of its time."""
_POINTS = 301


def spent(part: float, alpha: float = ALPHA, how: Spending = "pocock") -> float:
    """Return the error that may be spent up to a part (0 to 1) of the planned time.

    Examples
    --------
    >>> round(spent(0.5), 4), round(spent(0.5, how="obrien-fleming"), 4), spent(1.0)
    (0.031, 0.0031, 0.05)
    """
    part = min(max(part, 0.0), 1.0)
    if part == 0.0:
        return 0.0
    if how == "pocock":
        return alpha * math.log(1.0 + (math.e - 1.0) * part)
    return float(4.0 * special.ndtr(special.ndtri(alpha / 4.0) / math.sqrt(part)))  # half of it on each side


def limits(information: Sequence[float], cumulative: Sequence[float]) -> list[float]:
    """Return the two-sided limit of the standardised statistic at each look.

    Parameters
    ----------
    information : sequence of float
        What is known at each look, such as seconds or quads; increasing, greater than 0.
    cumulative : sequence of float
        Error spent up to each look (0 to 1), not decreasing. Where nothing is spent the limit is infinite.

    Examples
    --------
    >>> [round(limit, 2) for limit in limits([1.0], [0.05])]
    [1.96]
    >>> fifths = [0.2, 0.4, 0.6, 0.8, 1.0]
    >>> [round(limit, 1) for limit in limits(fifths, [spent(each) for each in fifths])]
    [2.4, 2.4, 2.4, 2.4, 2.4]
    """
    return list(_limits(tuple(information), tuple(cumulative)))


@lru_cache(maxsize=64)
def _limits(information: tuple[float, ...], cumulative: tuple[float, ...]) -> tuple[float, ...]:
    """Compute `limits`, by Simpson's rule and without BLAS, whose threads would spin on the host that is measured."""
    found: list[float] = []
    nodes = np.linspace(-1.0, 1.0, _POINTS)
    weights = np.full(_POINTS, 2.0)
    weights[1::2], weights[[0, -1]] = 4.0, 1.0
    weights *= 2.0 / (3.0 * (_POINTS - 1))
    at = np.zeros(1)  # places of the sum so far
    mass = np.ones(1)  # and what they weigh
    before, used = 0.0, 0.0
    for now, until in zip(information, cumulative, strict=True):
        step = math.sqrt(now - before)

        def beyond(limit: float, step: float = step, at: Any = at, mass: Any = mass) -> float:
            return float(np.sum(mass * (special.ndtr((at - limit) / step) + special.ndtr((-limit - at) / step))))

        edge = _solved(beyond, max(until - used, 0.0), 12.0 * math.sqrt(now))
        found.append(edge / math.sqrt(now))
        reach = min(edge, 9.0 * math.sqrt(now))
        places = reach * nodes
        density = np.sum(_normal((places[:, None] - at[None, :]) / step) * mass, axis=1) / step
        at, mass = places, density * weights * reach
        before, used = now, until
    return tuple(limit if limit < 11.9 else math.inf for limit in found)


def _normal(z: Any) -> Any:
    return np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


def _solved(beyond: Any, wanted: float, top: float) -> float:
    """Return the limit beyond which `wanted` lies, by bisection."""
    low, high = 0.0, top
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if beyond(middle) > wanted else (low, middle)
    return high


@dataclass
class Looks:
    """The looks at one result: when, what was spent, and the limit of the last one.

    Attributes
    ----------
    planned_s : float
        When the current stage is to end, in s of measured time.
    alpha : float
        Error over all looks of all stages, 0 to 1.
    one : bool
        Whether there is only one look, at the end, with all of alpha.
    taken : list of (float, float)
        Measured s and the error spent up to it, per look.
    """

    planned_s: float
    alpha: float = ALPHA
    one: bool = False
    taken: list[tuple[float, float]] = field(default_factory=list)
    began_s: float = 0.0
    before: float = 0.0

    def next_s(self) -> float:
        """Return the measured time of the next planned look, s; infinity after the last."""
        parts = (1.0,) if self.one else PLANNED
        planned = [self.began_s + part * (self.planned_s - self.began_s) for part in parts]
        last = self.taken[-1][0] if self.taken else 0.0
        return next((time for time in planned if time > last + 1e-9), math.inf)

    def look(self, now_s: float, *, at_the_end: bool = False) -> float:
        """Take a look after `now_s` of measured time; return the level (0 to 1) of the interval that may be quoted.

        A stage that ends now, by its clock and not for what was seen, spends all that it has, however much of its time
        was measured.
        """
        if not self.taken or now_s > self.taken[-1][0]:
            if at_the_end:
                self.planned_s = now_s
            self.taken.append((now_s, self._spent_at(now_s)))
        return self.level()

    def level(self) -> float:
        """Return what the interval of the last look leaves out, 0 to 1."""
        times, errors = zip(*self.taken, strict=True)
        return float(2.0 * special.ndtr(-limits(times, errors)[-1]))

    def _spent_at(self, now_s: float) -> float:
        part = (now_s - self.began_s) / max(self.planned_s - self.began_s, 1e-9)
        left = (self.alpha - self.before) * (1.0 if self.one else SHARE_OF_A_STAGE)
        if self.one:
            return self.before + spent(part, left, "obrien-fleming")
        return self.before + spent(part, left)

    def prolong(self, more_s: float) -> None:
        """Begin another stage of `more_s` after what has been measured, with a part of the error that is left."""
        if self.taken:
            self.began_s, self.before = self.taken[-1]
        self.planned_s = self.began_s + more_s
        self.one = False

    def to_dict(self) -> LooksDocument:
        """Return it as it stands in files."""
        return {
            "planned_s": self.planned_s,
            "alpha": self.alpha,
            "one": self.one,
            "began_s": self.began_s,
            "before": self.before,
            "taken": [list(each) for each in self.taken],
        }

    @classmethod
    def from_dict(cls, found: LooksDocument) -> Looks:
        """Read it from a file."""
        return cls(
            planned_s=found["planned_s"],
            alpha=found["alpha"],
            one=found["one"],
            taken=[(float(at), float(error)) for at, error in found["taken"]],
            began_s=found["began_s"],
            before=found["before"],
        )
