"""A slope that a few ruined points cannot move: the median over pairs (Theil-Sen), paired within each cycle.

Points of one cycle share the drift of their moment, so only they are paired; that also keeps the number of pairs
proportional to the measurement's length. Source: P. K. Sen, JASA 63 (1968) 1379; docs/concepts/prototype.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def theil_sen(x: ArrayLike, y: ArrayLike, cycle: ArrayLike) -> float:
    """Return the median slope over all pairs of points with different x within a cycle.

    Parameters
    ----------
    x, y : array_like, shape (n,)
        Points.
    cycle : array_like of int, shape (n,)
        Only points of the same cycle are paired.

    Returns
    -------
    float
        d y / d x; NaN when no cycle has two different x.

    Examples
    --------
    >>> theil_sen([0, 1, 2, 3, 4], [5, 4, 3, 2, 99], [0] * 5)
    -1.0
    """
    xs, ys = np.asarray(x, float), np.asarray(y, float)
    _, member = np.unique(np.asarray(cycle), return_inverse=True)
    order = np.argsort(member, kind="stable")
    slopes = []
    for rows in np.split(order, np.flatnonzero(np.diff(member[order])) + 1):
        one, other = np.triu_indices(rows.size, 1)
        run = xs[rows[other]] - xs[rows[one]]
        apart = run != 0
        slopes.append((ys[rows[other]] - ys[rows[one]])[apart] / run[apart])
    every = np.concatenate(slopes) if slopes else np.zeros(0)
    return float(np.median(every)) if every.size else float("nan")
