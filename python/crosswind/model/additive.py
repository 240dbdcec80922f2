"""Several peers at once: whether the loss is the sum of what each peer costs alone.

Expected rate 1 - sum IR(i) TR(i) (interference-in-java, sections 3.1 and 3.2, K-M4); the papers found a mean error of
0.9 to 2.6 %. Slopes over different ranges cannot be compared when the cost per MB falls with the rate (docs,
prototype.md), so the loss is also set against that of one peer alone at the same total rate, where that was reached.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crosswind.model.concurrent_blocks import Blocks
from crosswind.model.line import Errors, LineFit, errors
from crosswind.model.points import Rows
from crosswind.statistics.bootstrap import mean_of_cycles

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Additivity:
    """Additive prediction against what was measured with several peers at once, per direction.

    Attributes
    ----------
    direction : str
        `receive`, `send`, or `both` where several peers did both at once (synergy is in those figures too).
    errors : Errors
        Of 1 - sum IR(i) TR(i), rates of each peer alone.
    bias, bias_ci95 : float, tuple of float
        Mean of measured - predicted, parts of the idle rate, with its interval over cycles; below 0: together costs
        more.
    matched_bias, matched_ci95 : float, tuple of float
        The same against the mean line of one peer alone at the same total rate, where that peer reached it; NaN where
        none did.
    matched_points, points : int
        Points with a matched rate (none for `both`), and all.
    total_max_mb_per_s : float
        Highest rate of all peers together, MB/s: what a link carries that one peer may not fill.
    """

    direction: str
    errors: Errors
    bias: float
    bias_ci95: tuple[float, float]
    matched_bias: float
    matched_ci95: tuple[float, float]
    matched_points: int
    points: int
    total_max_mb_per_s: float


def check_additivity(blocks: Blocks, reference: float, lines: dict[int, LineFit]) -> tuple[Additivity, ...]:
    """Compare blocks with two or more peers at once: receiving only, sending only, and both.

    Parameters
    ----------
    blocks : Blocks
        Alone and together.
    reference : float
        Compute rate that is called 1, work units/s.
    lines : dict of int to LineFit
        Line of each channel alone, by channel.

    Returns
    -------
    tuple of Additivity
        One per kind that was measured with several peers at once.
    """
    found = []
    receives, sends = blocks.used[:, blocks.receives].sum(axis=1), blocks.used[:, ~blocks.receives].sum(axis=1)
    kinds = {
        "receive": (receives >= 2) & (sends == 0),
        "send": (sends >= 2) & (receives == 0),
        "both": (receives > 0) & (sends > 0) & (receives + sends > 2),
    }
    for direction, several in kinds.items():
        used = blocks.used[several].any(axis=0)
        if not several.any() or any(int(i) not in lines for i in np.flatnonzero(used)):
            continue
        rates, y, cycle = blocks.rate_mb_per_s[several], blocks.over_own_idle(reference)[several], blocks.cycle[several]
        ir = np.array([lines[i].ir_s_per_mb if i in lines else 0.0 for i in range(rates.shape[1])])
        predicted = 1.0 - rates @ ir
        bias, low, high = mean_of_cycles(y - predicted, cycle)
        alone = _alone_at(blocks, lines, used, rates.sum(axis=1)) if direction != "both" else np.full(y.size, np.nan)
        matched = np.isfinite(alone)
        same, same_low, same_high = mean_of_cycles(y[matched] - alone[matched], cycle[matched])
        found.append(
            Additivity(
                direction=direction,
                errors=errors(y, predicted),
                bias=bias,
                bias_ci95=(low, high),
                matched_bias=same,
                matched_ci95=(same_low, same_high),
                matched_points=int(np.count_nonzero(matched)),
                points=y.size,
                total_max_mb_per_s=float(rates.sum(axis=1).max()),
            )
        )
    return tuple(found)


def _alone_at(blocks: Blocks, lines: dict[int, LineFit], used: Rows, total_mb_per_s: Floats) -> Floats:
    """Return the mean rate that one peer alone would leave at these totals; NaN where no peer reached them."""
    left = np.zeros_like(total_mb_per_s)
    peers = np.zeros(total_mb_per_s.size, int)
    for i in np.flatnonzero(used):
        only = blocks.used[:, i] & (blocks.used.sum(axis=1) == 1)
        reached = total_mb_per_s <= blocks.rate_mb_per_s[only, i].max(initial=0.0)
        line = lines[int(i)]
        left[reached] += line.intercept - line.ir_s_per_mb * total_mb_per_s[reached]
        peers[reached] += 1
    return np.where(peers > 0, left / np.maximum(peers, 1), np.nan)
