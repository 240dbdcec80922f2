"""What stopping something gives back: four estimators of one loss, as ratios of sums with a jackknife over quads.

With W the job's progress, T wall time, J and X CPU time of the job and of what is investigated, and 1 and 0 for blocks
in which it runs or is stopped:

| estimator | loss | sees |
|---|---|---|
| wall | 1 - (W1/T1) / (W0/T0) | everything, and all noise of third parties |
| own | 1 - (W1/J1) / (W0/J0) | only what slows the job while it has the processor (caches, switches) |
| available | 1 - (W1/(J1+X1)) / (W0/J0) | time taken and slow-down, without third parties |
| exchange | available * (J1+X1)/X1 * duty / (J0/T0) | the same, for the duty that X has when nothing stops it |

with that duty as a share of what the job has while X is stopped, (J0/T0), since others may take the rest. That is the
job's loss where the demand of others is fixed; where they want all that they can get, they share X's loss, and the job
loses less, down to the same without the division.

`available` and `exchange` hold where X's CPU time comes from the job's processors. Ratios are of sums over all quads: a
ratio per block divides by next to nothing on a starved processor. Medians, ranks and trimming would lose what matters,
since a daemon's bursts are rare.

Error: delete-a-group jackknife over at most 40 runs of neighbouring quads, so that noise that outlasts a quad counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from crosswind.cost.blocks import OFF, ON, Floats, Quads
from crosswind.cost.bursts import number_of_bursts
from crosswind.statistics.interval import pooled_freedom
from crosswind.statistics.jackknife import LEAST_GROUPS, MOST_GROUPS, Estimate, jackknife

Name = Literal["wall", "own", "available", "exchange"]
NAMES: tuple[Name, ...] = get_args(Name)
FEW_GROUPS = 10
VARYING = 0.1
"""Windows whose lengths have a larger standard deviation than this part of their mean are of random lengths."""
_WORK, _WALL, _JOB, _X = range(4)


@dataclass(frozen=True)
class Duty:
    """CPU time per wall time of what is investigated while nothing stops it.

    Attributes
    ----------
    value, error : float
        CPU s per s, and its standard error.
    bursts : float
        From how many bursts it comes, at most; infinity where it is steady.
    cpus : int
        Per CPU of this number of CPUs.
    either_way : float
        By how much it may be higher or lower, since it is not known whether missed work is done later.
    groups : int
        Of the jackknife of its error.
    """

    value: float
    error: float
    bursts: float = math.inf
    cpus: int = 1
    either_way: float = 0.0
    groups: int = MOST_GROUPS

    @classmethod
    def of(cls, wall_s: Floats, cpu_s: Floats) -> Duty:
        """Return the ratio of sums over consecutive windows, with its error.

        That is a jackknife over groups of windows, and what is not known of the ends: a daemon that wakes with the
        windows uses the same in each, and yet one burst more or less may fall into them all. Of bursts of b at a random
        phase the sum's variance is b^2 f (1 - f), where a fraction f of a period is left over, and b^2/6 over all f.
        What the fullest window holds is taken for b; of windows of random lengths, with which no daemon can wake, what
        the fullest and the emptiest differ by from their shares. At their borders the same b is counted in one or the
        other, which a sum does not see, and many groups would: so there are only 10 of these.

        Examples
        --------
        >>> duty = Duty.of(np.full(20, 0.1), np.full(20, 0.005))
        >>> round(duty.value, 4), round(duty.error, 4)
        (0.05, 0.001)
        """
        stacked = np.stack([cpu_s, wall_s], axis=1)
        vary = float(np.std(wall_s)) > VARYING * float(np.mean(wall_s))
        found = jackknife(stacked, lambda sums: sums[..., 0] / sums[..., 1], FEW_GROUPS if vary else MOST_GROUPS)
        size_s = float(cpu_s.max())
        if vary:
            beyond = cpu_s - found.value * wall_s
            size_s = min(size_s, float(beyond.max() - beyond.min()))
        error = math.hypot(found.error, size_s / float(wall_s.sum()) / math.sqrt(6.0))
        return cls(found.value, error, number_of_bursts(wall_s, cpu_s), groups=found.groups)

    def of_each(self, cpus: int) -> Duty:
        """Return the duty per CPU of `cpus`, at least 1: what a job that uses all of them loses."""
        parts = {name: getattr(self, name) / cpus for name in ("value", "error", "either_way")}
        return replace(self, cpus=cpus, **parts)

    @classmethod
    def of_few(cls, least: float, most: float, bursts: float) -> Duty:
        """Return the duty between two, of few random bursts, whose number decides its error."""
        value = 0.5 * (least + most)
        return cls(value, value / math.sqrt(max(bursts, 1.0)), bursts, either_way=0.5 * abs(most - least))


def estimate(quads: Quads, name: Name, duty: Duty | None = None) -> Estimate:
    """Estimate the loss by one of the four estimators, as a share of the job's rate without X.

    Parameters
    ----------
    quads : Quads
        What was counted.
    name : str
        "wall", "own", "available" or "exchange".
    duty : Duty, optional
        The undisturbed duty, for "exchange" only.

    Raises
    ------
    ValueError
        When "exchange" is asked for without a duty.

    Examples
    --------
    >>> two = [[100.0, 98.0]] * 8
    >>> time = [[1.0, 1.0]] * 8
    >>> quads = Quads(*(np.array(each) for each in (two, time, [[1.0, 0.98]] * 8, [[0.0, 0.02]] * 8)))
    >>> [round(estimate(quads, name, Duty(0.01, 0.0)).value, 4) for name in NAMES]
    [0.02, 0.0, 0.02, 0.01]
    """
    if name != "exchange":
        return jackknife(quads.stacked, _LOSSES[name])
    if duty is None:
        raise ValueError("the exchange rate needs the undisturbed duty")
    return _for_duty(quads, duty, jackknife(quads.stacked, _exchange_rate))


def _for_duty(quads: Quads, duty: Duty, rate: Estimate) -> Estimate:
    """Return what a duty costs at a rate per CPU second, as a share of the job's own rate."""
    share = share_of_job(quads, duty.cpus)
    of_rate, of_duty = rate.error * duty.value, rate.value * duty.error
    error = float(np.hypot(of_rate, of_duty)) / share
    value = rate.value * duty.value / share
    freedom = _freedom(of_rate, rate.groups, of_duty, duty.groups)
    groups = min(freedom, int(min(duty.bursts, MOST_GROUPS)))
    either_way = abs(rate.value) * duty.either_way / share
    return Estimate(value, error, groups, either_way, either_way, share)


