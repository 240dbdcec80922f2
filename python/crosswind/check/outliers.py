"""Which readings differ from others of the same kind, without any baseline: robust statistics. No clock here.

The others are the same measure on other hosts, or of the same host at earlier times. What is typical is their median,
and how far they lie apart is the median of the distances from it (MAD), so that a few sick ones among them change
neither (Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993, whose limit of 3.5 is taken).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median

from crosswind.check.decision import Judged, Reading, judge, middle, unknown

LEAST_OTHERS = 2
"""With fewer others the odd one cannot be identified."""
LIMIT = 3.5
"""Robust standard deviations of the others from which on one is an outlier."""
SIGMA_OF_MAD = 1.482602
MEDIAN_OF_MEAN = 1.253314
"""Standard error of a median as a multiple of that of a mean, for normal values."""


def group_of(name: str) -> str:
    """Return what a measure is, whichever CPU it is of.

    Examples
    --------
    >>> group_of("lost time cpu 12"), group_of("noise")
    ('lost time', 'noise')
    """
    return name.partition(" cpu ")[0]


def among(
    name: str, now: Reading, others: Sequence[Reading], tolerance: float, measures: int = 1, *, busy: bool = False
) -> Judged:
    """Return whether a reading is worse than others by more than the tolerance, and by more than they differ.

    Parameters
    ----------
    name : str
    now : Reading
    others : sequence of Reading
        Those that it is held against, without it; of the same unit.
    tolerance : float
        Permitted loss against their median, above 0 and below 1; `now.part` of it counts.
    measures : int
        Over how many readings the chance of a false alarm is shared, at least 1.
    busy : bool
        As in `judge`.

    Examples
    --------
    >>> others = [Reading((100.0 + k, 101.0 + k, 99.0 + k, 100.0 + k)) for k in range(4)]
    >>> among("compute", Reading((50.0, 51.0, 49.0, 50.0)), others, 0.1).outcome
    'sick'
    >>> among("compute", Reading((101.0, 102.0, 100.0, 101.0)), others, 0.1).outcome
    'healthy'
    """
    share = now.unit == "share"
    usable = [other for other in others if other.known and other.unit == now.unit]
    if not now.known or len(usable) < LEAST_OTHERS:
        return unknown(name, now, tolerance, now.lack or f"{len(usable)} others, {LEAST_OTHERS} are needed")
    means = [middle(other, share)[0] for other in usable]
    typical = median(means)
    spread = SIGMA_OF_MAD * median(abs(mean - typical) for mean in means)
    error = MEDIAN_OF_MEAN * spread / math.sqrt(len(means))
    found = judge(name, now, around(now, typical, error), tolerance, measures, busy=busy)
    away = (middle(now, share)[0] - typical) * (1 if share else -1)
    if found.outcome == "sick" and away <= LIMIT * spread:
        return replace(found, outcome="unknown", why="the others differ as much")
    return found


def around(now: Reading, mean: float, error: float) -> Reading:
    """Return the reading, of the kind of `now`, that has this mean and error; of rates in logarithms."""
    if now.unit != "share":  # a reading's own error is of the rate, not of its logarithm
        mean = math.exp(mean)
        error *= mean
    return replace(now, values=(), mean=mean, error=error)


def judged_hosts(
    readings: Mapping[str, Mapping[str, Reading]], tolerance: float, busy: Iterable[str] = ()
) -> dict[str, list[Judged]]:
    """Hold each host's readings against those of all other hosts; each host's, the worst first.

    Parameters
    ----------
    readings : mapping
        Each host's readings by their names; those of CPUs are held against all CPUs of the others.
    tolerance : float
        Permitted loss, above 0 and below 1.
    busy : iterable of str
        Hosts whose own load may be the reason.
    """
    busy, count = set(busy), sum(map(len, readings.values()))
    found: dict[str, list[Judged]] = {}
    for host, own in readings.items():
        found[host] = []
        for name, reading in own.items():
            others = [
                other
                for elsewhere, theirs in readings.items()
                if elsewhere != host
                for known, other in theirs.items()
                if group_of(known) == group_of(name)
            ]
            found[host].append(among(name, reading, others, tolerance, count, busy=host in busy))
        found[host].sort(key=worst_first)
    return found


def judged_links(rates: Mapping[tuple[str, str], float], tolerance: float) -> dict[tuple[str, str], Judged]:
    """Hold each link's rate (MB/s) against those of all other links; one of 0 MB/s is unknown."""
    readings = {link: Reading((), "MB/s", mean=rate, error=0.0) for link, rate in rates.items()}
    return {
        link: among(
            f"rate {link[0]} to {link[1]}",
            reading,
            [other for known, other in readings.items() if known != link],
            tolerance,
            len(readings),
        )
        for link, reading in readings.items()
    }


def worst_first(judged: Judged) -> tuple[int, float]:
    """Return what sorts verdicts: the sick ones first, among them the largest loss of its tolerance."""
    known = math.isfinite(judged.loss) and judged.tolerance > 0.0
    loss = judged.loss / judged.tolerance if known else -math.inf
    return (("sick", "unknown", "healthy").index(judged.outcome), -loss)
