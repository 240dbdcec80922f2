"""What may be said of an estimate: more than the margin, below it, or not settled yet and after how much longer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from crosswind.cost.bursts import Doubt, span
from crosswind.statistics.jackknife import Estimate

Outcome = Literal["below", "above", "unknown"]
LATER_LOOKS = 1.2
"""What a later look adds to the half-width squared, about: error is spent by then."""
NOISIER = 1.25
"""The noise may be so much larger than it seems: of 40 groups its standard error is 11 %."""
PRECISE = 0.2
"""An estimate is precise when its half-width is below this part of it, or below half of the margin."""
_HOURS_S = 7200.0


@dataclass(frozen=True)
class Verdict:
    """An estimate with its interval, against a margin; all are shares (0.01 is 1 %).

    Attributes
    ----------
    outcome : str
        "above": the whole interval is above the margin. "below": below it, and no bursts that were not seen could cost
        more. "unknown": neither.
    value, low, high : float
        The estimate and its interval, which holds at all looks together; infinity where bursts that were not seen may
        cost anything.
    margin : float
        What is still tolerated, greater than 0.
    more_s, most_more_s : float
        Between what times it is likely to be settled, s from now; 0 when it is, infinity when that cannot be said.
    why : str
        Why it is not settled although the interval is below the margin; empty otherwise.
    seen : float
        Half of the interval by what was seen; NaN where that is the whole interval.
    """

    outcome: Outcome
    value: float
    low: float
    high: float
    margin: float
    more_s: float
    most_more_s: float = 0.0
    why: str = ""
    seen: float = math.nan

    @property
    def half_width(self) -> float:
        """Half of the interval, above the value, by what was seen."""
        return self.high - self.value if math.isnan(self.seen) else self.seen

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
        >>> Verdict("above", 0.3, 0.06, 0.39, 0.01, 0.0).sentence
        'costs 30.0 % (6.0 to 39.0 %)'
        >>> Verdict("below", 0.0005, -0.002, 0.003, 0.005, 0.0).sentence
        'costs less than 0.5 % (95 %): 0.05 % ± 0.25'
        >>> Verdict("unknown", 0.009, 0.003, 0.015, 0.01, 80.0, 300.0).sentence
        'Not settled: 0.90 % ± 0.60 still includes the 1 % margin. Measure about 80 s to 5 min longer'
        """
        if not math.isfinite(self.value) or not math.isfinite(self.half_width):
            return f"Not settled: {self.why or 'too little was measured'}{self._after(self.in_time)}"
        found = self._found
        margin = f"{100 * self.margin:.3g} %"
        if self.outcome == "above":
            return f"costs {found}"
        if self.outcome == "below":
            return (
                f"costs {found}, less than {margin}" if self.low > 0.0 else f"costs less than {margin} (95 %): {found}"
            )
        if self.why:
            return f"Not settled: {found} so far, but {self.why}{self._after(self.in_time)}"
        return f"Not settled: {found} still includes the {margin} margin{self._after(self.in_time)}"

    @property
    def _found(self) -> str:
        """The value with its interval; with both ends where these are not equally far."""
        value, half = _percent(self.value, self.half_width), self.half_width
        if self.value - self.low > 1.1 * half and self.low < self.value:
            digits = _digits(half)
            high = self.value + half
            return f"{value} ({100 * self.low:.{digits}f} to {100 * high:.{digits}f} %)"
        return f"{value} ± {_bare(half)}"

    @staticmethod
    def _after(said: str) -> str:
        return f". {said}" if said else ""

    @property
    def in_time(self) -> str:
        """How much longer to measure; empty where more time does not settle it.

        Examples
        --------
        >>> Verdict("unknown", -0.051, -0.175, 0.073, 0.01, 300.0, math.inf).in_time
        'Measure at least 5 min longer'
        """
        least, longest = self.more_s, self.most_more_s
        if math.isinf(least):
            return (
                "" if self.why or not math.isfinite(self.half_width) else "Measuring for hours more would not settle it"
            )
        if least > _HOURS_S:
            return "Measuring for hours more would not settle it"
        if longest > _HOURS_S:
            return f"Measure at least {_rounded(least)} longer"
        first, last = _rounded(least), _rounded(longest)
        first = first.removesuffix(" s") if last.endswith(" s") else first
        first = first.removesuffix(" min") if last.endswith(" min") else first
        return f"Measure about {last if first in last.split() else f'{first} to {last}'} longer"

    def to_dict(self) -> dict[str, object]:
        """Return it as it stands in files."""
        return {
            "outcome": self.outcome,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "margin": self.margin,
            "more_s": self.more_s,
            "most_more_s": self.most_more_s,
            "why": self.why,
            "sentence": self.sentence,
        }


def _rounded(seconds: float) -> str:
    return span(max(math.ceil(seconds), 1.0))


def _percent(value: float, half_width: float) -> str:
    return f"{100 * value:.{_digits(half_width)}f} %"


def _bare(half_width: float) -> str:
    return f"{100 * half_width:.{_digits(half_width)}f}"


def _digits(half_width: float) -> int:
    return 2 if 100 * half_width < 1 else 1


def judge(found: Estimate, margin: float, level: float, measured_s: float, doubt: Doubt | None = None) -> Verdict:
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
    doubt : Doubt, optional
        Why it may cost more than what was seen.
    """
    half = found.half_width(level)
    low, high = found.interval(level)
    if not math.isfinite(found.value) or not math.isfinite(half):
        why = doubt.why if doubt else "too little was measured"
        more_s = doubt.more_s if doubt else math.inf
        return Verdict("unknown", found.value, -math.inf, math.inf, margin, more_s, more_s, why)
    if low > margin:
        return Verdict("above", found.value, low, high, margin, 0.0)
    if high < margin and doubt is None:
        return Verdict("below", found.value, low, high, margin, 0.0)
    if high < margin and doubt is not None:
        seen = high - found.value
        return Verdict(
            "unknown", found.value, low, max(high, doubt.high), margin, doubt.more_s, doubt.more_s, doubt.why, seen
        )
    likely = [max(found.value + sign * 0.5 * half, 0.0) - margin for sign in (-1.0, 1.0)]
    farthest = max(abs(each) for each in likely)
    nearest = 0.0 if likely[0] < 0.0 < likely[1] else min(abs(each) for each in likely)
    least, longest = _longer(half, farthest), _longer(NOISIER * half, nearest)
    return Verdict("unknown", found.value, low, high, margin, measured_s * least, measured_s * longest)


def _longer(half: float, distance: float) -> float:
    """Return how much longer, as a part of the time so far, until an interval excludes what lies so far off."""
    widths = half / distance if distance > 0.0 else math.inf
    return max(widths * widths * LATER_LOOKS - 1.0, 0.1)