def _freedom(first: float, its_groups: int, second: float, groups: int) -> int:
    """Return the groups that stand for two errors together (Welch 1947, Satterthwaite 1946)."""
    if min(its_groups, groups) < LEAST_GROUPS or not (math.isfinite(first) and math.isfinite(second)):
        return min(its_groups, groups)
    if first == second == 0.0:
        return its_groups
    larger = max(abs(first), abs(second))
    one, other = (first / larger) ** 2, (second / larger) ** 2
    return max(int(pooled_freedom([(one, its_groups - 1), (other, groups - 1)])) + 1, LEAST_GROUPS)


def share_of_job(quads: Quads, cpus: int = 1) -> float:
    """Return the part of its CPUs that the job has while X is stopped, above 0 and at most 1."""
    wall_s, had_s = float(quads.wall_s[:, OFF].sum()), float(quads.job_cpu_s[:, OFF].sum())
    return min(had_s / wall_s / cpus, 1.0) if wall_s > 0.0 and had_s > 0.0 else 1.0


def exchange_rate(quads: Quads) -> Estimate:
    """Estimate seconds of the job lost per CPU second of X: 1 where it takes its time and nothing else."""
    return jackknife(quads.stacked, _exchange_rate)


def slow_down(quads: Quads, duty: Duty) -> Estimate:
    """Estimate the part of the exchange estimate that is not CPU time taken: the job slower while it has the CPU."""
    return _for_duty(quads, duty, jackknife(quads.stacked, lambda sums: _exchange_rate(sums) - 1.0))


def duty_while_on(quads: Quads) -> float:
    """CPU time of X per wall time of the blocks in which it may run."""
    wall_s = float(quads.wall_s[:, ON].sum())
    return float(quads.x_cpu_s[:, ON].sum()) / wall_s if wall_s > 0.0 else float("nan")


def _ratio(of_on: Floats, by_on: Floats, of_off: Floats, by_off: Floats) -> Floats:
    return 1.0 - (of_on / by_on) / (of_off / by_off)


def _wall(sums: Floats) -> Floats:
    return _ratio(sums[..., _WORK, ON], sums[..., _WALL, ON], sums[..., _WORK, OFF], sums[..., _WALL, OFF])


def _own(sums: Floats) -> Floats:
    return _ratio(sums[..., _WORK, ON], sums[..., _JOB, ON], sums[..., _WORK, OFF], sums[..., _JOB, OFF])


def _available(sums: Floats) -> Floats:
    on = sums[..., _JOB, ON] + sums[..., _X, ON]
    off = sums[..., _JOB, OFF] + sums[..., _X, OFF]
    return _ratio(sums[..., _WORK, ON], on, sums[..., _WORK, OFF], off)


def _exchange_rate(sums: Floats) -> Floats:
    on = sums[..., _JOB, ON] + sums[..., _X, ON]
    return _available(sums) * on / sums[..., _X, ON]


_LOSSES: dict[str, Callable[[Floats], Floats]] = {"wall": _wall, "own": _own, "available": _available}
