"""Blocks in which several channels could move bytes at once: their rates side by side.

Used by `plane.py`, `three_point.py` and `additive.py`; not a fit itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crosswind.measurement import Measurement
from crosswind.model.points import (
    DESIGNED,
    Estimator,
    Ints,
    Rows,
    foreign,
    in_phases,
    samples,
    time_base,
    unit_of_resampling,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Blocks:
    """One row per block of the design, alone or together.

    Attributes
    ----------
    rate_mb_per_s, asked_mb_per_s : numpy.ndarray, shape (n, channels)
        What moved and what was asked.
    work_per_s : numpy.ndarray, shape (n,)
        Compute rate.
    cycle, block : numpy.ndarray of int, shape (n,)
        Unit of resampling, and number.
    together : numpy.ndarray of bool, shape (n,)
        Of the phase `together`.
    receives : numpy.ndarray of bool, shape (channels,)
        Direction of each channel: True where the measured host receives.
    """

    rate_mb_per_s: Floats
    asked_mb_per_s: Floats
    work_per_s: Floats
    cycle: Ints
    block: Ints
    together: Rows
    receives: Rows

    @property
    def used(self) -> Rows:
        """Which channels were asked to move bytes, shape (n, channels); unpaced (NaN) counts."""
        used: Rows = self.asked_mb_per_s != 0
        return used

    def over_own_idle(self, reference: float) -> Floats:
        """Return compute rates over the idle mean of each block's own cycle, shape (n,), so that drift cancels.

        Where a cycle has no idle block, over `reference`.
        """
        _, member = np.unique(self.cycle, return_inverse=True)
        idle = ~self.used.any(axis=1) & (self.work_per_s > 0)
        count = np.bincount(member, idle)
        rest = np.bincount(member, np.where(idle, self.work_per_s, 0.0))
        own = np.where(count > 0, rest / np.maximum(count, 1), reference)
        rates: Floats = self.work_per_s / own[member]
        return rates

    @property
    def received_mb_per_s(self) -> Floats:
        """Total received, shape (n,)."""
        total: Floats = self.rate_mb_per_s[:, self.receives].sum(axis=1)
        return total

    @property
    def sent_mb_per_s(self) -> Floats:
        """Total sent, shape (n,)."""
        total: Floats = self.rate_mb_per_s[:, ~self.receives].sum(axis=1)
        return total


def blocks(measurement: Measurement, estimator: Estimator) -> Blocks:
    """Return every block of the design, settling and foreign intervals left out as in `points.points`."""
    columns = samples(measurement)
    count = len(measurement.header["channels"])
    phases = (*DESIGNED, "contention", "together")
    seconds = time_base(measurement, estimator)
    rows = in_phases(measurement, phases) & ~columns["settling"].astype(bool) & ~foreign(columns, estimator)
    rows &= seconds > 0
    block, first, member = np.unique(columns["block"][rows], return_index=True, return_inverse=True)

    def per_second(amount: Floats) -> Floats:
        length = np.bincount(member, seconds[rows], block.size)
        return np.bincount(member, amount[rows], block.size) / length

    return Blocks(
        rate_mb_per_s=np.column_stack([per_second(columns[f"channel{i}_mb"]) for i in range(count)]),
        asked_mb_per_s=np.column_stack([columns[f"channel{i}_asked_mb_per_s"][rows][first] for i in range(count)]),
        work_per_s=per_second(columns["work"]),
        cycle=unit_of_resampling(columns)[rows][first].astype(np.int64),
        block=block.astype(np.int64),
        together=in_phases(measurement, ("together",))[rows][first],
        receives=np.array([c["direction"] == "receive" for c in measurement.header["channels"]], bool),
    )
