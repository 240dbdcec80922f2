"""Figures that stand in the text only: rates in MB/s, interference rates in s/MB, the rest parts of the full rate."""

from __future__ import annotations

from dataclasses import dataclass

RECEIVED_MB_PER_S, SENT_MB_PER_S = 11.0, 10.7
"""What Lab0 receives from several nodes ("just over 11") and sends to six at once (3.1, 3.2)."""
ONE_SENDER = (0.85, 0.95)
"""Part of the highest rate that one near sender reaches (3.1)."""
TOGETHER = {
    "receiving, similar": 0.0258,
    "receiving, dissimilar": 0.0121,
    "sending, similar": 0.0088,
    "sending, dissimilar": 0.0204,
}
"""Mean difference between the rate expected of several nodes at once and the actual one (3.1, 3.2)."""


@dataclass(frozen=True)
class Fits:
    """How far fits are off, over all experiments of one direction (3.1, 3.2).

    Attributes
    ----------
    most, mean, std_dev : float
        Largest error, mean of the largest errors, standard deviation.
    """

    most: float
    mean: float
    std_dev: float


LINEAR = {"receive": Fits(0.091, 0.022, 0.0075), "send": Fits(0.096, 0.031, 0.0105)}
QUADRATIC = {"receive": Fits(0.074, 0.018, 0.0052), "send": Fits(0.101, 0.026, 0.0074)}

ALONE = {"receive": 0.0502, "send": 0.0327}
"""Interference rates of one direction alone in the example of 3.3."""
PLANE = {"constant": 0.9542, "receive": 0.0427, "send": 0.0265}
"""Its plane, both directions at once."""
PLANE_MOST, SEPARATE_MOST = 0.191, 0.373
PLANE_MEAN, SEPARATE_MEAN = 0.015, 0.053
"""Largest and mean errors of planes, and of both directions' own rates, over all experiments (3.3)."""
EXAMPLE_MOST = {"parts of the full rate": 0.052, "parts of the measured rate": 0.124}
"""Largest error of the example's plane: in this paper, and in the other one (E1-4)."""
CONTOUR_DEGREES = -60.0
CORNERS = {(3.0, 4.5): 0.70, (3.0, 9.5): 0.45, (10.5, 1.0): 0.65, (10.5, 5.5): 0.50}
"""Figure 5b: MB/s sent and received -> compute rate."""

FOOTPRINT = (0.049, 0.025)
"""IR of receiving with a matrix of 1024 x 1024 and of 8 x 8 (3.4)."""
MESSAGES = {"receive": 0.0012, "send": 0.0020}
"""Largest differences of IR between messages of 8 MB and of 128 KB (3.5)."""
REMOTE_LOSS, NEAR_LOSS = 0.075, 0.50
"""Most that remote and near nodes take (3.6)."""
SB_MB_PER_S, TENN_MB_PER_S = 7.0, 0.3
"""What a node of Santa Barbara sends (3.6), and Tennessee (table 4 of the other paper, row 5)."""
SHARES = {"receiving": (2.8, 2.8), "sending": (1.8, 3.8)}
"""MB/s of each of two Solaris and of each of two Linux nodes at once (3.7)."""
SOLARIS_ERRORS = 4.0
"""Times by which fits with Solaris nodes are worse (3.7)."""
