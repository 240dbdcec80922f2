"""Could bursts that were not seen, or seen too seldom, cost more than the margin? Nothing here has a clock.

A process that works now and then is idle for most of a session. That no burst was seen says little of bursts that are
rarer than the session is long, and two bursts say little of their rate. So a cost is called less than the margin only

- after bursts that come once in `REST_S` on average, at random, would have been seen with 97.5 %: 74 s. Half of that is
  enough where the process has lived for long, and used less than the margin over its life;
- where the rate of the bursts that were seen has an upper limit below the margin, with as many bursts as the variance
  of CPU time between windows suggests: of n bursts at random, gamma's quantile of shape n + 1 (Garwood 1936);
- and where it has not used more than the margin over its life.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from crosswind.cost.blocks import Floats

REST_S = 20.0
"""Longest interval between bursts, s, that "less than the margin" covers."""
MISSED = 0.025
"""The permitted probability that such a burst was missed, or that the upper limit is too low."""
LONG_LIVED = 0.5
"""The part of the time of watching that is enough for a process with a life that is known."""
LEAST_BURSTS, FEW_BURSTS = 5, 40
"""With fewer than the first nothing is said; with fewer than the second, their number decides a duty's error."""
UNSEEN_PART = 0.2
"""Part of the margin that children which were not counted may take."""
SURE_BURSTS = 100
"""Fewest bursts in the undisturbed part from which its duty shows whether missed work is done later."""
_COUNTED_S = 1e-9  # a kernel counts CPU time in ns
_SCALES_S = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
_LEAST_WINDOWS = 8


def needed_s(part: float = 1.0) -> float:
    """Return how long a process must be watched to have seen a burst that comes each `REST_S`, s.

    Examples
    --------
    >>> round(needed_s()), round(needed_s(LONG_LIVED))
    (74, 37)
    """
    return -math.log(MISSED) * REST_S * part


def size_of_bursts(wall_s: Floats, cpu_s: Floats) -> float:
    """Return the CPU time of one burst, s, from the variance between windows, by the largest of several scales.

    Of bursts of b at random times the variance of a window's CPU time is b times its mean; of a steady process it is 0.

    Examples
    --------
    >>> seldom = np.zeros(100)
    >>> seldom[[7, 50, 81]] = 0.03
    >>> round(size_of_bursts(np.full(100, 0.1), seldom), 3), size_of_bursts(np.full(100, 0.1), np.full(100, 0.001))
    (0.029, 0.0)
    """
    total_s, used_s = float(wall_s.sum()), float(cpu_s.sum())
    if used_s < _COUNTED_S or not math.isfinite(total_s):
        return 0.0
    until, found = np.cumsum(wall_s), [0.0]
    for scale in _SCALES_S:
        number = total_s // scale
        if number < _LEAST_WINDOWS:
            break
        within = np.minimum(np.floor(until / total_s * number * (1.0 - 1e-12)), number - 1.0)
        _, which = np.unique(within, return_inverse=True)  # a window in which nothing was counted adds nothing
        wall, cpu = (np.bincount(which, each) for each in (wall_s, cpu_s))
        beyond = cpu - used_s / total_s * wall
        found.append(float(np.sum(beyond**2)) / (number - 1.0) * (number / used_s))
    return max(found) if max(found) > _COUNTED_S else 0.0


def number_of_bursts(wall_s: Floats, cpu_s: Floats) -> float:
    """Return how many bursts were seen; infinity for a steady process, 0 where it used nothing."""
    used_s, size_s = float(cpu_s.sum()), size_of_bursts(wall_s, cpu_s)
    return 0.0 if used_s < _COUNTED_S else used_s / size_s if size_s > 0.0 else math.inf


def most(duty: float, bursts: float, missed: float = MISSED) -> float:
    """Return the upper limit of a duty that was seen as `bursts` random bursts; infinity where none was seen.

    Examples
    --------
    >>> round(most(0.001, 1.0), 4), most(0.001, math.inf), most(0.0, 0.0)
    (0.0056, 0.001, inf)
    """
    if bursts <= 0.0:
        return math.inf
    return duty if math.isinf(bursts) else duty * float(special.gammaincinv(bursts + 1.0, 1.0 - missed)) / bursts


@dataclass(frozen=True)
class Life:
    """What a process has used since its start, until the session began.

    Attributes
    ----------
    age_s : float
        How long it had lived, s; 0 where that is not known.
    used_s : float
        Its CPU time until then, s.
    """

    age_s: float
    used_s: float

    @property
    def is_known(self) -> bool:
        """Whether it is long enough to say something."""
        return self.age_s >= needed_s()

    @property
    def duty(self) -> float:
        """CPU time per time."""
        return self.used_s / self.age_s if self.age_s > 0.0 else math.nan

    @property
    def most(self) -> float:
        """Upper limit of its duty if it works in bursts as rare as one in `REST_S`."""
        expected = self.age_s / REST_S
        fewest = 0
        while special.pdtr(fewest, expected) <= MISSED:
            fewest += 1
        return self.duty * expected / fewest if fewest else math.inf

    @property
    def words(self) -> str:
        """Its age and duty."""
        return f"{100 * self.duty:.2g} % of a CPU over the {span(self.age_s)} since its start"


def span(seconds: float) -> str:
    """Return a time in words.

    Examples
    --------
    >>> span(5.0), span(100.0), span(600.0), span(7200.0), span(3e6)
    ('5 s', '100 s', '10 min', '2 h', '35 days')
    """
    for limit, unit, word in ((120.0, 1.0, "s"), (7200.0, 60.0, "min"), (172_800.0, 3600.0, "h")):
        if seconds < limit:
            return f"{seconds / unit:.0f} {word}"
    return f"{seconds / 86_400:.0f} days"


