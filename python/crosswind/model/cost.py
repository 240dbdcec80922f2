"""What moving bytes costs, and how it reaches the computation.

The CPU time of the traffic's threads is explained by what they did: calls, bytes, wake-ups (docs, prototype.md).
The loss of compute rate is split in two: the traffic's threads took the CPU (displacement), or the computing thread
did less work per CPU second (slow-down: softirq charged to it, caches, memory, clock). schedstat sees the first, only
the computation itself sees the second (docs, prototype.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from crosswind.measurement import Measurement
from crosswind.model.points import alone, in_phases, samples

Floats = NDArray[np.float64]
RESAMPLES = 200
SEPARABLE = 100.0
"""Condition number above which 1 % of noise in CPU times moves a cost by about its own size."""


@dataclass(frozen=True)
class CostFit:
    """traffic CPU = per_call calls + per_gb GB + per_wakeup switches, no term negative.

    Calls and bytes often rise together; then their sum is well known and the parts are not, which the intervals show.

    Attributes
    ----------
    per_call_us, per_gb_s, per_wakeup_us : float
        Microseconds per call, CPU seconds per GB, microseconds per time switched in.
    per_call_ci95, per_gb_ci95, per_wakeup_ci95 : tuple of float
        By bootstrap over cycles, same units.
    all_in_per_gb_s : float
        CPU seconds of the traffic's threads per GB, everything together.
    median_error : float
        Median of |explained - measured| / measured over blocks; measured is taken as 0.1 % of the largest at least.
    condition : float
        Condition number of calls, GB and switches, each scaled to unit length: 1 when they vary freely, without bound
        when they rise together.
    blocks : int
        Number of blocks with traffic.
    """

    per_call_us: float
    per_gb_s: float
    per_wakeup_us: float
    per_call_ci95: tuple[float, float]
    per_gb_ci95: tuple[float, float]
    per_wakeup_ci95: tuple[float, float]
    all_in_per_gb_s: float
    median_error: float
    condition: float
    blocks: int

    @property
    def separable(self) -> bool:
        """Whether what was done varies in three ways, and at least one cost is distinguishable from 0."""
        return self.condition < SEPARABLE and any(
            low > 0.01 * high for low, high in (self.per_call_ci95, self.per_gb_ci95, self.per_wakeup_ci95)
        )


def fit_cost(measurement: Measurement, channel: int, *, seed: int = 0) -> CostFit | None:
    """Regress the CPU time of the traffic's threads on calls, GB and times switched in, block by block.

    Parameters
    ----------
    measurement : Measurement
    channel : int
        Index into the header's `channels`; blocks with traffic on it alone are used.
    seed : int
        Of the bootstrap.

    Returns
    -------
    CostFit or None
        None when fewer than 6 blocks carried traffic, or the CPU time is not known.
    """
    columns = samples(measurement)
    moved = columns[f"channel{channel}_mb"]
    rows = in_phases(measurement) & alone(measurement, channel) & ~columns["settling"].astype(bool)
    block, first, member = np.unique(columns["block"][rows], return_index=True, return_inverse=True)

    def per_block(amount: Floats) -> Floats:
        return np.bincount(member, amount[rows], block.size).astype(float)

    spent = per_block(columns["traffic_cpu_s"])
    did = np.column_stack(
        [1e-6 * per_block(columns["calls"]), per_block(moved) / 1000.0, 1e-6 * per_block(columns["traffic_switches"])]
    )
    # A block that moved next to nothing is about stragglers, not about traffic.
    busy = did[:, 1] > 0.02 * did[:, 1].max(initial=0.0)
    busy &= np.isfinite(spent) & np.isfinite(did).all(axis=1)
    spent, did, cycle = spent[busy], did[busy], columns["cycle"][rows][first][busy]
    if spent.size < 6 or not spent.sum() > 0:
        return None
    # Relative errors count alike at all levels.
    weight = 1.0 / np.maximum(spent, 1e-3 * spent.max())
    found = _solve(np.einsum("ni,nj,n->ij", did, did, weight**2), (weight**2 * spent) @ did)
    drawn = _resampled(did, spent, weight, cycle, seed)
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    call, gb, wakeup = ((float(a), float(b)) for a, b in zip(low, high, strict=True))
    return CostFit(
        per_call_us=float(found[0]),
        per_gb_s=float(found[1]),
        per_wakeup_us=float(found[2]),
        per_call_ci95=call,
        per_gb_ci95=gb,
        per_wakeup_ci95=wakeup,
        all_in_per_gb_s=float(spent.sum() / did[:, 1].sum()),
        median_error=float(np.median(np.abs(did @ found - spent) * weight)),
        condition=_condition(did * weight[:, None]),
        blocks=spent.size,
    )


def _condition(design: Floats) -> float:
    length = np.linalg.norm(design, axis=0)
    return float(np.linalg.cond(design / length)) if np.all(length > 0) else float("inf")


def _solve(gram: Floats, right: Floats) -> Floats:
    """Return the non-negative least squares solution of the normal equations, columns scaled to unit length."""
    length = np.sqrt(np.diag(gram))
    length = np.where(length > 0, length, 1.0)
    # A trace of ridge: exactly collinear columns would have no Cholesky factor.
    root = np.linalg.cholesky(gram / np.outer(length, length) + 1e-10 * np.eye(len(gram))).T
    solution: Floats = nnls(root, np.linalg.solve(root.T, right / length))[0]
    return solution / length


def _resampled(did: Floats, spent: Floats, weight: Floats, cycle: NDArray[np.int64], seed: int) -> Floats:
    label, member = np.unique(cycle, return_inverse=True)
    grams = np.zeros((label.size, 3, 3))
    rights = np.zeros((label.size, 3))
    np.add.at(grams, member, np.einsum("ni,nj,n->nij", did, did, weight**2))
    np.add.at(rights, member, did * (weight**2 * spent)[:, None])
    drawn = np.random.default_rng(seed).integers(0, label.size, (RESAMPLES, label.size))
    return np.array([_solve(grams[rows].sum(axis=0), rights[rows].sum(axis=0)) for rows in drawn])


@dataclass(frozen=True)
class Attribution:
    """How the loss at the top level came about; parts of the idle compute rate that add up to the loss.

    Attributes
    ----------
    displacement : float
        The computing thread had the CPU for less of the time.
    slow_down : float
        It did less work per CPU second.
    """

    displacement: float
    slow_down: float


def attribute(
    compute_cpu_s: tuple[float, float], work: tuple[float, float], seconds: tuple[float, float]
) -> Attribution:
    """Split the loss between two states, given as (idle, loaded) sums over blocks.

    The rate is c s: CPU share c = CPU seconds / seconds, times speed s = work / CPU seconds. The loss 1 - c s / (c0 s0)
    is split by the average over both orders of changing c and s (Shapley), so that neither is favoured and the parts
    add up:
    displacement = (1 - c/c0)(1 + s/s0)/2, slow-down = (1 - s/s0)(1 + c/c0)/2.

    Returns
    -------
    Attribution
        NaN where the CPU time is not known or 0.

    Examples
    --------
    >>> parts = attribute((1.0, 0.75), (9.0, 5.4), (1.0, 1.0))
    >>> round(parts.displacement, 4), round(parts.slow_down, 4)
    (0.225, 0.175)
    """
    if not all(np.isfinite(v) and v > 0 for v in (*compute_cpu_s, *seconds, work[0])):
        return Attribution(float("nan"), float("nan"))
    share = compute_cpu_s[1] / seconds[1] / (compute_cpu_s[0] / seconds[0])
    speed = work[1] / compute_cpu_s[1] / (work[0] / compute_cpu_s[0])
    return Attribution((1.0 - share) * (1.0 + speed) / 2.0, (1.0 - speed) * (1.0 + share) / 2.0)
