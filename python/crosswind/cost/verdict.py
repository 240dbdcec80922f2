"""What may be said of an estimate: more than the margin, below it, or not known yet and after how much longer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from crosswind.cost.estimate import Estimate

Outcome = Literal["below", "above", "unknown"]
LATER_LOOKS = 1.2
"""What a later look adds to the half-width squared, about: error is spent by then."""
PRECISE = 0.2
"""An estimate is precise when its half-width is below this part of it, or below half of the margin."""


@dataclass(frozen=True)
class Verdict:
    """An estimate with its interval, against a margin; all are shares (0.01 is 1 %).

    Attributes
    ----------
    outcome : str
        "above": the whole interval is above the margin. "below": below it. "unknown": the margin is inside.
    value, low, high : float
        The estimate and its interval, which holds at all looks together.
    margin : float
        What is still tolerated, greater than 0.
    more_s : float
        About how much longer it takes to know, s; 0 when it is known, infinity when that cannot be told.
    """

    outcome: Outcome
    value: float
    low: float
    high: float
    margin: float
    more_s: float

    @property
    def half_width(self) -> float:
        """Half of the interval."""
        return 0.5 * (self.high - self.low)

    @property
    def is_known(self) -> bool:
        """Whether it is decided."""
        return self.outcome != "unknown"

    @property
    def is_precise(self) -> bool:
        """Whether it is decided and the value is worth quoting."""
        return self.is_known and self.half_width <= max(0.5 * self.margin, PRECISE * abs(self.value))

    @property
    def sentence(self) -> str:
        """The verdict in words.

        Examples
        --------
        >>> Verdict("above", 0.019, 0.016, 0.022, 0.01, 0.0).sentence
        'costs 1.90 % ± 0.30'
        >>> Verdict("below", 0.0005, -0.002, 0.003, 0.005, 0.0).sentence
        'costs less than 0.5 % (95 %): 0.05 % ± 0.25'
        >>> Verdict("unknown", 0.009, 0.003, 0.015, 0.01, 80.0).sentence
        'unknown: 0.90 % ± 0.60 includes the margin, 1 %; about 80 s more'
        """
        if not math.isfinite(self.value) or not math.isfinite(self.half_width):
            return "unknown: too little was measured"
        found = f"{_percent(self.value, self.half_width)} ± {_bare(self.half_width)}"
        margin = f"{100 * self.margin:.3g} %"
        if self.outcome == "above":
            return f"costs {found}"
        if self.outcome == "below":
            return (
                f"costs {found}, less than {margin}" if self.low > 0.0 else f"costs less than {margin} (95 %): {found}"
            )
        return f"unknown: {found} includes the margin, {margin}; {self.in_time}"

    @property
    def in_time(self) -> str:
        """About how much longer it takes to know."""
        if self.more_s < 120:
            return f"about {max(self.more_s, 1.0):.0f} s more"
        return f"about {self.more_s / 60:.0f} min more" if self.more_s < 7200 else "hours more would not tell"

    def to_dict(self) -> dict[str, Any]:
        """Return it as it stands in files."""
        return {
            "outcome": self.outcome,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "margin": self.margin,
            "more_s": self.more_s,
            "sentence": self.sentence,
        }


def _percent(value: float, half_width: float) -> str:
    return f"{100 * value:.{_digits(half_width)}f} %"


def _bare(half_width: float) -> str:
    return f"{100 * half_width:.{_digits(half_width)}f}"


def _digits(half_width: float) -> int:
    return 2 if 100 * half_width < 1 else 1


def judge(found: Estimate, margin: float, level: float, measured_s: float) -> Verdict:
    """Judge an estimate against a margin.

    Parameters
    ----------
    found : Estimate
        What was estimated.
    margin : float
        What is still tolerated, as a share greater than 0.
    level : float
        What the interval leaves out, 0 to 1; of sequential looks: `Looks.look`.
    measured_s : float
        How long it took, s, to say how much longer it will.
    """
    half = found.half_width(level)
    low, high = found.value - half, found.value + half
    if not math.isfinite(found.value) or not math.isfinite(half):
        return Verdict("unknown", found.value, -math.inf, math.inf, margin, math.inf)
    if low > margin:
        return Verdict("above", found.value, low, high, margin, 0.0)
    if high < margin:
        return Verdict("below", found.value, low, high, margin, 0.0)
    distance = abs(found.value - margin)
    longer = (half / distance) ** 2 * LATER_LOOKS if distance > 0.0 else math.inf
    return Verdict("unknown", found.value, low, high, margin, measured_s * max(longer - 1.0, 0.1))
