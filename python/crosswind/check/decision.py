"""Whether a node is sick: intervals of readings against a baseline. No clock here.

Intervals are of 95 %. Sick asks for more: the chance of a false drain is shared over all measures and both looks
(Bonferroni), and a loss counts only when every look saw it. For what differs between sessions is in no interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from crosswind.documents import Arguments
from crosswind.statistics.interval import pooled_freedom, reach

if TYPE_CHECKING:
    from crosswind.documents.check import Reading as ReadingDocument

Outcome = Literal["healthy", "sick", "unknown"]
LEVEL = 0.95
_WHOLE = 1.5
"""From this half of an interval on, %, digits behind the point say nothing."""
FALSE_DRAINS = 0.01
LOOKS = 2
CODES: dict[Outcome, int] = {"healthy": 0, "sick": 1, "unknown": 3}
BUSY_LOSS = 0.4
"""Loss of a rate per own CPU second that other processes on a busy host are not taken to cause, 0 to 1."""
NOT_SURE = "not certain enough for a drain"
ONE_LOOK = "measured only once"
_LEAST_BATCHES = 4
_LARGEST_EXPONENT = 700.0
_LARGEST = 1e6
"""Of a share, or of an error as a part of its rate; a file may hold any number."""


@dataclass(frozen=True)
class Reading:
    """Batches of one measure.

    Attributes
    ----------
    values : tuple of float
        One per batch, in order of time; the looks have equally many.
    unit : str
        Of the values; "share" is a part of the time (0 to 1, more is worse), all others are rates (less is worse).
    excusable : bool
        Whether the load of others lowers it without end, as it does wall time; such a loss is unknown on a busy host.
    part : float
        The permitted loss as a part of the tolerance, greater than 0: 0.5 is 5 points of 100 at 10 %.
    mean, error : float or None
        Mean and standard error where the interval is another module's, in place of `values`.
    looks : int
        How many looks the values are of. A loss that was not looked at twice drains no node.
    """

    values: tuple[float, ...] = ()
    unit: str = "1/s"
    excusable: bool = False
    part: float = 1.0
    mean: float | None = None
    error: float | None = None
    looks: int = LOOKS

    def to_dict(self) -> ReadingDocument:
        """Return it as it stands in files."""
        found: ReadingDocument = {**vars(self), "values": list(self.values)}  # type: ignore[typeddict-item]
        return found

    @classmethod
    def from_dict(cls, found: ReadingDocument) -> Reading:
        """Read it from a file."""
        given: Arguments = {**found, "values": tuple(found["values"])}
        return cls(**given)

    @property
    def known(self) -> bool:
        """Whether an interval can be computed."""
        return not self.lack

    @property
    def lack(self) -> str:
        """Why no interval can be computed; empty where one can."""
        numbers = self.values if self.mean is None else (self.mean,)
        if self.mean is None and len(self.values) < _LEAST_BATCHES:
            return "too few batches"
        if not all(map(math.isfinite, numbers)) or (self.mean is not None and not math.isfinite(self.error or 0.0)):
            return "not a finite number"
        if self.mean is not None and self.error is None:
            return "no error is known"
        if self.unit != "share" and not min(numbers) > 0.0:
            return "a rate of 0"
        scale = 1.0 if self.unit == "share" else abs(self.mean or 1.0)
        largest = max(map(abs, numbers)) if self.unit == "share" else 0.0
        return "out of range" if max(largest, (self.error or 0.0) / scale) > _LARGEST else ""


@dataclass(frozen=True)
class Judged:
    """A measure against its baseline.

    Attributes
    ----------
    name : str
    outcome : str
        "sick" where the loss is surely beyond the tolerance (`FALSE_DRAINS`), "healthy" where the interval lies within,
        else "unknown".
    loss, low, high : float
        What was lost and its 95 % interval: a part of the baseline's rate, or for shares of time the difference; > 0 is
        worse.
    tolerance : float
        The permitted loss.
    share : bool
        Whether it is a difference of shares of time.
    why : str
        Why it is unknown; empty otherwise.
    """

    name: str
    outcome: Outcome
    loss: float
    low: float
    high: float
    tolerance: float
    share: bool = False
    why: str = ""

    @property
    def shown(self) -> str:
        """Return the loss with half of its interval, and what is permitted.

        Examples
        --------
        >>> Judged("memory cpu 0", "sick", 0.48, 0.44, 0.52, 0.1).shown
        'memory cpu 0 is 48 ± 4 % lower (10 allowed)'
        >>> Judged("noise", "sick", 0.091, 0.088, 0.094, 0.05, share=True).shown
        'noise is 9.1 ± 0.3 points higher (5 allowed)'
        """
        if math.isnan(self.loss):
            return f"{self.name} is not known"
        half, unit = max(50 * (self.high - self.low), 0.1), "points" if self.share else "%"
        digits = 0 if half >= _WHOLE else 1
        interval = f" ± {half:.{digits}f}" if math.isfinite(half) else ""
        way = "higher" if self.share == (self.loss >= 0.0) else "lower"
        value = f"{100 * abs(self.loss):.{digits}f}{interval} {unit}"
        return f"{self.name} is {value} {way} ({100 * self.tolerance:g} allowed)"


def judge(name: str, now: Reading, then: Reading, tolerance: float, measures: int = 1, *, busy: bool = False) -> Judged:
    """Return whether a measure is worse than its baseline by more than the tolerance.

    Parameters
    ----------
    name : str
    now, then : Reading
        Today's and the baseline's.
    tolerance : float
        Permitted loss, above 0 and below 1; `now.part` of it counts.
    measures : int
        Over how many measures the chance of a false drain is shared, at least 1.
    busy : bool
        Whether others use much of the host: then losses of time are unknown, and those of rates must exceed
        `BUSY_LOSS`.

    Examples
    --------
    >>> good = Reading((100, 101, 99, 100))
    >>> judge("compute", Reading((50, 51, 49, 50)), good, 0.1).outcome
    'sick'
    """
    share = now.unit == "share"
    permitted = tolerance * now.part
    if now.unit != then.unit:
        return unknown(name, now, tolerance, f"measured in {now.unit}, and earlier in {then.unit}")
    if lack := now.lack or then.lack:
        return unknown(name, now, tolerance, lack)
    loss, error, degrees = _loss(now, then, share)
    half, sure = (error * reach(degrees, level) for level in (LEVEL, 1 - FALSE_DRAINS / (measures * LOOKS)))
    low, high, least = loss - half, loss + half, loss - sure
    if not share:  # computed in logarithms
        loss, low, high, least = (lost_part(value) for value in (loss, low, high, least))
    outcome: Outcome = "sick" if least > permitted else "healthy" if high < permitted else "unknown"
    why = "" if outcome != "unknown" else NOT_SURE if low > permitted else "the interval holds the tolerance"
    if outcome == "sick" and busy and (now.excusable or low <= BUSY_LOSS):
        outcome, why = "unknown", "the host is busy"
    if outcome == "sick" and now.mean is None and now.looks < LOOKS:
        outcome, why = "unknown", ONE_LOOK
    if outcome == "sick" and not _every_look(now, then, permitted, share):
        outcome, why = "unknown", "only one look saw it"
    return Judged(name, outcome, loss, low, high, permitted, share, why)


def unknown(name: str, reading: Reading, tolerance: float, why: str) -> Judged:
    """Return the verdict on a measure without an interval, such as one that the baseline has and this check has not."""
    permitted = tolerance * reading.part
    return Judged(name, "unknown", math.nan, -math.inf, math.inf, permitted, reading.unit == "share", why)


def together(judged: Sequence[Judged]) -> Outcome:
    """Return the verdict on the node: sick when one measure is, healthy when all are."""
    outcomes = {each.outcome for each in judged}
    if "sick" in outcomes:
        return "sick"
    return "healthy" if outcomes == {"healthy"} else "unknown"


def lost_part(logarithm: float) -> float:
    """Return the lost part of a rate from the logarithm of what it was divided by what it is."""
    return -math.expm1(-logarithm) if logarithm > -_LARGEST_EXPONENT else -math.inf


def _scaled(values: Sequence[float], share: bool) -> list[float]:
    return list(values) if share else [math.log(value) for value in values]


def middle(reading: Reading, share: bool) -> tuple[float, float, float]:
    """Return mean, standard error and degrees of freedom; of rates in logarithms."""
    if reading.mean is not None and reading.error is not None:
        error = reading.error if share else reading.error / abs(reading.mean)
        return (reading.mean if share else math.log(reading.mean)), error, math.inf
    values = _scaled(reading.values, share)
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, math.sqrt(variance / len(values)), float(len(values) - 1)


def _loss(now: Reading, then: Reading, share: bool) -> tuple[float, float, float]:
    """Return the loss, its standard error and Welch's degrees of freedom; of rates in logarithms."""
    (mean, error, freedom), (was, error_then, freedom_then) = middle(now, share), middle(then, share)
    degrees = pooled_freedom([(error**2, freedom), (error_then**2, freedom_then)])
    return (mean - was if share else was - mean), math.hypot(error, error_then), degrees


def _every_look(now: Reading, then: Reading, permitted: float, share: bool) -> bool:
    """Whether the mean of each half of the batches is beyond the tolerance."""
    if now.mean is not None:
        return True
    was, values = middle(then, share)[0], _scaled(now.values, share)
    half = len(values) // 2
    means = [sum(part) / len(part) for part in (values[:half], values[half:])]
    return all((mean - was if share else lost_part(was - mean)) > permitted for mean in means)
