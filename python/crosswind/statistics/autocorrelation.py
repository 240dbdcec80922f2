"""What noise that is correlated from block to block adds to an interval: more than a bootstrap over cycles can see.

The bootstrap takes cycles as exchangeable. Noise whose correlation from one block to the next is 0.95 outlasts four
cycles of five blocks, and then few cycles are hardly more than one. All blocks together tell more about it than the
cycles do: their residuals are fitted by an autoregression of order 1 (AR(1)), and the variance of an estimate that is
linear in the blocks follows from it.

Two kinds of noise are distinguished by their likelihood, since they do different things to a normalised rate. One that
adds to the rate whatever the traffic (another process's share) moves the idle rate, by which all is divided, and so
the result. One that multiplies the rate (the clock of the processor) moves both alike, and cancels.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST = 0.98  # beyond, a measurement of some seconds can't distinguish slow noise from a lasting change
FEWEST = 12  # blocks; fewer say nothing about how they follow each other


def deviation(weights: Floats, residual: Floats, predicted: Floats, block: NDArray[np.int64]) -> tuple[float, float]:
    """Return the standard deviation of an estimate whose change is `weights @ change of the blocks`.

    Parameters
    ----------
    weights : numpy.ndarray, shape (n,)
        By how much the estimate moves when a block's normalised rate does.
    residual, predicted : numpy.ndarray, shape (n,)
        Normalised rates minus the line, and the line; both as parts of the idle rate.
    block : numpy.ndarray of int, shape (n,)
        Number of each block in the order of time; no two alike.

    Returns
    -------
    tuple of float
        The deviation in the unit of the estimate, and as how many independent blocks these count. A deviation of 0 for
        fewer than `FEWEST` blocks, where hardly any follow each other, and where no block moves the estimate.

    Examples
    --------
    >>> e = np.array([1.0, -1.0] * 10) / 100
    >>> spread, independent = deviation(np.full(20, 1 / 20), e, np.ones(20), np.arange(20))
    >>> round(spread, 4), round(independent)
    (0.0022, 20)
    """
    if block.size < FEWEST or not predicted.min() > 0 or not np.any(weights):
        return 0.0, float(block.size)
    found = []
    for scale in (np.ones_like(predicted), predicted):
        noise, place = residual / scale, block - block.min()
        after = np.full(int(place.max()) + 1, np.nan)
        after[place] = noise
        pairs = np.isfinite(after[1:]) & np.isfinite(after[:-1])
        before, now = after[:-1][pairs], after[1:][pairs]
        power = float(noise @ noise) / noise.size
        if before.size < FEWEST // 2 or not power > 0:
            return 0.0, float(block.size)
        seen = float(before @ now) / before.size / power
        # Lag-1 correlations of residuals of a line are too low by about this much (Marriott and Pope, Biometrika 41,
        # 1954); alternating noise is taken as independent.
        kept = min(max(seen + (1.0 + 4.0 * seen) / noise.size, 0.0), MOST)
        new = max(float(np.mean((now - kept * before) ** 2)), np.finfo(float).tiny)
        likelihood = -0.5 * before.size * np.log(new) - before.size * float(np.mean(np.log(scale)))
        grid = np.zeros(after.size)
        grid[place] = weights * scale
        # sum_ij w_i w_j kept^|i - j|, of noise whose stationary variance is new / (1 - kept^2).
        earlier = _of_earlier(grid, kept)
        apart = float(grid @ grid)
        spread = max(apart + 2.0 * float(grid @ earlier), 1e-12 * apart)
        independent = noise.size * (min(apart / spread, 1.0) if spread > 0.0 else 1.0)  # tiny weights underflow
        found.append((likelihood, float(np.sqrt(spread * new / (1.0 - kept**2))), independent))
    return max(found)[1:]


def _of_earlier(values: Floats, kept: float) -> Floats:
    """Return for each value the sum of those before it, each times `kept` for every step that it is back."""
    before = values[:-1].tolist()  # scipy.signal, which has filters, takes half a second to import
    return np.array(list(accumulate(before, lambda summed, value: kept * value + kept * summed, initial=0.0)))
