"""Several peers at once: whether the loss is the sum of what each peer costs alone.

Expected rate 1 - sum IR(i) TR(i) (interference-in-java, sections 3.1 and 3.2, K-M4); the papers found a mean error of
0.9 to 2.6 %. Slopes over different ranges cannot be compared when the cost per MB falls with the rate (MEASURING.md,
A7), so the loss is also set against that of one peer alone at the same total rate, where that was within reach.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosswind.model.interval import mean_interval
from crosswind.model.line import Errors, LineFit, errors
from crosswind.model.together import Blocks


@dataclass(frozen=True)
class Additivity:
    """Additive prediction against what was measured with several peers at once, per direction.

    Attributes
    ----------
    direction : str
        `receive` or `send`.
    errors : Errors
        Of 1 - sum IR(i) TR(i), rates of each peer alone.
    bias, bias_ci95 : float, tuple of float
        Mean of measured - predicted, parts of the idle rate, with its interval over cycles; below 0: together costs
        more.
    matched_bias, matched_ci95 : float, tuple of float
        The same against the mean line of one peer alone at the same total rate, where that peer reached it; NaN where
        none did.
    matched_points, points : int
        Points with a matched rate, and all.
    """

    direction: str
    errors: Errors
    bias: float
    bias_ci95: tuple[float, float]
    matched_bias: float
    matched_ci95: tuple[float, float]
    matched_points: int
    points: int


def check_additivity(blocks: Blocks, reference: float, lines: dict[int, LineFit]) -> tuple[Additivity, ...]:
    """Compare, for each direction, blocks with two or more peers of that direction only.

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
        One per direction that was measured with several peers at once.
    """
    found = []
    for direction, ours in (("receive", blocks.receives), ("send", ~blocks.receives)):
        channels = [i for i in np.flatnonzero(ours) if int(i) in lines]
        several = (blocks.used[:, ours].sum(axis=1) >= 2) & ~blocks.used[:, ~ours].any(axis=1)
        if len(channels) < 2 or not several.any():
            continue
        rates, y, cycle = blocks.rate_mb_per_s[several], blocks.work_per_s[several] / reference, blocks.cycle[several]
        predicted = 1.0 - sum(lines[int(i)].ir_s_per_mb * rates[:, i] for i in channels)
        total = rates[:, ours].sum(axis=1)
        alone = np.full((total.size, len(channels)), np.nan)
        for k, i in enumerate(channels):
            only = blocks.used[:, i] & (blocks.used.sum(axis=1) == 1)
            reached = total <= blocks.rate_mb_per_s[only, i].max(initial=0.0)
            line = lines[int(i)]
            alone[reached, k] = line.intercept - line.ir_s_per_mb * total[reached]
        matched = np.isfinite(alone).any(axis=1)
        bias, low, high = mean_interval(y - predicted, cycle)
        same, same_low, same_high = mean_interval(y[matched] - np.nanmean(alone[matched], axis=1), cycle[matched])
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
            )
        )
    return tuple(found)
