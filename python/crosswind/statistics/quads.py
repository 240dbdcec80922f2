"""Randomised quads of blocks, ABBA or BAAB.

Both labels of a quad have the same mean time, so a drift that is linear over a quad cancels.
"""

from __future__ import annotations

import numpy as np


def order_of_quad(generator: np.random.Generator) -> tuple[int, int, int, int]:
    """Return the labels of a quad's four blocks: A is 0 (stopped), B is 1 (running).

    Examples
    --------
    >>> sorted(order_of_quad(np.random.default_rng(0)))
    [0, 0, 1, 1]
    """
    first = int(generator.integers(2))
    return (first, 1 - first, 1 - first, first)
