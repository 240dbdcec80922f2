"""The cells of the paper on simulated processors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from crosswind.documents import Document
from crosswind.lab.engine import simulate_overlap
from crosswind.lab.papers.quadrics_overlap.calibration import MIB, Calibration
from crosswind.lab.papers.quadrics_overlap.tables import CELLS, SETTINGS

Cell: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class Times:
    """A cell, s: alone and together."""

    ping_alone_s: float
    burn_alone_s: float
    ping_s: float
    burn_s: float
    ping_cpu_beside_s: float

    @property
    def ping_slowdown(self) -> float:
        """Of the ping."""
        return self.ping_s / self.ping_alone_s

    @property
    def burn_slowdown(self) -> float:
        """Of the burners."""
        return self.burn_s / self.burn_alone_s

    @property
    def serialised(self) -> float:
        """When the ping ended, over the sum of both alone: 1 when it ran after the burners (E3-2)."""
        return self.ping_s / (self.ping_alone_s + self.burn_s)


Matrix: TypeAlias = Mapping[tuple[str, Cell], Times]
"""Setting and cell -> times."""


def simulate(
    calibration: Calibration,
    settings: Mapping[str, tuple[str, int]] = SETTINGS,
    *,
    scheduler: str | None = None,
    linger_s: float | None = None,
    cells: Sequence[Cell] = CELLS,
) -> Matrix:
    """Simulate cells under settings.

    Parameters
    ----------
    calibration : Calibration
    settings : mapping
        Name -> how the ping waits, and the burners' nice level.
    scheduler : str, optional
        decay or fair; default: the calibration's.
    linger_s : float, optional
        Default: the calibration's.
    cells : sequence of (int, int)
        Round trips, and MiB of each message.

    Raises
    ------
    DescriptionError
        When one is out of its range.

    Examples
    --------
    >>> from crosswind.lab.papers.quadrics_overlap.calibration import QUICK
    >>> found = simulate(QUICK, {"event": ("event", 0)}, cells=[(1, 1)])
    >>> round(found["event", (1, 1)].ping_alone_s, 1)
    2.4
    """
    places = [(name, cell) for name in settings for cell in cells]
    asked: list[Document] = [
        {
            "wait": settings[name][0],
            "burn_nice": settings[name][1],
            "messages": cell[0],
            "message_bytes": cell[1] * MIB,
        }
        for name, cell in places
    ]
    linger = calibration.linger_s if linger_s is None else linger_s
    document = calibration.asked(scheduler or calibration.scheduler, linger, asked)
    found = simulate_overlap(document)
    fields = Times.__dataclass_fields__
    return {
        place: Times(**{name: entry[name] for name in fields})
        for place, entry in zip(places, found["cells"], strict=True)
    }
