"""The order of blocks, and what was counted in them: randomised quads (ABBA or BAAB), summed by label.

In A everything that is investigated is stopped; in B some of it runs. Both labels of a quad have the same mean time, so
a drift that is linear over a quad cancels. Nothing here has a clock or a process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crosswind.statistics.quads import order_of_quad

Floats = NDArray[np.float64]

FIELDS = ("work", "wall_s", "job_cpu_s", "x_cpu_s")
OFF, ON = 0, 1


def contrasts(investigated: int) -> list[tuple[int, ...]]:
    """Return what runs in B, contrast by contrast: each alone and, where there are several, all together.

    Examples
    --------
    >>> contrasts(1), contrasts(2)
    ([(0,)], [(0,), (1,), (0, 1)])
    """
    alone: list[tuple[int, ...]] = [(one,) for one in range(investigated)]
    return alone if investigated == 1 else [*alone, tuple(range(investigated))]


def schedule(investigated: int, generator: np.random.Generator) -> Iterator[tuple[int, tuple[int, int, int, int]]]:
    """Yield for ever the contrast of the next quad and its order; each contrast once, shuffled, before any again."""
    count = len(contrasts(investigated))
    while True:
        for contrast in generator.permutation(count):
            yield int(contrast), order_of_quad(generator)


@dataclass(frozen=True)
class Quads:
    """Sums over the blocks of each quad of one contrast, by label.

    Attributes
    ----------
    work : array of shape (quads, 2)
        Progress of the job, in the counter's unit; column 0: stopped, column 1: running.
    wall_s, job_cpu_s, x_cpu_s : arrays of shape (quads, 2)
        Wall time, CPU time of the job and of what is investigated, s, at least 0.
    """

    work: Floats
    wall_s: Floats
    job_cpu_s: Floats
    x_cpu_s: Floats

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Sequence[float]]]) -> Quads:
        """Make them of one mapping per quad, from each of `FIELDS` to (stopped, running)."""
        return cls(*(np.array([row[name] for row in rows], dtype=float).reshape(-1, 2) for name in FIELDS))

    def __len__(self) -> int:
        return len(self.work)

    @property
    def stacked(self) -> Floats:
        """All fields in the order of `FIELDS`, of shape (quads, 4, 2)."""
        return np.stack([getattr(self, name) for name in FIELDS], axis=1)

    @property
    def seconds(self) -> float:
        """Wall time of all blocks, s."""
        return float(self.wall_s.sum())

    def stand_still_without(self) -> bool:
        """Whether the job's rate is below a tenth while stopped, in nine of ten quads in which it moved, 5 at least."""
        moved = self.work.sum(axis=1) > 0
        rate = self.work[moved] / self.wall_s[moved]
        still = rate[:, OFF] < 0.1 * rate[:, ON]
        return len(still) >= 5 and float(still.mean()) >= 0.9

    def first(self, count: int) -> Quads:
        """Return the first `count` quads."""
        return Quads(*(getattr(self, name)[:count] for name in FIELDS))
