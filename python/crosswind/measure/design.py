"""Which levels come when: shuffled cycles of short blocks, so that slow drift cancels within each cycle.

A pass of the ladder is 40 % idle, 20 % middle, 40 % top, shuffled: ends carry a slope's information, the middle shows a
bend. Blocks last 40 ms or 20 round trips; the first 10 ms are left to TCP to settle. A cycle is one pass of long blocks
or several of short ones: cycles are what an interval exchanges, so one must outlast most of what disturbs the next
block too. Now and then a cycle has 1/4 and 3/4 besides, for lack of fit. Each channel has cycles of its own, the
channels taking turns, so that all of them see the same drift.

Source: docs/concepts/prototype.md: per second of measuring this design gave 3 to 10 times the precision of
ladders with long blocks; docs/decisions/0011-blocks-of-40-ms.md on the length of a block and of a cycle.
It decides nothing about when to stop (`stopping.py`) and measures nothing (`measure/`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

UNPACED = None
LADDER = (0.0, 0.0, 0.5, 1.0, 1.0)
CHECK = (0.25, 0.75)
CHECK_EVERY = 5
CONTENTION = (0, 1, 2, 4)
"""Loading connections of a contention cycle's blocks; as many idle blocks stand between them."""

BLOCK_S = 0.04
SETTLE_S = 0.01
CONTENDED_BLOCK_S, CONTENDED_SETTLE_S = 0.1, 0.03
"""Several senders take longer to share a link than one to reach its rate."""
CYCLE_S = 0.4
ROUND_TRIPS_PER_BLOCK = 20
ROUND_TRIPS_TO_SETTLE = 6
UNITS_PER_BLOCK = 5

STEPS_WHERE_CPU_LIMITS = (1.0, 2.0, 5.0)
PART_WHERE_CPU_LIMITS = 0.5
PART_WHERE_WIRE_LIMITS = 0.9
TOPS_ON_LOOPBACK_MB_PER_S = (1500.0, 1000.0, 500.0)
"""Tops where no wire is: the unpaced rate there says how fast memory is at that moment, and a top that follows it from
one step to the next makes a third of difference to the slope. The higher the top, the more of the loss is signal; up to
the first of them pacing is checked (benchmarks/traffic_against_iperf3.py)."""
MOST_BESIDE_MB_PER_S = 1000.0
"""The top of those that are compared: a ratio depends on the rate, and not every start of a runtime can have more."""
PART_ON_LOOPBACK = 0.75


@dataclass(frozen=True)
class Block:
    """One setting of all levels.

    Attributes
    ----------
    levels : tuple of float or None
        MB/s for each channel; 0: silence, None: no limit.
    phase : str
        What it is for.
    load : int
        Connections of other senders that load the peers.
    """

    levels: tuple[float | None, ...]
    phase: str
    load: int = 0


@dataclass(frozen=True)
class Timing:
    """Length of a block and of its unused start, s."""

    block_s: float
    settle_s: float

    @property
    def interval_s(self) -> float:
        """One sampling interval covers the used part of a block: less to store, nothing lost."""
        return self.block_s - self.settle_s

    @property
    def passes(self) -> int:
        """Passes through the levels that make a cycle of at least `CYCLE_S`."""
        return max(1, round(CYCLE_S / (len(LADDER) * self.block_s)))


def timing(round_trip_s: float, unit_s: float = 0.0, *, contended: bool = False) -> Timing:
    """Return how long blocks must be for this round trip, and for work whose units cannot be cut.

    Parameters
    ----------
    round_trip_s : float
        Of the slowest peer, s.
    unit_s : float
        Time that one unit takes, s; 0 where the kernel counts finer than a unit.
    contended : bool
        Whether other senders load the peers.

    Examples
    --------
    >>> timing(0.0001)
    Timing(block_s=0.04, settle_s=0.01)
    >>> timing(0.05).block_s
    1.0
    """
    least_s, settle_s = (CONTENDED_BLOCK_S, CONTENDED_SETTLE_S) if contended else (BLOCK_S, SETTLE_S)
    block_s = max(least_s, ROUND_TRIPS_PER_BLOCK * round_trip_s, UNITS_PER_BLOCK * unit_s)
    return Timing(block_s, min(max(settle_s, ROUND_TRIPS_TO_SETTLE * round_trip_s), block_s / 2))