Windows = tuple[Floats, Floats]
"""Wall and CPU time, s."""


@dataclass(frozen=True)
class Watched:
    """How long a process was watched, and what it used.

    Attributes
    ----------
    undisturbed : (array, array)
        Wall and CPU time of windows in which nothing was stopped.
    blocks : (array, array)
        The same of the time after that, in which it was stopped again and again.
    running : (array, array)
        The same of the blocks in which it ran.
    life : Life
        Before the session.
    unseen_s : float
        CPU time of children that ended between two looks, s: in none of the windows.
    """

    undisturbed: Windows
    blocks: Windows
    running: Windows
    life: Life
    unseen_s: float = 0.0

    @property
    def seconds(self) -> float:
        """In which a burst that fell due would have been seen, s; stopped or not."""
        return float(self.undisturbed[0].sum() + self.blocks[0].sum())

    @property
    def used_s(self) -> float:
        """CPU time of all that, s."""
        return float(self.undisturbed[1].sum() + self.blocks[1].sum())

    @property
    def bursts(self) -> float:
        """How many bursts were seen, at most."""
        return number_of_bursts(*_joined(self.undisturbed, self.blocks))

    @property
    def between(self) -> tuple[float, float]:
        """Duties between which the undisturbed one lies: missed work is done later, or lost."""
        return _duty(_joined(self.undisturbed, self.blocks)), _duty(_joined(self.undisturbed, self.running))

    @property
    def duty(self) -> float:
        """The largest of the duties that were seen."""
        return max(*self.between, _duty(self.undisturbed))

    def most(self, missed: float = MISSED) -> float:
        """Return the upper limit of its undisturbed duty.

        What it uses in the blocks in which it runs is its duty, or more if it does missed work: up to twice as much,
        which is known only where it works often.
        """
        wall, cpu = self.running
        more = 1.0
        alone, run = _duty(self.undisturbed), _duty(self.running)
        if number_of_bursts(*self.undisturbed) >= SURE_BURSTS and alone > 0.0 and run > 0.0:
            more = min(max(run / alone, 1.0), 2.0)
        windows = _joined(self.undisturbed, (more * wall, cpu))
        return most(_duty(windows), number_of_bursts(*windows), missed)


def _joined(first: Windows, second: Windows) -> Windows:
    return np.append(first[0], second[0]), np.append(first[1], second[1])


def _duty(windows: Windows) -> float:
    wall_s = float(windows[0].sum())
    return float(windows[1].sum()) / wall_s if wall_s > 0.0 else 0.0


@dataclass(frozen=True)
class Doubt:
    """Why a cost cannot be called less than the margin.

    Attributes
    ----------
    why : str
        In words.
    more_s : float
        About how much longer it takes, s; infinity where that cannot be said.
    high : float
        What it may cost, as a share; infinity where there is no limit.
    """

    why: str
    more_s: float
    high: float = math.inf


def doubt(watched: Watched, margin: float, factor: float, *, takes_cpu: bool, missed: float = MISSED) -> Doubt | None:
    """Return why bursts could cost more than the margin although the estimate is below it; None: they could not.

    Parameters
    ----------
    watched : Watched
        What was seen.
    margin : float
        What is tolerated, as a share greater than 0.
    factor : float
        What a duty of 1 costs, as a share of the job's rate.
    takes_cpu : bool
        Whether its CPU time comes from the job's processors.
    missed : float
        Permitted error of the upper limit, 0 to 1.
    """
    return _of_children(watched, margin, factor) or _of_bursts(watched, margin, factor, takes_cpu, missed)


def _of_children(watched: Watched, margin: float, factor: float) -> Doubt | None:
    unseen = watched.unseen_s / watched.seconds if watched.seconds > 0.0 else 0.0
    if factor * unseen > UNSEEN_PART * margin:
        why = f"processes that it starts used {100 * unseen:.2g} % of a CPU and ended before they could be counted"
        return Doubt(why, math.inf)
    return None


def _of_bursts(watched: Watched, margin: float, factor: float, takes_cpu: bool, missed: float) -> Doubt | None:
    life, named = watched.life, f"{100 * margin:.3g} %"
    if life.is_known and factor * life.duty > margin and (takes_cpu or life.duty > 2.0 * watched.duty):
        return Doubt(f"it used {life.words}, more than was seen in {span(watched.seconds)}", math.inf)
    lives_quietly = life.is_known and factor * life.most < margin
    needed = needed_s(LONG_LIVED if lives_quietly else 1.0)
    if watched.seconds < needed:
        rate = f"one in {watched.seconds / 3.0:.2g} s"
        why = f"bursts of it that are rarer than {rate} would not have been seen, and could cost more than {named}"
        return Doubt(why, needed - watched.seconds)
    if watched.used_s <= 0.0:
        return None
    if not takes_cpu:
        few = watched.bursts < LEAST_BURSTS
        return Doubt(f"only {_counted(watched.bursts)} seen", watched.seconds) if few else None
    upper = factor * watched.most(missed)
    if upper >= margin:
        why = f"{_counted(watched.bursts)} seen, whose rate may be such that they cost {100 * upper:.2g} %"
        return Doubt(why, watched.seconds, upper)
    return None


def too_few(watched: Watched) -> Doubt:
    """Return why the cost of a process that works seldom is not known, and how long it takes to see more."""
    more_s = watched.seconds * max(LEAST_BURSTS / max(watched.bursts, 1.0) - 1.0, 0.2)
    return Doubt(f"only {_counted(watched.bursts)} seen, too few to know what they cost", more_s)


def _counted(bursts: float) -> str:
    return f"{max(bursts, 1.0):.0f} burst{'s were' if bursts >= 1.5 else ' was'}"