def top_of_ladder(unpaced_mb_per_s: float, limited_by_cpu: bool) -> float:
    """Return the highest paced rate of a ladder, MB/s: the same from run to run, and within reach.

    Slopes over different ranges of a bent curve differ, and the unpaced rate itself moves by tens of per cent from run
    to run where the CPU limits it; so the top is then half of it, rounded down to a coarse step (1, 2 or 5 times
    a power of ten). Where the wire limits it, it is steady, and 0.9 of it, rounded down to two digits, shows more
    of the range.

    Parameters
    ----------
    unpaced_mb_per_s : float
        Rate reached without pacing, greater than 0 MB/s.
    limited_by_cpu : bool
        Whether a CPU, not the wire, limits that rate.

    Examples
    --------
    >>> top_of_ladder(2258.0, limited_by_cpu=True), top_of_ladder(117.7, limited_by_cpu=False)
    (1000.0, 100.0)
    """
    if not limited_by_cpu:
        wanted = PART_WHERE_WIRE_LIMITS * unpaced_mb_per_s
        scale = 10.0 ** (math.floor(math.log10(wanted)) - 1)
        return float(f"{math.floor(wanted / scale) * scale:.2g}")
    wanted = PART_WHERE_CPU_LIMITS * unpaced_mb_per_s
    scale = 10.0 ** math.floor(math.log10(wanted))
    return float(f"{max(step for step in STEPS_WHERE_CPU_LIMITS if step * scale <= wanted) * scale:.2g}")


def top_on_loopback(unpaced_mb_per_s: float, *, beside: bool = False) -> float:
    """Return the highest paced rate of a ladder where no wire is, MB/s: one of few, the same while it is within reach.

    Parameters
    ----------
    unpaced_mb_per_s : float
        Rate reached without pacing, greater than 0 MB/s.
    beside : bool
        Whether two are compared: at most 1000 MB/s then.

    Examples
    --------
    >>> top_on_loopback(3900.0, beside=True)
    1000.0
    >>> top_on_loopback(3900.0), top_on_loopback(1900.0), top_on_loopback(700.0), top_on_loopback(300.0)
    (1500.0, 1000.0, 500.0, 100.0)
    """
    most = min(PART_ON_LOOPBACK * unpaced_mb_per_s, MOST_BESIDE_MB_PER_S if beside else math.inf)
    within = [top for top in TOPS_ON_LOOPBACK_MB_PER_S if top <= most]
    return within[0] if within else top_of_ladder(unpaced_mb_per_s, limited_by_cpu=True)


def ladder_cycle(channel: int, tops: Sequence[float], index: int, random: Random, passes: int = 1) -> list[Block]:
    """Return one cycle of a channel alone, each pass shuffled, `index` counting that channel's cycles from 0."""
    with_check = index % CHECK_EVERY == CHECK_EVERY - 1
    cycle = []
    for index_of_pass in range(passes):
        checks = CHECK if with_check and index_of_pass == 0 else ()
        parts = [(part, "ladder") for part in LADDER] + [(part, "check") for part in checks]
        blocks = [
            Block(tuple(part * top if i == channel else 0.0 for i, top in enumerate(tops)), phase)
            for part, phase in parts
        ]
        random.shuffle(blocks)
        cycle += blocks
    return cycle


def together_cycle(tops: Sequence[float], index: int, random: Random, passes: int = 1) -> list[Block]:
    """Return one cycle of all channels at once: idle, middle and top of all, and one against the others.

    The mixed blocks (one channel at its top, the others in the middle) keep a plane's columns from being one.
    """
    count = len(tops)
    parts = [(part,) * count for part in LADDER]
    if count > 1:
        chosen = index % count
        parts.append(tuple(1.0 if i == chosen else 0.5 for i in range(count)))
    cycle = []
    for _ in range(passes):
        blocks = [Block(tuple(p * top for p, top in zip(part, tops, strict=True)), "together") for part in parts]
        random.shuffle(blocks)
        cycle += blocks
    return cycle


def contention_cycle(channel: int, channels: int, random: Random) -> list[Block]:
    """Return one shuffled cycle of a channel without pacing while others load its peer (the papers' ladder)."""
    silent = (0.0,) * channels
    alone = tuple(UNPACED if i == channel else 0.0 for i in range(channels))
    blocks = [Block(silent, "contention") for _ in CONTENTION] + [Block(alone, "contention", k) for k in CONTENTION]
    random.shuffle(blocks)
    return blocks
